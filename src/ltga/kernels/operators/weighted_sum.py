"""Weighted sums over neighbourhoods, with torch's own rounding: gather, multiply and scatter in one pass.

Terms are added in the order of the edges, each product rounded first: what torch does with messages one by one.
So sums and gradients have the same bits as PyG's, and networks through here keep their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ltga.errors import InputError
from ltga.kernels.operators.dispatch import differentiable_gradients, is_observed, transformed, wants_definition
from ltga.kernels.runtime import buffers
from ltga.kernels.runtime.backends import has_compiled_kernels
from ltga.kernels.runtime.neighbourhoods import Neighbourhoods
from ltga.kernels.runtime.threads import row_blocks, run_blocks

CHUNK = 1 << 17  # elements


@dataclass(frozen=True, eq=False)
class Incidence:
    """Edges by target and by source, both in the order in which they were given."""

    incoming: Neighbourhoods
    outgoing: Neighbourhoods

    @classmethod
    def of(cls, edge_index: Tensor, num_sources: int, num_targets: int) -> Incidence:
        incoming = Neighbourhoods.build(edge_index, num_sources, num_targets)
        return cls(incoming, Neighbourhoods.build(edge_index.flip(0), num_targets, num_sources))


def weighted_sum(
    x: Tensor, weights: Tensor, edges: Incidence, after: Tensor | None = None, share: float = 1.0
) -> Tensor:
    """Sums of ``weights[e] x[j]`` over the edges e from j to each i, ``[T, C]`` for x ``[S, C]`` and weights ``[E]``.

    What is to be added ``after``, times ``share``, is a bias ``[C]`` or ``[T, C]``.

    >>> edges = Incidence.of(torch.tensor([[0, 1, 2], [2, 2, 0]]), 3, 3)
    >>> weighted_sum(torch.eye(3), torch.tensor([1.0, 2.0, 3.0]), edges)
    tensor([[0., 0., 3.],
            [0., 0., 0.],
            [1., 2., 0.]])
    """
    graph = edges.incoming
    if x.dim() != 2 or len(x) != graph.num_sources:
        raise InputError(f"x: expected {graph.num_sources} rows [S, C], got {list(x.shape)}")
    if weights.shape != (graph.num_edges,):
        raise InputError(f"weights: expected one per edge, [{graph.num_edges}], got {list(weights.shape)}")
    if after is not None and after.shape not in ((x.size(1),), (graph.num_targets, x.size(1))):
        raise InputError(f"after: expected {[x.size(1)]} or {[graph.num_targets, x.size(1)]}, got {list(after.shape)}")
    if not sums_compiled(x, weights, after):
        return plain_weighted_sum(x, weights, graph.edge_index, graph.num_targets, after, share)
    out: Tensor = _WeightedSum.apply(after, x, weights, edges, share)  # type: ignore[no-untyped-call]
    return out


def plain_weighted_sum(
    x: Tensor, weights: Tensor, edge_index: Tensor, num_targets: int, after: Tensor | None = None, share: float = 1.0
) -> Tensor:
    """:func:`weighted_sum` in plain torch."""
    messages = weights.unsqueeze(1) * x.index_select(0, edge_index[0])
    out = messages.new_zeros(num_targets, x.size(1)).index_add(0, edge_index[1], messages)
    return out if after is None else out + share * after


def sums_compiled(*operands: Tensor | None) -> bool:
    """Whether compiled code can add up these: ordinary numbers on the CPU, of one type, and nobody traces."""
    given = [operand for operand in operands if operand is not None]
    known = all(type(operand) in (Tensor, torch.nn.Parameter) and operand.is_cpu for operand in given)
    dtypes = {operand.dtype for operand in given}
    seen = is_observed() or transformed() or torch.jit.is_tracing()
    return known and not seen and dtypes in ({torch.float32}, {torch.float64}) and has_compiled_kernels()


def add_up(
    graph: Neighbourhoods,
    weights: np.ndarray,
    table: np.ndarray,
    out: np.ndarray,
    channels: int,
    columns: tuple[int, int] = (0, 0),
    after: tuple[np.ndarray, int] | None = None,
    share: float = 1.0,
) -> None:
    """Write sums over the rows of ``graph`` to ``out``; ``columns`` say where to begin in ``table`` and ``out``.

    ``after`` (a table, or one row for all, and where to begin in it) is added to the sums at the end, times ``share``.
    """
    from ltga.kernels.numba.ordered_sums import sum_rows_in_order

    addend, at = (table[:0], 0) if after is None else after
    ptr = graph.ptr.numpy()
    by_row = (ptr, graph.col.numpy(), graph.perm.numpy(), weights)
    arrays = (*by_row, table, columns[0], addend, at, table.dtype.type(share), out, columns[1], channels)
    run_blocks(row_blocks(ptr), lambda _, first, last: sum_rows_in_order(first, last, *arrays))


def _array(value: Tensor) -> np.ndarray:
    found: np.ndarray = value.detach().contiguous().numpy()
    return found


class _WeightedSum(torch.autograd.Function):
    # ``after`` comes first because gradients of one tensor are added up in this order, and torch makes its own first.
    @staticmethod
    def forward(ctx: Any, after: Tensor | None, x: Tensor, weights: Tensor, edges: Incidence, share: float) -> Tensor:
        ctx.edges, ctx.share = edges, share
        ctx.save_for_backward(x, weights, after)
        out = buffers.empty((edges.incoming.num_targets, x.size(1)), x.dtype)
        addend = None if after is None else (_array(after if after.dim() == 2 else after[None]), 0)
        add_up(edges.incoming, _array(weights), _array(x), out.numpy(), x.size(1), after=addend, share=share)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, weights, after = ctx.saved_tensors
        graph, (need_after, need_x, need_weights, _, _) = ctx.edges.incoming, ctx.needs_input_grad
        if wants_definition(grad):

            def definition(*own: Any) -> tuple[Tensor]:
                return (plain_weighted_sum(own[0], own[1], graph.edge_index, graph.num_targets, own[2], ctx.share),)

            needed = (need_x, need_weights, need_after)
            found = differentiable_gradients(definition, (x, weights, after), needed, (grad,))
            return found[2], found[0], found[1], None, None
        grad_x = grad_weights = grad_after = None
        if need_x:
            grad_x = buffers.empty(tuple(x.shape), x.dtype)
            add_up(ctx.edges.outgoing, _array(weights), _array(grad), grad_x.numpy(), x.size(1))
        if need_weights:
            grad_weights = _products(graph, x, grad)
        if need_after:
            whole = grad.sum(0) if after.dim() == 1 else grad
            grad_after = torch.mul(whole, ctx.share, out=buffers.empty(tuple(after.shape), after.dtype))
        return grad_after, grad_x, grad_weights, None, None


def _products(graph: Neighbourhoods, x: Tensor, grad: Tensor) -> Tensor:
    """<grad_i, x_j> of every edge: by torch, to be rounded as torch does, a cache full of edges at a time."""
    out, step = x.new_empty(graph.num_edges), max(1, CHUNK // max(1, x.size(1)))
    room = [x.new_empty(min(step, graph.num_edges), x.size(1)) for _ in range(2)]
    for first in range(0, graph.num_edges, step):
        source, target = graph.edge_index[:, first : first + step]
        left, right = (part[: len(source)] for part in room)
        torch.index_select(grad, 0, target, out=left).mul_(torch.index_select(x, 0, source, out=right))
        torch.sum(left, 1, out=out[first : first + step])
    return out
