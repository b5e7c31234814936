"""One tiny graph and the runs on it that the analyses look at."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch

from ltga.analysis.inputs import task_of
from ltga.data import Dataset, csbm
from ltga.nn.index import EdgeIndex
from ltga.train import Run, fit
from ltga.train.observe import observe

SMALL = {"epochs": 4, "hidden_channels": 3, "heads": 2, "warmup": 0, "lr": 0.1}


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def graph() -> Dataset:
    return csbm(num_nodes=80, degree=6, seed=5)


@pytest.fixture(scope="session")
def run_of(graph: Dataset) -> Callable[..., Run]:
    """Runs by method, each trained once."""
    known: dict[tuple, Run] = {}

    def run(method: str, **protocol) -> Run:
        key = (method, *sorted(protocol.items()))
        if key not in known:
            known[key] = fit(graph, method, protocol={**SMALL, **protocol})
        return known[key]

    return run


@pytest.fixture(scope="session")
def pruning_run_of(run_of: Callable[..., Run], graph: Dataset) -> Callable[[str], Run]:
    """Runs whose scores and gates were sharpened by hand, so that a few epochs are enough to prune."""

    def run(method: str) -> Run:
        trained = run_of(method)
        model = copy.deepcopy(trained.model)
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for conv in model.convs:
                conv.att *= 4
                if isinstance(conv.index, EdgeIndex):
                    weight = conv.index.gate.out.weight
                    weight.copy_(3 * torch.randn(weight.shape, generator=generator))
        numbers, arrays = observe(model, task_of(trained, graph))
        return Run({**trained.record, **numbers}, model, arrays)

    return run
