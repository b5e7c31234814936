"""Training on what the loss depends on gives the run that training on the whole graph gives."""

from __future__ import annotations

import pytest
import torch

from ltga.data import csbm
from ltga.nn.build import build_model
from ltga.train import Protocol, fit, focus
from ltga.train.assembly import make_task
from ltga.train.focus import FocusedTask


@pytest.mark.parametrize("init", ["paper", "paired"])
@pytest.mark.parametrize("method", ["gatv2-temperature", "ltga-head", "ltga-edge", "sparsemax"])
def test_same_run(method: str, init: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = csbm(num_nodes=400, degree=3, seed=2)
    protocol = {"epochs": 12, "hidden_channels": 8, "heads": 2, "warmup": 3, "init": init}
    monkeypatch.setattr(focus, "WORTH_IT", 1.1)
    focused = fit(graph, method, 1, protocol=protocol)
    monkeypatch.setattr(focus, "WORTH_IT", 0.0)
    whole = fit(graph, method, 1, protocol=protocol)
    assert focused.record["best_epoch"] == whole.record["best_epoch"]
    assert focused.record["trajectory"]["val_loss"] == pytest.approx(whole.record["trajectory"]["val_loss"], rel=1e-4)
    assert focused.metrics == pytest.approx(whole.metrics, rel=1e-3)


@pytest.mark.parametrize(
    ("method", "prior", "train", "val"),
    [("ltga-head", 0.1, True, True), ("ltga-edge", 0.0, True, False), ("ltga-edge", 0.1, False, False)],
)
def test_what_needs_every_edge_gets_every_edge(method: str, prior: float, train: bool, val: bool) -> None:
    graph = csbm(num_nodes=400, degree=1, seed=2)
    protocol = Protocol(prior=prior)
    model = build_model(method, graph.data.x.size(1), graph.num_classes)
    task = FocusedTask.of(make_task(graph, 0, model, protocol), model, protocol)  # type: ignore[arg-type]
    assert (task.train_reach is not None, task.val_reach is not None) == (train, val)


def test_little_to_save_means_the_whole_graph() -> None:
    graph = csbm(num_nodes=200, degree=30, seed=2)
    model = build_model("ltga-head", graph.data.x.size(1), graph.num_classes)
    task = FocusedTask.of(make_task(graph, 0, model, Protocol()), model, Protocol())  # type: ignore[arg-type]
    assert task.train_reach is None
    assert torch.equal(task.train_logits(model.eval()), task.logits(model)[task.train])
