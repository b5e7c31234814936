"""The cost model of benchmarks/: batches are as large as it says, recorded predictions are those of its constants."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from ltga.data import NeighborSampler
from ltga.data.power_law import PowerLaw
from ltga.nn import LTGA

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def model() -> Any:
    sys.path.append(str(BENCHMARKS))
    import cost_model

    yield cost_model
    sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize("fanout", [[10, 5], [3, 3, 3], [-1], [4]])
def test_batches_are_as_large_as_expected(model: Any, fanout: list[int]) -> None:
    blocks = list(PowerLaw(num_nodes=20_000, num_edges=200_000).edges())
    source, target = (np.concatenate([getattr(block, end) for block in blocks]) for end in ("source", "target"))
    source, target = np.concatenate([source, target]), np.concatenate([target, source])
    data = Data(edge_index=torch.from_numpy(np.stack([source, target])), num_nodes=20_000)
    degrees = np.bincount(target, minlength=20_000)
    nodes, edges = model.expected_batch(degrees, degrees, 200, fanout)
    drawn = list(NeighborSampler(data, fanout, batch_size=200, threads=0).epoch(0))
    assert nodes == pytest.approx(np.mean([len(sample.nodes) for sample in drawn]), rel=0.06)
    assert edges == pytest.approx(np.mean([len(sample.edges) for sample in drawn]), rel=0.06)
    if -1 not in fanout:
        most = model.most_in_a_batch(200, fanout)
        assert nodes < most[0] and edges < most[1]


def test_parameters_are_counted_nearly(model: Any) -> None:
    shape = model.Shape(features=64, hidden=16, heads=8, layers=3, classes=10)
    network = LTGA(64, 10, hidden_channels=16, heads=8, num_layers=3, index="head")
    assert shape.parameters == pytest.approx(sum(parameter.numel() for parameter in network.parameters()), rel=0.05)


def test_recorded_predictions_follow_from_the_recorded_constants_and_hold(model: Any) -> None:
    found = json.loads((BENCHMARKS / "results" / "cost.json").read_text())
    names = ("features", "hidden", "heads", "layers", "classes")
    for row in found["fitted"] + found["kept_back"]:
        shape = model.Shape(**{name: row["size"][name] for name in names})
        sizes = tuple(row["expected"].values())
        step = model.seconds(model.step_work(*sizes, shape), found["constants"])
        assert row["predicted"]["step"] == pytest.approx(step)
        measured = row["measured"]["step"] + row["measured"]["draw"]
        assert row["error"] == pytest.approx(sum(row["predicted"].values()) / measured - 1)
        assert abs(row["error"]) < 0.3
    fitted = [row["size"] for row in found["fitted"]]
    assert len(found["kept_back"]) == 2 and all(row["size"] not in fitted for row in found["kept_back"])
