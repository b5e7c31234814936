"""H2GCN's rounds: every one sums its predecessor over two sorts of neighbours, and all stand side by side."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ltga.kernels.operators.dispatch import differentiable_gradients, wants_definition
from ltga.kernels.operators.weighted_sum import Incidence, add_up, plain_weighted_sum, sums_compiled
from ltga.kernels.runtime import buffers

Hop = tuple[Incidence, Tensor]
"""Edges and their weights ``[E]``."""


def rounds(x: Tensor, one: Hop, two: Hop, count: int) -> Tensor:
    """``[R_0 | ... | R_count]`` with R_0 = x ``[N, C]`` and R_k the sums of R_{k-1} over ``one``, then over ``two``.

    Written once, where they are to stand; weights are constants.

    >>> step = Incidence.of(torch.tensor([[0], [1]]), 2, 2), torch.ones(1)
    >>> rounds(torch.tensor([[1.0], [2.0]]), step, step, 1)
    tensor([[1., 0., 0.],
            [2., 1., 1.]])
    """
    if not sums_compiled(x, one[1], two[1]):
        return plain_rounds(x, one, two, count)
    out: Tensor = _Rounds.apply(x, one, two, count)  # type: ignore[no-untyped-call]
    return out


def plain_rounds(x: Tensor, one: Hop, two: Hop, count: int) -> Tensor:
    """:func:`rounds` in plain torch."""
    made = [x]
    for _ in range(count):
        sums = [plain_weighted_sum(made[-1], w, hop.incoming.edge_index, len(x)) for hop, w in (one, two)]
        made.append(torch.cat(sums, dim=1))
    return torch.cat(made, dim=1)


class _Rounds(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, one: Hop, two: Hop, count: int) -> Tensor:
        ctx.hops, ctx.count = (one, two), count
        ctx.save_for_backward(x)
        out = buffers.empty((len(x), (2 ** (count + 1) - 1) * x.size(1)), x.dtype)
        out[:, : x.size(1)] = x
        for number in range(count):
            width, begin = _place(number, x.size(1))
            for side, (edges, weights) in enumerate(ctx.hops):
                columns = (begin, begin + (1 + side) * width)
                add_up(edges.incoming, weights.numpy(), out.numpy(), out.numpy(), width, columns)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        if wants_definition(grad):

            def definition(own: Tensor) -> tuple[Tensor]:
                one, two = ctx.hops
                return (plain_rounds(own, one, two, ctx.count),)

            return (*differentiable_gradients(definition, (x,), (True,), (grad,)), None, None, None)
        whole = grad.contiguous().numpy()
        later, at = whole, _place(ctx.count, x.size(1))[1]  # the gradient of the round at hand, and where it begins
        for number in reversed(range(ctx.count)):
            width, begin = _place(number, x.size(1))
            sums = buffers.empty((len(x), width), x.dtype)
            after = (whole, begin)
            for side in (1, 0):  # as autograd adds them up
                edges, weights = ctx.hops[side]
                add_up(edges.outgoing, weights.numpy(), later, sums.numpy(), width, (at + side * width, 0), after)
                after = (sums.numpy(), 0)
            later, at, grad = sums.numpy(), 0, sums
        return grad if ctx.count else grad.clone(), None, None, None


def _place(number: int, channels: int) -> tuple[int, int]:
    """(width of a round, where it begins)."""
    return 2**number * channels, (2**number - 1) * channels
