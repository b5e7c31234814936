"""Attention statistics against plain Python loops over nodes and heads."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ltga.errors import InputError
from ltga.nn import LTGAConv
from ltga.nn.attention_statistics import attention_statistics


def loops(weights: Tensor, index: Tensor, num_nodes: int) -> dict[str, list[float]]:
    out: dict[str, list[float]] = {"zero_fraction": [], "entropy": [], "top1": [], "effective_neighbors": []}
    for head in range(weights.size(1)):
        column = weights[:, head].double().tolist()
        entropy, top1, effective = [], [], []
        for node in range(num_nodes):
            row = [w for w, i in zip(column, index.tolist()) if i == node]
            if row:
                entropy.append(-sum(w * math.log(w) for w in row if w > 0))
                top1.append(max(row))
                effective.append(1 / sum(w * w for w in row))
        out["zero_fraction"].append(sum(w == 0 for w in column) / len(column))
        out["entropy"].append(sum(entropy) / len(entropy))
        out["top1"].append(sum(top1) / len(top1))
        out["effective_neighbors"].append(sum(effective) / len(effective))
    return out


def random_weights(seed: int, num_edges: int, num_nodes: int, heads: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    index = torch.randint(num_nodes, (num_edges,), generator=generator)
    raw = torch.rand(num_edges, heads, generator=generator)
    raw[torch.rand(num_edges, heads, generator=generator) < 0.4] = 0
    total = torch.zeros(num_nodes, heads).index_add(0, index, raw)[index]
    degree = index.bincount(minlength=num_nodes)[index].unsqueeze(1)
    return torch.where(total > 0, raw / total, 1 / degree), index


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 12), st.integers(1, 3))
def test_equals_loops(seed: int, num_edges: int, num_nodes: int, heads: int) -> None:
    weights, index = random_weights(seed, num_edges, num_nodes, heads)
    statistics = attention_statistics(weights, index, num_nodes)
    expected = loops(weights, index, num_nodes)
    assert statistics.keys() == expected.keys()
    for name, value in statistics.items():
        assert value.shape == (heads,)
        assert value.tolist() == pytest.approx(expected[name], rel=1e-9, abs=1e-12), name


def test_uniform_attention_has_the_known_values() -> None:
    index = torch.tensor([0] * 4 + [1] * 2)
    weights = torch.tensor([[0.25]] * 4 + [[0.5]] * 2)
    statistics = attention_statistics(weights, index, 3)
    assert statistics["entropy"].item() == pytest.approx((math.log(4) + math.log(2)) / 2)
    assert statistics["effective_neighbors"].item() == pytest.approx(3)
    assert statistics["zero_fraction"].item() == 0


def test_order_of_edges_does_not_matter() -> None:
    weights, index = random_weights(0, 50, 10, 4)
    order = torch.randperm(50)
    shuffled = attention_statistics(weights[order], index[order], 10)
    for name, value in attention_statistics(weights, index, 10).items():
        torch.testing.assert_close(value, shuffled[name])


def test_without_edges_the_statistics_are_undefined() -> None:
    statistics = attention_statistics(torch.empty(0, 2), torch.empty(0, dtype=torch.long), 3)
    assert all(value.shape == (2,) and value.isnan().all() for value in statistics.values())


def test_gradients_are_not_tracked() -> None:
    weights = torch.ones(1, 1, requires_grad=True)
    assert not any(v.requires_grad for v in attention_statistics(weights, torch.tensor([0]), 1).values())


@pytest.mark.parametrize(
    ("weights", "index", "message"),
    [
        (torch.ones(2), torch.tensor([0, 1]), "shapes"),
        (torch.ones(2, 1), torch.tensor([0]), "shapes"),
        (torch.ones(1, 1), torch.tensor([5]), "0..2"),
        (torch.full((1, 1), 1.7), torch.tensor([0]), "before dropout"),
        (torch.full((1, 1), float("nan")), torch.tensor([0]), "before dropout"),
        (torch.tensor([[1.5], [-0.5]]), torch.tensor([0, 0]), "non-negative"),
    ],
)
def test_rejects_what_is_not_attention(weights: Tensor, index: Tensor, message: str) -> None:
    with pytest.raises(InputError, match=message):
        attention_statistics(weights, index, 3)


def test_an_underflow_of_softmax_is_not_an_ignored_edge():
    """Scores thousands apart: softmax rounds to exactly 0, but nobody cut the edge off."""
    x, edges = torch.tensor([[3000.0], [-3000.0], [1.0]]), torch.tensor([[0, 1], [2, 2]])
    for q, expected in ((1.0, False), (2.0, True)):
        conv = LTGAConv(1, 1, index=q, add_self_loops=False)
        with torch.no_grad():
            for weight in (conv.lin_l.weight, conv.lin_r.weight, conv.att):
                weight.fill_(1.0)
        inside = conv.attend(x, edges)
        assert (inside.weights == 0).any() and bool(inside.ignored.any()) == expected
