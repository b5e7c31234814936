"""``ltga train`` on other tasks: a table with references, runs kept and taken again, JSON for scripts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from cli.graphs import QUICK, write_collection, write_graph
from ltga import fit, load_run
from ltga.cli.task_report import Row, judged_by, sentences
from ltga.data import csbm
from ltga.train.tasks.task_run import plan_task


def test_graphs_are_compared_with_every_baseline_and_not_run_twice(ltga: Callable[..., Any], tmp_path: Path) -> None:
    folder = write_collection(tmp_path / "mine")
    command = ("train", f"{folder}/", "--seeds", "2", *QUICK)
    first = ltga(*command)
    assert first.code == 0, first.err
    lines = first.out.splitlines()
    assert lines[0].split()[:4] == ["method", "test", "accuracy", "test"]
    for label in ("constant", "GATv2", "LTGA-Head", "GATv2 + temperature", "Features only", "GIN"):
        assert sum(line.strip().startswith(f"{label}  ") for line in lines) == 1, label
    assert len(list(Path("runs").glob("*.json"))) == 12
    again = ltga(*command)
    assert again.err.count("taken from the store") == 12
    assert [line.split("±")[0] for line in again.out.splitlines()[1:8]] == [line.split("±")[0] for line in lines[1:8]]
    record = next(Path("runs").glob("*.json"))
    assert load_run(record).record["config"]["task"] == "graph classification"


def test_numbers_of_graphs_as_json(ltga: Callable[..., Any], tmp_path: Path) -> None:
    folder = write_collection(tmp_path / "mine", "mass")
    outcome = ltga("train", f"{folder}/", "--seeds", "1", "--method", "gatv2,ltga-head", "--json", "-q", *QUICK,
                   "--set", "batch_size=8", "--set", "log=false")  # fmt: skip
    found = json.loads(outcome.out)
    assert found["task"] == "graph regression" and found["metric"] == "rmse"
    assert [row["method"] for row in found["methods"]] == ["constant", "linear on features", "gatv2", "ltga-head"]
    assert found["options"] == {"batch_size": 8, "readout": "mean-max-sum", "log": False}
    record = load_run(found["methods"][2]["records"][0]).record
    assert found["methods"][2]["mean"]["rmse"] == pytest.approx(record["metrics"]["test"]["rmse"])
    assert found["methods"][0]["trained"] is False and outcome.err == ""


def test_links_of_a_graph_with_classes(ltga: Callable[..., Any], tmp_path: Path) -> None:
    graph = write_graph(tmp_path / "ring.npz", nodes=60)
    outcome = ltga("train", graph, "--task", "link", "--method", "ltga-head", "--seeds", "1", *QUICK, "--set", "each=3")
    assert outcome.code == 0, outcome.err
    assert "common neighbours" in outcome.out and "adamic-adar" in outcome.out
    assert "Every edge stands against 3 two-hop pairs without one." in outcome.out


def test_a_method_that_does_not_beat_a_constant_is_named() -> None:
    rows = [Row("constant", "constant", [{"mrr": 0.5}, {"mrr": 0.7}]), Row("a", "A", [{"mrr": 0.6}], seconds=1.0),
            Row("b", "B", [{"mrr": 0.61}], seconds=1.0)]  # fmt: skip
    planned = plan_task(csbm(num_nodes=60), "gcn")
    said = sentences("link prediction", rows, planned, "mrr")
    assert said[1] == "No better than constant (mrr 60.0): A."
    errors = [Row("constant", "constant", [{"mae": 2.0}]), Row("a", "A", [{"mae": 1.0}], seconds=1.0),
              Row("b", "B", [{"mae": 3.0}], seconds=1.0)]  # fmt: skip
    assert sentences("node regression", errors, planned, "mae") == ["No better than constant (mae 2): B."]
    blind = Row("features", "Features only", [{"mae": 0.5}], seconds=1.0)
    assert sentences("node regression", [*errors, blind], planned, "mae") == [
        "No better than Features only (mae 0.5): A, B."
    ]


def test_uneven_classes_of_graphs_are_not_judged_by_accuracy() -> None:
    ring = Data(x=torch.randn(3, 2), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]))
    graphs = [Data(x=torch.randn(3, 2), edge_index=ring.edge_index, y=int(at % 10 == 0)) for at in range(100)]
    run = fit(graphs, "gatv2", protocol={"epochs": 1, "hidden_channels": 2, "heads": 1})
    assert run.record["metric"] == "roc_auc" and judged_by(run.task, run.record) == "roc_auc"
    asked = fit(graphs, "gatv2", protocol={"epochs": 1, "hidden_channels": 2, "heads": 1, "metric": "macro_f1"})
    assert judged_by(asked.task, asked.record) == "macro_f1"
