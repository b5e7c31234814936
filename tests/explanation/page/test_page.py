"""The page as text: self-contained, escaped, small, and true to the explanation."""

from __future__ import annotations

import base64
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from ltga.data import Dataset
from ltga.explanation.node_classes import NodeClasses
from ltga.explanation.page import about, content, render_page, write_page
from ltga.explanation.page.content import page_content
from ltga.train.metrics import expected_calibration_error


class Parsed(HTMLParser):
    """Tags, and the text of every script by its type."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[str | None, str]] = []
        self._type: str | None = None
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside, self._type = tag == "script", dict(attrs).get("type")

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts.append((self._type, data))

    def handle_endtag(self, tag: str) -> None:
        self._inside = False


@pytest.fixture(scope="module")
def text(explained: Any) -> str:
    return render_page(explained("ltga-head"))


def test_the_page_loads_nothing(text: str) -> None:
    tags = Parsed(text).tags
    for tag, attributes in tags:
        assert "src" not in attributes, tag
        assert (attributes.get("href") or "#").startswith(("#", "data:,")), tag
        assert "style" not in attributes and not any(name.startswith("on") for name in attributes), tag
    assert "url(" not in text and "@import" not in text
    (policy,) = (attributes["content"] for _, attributes in tags if "http-equiv" in attributes)
    assert policy is not None and policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy


def test_names_cannot_leave_their_place(text: str) -> None:
    parsed = Parsed(text)
    assert [kind for kind, _ in parsed.scripts] == ["application/json", None]
    assert not any(tag == "img" for tag, _ in parsed.tags)
    assert json.loads(parsed.scripts[0][1])["names"][2] == "</script><script>window.hacked = 1</script>"


def test_the_arrays_are_the_explanations(explained: Any) -> None:
    inside = explained("ltga-edge")
    arrays = page_content(inside)["arrays"]
    stored = {name: np.frombuffer(base64.b64decode(a["base64"]), a["type"]) for name, a in arrays.items()}
    start, heads = stored["start"], inside.num_heads
    gap = stored["gap"].reshape(2, -1, heads)
    q = stored["q"].reshape(2, -1, heads)
    for node in range(inside.num_nodes):
        mine = np.flatnonzero(inside.edge_index[1] == node)
        rows = slice(start[node], start[node + 1])
        np.testing.assert_array_equal(stored["source"][rows], inside.edge_index[0, mine])
        best = inside.logits[:, mine].max(axis=1, keepdims=True)
        np.testing.assert_array_equal(gap[:, rows], best - inside.logits[:, mine])
        np.testing.assert_array_equal(q[:, rows], inside.q[:, mine])


def test_a_heads_q_is_stored_once(explained: Any) -> None:
    inside = explained("ltga-head")
    packed = page_content(inside)["arrays"]["q"]
    np.testing.assert_array_equal(
        np.frombuffer(base64.b64decode(packed["base64"]), "float32").reshape(2, 3), inside.q[:, 0]
    )


def test_reliability_is_the_calibration_error_in_bins(explained: Any) -> None:
    inside = explained("ltga-head")
    test = inside.parts() == "test"
    probs = torch.from_numpy(inside.log_probs[test]).double().exp()
    bins = page_content(inside)["reliability"]["bins"]
    assert sum(each["count"] for each in bins) == test.sum()
    total = sum(each["count"] * abs(each["accuracy"] - each["confidence"]) for each in bins) / test.sum()
    assert total == pytest.approx(expected_calibration_error(probs, inside.dataset.data.y[test], about.BINS), rel=1e-6)


def test_a_larger_graph_is_stored_in_half_precision_and_says_so(explained: Any, text: str) -> None:
    inside = explained("ltga-edge")
    exact, half = whole_size(inside, 4), whole_size(inside, 2)
    assert page_content(inside, exact)["arrays"]["gap"]["type"] == "float32"
    content = page_content(inside, exact - 1)
    assert content["arrays"]["gap"]["type"] == "float16" and content["sample"] is None
    assert "half precision" in render_page(inside, exact - 1) and "half precision" not in text
    assert page_content(inside, half)["sample"] is None and page_content(inside, half - 1)["sample"] is not None


def whole_size(inside: Any, width: int) -> int:
    """The bytes that the whole graph takes, by brute force over the arrays that pages store."""
    edges, nodes = inside.edge_index.shape[1], inside.num_nodes
    names = sum(4 + 2 * len(name) for name in inside.dataset.node_names)
    values = 2 * inside.num_layers * inside.num_heads  # a gap and a q each
    return math.ceil(4 / 3 * (edges * (values * width + 5) + 24 * nodes) + names)


@pytest.fixture(scope="module")
def crowd(explained: Any) -> Any:
    """Explanations of graphs of any size, with random logits and each edge's own q."""

    def make(nodes: int, degree: int, layers: int = 2, heads: int = 4) -> NodeClasses:
        rng = np.random.default_rng(0)
        edges = np.stack([rng.integers(0, nodes, nodes * degree), np.repeat(np.arange(nodes), degree)])
        loops = np.tile(np.arange(nodes), (2, 1))
        both = np.concatenate([edges, loops], axis=1)
        shape = (layers, both.shape[1], heads)
        logits = rng.standard_normal(shape, dtype=np.float32)
        data = Data(x=torch.zeros(nodes, 1), y=torch.from_numpy(rng.integers(0, 3, nodes)))
        data.edge_index = torch.from_numpy(edges)
        part = torch.arange(nodes) % 4
        ids = [f"id{node}" for node in range(nodes)]
        graph = Dataset("crowd", data, part < 2, part == 2, part == 3, node_ids=ids)
        weights = np.full(shape, 1 / (degree + 1), dtype=np.float32)
        weights[0, ::7] = 0
        log_probs = np.log(rng.dirichlet(np.ones(3), nodes)).astype(np.float32)
        return NodeClasses(
            explained("ltga-edge").record, graph, both, np.append(np.arange(edges.shape[1]), np.full(nodes, -1)),
            logits, 1.2 + 0.1 * logits, weights, "q_softmax", log_probs,
        )  # fmt: skip

    return make


def test_a_page_of_a_large_graph_carries_a_sample_and_says_which(crowd: Any) -> None:
    inside, most = crowd(20_000, 5), 2_000_000
    text = render_page(inside, most)
    assert 0.4 * most < len(text.encode()) < most + 300_000
    content = page_content(inside, most)
    told = content["sample"]
    arrays = {name: np.frombuffer(base64.b64decode(a["base64"]), a["type"]) for name, a in content["arrays"].items()}
    rows, nodes = int(arrays["row"].sum()), content["nodes"]
    assert f"{rows:,} of 20,000 nodes" in told and f"{20_000 - nodes:,} are left out" in told
    assert all(reason in told for reason in ("40 that ignore most", "wrong and surest", "drawn at random"))
    assert content["exact"] and content["all_nodes"] == 20_000 and content["edges"] == (~inside.self_loop).sum()
    assert content["node_ids"] == [f"id{number}" for number in arrays["number"]]
    # What is there is true: every row has all edges of its node, with their logits.
    for place in np.flatnonzero(arrays["row"])[::50]:
        number = arrays["number"][place]
        mine = np.flatnonzero(inside.edge_index[1] == number)
        row = slice(arrays["start"][place], arrays["start"][place + 1])
        np.testing.assert_array_equal(arrays["number"][arrays["source"][row]], inside.edge_index[0, mine])
        gap = arrays["gap"].reshape(2, -1, 4)[:, row]
        best = inside.logits[:, mine].max(axis=1, keepdims=True)
        np.testing.assert_array_equal(gap, best - inside.logits[:, mine])
    for picked in content["picks"].values():
        assert picked and arrays["row"][picked].all()


@pytest.mark.slow
def test_a_page_of_two_hundred_thousand_nodes_stays_under_ten_megabytes(crowd: Any, tmp_path: Path) -> None:
    path = write_page(crowd(200_000, 5, heads=8), tmp_path / "page.html")
    assert 4e6 < path.stat().st_size < 10e6


def test_written_whole_or_not_at_all(explained: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_page(explained("ltga-head"), tmp_path / "page.html")
    assert path.read_text("utf-8").startswith("<!doctype html>")
    before = path.read_bytes()
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("no space left")))
    with pytest.raises(OSError, match="no space"):
        write_page(explained("ltga-edge"), path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_every_script_is_in_the_page(text: str) -> None:
    folder = Path(content.__file__).parent
    for script in folder.glob("*.js"):
        assert re.sub(r"\s+", " ", script.read_text("utf-8")) in re.sub(r"\s+", " ", text), script.name
