"""Every example runs, is short, and shows what it says."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

EXAMPLES = Path(__file__).parents[1] / "examples"


def shows_accuracy(least: float) -> Any:
    def check(names: dict[str, Any]) -> None:
        assert names["accuracy"] > least

    return check


def shows_ignored_noise(names: dict[str, Any]) -> None:
    assert names["share"] > 0.9 and names["zero"].float().mean() > 0.02


def shows_more_than(name: str, least: float) -> Any:
    def check(names: dict[str, Any]) -> None:
        assert names[name] > least

    return check


def shows_a_smaller_error(names: dict[str, Any]) -> None:
    assert names["errors"]["ltga-head"] < 0.8 * names["errors"]["features"]


SHOWN = {
    "drop_in_layer": shows_accuracy(0.85),
    "explain_a_node": shows_ignored_noise,
    "graph_classification": shows_accuracy(0.8),
    "graph_from_pandas": shows_accuracy(0.8),
    "heterogeneous": shows_accuracy(0.65),
    "inductive": shows_accuracy(0.8),
    "link_prediction": shows_more_than("area", 0.8),
    "mini_batches": shows_accuracy(0.65),
    "molecules": shows_more_than("r2", 0.5),
    "multi_label_graphs": shows_more_than("area", 0.75),
    "node_regression": shows_a_smaller_error,
    "several_labels": shows_more_than("precision", 0.6),
    "typed_links": shows_more_than("hits", 0.7),
}


def test_no_example_is_left_out() -> None:
    assert sorted(path.stem for path in EXAMPLES.glob("*.py")) == sorted(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_it_runs_and_shows_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = EXAMPLES / f"{name}.py"
    if name == "molecules":
        pytest.importorskip("rdkit")
    assert len(path.read_text().splitlines()) < 80
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    try:
        with torch.random.fork_rng(devices=[]):
            names = runpy.run_path(str(path), run_name="__main__")
    finally:
        torch.set_num_threads(threads)
    SHOWN[name](names)
    assert capsys.readouterr().out and list(tmp_path.iterdir()) == []
