"""Rows are normalised in panels: empty, short and long rows, few heads and many, against the definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from ltga.kernels import NORMALIZERS, SCORINGS, attend, neighbourhoods
from ltga.kernels.numba.entmax_rows import sort
from ltga.kernels.operators import attention_torch
from ltga.kernels.operators.operands import Kind, Operands, Structure

LENGTHS = (0, 1, 3, 2, 0, 0, 300, 1, 40, 7, *[3] * 100, 257, 256, 0)  # of rows; a panel takes up to 256 edges
EDGES, NODES = sum(LENGTHS), len(LENGTHS)


def _logits_and_weights(heads: int, masked: bool, q: Tensor, normalizer: str) -> tuple[list[Tensor], list[Tensor]]:
    """Weights, and gradients of logits and q: ours and the definition's."""
    generator = torch.Generator().manual_seed(heads)
    target = torch.repeat_interleave(torch.arange(NODES), torch.tensor(LENGTHS))
    edges = torch.stack([torch.randint(0, NODES, (EDGES,), generator=generator), target])
    graph = Structure(
        *neighbourhoods(edges[:, torch.randperm(EDGES, generator=generator)], NODES, NODES, False).structure
    )
    logits = 3 * torch.randn(EDGES, heads, dtype=torch.float64, generator=generator)
    if masked:
        logits[torch.rand(EDGES, heads, generator=generator) < 0.3] = -torch.inf
    x = torch.randn(NODES, heads, 2, dtype=torch.float64, generator=generator)
    kind = Kind(SCORINGS["given"], NORMALIZERS[normalizer], 0.0, 0.0, False)
    upstream = torch.randn(EDGES, heads, dtype=torch.float64, generator=generator)
    found = []
    for fused in (True, False):
        own, index = logits.clone().requires_grad_(), q.clone().requires_grad_(normalizer != "softmax")
        operands = Operands(x, given=own, q=index)
        weights = (attend(*operands, *graph, *kind) if fused else attention_torch.forward(operands, graph, kind))[1]
        (weights * upstream).sum().backward()
        found.append([weights.detach(), own.grad, *([] if index.grad is None else [index.grad])])
    return found[0], found[1]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("heads", [1, 3, 4, 40])
@pytest.mark.parametrize("normalizer", ["softmax", "q_softmax", "entmax"])
def test_against_the_definition(normalizer: str, heads: int, masked: bool) -> None:
    q = (
        torch.tensor([1.0, 1.3, 0.6, 1.7, 1.5, 2.0, 2.6, 1 + 1e-9], dtype=torch.float64)
        .repeat(5)[:heads]
        .view(1, heads)
    )
    for ours, theirs in zip(*_logits_and_weights(heads, masked, q, normalizer), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("normalizer", ["q_softmax", "entmax"])
def test_an_index_per_edge(normalizer: str) -> None:
    q = 1.2 + 0.5 * torch.rand(EDGES, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for ours, theirs in zip(*_logits_and_weights(3, False, q, normalizer), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-9)


def test_logits_that_are_not_numbers_are_seen_in_their_row_alone() -> None:
    graph = neighbourhoods(torch.tensor([[0, 1, 0, 1], [0, 0, 1, 1]]), 2, 2, self_loops=False)
    given = torch.tensor([[torch.nan], [1.0], [1.0], [1.0]])
    for normalizer in ("softmax", "q_softmax", "entmax"):
        operands = Operands(torch.ones(2, 1, 1), given=given, q=torch.full((1, 1), 1.2))
        weights = attend(*operands, *graph.structure, SCORINGS["given"], NORMALIZERS[normalizer], 0.0, 0.0, False)[1]
        assert weights[:2].isnan().all()
        assert weights[2:].tolist() == [[0.5], [0.5]]


@pytest.mark.parametrize("count", [0, 1, 2, 24, 25, 26, 63, 1000])
def test_sorting_in_place(count: int) -> None:
    generator = np.random.default_rng(count)
    for values in (generator.standard_normal(count), generator.integers(0, 4, count).astype(float)):
        for given in (values, np.sort(values), np.sort(values)[::-1].copy()):
            own = given.copy()
            sort(own)
            assert (own == np.sort(given)).all()
