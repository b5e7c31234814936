"""A column made from the label is named; honest ones are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from ltga.data import Preparation, as_tables, load_dataset
from ltga.data.prepare import prepare
from ltga.data.telltale import ENOUGH, telltale_columns

NODES = 400


def told(columns: dict[str, object], label: object, **options: object) -> list[str]:
    rng = np.random.default_rng(0)
    ids = np.arange(NODES)
    nodes = pd.DataFrame({"id": ids, "label": label, **columns})
    edges = pd.DataFrame({"source": ids, "target": rng.permutation(NODES)})
    outcome = prepare(as_tables(edges, nodes=nodes), Preparation(**options))
    assert outcome.graph is not None, outcome.problems.errors
    return [problem.what for problem in outcome.problems if "by itself tells" in problem.what]


@pytest.fixture
def label() -> np.ndarray:
    return np.random.default_rng(1).choice(["stays", "leaves"], NODES, p=[0.9, 0.1])


def test_copies_of_the_label(label: np.ndarray) -> None:
    rng = np.random.default_rng(2)
    leaves = label == "leaves"
    columns = {
        "copy": leaves.astype(float),
        "word": np.where(leaves, "churned", "active"),
        "left_on": np.where(leaves, 20240101.0, np.nan),  # the cell is empty for everybody else
        "nearly": leaves + 0.1 * rng.standard_normal(NODES),
        "helpful": leaves + rng.standard_normal(NODES),
        "chance": rng.standard_normal(NODES),
    }
    named = told(columns, label)
    assert [what.split("'")[1] for what in named] == ["copy", "word", "left_on", "nearly"]
    assert "tells class 'leaves'" in named[0]
    assert told({"copy": leaves.astype(float)}, label, drop=("copy",)) == []


def test_numbers() -> None:
    rng = np.random.default_rng(3)
    income = rng.lognormal(size=NODES)
    columns = {"log_income": np.log(income), "age": np.log(income) + rng.standard_normal(NODES)}
    assert told(columns, income, predict="number") == ["column 'log_income' by itself tells the number to predict"]


def test_several_labels_some_of_them_unknown() -> None:
    rng = np.random.default_rng(4)
    values = rng.integers(0, 2, (NODES, 2)).astype(float)
    values[::7, 1] = np.nan
    x = np.stack([np.nan_to_num(values[:, 1], nan=0.5), rng.standard_normal(NODES)], axis=1)
    y = np.zeros(NODES, dtype=np.int64)
    assert list(telltale_columns(x, y, values, ("a", "b"), ("red", "blue"))) == [("a", "label 'blue'")]


def test_few_members_say_nothing() -> None:
    label = np.array(["rare"] * 9 + ["usual"] * (NODES - 9))
    assert told({"x": (label == "rare").astype(float)}, label) == []


@pytest.mark.parametrize("noise", [0.25, 0.3, 0.35, 0.4, 0.5])
def test_the_bound_is_that_of_the_area_under_the_curve(noise: float) -> None:
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, NODES)
    x = y + noise * rng.standard_normal(NODES)
    found = list(telltale_columns(x[:, None], y, None, ("x",), ("no", "yes")))
    assert bool(found) == (roc_auc_score(y, x) >= ENOUGH)


def test_nodes_of_many_graphs_are_looked_at_on_average(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    graphs = pd.DataFrame({"graph_id": np.arange(60), "label": np.arange(60) % 2})
    nodes = pd.DataFrame({"graph_id": np.repeat(np.arange(60), 4), "id": np.tile(np.arange(4), 60)})
    nodes["dose"] = nodes["graph_id"] % 2 + np.tile([3.0, -3.0, 5.0, -5.0], 60)  # a node alone says nothing
    nodes["age"] = rng.standard_normal(240)
    edges = pd.DataFrame({"graph_id": np.arange(60), "source": 0, "target": 1})
    for name, frame in {"graphs": graphs, "nodes": nodes, "edges": edges}.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    found, without = (
        [str(note) for note in load_dataset(f"{tmp_path}/", preparation=Preparation(drop=drop)).notes]
        for drop in ((), ("dose",))
    )
    (note,) = (note for note in found if "by itself" in note)
    assert "'dose', averaged over a graph's nodes, by itself tells class '0'" in note
    assert not any("by itself" in note for note in without)
