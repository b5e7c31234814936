"""Numbers and several labels in tables: chosen or named, trained, predicted and checked from the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cli.graphs import QUICK, write_tables
from ltga import load_dataset, load_run
from ltga.data import NodeDataset
from ltga.data.preparation import Preparation
from ltga.data.problems import Problems
from ltga.data.table_targets import kind_of_target

FAST = ("--method", "ltga-head", "--seeds", "1", *QUICK)


def nodes_with(**columns: Any) -> str:
    frame = pd.DataFrame({"id": [f"n{at}" for at in range(24)], **columns, "x1": np.arange(24) * 0.1})
    return frame.to_csv(index=False)


def prices() -> list[float | None]:
    return [None if at == 3 else 1000 + 37.5 * at for at in range(24)]


def test_prices_are_regression_by_themselves_and_predicted_in_their_units(
    ltga: Callable[..., Any], tmp_path: Path
) -> None:
    folder = write_tables(tmp_path / "homes", nodes=nodes_with(label=prices()))
    outcome = ltga("train", f"{folder}/", *FAST)
    assert outcome.code == 0, outcome.err
    assert "23 different numbers; a number is predicted (predict=number)" in outcome.err
    assert "homes: node regression" in outcome.err and "test mae" in outcome.out and "constant" in outcome.out
    dataset = load_dataset(folder)
    assert isinstance(dataset, NodeDataset) and dataset.feature_names == ("x1",)
    assert dataset.target.y[:3].tolist() == [1000.0, 1037.5, 1075.0] and bool(dataset.target.y[3].isnan())
    record = next(Path("runs").glob("*.json"))
    assert ltga("predict", record, "--out", "all.csv").code == 0
    predicted = pd.read_csv("all.csv")
    assert list(predicted.columns) == ["node", "predicted", "label", "part"] and len(predicted) == 24
    assert np.allclose(predicted["predicted"], load_run(record).predict(dataset).numpy(), rtol=1e-5)
    assert predicted["predicted"].between(500, 3000).all()
    grown = write_tables(tmp_path / "grown", nodes=nodes_with(label=prices()).replace(",label,", ",other,"))
    assert ltga("predict", record, f"{grown}/", "--out", "more.csv").code == 0  # no labels are needed there
    assert np.allclose(pd.read_csv("more.csv")["predicted"], predicted["predicted"])


def test_a_column_for_each_label(ltga: Callable[..., Any], tmp_path: Path) -> None:
    red, blue = [at % 2 for at in range(24)], ["yes" if at % 3 else "no" for at in range(23)] + [""]
    folder = write_tables(tmp_path / "colours", nodes=nodes_with(red=red, blue=blue))
    asked = ("--prepare", "label=red,blue")
    outcome = ltga("train", f"{folder}/", *asked, *FAST)
    assert outcome.code == 0 and "multi-label nodes" in outcome.err and "test micro_f1" in outcome.out, outcome.err
    dataset = load_dataset(folder, preparation=Preparation(label="red,blue"))
    assert dataset.target.names == ("red", "blue") and dataset.feature_names == ("x1",)
    assert dataset.target.y[:, 0].tolist() == red and bool(dataset.target.y[23, 1].isnan())
    assert ltga("predict", next(Path("runs").glob("*.json"))).code == 0
    assert list(pd.read_csv("predictions.csv").columns) == ["node", "predicted", "p_red", "p_blue", "label", "part"]
    tuned = ltga("tune", f"{folder}/", *asked, "--method", "gatv2", "--trials", "2", "-q", "--json", *QUICK)
    assert json.loads(tuned.out)["metric"] == "micro_f1", tuned.err


def test_labels_in_one_cell(tmp_path: Path) -> None:
    cells = ["a;b", "b", ";", "", "a; c"] * 4 + ["c", "c;a", "b", "a"]
    dataset = load_dataset(write_tables(tmp_path / "tags", nodes=nodes_with(label=cells)))
    assert dataset.task == "multi-label nodes" and dataset.target.names == ("a", "b", "c")
    y = dataset.target.y
    assert y[0].tolist() == [1, 1, 0] and y[2].tolist() == [0, 0, 0] and y[4].tolist() == [1, 0, 1]
    assert bool(y[3].isnan().all()) and not bool(dataset.target.known[3])
    named = load_dataset(tmp_path / "tags", preparation=Preparation(predict="class"))
    assert "a;b" in named.class_names


@pytest.mark.parametrize(
    ("cells", "kind", "told"),
    [
        ([at % 5 for at in range(60)], "classes", 0),
        ([at % 40 for at in range(120)], "classes", 1),  # forty classes by number: kept, and said
        ([at % 30 + 0.5 for at in range(120)], "number", 1),
        (list(range(60)), "number", 1),
        (["a", "b"] * 30, "classes", 0),
    ],
)
def test_what_looks_like_a_number(cells: list[Any], kind: str, told: int) -> None:
    problems = Problems()
    assert kind_of_target(pd.DataFrame({"label": cells}), Preparation(), "nodes", problems) == kind
    assert len(problems) == told


def test_check_shows_what_will_be_predicted(ltga: Callable[..., Any], tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "homes", nodes=nodes_with(label=prices()))
    outcome = ltga("check", f"{folder}/")
    assert (
        outcome.code == 0
        and "node regression: lowest 1,000, mean" in outcome.out
        and "can be trained on" in outcome.out
    )
    found = json.loads(ltga("check", f"{folder}/", "--json").out)
    assert found["trainable"] and found["summary"]["target"]["highest"] == 1862.5


@pytest.mark.parametrize(
    ("columns", "option", "culprit"),
    [
        (
            {"label": [5.5] * 24},
            "predict=number",
            "label: is 5.5 for every node that has it; there is nothing to learn",
        ),
        ({"label": [""] * 24}, "predict=number", "all labels are missing"),
        ({"label": ["tall", *range(23)]}, "predict=number", "row 1: label is 'tall'; give a number"),
        ({"label": ["inf", *range(23)]}, "predict=number", "row 1: label is 'inf'; give a number"),
        ({"a": [0] * 24, "b": [0, 1] * 12}, "label=a,b", "a: is 0 for every node"),
        ({"a": ["x", *[0, 1] * 11, 0], "b": [0, 1] * 12}, "label=a,b", "row 1: a is 'x'; use 1 and 0"),
        ({"a": [0, 1] * 12}, "label=a,b", "column 'b' is missing; found id, a, x1"),
        ({"a": [0, 1] * 12, "b": [0, 1] * 12}, "label=a,b predict=number", "label names 2 columns"),
        ({"label": [0, 1] * 12}, "predict=numbers", "--prepare: predict: .*'number'"),
    ],
)
def test_bad_targets(
    ltga: Callable[..., Any], tmp_path: Path, columns: dict[str, Any], option: str, culprit: str
) -> None:
    folder = write_tables(tmp_path / "bad", nodes=nodes_with(**columns))
    words = [word for part in option.split() for word in ("--prepare", part)]
    outcome = ltga("train", f"{folder}/", *words, "-q", *FAST)
    assert outcome.code == 2 and len(outcome.err.splitlines()) == 1 and not Path("runs").exists()
    assert re.search(culprit, outcome.err), outcome.err


def test_numbers_are_learned_by_the_batches_that_were_asked_for(ltga: Callable[..., Any], tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "homes", nodes=nodes_with(label=prices()))
    outcome = ltga("train", f"{folder}/", *FAST, "--batch-size", "4", "--fanout", "3")
    assert outcome.code == 0, outcome.err
    (record,) = Path("runs").glob("*.json")
    batches = load_run(record).record["config"]["minibatch"]
    assert batches["batch_size"] == 4 and batches["fanout"] == 3
    refused = ltga("predict", record, "--fanout", "2", "--out", "p.csv")
    assert refused.code == 2 and "fanout: are for classes of nodes" in refused.err and not Path("p.csv").exists()
    whole = ltga("train", f"{folder}/", "--method", "features", "--batch-size", "4")
    assert whole.code == 2 and "features needs the whole graph at once" in whole.err
    assert len(list(Path("runs").glob("*.json"))) == 1
