"""Our runs are the paper's runs: same accuracy, same best epoch, same last epoch, seed by seed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from ltga.data import Dataset
from ltga.kernels.operators.bernoulli import draws_like_the_paper
from ltga.study.reproduce import Reproduced, reproduction_table
from ltga.train import Protocol, fit

pytestmark = pytest.mark.data


@pytest.mark.parametrize(("method", "layer"), [("gatv2", "gatv2"), ("ltga-head", "paper")])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_texas_equals_an_independent_run(
    texas: Dataset, paper_run: Callable, method: str, layer: str, seed: int
) -> None:
    data = texas.data
    expected = paper_run(layer, data.x, data.edge_index, data.y, texas.split(seed - 1), seed)
    record = fit(texas, method, seed, protocol=Protocol.paper()).record
    assert (record["metrics"]["test"]["accuracy"], record["best_epoch"], record["epochs"]) == expected


def test_asking_about_random_numbers_draws_none() -> None:
    torch.manual_seed(3)
    wanted = torch.rand(2)
    torch.manual_seed(3)
    draws_like_the_paper()
    assert torch.equal(torch.rand(2), wanted)


@pytest.mark.parametrize("init", ["paper", "paired"])
def test_backends_agree(texas: Dataset, init: str) -> None:
    outcomes = set()
    for backend in ("torch", "numba"):
        record = fit(texas, "ltga-head", 2, protocol=Protocol(init=init, backend=backend)).record
        outcomes.add((record["best_epoch"], record["epochs"], record["metrics"]["test"]["accuracy"]))
    assert len(outcomes) == 1


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ltga-head", "ltga-edge"])
@pytest.mark.parametrize("name", ["texas", "wisconsin", "cornell", "cora", "citeseer", "pubmed"])
def test_backends_agree_on_every_graph(real: Callable[[str], Dataset], name: str, method: str) -> None:
    outcomes = set()
    for backend in ("torch", "numba"):
        record = fit(real(name), method, 1, protocol=Protocol(backend=backend)).record
        outcomes.add((record["best_epoch"], record["epochs"], record["metrics"]["test"]["accuracy"]))
    assert len(outcomes) == 1


@pytest.mark.slow
@pytest.mark.skipif(not draws_like_the_paper(), reason="torch draws dropout from MKL on Intel processors")
@pytest.mark.parametrize(
    ("method", "cell"),
    [
        ("gcn", "45.9±15.0"),
        ("gat", "59.2±6.2"),
        ("gatv2", "59.2±5.5"),
        ("ltga-head", "58.1±5.9"),
        ("ltga-edge", "58.6±6.5"),
        ("gatv2-edge-scale", "58.6±6.5"),
        ("dot-ltga-head", "56.8±5.4"),
    ],
)
def test_the_printed_cells_of_texas(texas: Dataset, method: str, cell: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    (ours,) = reproduction_table([method], [texas], store=tmp_path)
    assert ours.printed == cell


@pytest.mark.slow
@pytest.mark.skipif(not draws_like_the_paper(), reason="torch draws dropout from MKL on Intel processors")
@pytest.mark.parametrize("warmup", [0, 20])  # without warm-up q does move a little
def test_the_sweep_on_wisconsin_is_on_one_split(wisconsin: Dataset, warmup: int) -> None:
    """The paper prints 47.1±5.5 for all its settings, which is what five seeds on split 0 give."""
    seeds, protocol = tuple(range(1, 6)), Protocol(warmup=warmup)
    runs = [fit(wisconsin, "ltga-head", seed, split=0, protocol=protocol) for seed in seeds]
    tested = tuple(run.record["metrics"]["test"]["accuracy"] for run in runs)
    assert Reproduced("ltga-head", "wisconsin", seeds, tested).printed == "47.1±5.5"
