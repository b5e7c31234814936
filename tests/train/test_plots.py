"""A finished run in a notebook: short, with the right units, and a figure that shows what the task allows."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from ltga.data import csbm, load_dataset
from ltga.errors import InputError
from ltga.train import fit
from ltga.train.show import shown
from ltga.train.tasks.choose import choose

QUICK = {"epochs": 2, "hidden_channels": 2, "heads": 1}


def with_target(kind: str) -> Any:
    data = csbm(num_nodes=60).data
    if kind == "number":
        data.y = 1000 * data.x[:, 0]
    elif kind == "labels":
        data.y = (data.x[:, :3] > 0).float()
    elif kind == "graphs":
        ring = torch.tensor([[0, 1, 2], [1, 2, 0]])
        return [Data(x=torch.randn(3, 2), edge_index=ring, y=number % 2) for number in range(40)]
    return data


@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        ("classes", ["loss", "index by layer and head", "true", "share of the true class", "share that is so"]),
        ("number", ["loss", "index by layer and head", "predicted"]),
        ("labels", ["loss", "index by layer and head", "share that is so"]),
        ("graphs", ["loss", "index by layer and head", "true", "share of the true class", "share that is so"]),
    ],
)
def test_figures_of_every_task(kind: str, labels: list[str]) -> None:
    data = choose(with_target(kind), None)
    run = fit(data, "ltga-head", protocol=QUICK)
    assert sorted(axes.get_ylabel() for axes in run.plot(data).axes) == sorted(labels)
    assert len(run.plot().axes) == 2  # the data was made in memory: the courses alone
    assert run.plot()._repr_png_().startswith(b"\x89PNG")  # a notebook shows it without more ado
    assert len(repr(run)) < 150 and "\n" not in repr(run)
    assert run._repr_html_().startswith("<table>")


def test_links_and_known_datasets() -> None:
    run = fit(csbm(num_nodes=60), "ltga-head", task="link", protocol=QUICK)
    assert len(run.plot().axes) == 2 and "mrr" in repr(run) and len(repr(run)) < 150
    own = fit(load_dataset("csbm:num_nodes=80"), "gatv2", protocol=QUICK)
    assert len(own.plot().axes) == 5  # found by its name


def test_errors_are_in_units_of_the_target() -> None:
    run = fit(with_target("number"), "gatv2", protocol=QUICK)
    assert f"mae {shown('mae', run.metrics['mae'])}, best" in repr(run)


def test_the_points_of_a_calibration_are_shares() -> None:
    data = choose(with_target("classes"), None)
    run = fit(data, "gatv2", protocol=QUICK)
    (axes,) = [axes for axes in run.plot(data).axes if axes.get_ylabel() == "share that is so"]
    test = data.split(run.record["config"]["split"])[2]
    probabilities = torch.from_numpy(run.arrays["log_probs"]).exp()[test]
    points = axes.collections[0].get_offsets()
    weights = axes.collections[0].get_sizes() - 10
    hits = (probabilities.argmax(1) == data.data.y[test]).double().mean()
    assert float((points[:, 1] * weights).sum() / weights.sum()) == pytest.approx(float(hits), abs=1e-6)


def test_other_data_is_refused() -> None:
    run = fit(csbm(num_nodes=60), "gatv2", protocol=QUICK)
    with pytest.raises(InputError, match="not what this run was made on"):
        run.plot(csbm(num_nodes=80))
