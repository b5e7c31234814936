"""Dot products along edges, ``ltga::edge_dot``: the logits of attention whose keys are not its messages."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ltga.errors import InputError
from ltga.kernels.operators.checks import check_features, check_graph
from ltga.kernels.operators.dispatch import differentiable_gradients, operator, wants_definition
from ltga.kernels.operators.operands import Structure
from ltga.kernels.runtime import buffers
from ltga.kernels.runtime.threads import row_blocks, run_blocks


@operator("edge_dot")
def edge_dot(
    key: Tensor,
    query: Tensor,
    ptr: Tensor,
    col: Tensor,
    perm: Tensor,
    tptr: Tensor,
    tcol: Tensor,
    tpos: Tensor,
    scale: float,
    backend: str = "",
) -> Tensor:
    """scale <query_i, key_j> of every edge and head, ``[E, H]`` in the caller's order, without [E, H, C] on the way."""
    _check(key, query, (ptr, col, perm, tptr, tcol, tpos), backend)
    if backend == "triton" or not key.is_cpu:
        from ltga.kernels.operators import attention_triton

        return attention_triton.dot(key, query, Structure(ptr, col, perm, tptr, tcol, tpos), scale)
    from ltga.kernels.numba.dot_rows import dot_rows

    out = buffers.empty((len(col), key.size(1)), key.dtype)
    arrays = (ptr.numpy(), col.numpy(), perm.numpy(), _array(key), _array(query), scale, out.numpy())
    run_blocks(row_blocks(arrays[0]), lambda _, first, last: dot_rows(first, last, *arrays))
    return out


@edge_dot.register_fake
def _(key, query, ptr, col, perm, tptr, tcol, tpos, scale, backend=""):  # type: ignore[no-untyped-def]
    return key.new_empty(col.size(0), key.size(1))


@operator("edge_dot_backward")
def edge_dot_backward(
    grad: Tensor,
    key: Tensor,
    query: Tensor,
    ptr: Tensor,
    col: Tensor,
    perm: Tensor,
    tptr: Tensor,
    tcol: Tensor,
    tpos: Tensor,
    scale: float,
    backend: str = "",
) -> tuple[Tensor, Tensor]:
    """Gradients of (key, query)."""
    _check(key, query, (ptr, col, perm, tptr, tcol, tpos), backend)
    if grad.shape != (len(col), key.size(1)) or grad.dtype != key.dtype:
        raise InputError(f"grad: expected [{len(col)}, {key.size(1)}] of the keys' type, got {list(grad.shape)}")
    if backend == "triton" or not key.is_cpu:
        from ltga.kernels.operators import attention_triton

        return attention_triton.dot_gradients(grad, key, query, Structure(ptr, col, perm, tptr, tcol, tpos), scale)
    from ltga.kernels.numba.dot_rows import weighted_rows

    grad_key, grad_query = (buffers.empty(tuple(value.shape), value.dtype) for value in (key, query))
    weights, edges = grad.contiguous().numpy(), perm.numpy()
    for rows, others, edge, table, out in (
        (ptr.numpy(), col.numpy(), edges, key, grad_query),
        (tptr.numpy(), tcol.numpy(), edges[tpos.numpy()], query, grad_key),
    ):
        arrays = (rows, others, edge, weights, _array(table), scale, out.numpy())
        run_blocks(row_blocks(rows), lambda _, first, last, arrays=arrays: weighted_rows(first, last, *arrays))
    return grad_key, grad_query


@edge_dot_backward.register_fake
def _(grad, key, query, ptr, col, perm, tptr, tcol, tpos, scale, backend=""):  # type: ignore[no-untyped-def]
    return torch.empty_like(key), torch.empty_like(query)


def _array(value: Tensor) -> Any:
    return value.detach().contiguous().numpy()


def _check(key: Tensor, query: Tensor, structure: tuple[Tensor, ...], backend: str) -> None:
    """Everything the compiled loops rely on."""
    check_features("key", key, backend)
    check_features("query", query, backend)
    check_graph(structure, len(key))
    if key.shape[1:] != query.shape[1:] or key.dtype != query.dtype or len(query) != len(structure[0]) - 1:
        raise InputError(f"query: expected {[len(structure[0]) - 1, *key.shape[1:]]}, got {list(query.shape)}")


def _setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
    *tensors, ctx.scale, ctx.backend = inputs
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, grad: Tensor) -> tuple:
    key, query, *structure = ctx.saved_tensors
    if wants_definition(grad):

        def definition(*own: Any) -> tuple[Tensor]:
            settings: Any = (*structure[:3], ctx.scale)
            return (plain_edge_dot(*own, *settings),)

        return (*differentiable_gradients(definition, (key, query), ctx.needs_input_grad[:2], (grad,)), *[None] * 8)
    return (*edge_dot_backward(grad, key, query, *structure, ctx.scale, ctx.backend), *[None] * 8)


def plain_edge_dot(key: Tensor, query: Tensor, ptr: Tensor, col: Tensor, perm: Tensor, scale: float) -> Tensor:
    """:func:`edge_dot` in plain torch."""
    row = torch.repeat_interleave(torch.arange(len(ptr) - 1, device=ptr.device), ptr.diff())
    products = (query.index_select(0, row) * key.index_select(0, col.long())).sum(-1) * scale
    return products.index_select(0, perm.long().argsort())


edge_dot.register_autograd(_backward, setup_context=_setup_context)
