"""Weighted sums over neighbourhoods, with torch's own rounding: gather, multiply and scatter in one pass.

Terms are added in the order of the edges, each product rounded first, which is what torch does with messages one by one.
So sums and the gradients of what is summed have the same bits as PyG's, and networks through here keep their numbers.
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


@dataclass(frozen=True, eq=False)
class Incidence:
    """Edges by target and by source, both in the order in which they were given."""

    incoming: Neighbourhoods
    outgoing: Neighbourhoods

    @classmethod
    def of(cls, edge_index: Tensor, num_sources: int, num_targets: int) -> Incidence:
        incoming = Neighbourhoods.build(edge_index, num_sources, num_targets)
        return cls(incoming, Neighbourhoods.build(edge_index.flip(0), num_targets, num_sources))


def weighted_sum(x: Tensor, weights: Tensor, edges: Incidence, bias: Tensor | None = None) -> Tensor:
    """``out[i] = bias + sum of weights[e] x[j]`` over the edges e from j to i, ``[T, C]`` for x ``[S, C]``.

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
    if bias is not None and bias.shape != x.shape[1:]:
        raise InputError(f"bias: expected [{x.size(1)}], got {list(bias.shape)}")
    if not sums_compiled(x, weights, bias):
        return plain_weighted_sum(x, weights, graph.edge_index, graph.num_targets, bias)
    out: Tensor = _WeightedSum.apply(x, weights, edges, bias)  # type: ignore[no-untyped-call]
    return out


def plain_weighted_sum(
    x: Tensor, weights: Tensor, edge_index: Tensor, num_targets: int, bias: Tensor | None = None
) -> Tensor:
    """:func:`weighted_sum` in plain torch."""
    messages = weights.unsqueeze(1) * x.index_select(0, edge_index[0])
    out = messages.new_zeros(num_targets, x.size(1)).index_add(0, edge_index[1], messages)
    return out if bias is None else out + bias


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
) -> None:
    """Write sums over the rows of ``graph`` to ``out``; ``columns`` say where to begin in ``table`` and ``out``.

    ``after`` (a table, or one row for all, and where to begin in it) is added to the sums at the end.
    """
    from ltga.kernels.numba.ordered_sums import sum_rows_in_order

    addend, at = (table[:0], 0) if after is None else after
    ptr = graph.ptr.numpy()
    arrays = (ptr, graph.col.numpy(), graph.perm.numpy(), weights, table, columns[0], addend, at, out, columns[1])
    run_blocks(row_blocks(ptr), lambda _, first, last: sum_rows_in_order(first, last, *arrays, channels))


def _array(value: Tensor) -> np.ndarray:
    found: np.ndarray = value.detach().contiguous().numpy()
    return found


class _WeightedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weights: Tensor, edges: Incidence, bias: Tensor | None) -> Tensor:
        ctx.edges = edges
        ctx.save_for_backward(x, weights, bias)
        out = buffers.empty((edges.incoming.num_targets, x.size(1)), x.dtype)
        after = None if bias is None else (_array(bias)[None], 0)
        add_up(edges.incoming, _array(weights), _array(x), out.numpy(), x.size(1), after=after)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, weights, bias = ctx.saved_tensors
        graph, (need_x, need_weights, _, need_bias) = ctx.edges.incoming, ctx.needs_input_grad
        if wants_definition(grad):

            def definition(*own: Any) -> tuple[Tensor]:
                return (plain_weighted_sum(own[0], own[1], graph.edge_index, graph.num_targets, own[2]),)

            needed = (need_x, need_weights, need_bias)
            found = differentiable_gradients(definition, (x, weights, bias), needed, (grad,))
            return found[0], found[1], None, found[2]
        grad_x = grad_weights = None
        if need_x:
            grad_x = buffers.empty(tuple(x.shape), x.dtype)
            add_up(ctx.edges.outgoing, _array(weights), _array(grad), grad_x.numpy(), x.size(1))
        if need_weights:
            grad_weights = _products(graph, x, grad)
        return grad_x, grad_weights, None, grad.sum(0) if need_bias else None


def _products(graph: Neighbourhoods, x: Tensor, grad: Tensor) -> Tensor:
    """<grad_i, x_j> of every edge, in the order of the edges."""
    from ltga.kernels.numba.dot_rows import dot_rows

    out = x.new_empty(graph.num_edges, 1)
    ptr, one = graph.ptr.numpy(), np.ones((), _array(x).dtype)[()]
    arrays = (ptr, graph.col.numpy(), graph.perm.numpy(), _array(x)[:, None], _array(grad)[:, None], one, out.numpy())
    run_blocks(row_blocks(ptr), lambda _, first, last: dot_rows(first, last, *arrays))
    return out.squeeze(1)
