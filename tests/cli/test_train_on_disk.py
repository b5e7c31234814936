"""``ltga convert``, ``train`` and ``predict`` on a graph folder, which stays on disk wherever batches are trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cli.graphs import write_tables
from ltga.data import GraphFolder, load_dataset, open_graph_folder
from ltga.train import batches, load_run, predicted

QUICK = ("--method", "ltga-head", "--seeds", 1, "--set", "epochs=2", "--set", "hidden_channels=4", "--set", "heads=2")


@pytest.fixture
def folder(ltga: Any, tmp_path: Path) -> Path:
    outcome = ltga("convert", "power-law:num_nodes=600,num_edges=3000,num_features=8,train=0.2", tmp_path / "graph")
    assert outcome.code == 0, outcome.err
    return tmp_path / "graph"


def refuse_to_load(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: GraphFolder) -> None:
        raise AssertionError("the graph was loaded")

    monkeypatch.setattr(GraphFolder, "dataset", refuse)


def test_a_folder_is_trained_stored_and_predicted_from_disk(
    ltga: Any, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_to_load(monkeypatch)
    runs = tmp_path / "runs"
    command = ("train", f"{folder}/", "--batch-size", 64, "--fanout", "4,3", "--out", runs, *QUICK)
    outcome = ltga(*command, "--json")
    assert outcome.code == 0, outcome.err
    told = json.loads(outcome.out)
    graph = open_graph_folder(folder)
    assert told["dataset"] == {
        "name": graph.name, "fingerprint": graph.fingerprint, "nodes": 600, "edges": graph.num_edges,
        "classes": graph.num_classes,
    }  # fmt: skip
    assert told["page"] is None and not told["methods"][0]["runs"][0]["reused"]
    assert json.loads(ltga(*command, "--json").out)["methods"][0]["runs"][0]["reused"]
    (record,) = runs.glob("*.json")
    stored = load_run(record)
    assert stored.record["config"]["minibatch"]["fanout"] == [4, 3]
    monkeypatch.setattr(predicted, "ROWS", 250)  # so that the table is written in parts
    for given in ([], [f"{folder}/"], [f"{folder}/", "--batch-size", 100]):
        out = tmp_path / ("p.parquet" if len(given) == 1 else "p.csv")
        outcome = ltga("predict", record.stem[:8], *given, "--runs", runs, "--out", out)
        assert outcome.code == 0, outcome.err
        frame = pd.read_parquet(out) if out.suffix == ".parquet" else pd.read_csv(out)
        assert len(frame) == 600 and frame["node"].astype(str).tolist() == graph.node_names(range(600))
        np.testing.assert_allclose(frame.filter(like="p_"), np.exp(stored.arrays["log_probs"]), atol=1e-5)
    outcome = ltga("predict", record.stem[:8], "--runs", runs, "--fanout", "3,2", "--out", tmp_path / "s.csv")
    assert outcome.code == 0 and len(pd.read_csv(tmp_path / "s.csv")) == 600


def test_the_choice_is_told_and_a_page_is_refused(
    ltga: Any, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = ("--out", tmp_path / "runs")
    outcome = ltga("train", f"{folder}/", "--page", tmp_path / "p.html", "--batch-size", 64, *runs, *QUICK)
    assert outcome.code == 2 and "--page: shows every edge, and this graph stays on disk" in outcome.err
    monkeypatch.setattr(batches, "free_memory", lambda: 1000)
    outcome = ltga("train", f"{folder}/", *runs, *QUICK, "--method", "gcn,ltga-head")
    assert (
        outcome.code == 2 and "gcn needs the whole graph at once, but the whole graph would take about" in outcome.err
    )
    refuse_to_load(monkeypatch)
    outcome = ltga("train", f"{folder}/", *runs, *QUICK)
    assert outcome.code == 0, outcome.err
    assert "training on sampled neighbourhoods from disk, --batch-size 512 --fanout 10" in " ".join(outcome.err.split())


def test_full_batch_loads_it(ltga: Any, tmp_path: Path, folder: Path) -> None:
    outcome = ltga("train", f"{folder}/", "--full-batch", "--out", tmp_path / "runs", *QUICK, "--json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["dataset"]["fingerprint"] == load_dataset(folder).fingerprint
    assert Path(json.loads(outcome.out)["page"]).exists()


def test_predictions_want_features_that_were_prepared_alike(ltga: Any, tmp_path: Path) -> None:
    rows = [f"n{at},{'ab'[at % 2]},{1000 + 7 * at},{at % 5}" for at in range(24)]
    tables = write_tables(tmp_path / "mine", nodes="\n".join(["id,label,x1,x2", *rows]) + "\n")
    bare, scaled, runs, out = (tmp_path / name for name in ("bare", "scaled", "runs", "p.csv"))
    assert ltga("convert", tables, bare).code == 0
    assert ltga("convert", tables, scaled, "--prepare", "scale=standard").code == 0
    assert ltga("train", f"{tables}/", "--out", runs / "tables", *QUICK).code == 0  # which are scaled
    assert ltga("train", f"{bare}/", "--out", runs / "bare", *QUICK, "--batch-size", 8).code == 0
    (of_tables,), (of_bare,) = ((runs / name).glob("*.json") for name in ("tables", "bare"))
    for record, graph, fault in (
        (of_tables, bare, "was not prepared as the run's graph was"),
        (of_bare, tables, "would be prepared anew"),
    ):
        outcome = ltga("predict", record, f"{graph}/", "--out", out)
        assert outcome.code == 2 and fault in outcome.err and not out.exists()
    for graph in (tables, scaled):
        outcome = ltga("predict", of_tables, f"{graph}/", "--out", out)
        assert outcome.code == 0, outcome.err
        expected = np.exp(load_run(of_tables).arrays["log_probs"])
        np.testing.assert_allclose(pd.read_csv(out).filter(like="p_"), expected, atol=1e-5)
