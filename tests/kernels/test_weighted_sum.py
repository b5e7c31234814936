"""Sums over neighbourhoods against torch's messages: the same bits, and the derivatives of a dense matrix."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ltga.errors import InputError
from ltga.kernels.operators import weighted_sum as module
from ltga.kernels.operators.rounds import plain_rounds, rounds
from ltga.kernels.operators.weighted_sum import Incidence, plain_weighted_sum, weighted_sum

SOURCES, TARGETS = 40, 30


def _case(dtype: torch.dtype, channels: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    """Features, weights and edges: some twice, some from a node to its own number, five targets without any."""
    generator = torch.Generator().manual_seed(0)
    edges = torch.stack([torch.randint(0, n, (200,), generator=generator) for n in (SOURCES, TARGETS - 5)])
    edges = torch.cat([edges, edges[:, :20], torch.tensor([[3, 7], [3, 7]])], dim=1)
    x = torch.randn(SOURCES, channels, dtype=dtype, generator=generator).requires_grad_()
    weights = torch.randn(edges.size(1), dtype=dtype, generator=generator)
    weights[::7] = 0.0
    return x, weights.requires_grad_(), edges


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("channels", [1, 7, 8, 33, 64, 200])
def test_the_bits_of_torchs_own_sums(channels: int, dtype: torch.dtype) -> None:
    x, weights, edges = _case(dtype, channels)
    bias = torch.randn(channels, dtype=dtype, requires_grad=True)
    ours = weighted_sum(x, weights, Incidence.of(edges, SOURCES, TARGETS), bias)
    theirs = plain_weighted_sum(x, weights, edges, TARGETS, bias)
    assert torch.equal(ours, theirs)
    upstream = torch.randn_like(ours)
    found, wanted = (torch.autograd.grad(out, (x, bias, weights), upstream) for out in (ours, theirs))
    assert torch.equal(found[0], wanted[0])
    assert torch.equal(found[1], wanted[1])
    assert torch.equal(found[2], wanted[2])


def test_against_a_dense_matrix() -> None:
    x, weights, edges = _case(torch.float64)
    start = torch.randn(TARGETS, x.size(1), dtype=torch.float64, requires_grad=True)
    dense = torch.zeros(TARGETS, SOURCES, dtype=torch.float64).index_put((edges[1], edges[0]), weights, accumulate=True)
    ours = weighted_sum(x, weights, Incidence.of(edges, SOURCES, TARGETS), start, 0.3)
    theirs = dense @ x + 0.3 * start
    torch.testing.assert_close(ours, theirs)
    upstream = torch.randn_like(ours)
    gradients = (torch.autograd.grad(out, (x, weights, start), upstream) for out in (ours, theirs))
    for found, wanted in zip(*gradients, strict=True):
        torch.testing.assert_close(found, wanted)


def test_first_and_second_derivatives() -> None:
    x, weights, edges = _case(torch.float64, 2)
    graph, start = (
        Incidence.of(edges, SOURCES, TARGETS),
        torch.randn(TARGETS, 2, dtype=torch.float64, requires_grad=True),
    )

    def sums(*inputs: Tensor) -> Tensor:
        return weighted_sum(inputs[0], inputs[1], graph, inputs[2], 0.7)

    assert torch.autograd.gradcheck(sums, (x, weights, start))
    assert torch.autograd.gradgradcheck(sums, (x, weights, start))


def test_without_edges_and_without_channels() -> None:
    x, weights, edges = _case(torch.float32)
    out = weighted_sum(x, weights[:0], Incidence.of(edges[:, :0], SOURCES, TARGETS))
    assert out.shape == (TARGETS, 5)
    assert not out.any()
    assert not torch.autograd.grad(out.sum(), x)[0].any()
    assert weighted_sum(x[:, :0], weights, Incidence.of(edges, SOURCES, TARGETS)).shape == (TARGETS, 0)


def test_infinities_and_nan_stay_where_they_are() -> None:
    edges = Incidence.of(torch.tensor([[0, 1, 2], [0, 1, 1]]), 3, 2)
    x = torch.tensor([[1.0], [float("inf")], [float("nan")]])
    out = weighted_sum(x, torch.tensor([1.0, 0.0, 1.0]), edges)
    assert out[0].item() == 1.0
    assert out[1].isnan()


def test_what_others_want_to_see_is_done_in_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weights, edges = _case(torch.float32)
    graph = Incidence.of(edges, SOURCES, TARGETS)
    wanted = plain_weighted_sum(x, weights, edges, TARGETS)
    monkeypatch.setattr(module, "add_up", None)  # compiled code would fail
    batched = torch.func.vmap(lambda rows: weighted_sum(rows, weights.detach(), graph))(torch.stack([x.detach()] * 2))
    torch.testing.assert_close(batched[1], wanted.detach())
    assert torch.compile(weighted_sum, backend="eager")(x, weights, graph).equal(wanted)
    assert weighted_sum(x.half(), weights.half(), graph).dtype == torch.half
    _, tangent = torch.func.jvp(lambda w: weighted_sum(x.detach(), w, graph), (weights.detach(),), (weights.detach(),))
    torch.testing.assert_close(tangent, wanted.detach())


def test_what_does_not_fit_is_refused() -> None:
    x, weights, edges = _case(torch.float32)
    graph = Incidence.of(edges, SOURCES, TARGETS)
    for name, bad in (
        ("x", (x[:9], weights, graph)),
        ("x", (x[0], weights, graph)),
        ("weights", (x, weights[:9], graph)),
        ("after", (x, weights, graph, x)),
    ):
        with pytest.raises(InputError, match=name):
            weighted_sum(*bad)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_rounds_side_by_side(count: int) -> None:
    x, weights, edges = _case(torch.float64, 2)
    edges, x = edges % 25, x[:25].detach().requires_grad_()
    one = Incidence.of(edges, 25, 25), weights.detach()
    two = Incidence.of(edges[:, 10:60].flip(0), 25, 25), weights[:50].detach()
    assert torch.equal(rounds(x, one, two, count), plain_rounds(x, one, two, count))
    assert torch.autograd.gradcheck(lambda own: rounds(own, one, two, count), x)
    assert torch.autograd.gradgradcheck(lambda own: rounds(own, one, two, count).square(), x)


@pytest.mark.parametrize("after", [torch.ones(0), torch.ones(2, 0)])
def test_no_channels_with_a_summand(after: Tensor) -> None:
    edges = Incidence.of(torch.tensor([[0, 1], [1, 1]]), 2, 2)
    assert weighted_sum(torch.ones(2, 0), torch.ones(2), edges, after).shape == (2, 0)
