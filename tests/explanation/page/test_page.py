"""The page as text: self-contained, escaped, small, and true to the explanation."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ltga import LTGAError
from ltga.explanation.page import content, render_page, write_page
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
    assert json.loads(parsed.scripts[0][1])["class_names"][2] == "</script><script>window.hacked = 1</script>"


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
    import torch

    inside = explained("ltga-head")
    test = inside.parts() == "test"
    probs = torch.from_numpy(inside.log_probs[test]).double().exp()
    bins = page_content(inside)["reliability"]["bins"]
    assert sum(each["count"] for each in bins) == test.sum()
    total = sum(each["count"] * abs(each["accuracy"] - each["confidence"]) for each in bins) / test.sum()
    assert total == pytest.approx(
        expected_calibration_error(probs, inside.dataset.data.y[test], content.BINS), rel=1e-6
    )


def test_a_large_graph_is_stored_in_half_precision_and_says_so(
    explained: Any, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = explained("ltga-edge")
    monkeypatch.setattr(content, "EXACT_BYTES", 1000)
    assert page_content(inside)["arrays"]["gap"]["type"] == "float16"
    assert "half precision" in render_page(inside) and "half precision" not in text
    monkeypatch.setattr(content, "MOST_BYTES", 1000)
    with pytest.raises(LTGAError, match=r"page: .*too many.*parquet"):
        page_content(inside)


def test_a_page_of_twenty_thousand_nodes_stays_under_thirty_megabytes(explained: Any) -> None:
    """8 heads, 2 layers, 94,000 edges, each with its own q: the size of gum-syntax under LTGA-Edge."""
    inside = explained("ltga-edge")
    rng = np.random.default_rng(0)
    values = rng.random((2, 94_000, 8), dtype=np.float32)
    edges = rng.integers(0, inside.num_nodes, (2, 94_000))
    degree = np.bincount(edges[1])[edges[1]]
    uniform = np.broadcast_to(1 / degree[:, None], values.shape).astype(np.float32)
    position = np.full(94_000, -1)
    large = replace(inside, edge_index=edges, position=position, logits=values, q=values + 0.5, weights=uniform)
    assert 8e6 < len(render_page(large)) < 30e6


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
