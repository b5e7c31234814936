"""How a graph is read from its nodes: every pool against a loop over graphs, and what sees a graph's size."""

from __future__ import annotations

import pytest
import torch

from ltga.errors import InputError
from ltga.nn.readout import POOLS, pools

LOOPS = {
    "mean": lambda rows: rows.mean(0),
    "max": lambda rows: rows.max(0).values,
    "sum": lambda rows: rows.sum(0),
    "root": lambda rows: rows.sum(0) / len(rows) ** 0.5,
}


@pytest.mark.parametrize("name", POOLS)
def test_a_pool_is_what_a_loop_gives(name: str) -> None:
    nodes, batch = torch.randn(9, 4, dtype=torch.float64), torch.tensor([0, 0, 0, 1, 2, 2, 2, 2, 2])
    expected = torch.stack([LOOPS[name](nodes[batch == graph]) for graph in range(3)])
    assert torch.allclose(POOLS[name](nodes, batch, 3), expected)


@pytest.mark.parametrize(("name", "sees"), [("mean", False), ("max", False), ("sum", True), ("root", True)])
def test_which_pools_tell_a_graph_from_two_copies_of_it(name: str, sees: bool) -> None:
    nodes = torch.randn(3, 2)
    once = POOLS[name](nodes, torch.zeros(3, dtype=torch.long), 1)
    twice = POOLS[name](nodes.repeat(2, 1), torch.zeros(6, dtype=torch.long), 1)
    assert torch.allclose(once, twice, atol=1e-6) is not sees


def test_a_graph_without_nodes_is_zero_by_the_root() -> None:
    assert POOLS["root"](torch.ones(2, 1), torch.tensor([0, 2]), 3).squeeze().tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize("wrong", ["", "mean,max", "mean-mean", "median", "-", 3])
def test_a_readout_that_is_none_is_refused(wrong: object) -> None:
    with pytest.raises(InputError, match="readout: got"):
        pools(wrong)  # type: ignore[arg-type]
