"""Attention on the CPU: arrays made ready, the compiled sweeps run over blocks of rows, partial sums added."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ltga.kernels.codes import GIVEN
from ltga.kernels.numba import sweeps
from ltga.kernels.operators.checks import RANKS
from ltga.kernels.operators.dropout import with_mask
from ltga.kernels.operators.operands import Kind, Needed, Operands, Results, Structure
from ltga.kernels.runtime import buffers
from ltga.kernels.runtime.neighbourhoods import edge_order
from ltga.kernels.runtime.threads import row_blocks, run_blocks

_NOTHING = {
    (dtype, rank): np.empty((0,) * rank, number)
    for dtype, number in ((torch.float32, np.float32), (torch.float64, np.float64))
    for rank in (2, 3)
}


def forward(operands: Operands, graph: Structure, kind: Kind, into: Tensor | None = None) -> Results:
    """(out, weights, logits, unscaled logits); see :func:`ltga.kernels.attend`. With ``into`` out is a view of that."""
    operands = with_mask(operands, len(graph.col), kind)
    x = operands.x
    shape = (len(graph.ptr) - 1, 1 if kind.average else x.size(1), x.size(2))
    out = buffers.empty(shape, x.dtype) if into is None else into.view(shape)
    weights, logits = (buffers.empty((len(graph.col), x.size(1)), x.dtype) for _ in range(2))
    raw = x.new_empty(0, 0) if operands.scale is None else buffers.empty(tuple(logits.shape), x.dtype)
    given = _arrays(operands)
    bias = np.zeros(out.shape[1:], given.x.dtype) if operands.bias is None else given.bias
    inputs = (
        *_incoming(graph), edge_order(graph.perm, kind.q_in_csr_order), *given[:10], bias, kind.scoring,
        kind.normalizer, *_scalars(kind, x), raw.numpy(), logits.numpy(), weights.numpy(), out.numpy(),
    )  # fmt: skip
    blocks = row_blocks(graph.ptr.numpy())
    run_blocks(blocks, lambda _, first, last: sweeps.forward_rows(first, last, *inputs))
    return Results(out, weights, logits, raw)


def backward(
    grad_out: Tensor,
    grad_weights: Tensor | None,
    operands: Operands,
    graph: Structure,
    results: Results,
    kind: Kind,
    need: Needed,
) -> Operands:
    """Gradients by the operands' names; empty where they are not needed."""
    return _added(partial_gradients(grad_out, grad_weights, operands, graph, results, kind, need), operands)


def partial_gradients(
    grad_out: Tensor,
    grad_weights: Tensor | None,
    operands: Operands,
    graph: Structure,
    results: Results,
    kind: Kind,
    need: Needed,
) -> Operands:
    """Gradients as arrays by the operands' names; of what all rows share, a sum for every block of rows."""
    operands = with_mask(operands, len(graph.col), kind)
    x, given = operands.x, _arrays(operands)
    blocks = row_blocks(graph.ptr.numpy())
    room = _room_for_gradients(operands, len(blocks), len(graph.col), tuple(grad_out.shape[1:]), kind, need)
    grad_score = buffers.empty((len(graph.col), x.size(1)), x.dtype).numpy()
    upstream, weights = _numpy(grad_out, 3, x), results.weights.numpy()
    inputs = (
        *_incoming(graph), edge_order(graph.perm, kind.q_in_csr_order), *given[:5], given.scale, given.q, given.keep,
        kind.scoring, kind.normalizer, *_scalars(kind, x), results.raw.numpy(), results.logits.numpy(), weights,
        upstream, _numpy(grad_weights, 2, x), grad_score, room.target, room.att, room.q, room.given, room.scale,
        room.shift, room.edge_attr, room.edge_weight, room.bias,
    )  # fmt: skip
    run_blocks(blocks, lambda block, first, last: sweeps.backward_targets(block, first, last, *inputs))
    if need.x:
        back = (
            graph.tptr.numpy(), graph.tcol.numpy(), graph.tpos.numpy(), graph.perm.numpy(), *given[:5], given.keep,
            kind.scoring, *_scalars(kind, x), weights, upstream, grad_score, room.x,
        )  # fmt: skip
        back_blocks = row_blocks(graph.tptr.numpy())
        run_blocks(back_blocks, lambda _, first, last: sweeps.backward_sources(first, last, *back))
    return room


def aggregate(weights: Tensor, x: Tensor, graph: Structure) -> Tensor:
    """Weighted sums over incoming edges; see :func:`ltga.kernels.aggregate`."""
    out = buffers.empty((len(graph.ptr) - 1, x.size(1), x.size(2)), x.dtype)
    values = _numpy(x, 3, x)
    inputs = (
        *_incoming(graph), values, _numpy(None, 2, x), np.zeros(values.shape[1:], values.dtype),
        _numpy(weights, 2, x), values.dtype.type(1.0), out.numpy(),
    )  # fmt: skip
    blocks = row_blocks(graph.ptr.numpy())
    run_blocks(blocks, lambda _, first, last: sweeps.aggregate_rows(first, last, *inputs))
    return out


def _room_for_gradients(
    operands: Operands, blocks: int, edges: int, row: tuple[int, ...], kind: Kind, need: Needed
) -> Operands:
    """Arrays to write gradients to: per edge, per node, or per block of rows for what all rows share."""
    x, heads, channels = operands.x, operands.x.size(1), operands.x.size(2)
    scored = kind.scoring != GIVEN
    with_edges = scored and operands.edge_attr is not None
    features = operands.edge_attr.size(1) if with_edges else 0

    kind_of = np.float32 if x.dtype == torch.float32 else np.float64

    def zeros(*shape: int, needed: bool) -> np.ndarray:
        return np.zeros(shape if needed else (0,) * len(shape), kind_of)

    def unwritten(shape: tuple[int, ...], needed: bool) -> np.ndarray:
        return buffers.empty(shape, x.dtype).numpy() if needed else np.zeros((0,) * len(shape), kind_of)

    q = np.zeros((blocks, heads) if need.q else (0, 0))
    if need.q and len(operands.q) != 1:
        q = unwritten((edges, heads), True)
    scale = operands.scale
    return Operands(
        x=unwritten(tuple(x.shape), need.x),
        target=unwritten(tuple(operands.target.shape) if scored else (0, 0, 0), scored),
        att=zeros(blocks, heads, channels, needed=scored),
        edge_attr=zeros(edges, features, needed=with_edges and need.edge_attr),
        edge_weight=zeros(blocks, features, heads, channels, needed=with_edges),
        given=zeros(edges, heads, needed=need.given),
        scale=zeros(blocks if scale is None or len(scale) == 1 else edges, heads, needed=scale is not None),
        shift=zeros(edges, heads, needed=need.shift),
        q=q,
        bias=zeros(blocks, *row, needed=True),
    )


def _added(room: Operands, operands: Operands) -> Operands:
    """Per-edge gradients as they are; partial sums added in block order, which depends on the graph alone."""

    def as_given(parts: np.ndarray, given: Tensor | None) -> Tensor:
        """One sum where one number was given for all edges, in the type in which it was given."""
        if given is None or len(parts) == 0:
            return torch.from_numpy(parts)
        return torch.from_numpy(total(parts)[None] if len(given) == 1 else parts).to(given.dtype)

    found = {name: torch.from_numpy(getattr(room, name)) for name in ("x", "target", "edge_attr", "given", "shift")}
    shared = {name: torch.from_numpy(total(getattr(room, name))) for name in ("att", "edge_weight", "bias")}
    scale, q = as_given(room.scale, operands.scale), as_given(room.q, operands.q)
    return Operands(**found, **shared, scale=scale, q=q.to(operands.q.dtype))


def total(parts: np.ndarray) -> np.ndarray:
    """The sum of what :func:`partial_gradients` gives for each block."""
    return parts[0] if len(parts) == 1 else parts.sum(0)


def _incoming(graph: Structure) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return graph.ptr.numpy(), graph.col.numpy(), graph.perm.numpy()


def _arrays(operands: Operands) -> Operands:
    return Operands._make([_numpy(value, rank, operands.x) for value, rank in zip(operands, RANKS)])


def _numpy(value: Tensor | None, rank: int, like: Tensor) -> np.ndarray:
    """A contiguous array of ``like``'s type, empty where there is no tensor."""
    if value is None:
        return _NOTHING[like.dtype, rank]
    value = value.detach()
    value = value if value.dtype == like.dtype else value.to(like.dtype)
    return value.resolve_neg().contiguous().numpy()


def _scalars(kind: Kind, like: Tensor) -> tuple[np.floating, np.floating]:
    exact = np.float32 if like.dtype == torch.float32 else np.float64
    return exact(kind.slope), exact(kind.dot_scale)
