"""The edge gate's second half, registered with torch: ``ltga::edge_mlp`` and its derivative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ltga.errors import InputError
from ltga.kernels.operators.checks import check_graph
from ltga.kernels.operators.dispatch import differentiable_gradients, operator, wants_definition
from ltga.kernels.runtime import buffers
from ltga.kernels.runtime.neighbourhoods import edge_order
from ltga.kernels.runtime.threads import row_blocks, run_blocks


@operator("edge_mlp")
def edge_mlp(
    per_target: Tensor,
    per_source: Tensor,
    weight: Tensor,
    bias: Tensor,
    ptr: Tensor,
    col: Tensor,
    perm: Tensor,
    tptr: Tensor,
    tcol: Tensor,
    tpos: Tensor,
    csr_order: bool,
    bound: float = 0.0,
) -> Tensor:
    """relu(per_target[i] + per_source[j]) W^T + b, ``[E, H]``, edges as the caller has them or in CSR order.

    With a ``bound`` above 0 the result is 1 + bound * tanh of that: q straight from the gate, with nothing
    of size [E, H] in between.

    Args:
        per_target, per_source: first-layer outputs ``[T, D]`` (bias included) and ``[S, D]``.
        weight, bias: second layer, ``[H, D]`` and ``[H]``.
        ptr, col, perm, tptr, tcol, tpos: ``Neighbourhoods.structure``.
    """
    structure = (ptr, col, perm, tptr, tcol, tpos)
    _check(per_target, per_source, weight, bias, structure)
    return edge_mlp_arrays(per_target, per_source, weight, bias, structure, csr_order, bound)


def edge_mlp_arrays(
    per_target: Tensor,
    per_source: Tensor,
    weight: Tensor,
    bias: Tensor,
    structure: Sequence[Tensor],
    csr_order: bool,
    bound: float,
) -> Tensor:
    """:func:`edge_mlp` of what has been checked."""
    from ltga.kernels.numba.gate_rows import gate_forward

    ptr, col, perm = structure[:3]
    out = buffers.empty((len(col), weight.size(0)), weight.dtype)
    inputs = (
        ptr.numpy(), col.numpy(), edge_order(perm, csr_order), _numpy(per_target), _numpy(per_source),
        _numpy(weight.t()), _numpy(bias), bound, out.numpy(),
    )  # fmt: skip
    run_blocks(row_blocks(ptr.numpy()), lambda _, first, last: gate_forward(first, last, *inputs))
    return out


@edge_mlp.register_fake
def _(per_target, per_source, weight, bias, ptr, col, *rest):  # type: ignore[no-untyped-def]
    return weight.new_empty(col.size(0), weight.size(0))


@operator("edge_mlp_backward")
def edge_mlp_backward(
    grad: Tensor,
    out: Tensor,
    per_target: Tensor,
    per_source: Tensor,
    weight: Tensor,
    ptr: Tensor,
    col: Tensor,
    perm: Tensor,
    tptr: Tensor,
    tcol: Tensor,
    tpos: Tensor,
    csr_order: bool,
    bound: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of (per_target, per_source, weight, bias); ``out`` is looked at only where there is a bound."""
    structure = (ptr, col, perm, tptr, tcol, tpos)
    _check(per_target, per_source, weight, None, structure)
    for name, value in (("grad", grad), ("out", out)):
        if tuple(value.shape) != (len(col), weight.size(0)) or value.dtype != weight.dtype:
            shape = (len(col), weight.size(0))
            raise InputError(f"{name}: expected {weight.dtype} {shape}, got {value.dtype} {tuple(value.shape)}")
    return edge_mlp_gradients(grad, out, per_target, per_source, weight, structure, csr_order, bound)


def edge_mlp_gradients(
    grad: Tensor,
    out: Tensor,
    per_target: Tensor,
    per_source: Tensor,
    weight: Tensor,
    structure: Sequence[Tensor],
    csr_order: bool,
    bound: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """:func:`edge_mlp_backward` of what has been checked."""
    from ltga.kernels.numba.gate_rows import gate_sources, gate_targets

    ptr, col, perm, tptr, _, tpos = structure
    blocks = row_blocks(ptr.numpy())
    grad_hidden = buffers.empty((len(col), weight.size(1)), weight.dtype)
    grad_target, grad_source = torch.empty_like(per_target), torch.empty_like(per_source)
    partial = np.zeros((len(blocks), *weight.shape), _numpy(weight).dtype)
    partial_bias = np.zeros((len(blocks), weight.size(0)), partial.dtype)
    inputs = (
        ptr.numpy(), col.numpy(), edge_order(perm, csr_order), _numpy(per_target), _numpy(per_source), _numpy(weight),
        _numpy(grad), _numpy(out), bound, grad_hidden.numpy(), grad_target.numpy(), partial, partial_bias,
    )  # fmt: skip
    run_blocks(blocks, lambda block, first, last: gate_targets(block, first, last, *inputs))
    back = (tptr.numpy(), tpos.numpy(), grad_hidden.numpy(), grad_source.numpy())
    run_blocks(row_blocks(tptr.numpy()), lambda _, first, last: gate_sources(first, last, *back))
    return grad_target, grad_source, torch.from_numpy(partial.sum(0)), torch.from_numpy(partial_bias.sum(0))


@edge_mlp_backward.register_fake
def _(grad, out, per_target, per_source, weight, *rest):  # type: ignore[no-untyped-def]
    bias = weight.new_empty(weight.size(0))
    return torch.empty_like(per_target), torch.empty_like(per_source), torch.empty_like(weight), bias


def _check(
    per_target: Tensor, per_source: Tensor, weight: Tensor, bias: Tensor | None, structure: tuple[Tensor, ...]
) -> None:
    given = (per_target, per_source, weight)
    if any(value.dim() != 2 or value.device.type != "cpu" for value in given):
        raise InputError("per_target, per_source, weight: expected 2-D CPU tensors")
    if weight.dtype not in (torch.float32, torch.float64) or len({value.dtype for value in given}) != 1:
        raise InputError("per_target, per_source, weight: expected one type, float32 or float64")
    if any(value.size(1) != weight.size(1) for value in given):
        raise InputError("per_target, per_source, weight: expected the same number of columns")
    if bias is not None and (bias.shape != weight.shape[:1] or bias.dtype != weight.dtype or not bias.is_cpu):
        raise InputError(f"bias: expected {weight.dtype} [{weight.size(0)}]")
    check_graph(structure, len(per_source))
    if len(structure[0]) != len(per_target) + 1:
        raise InputError(f"per_target: has {len(per_target)} rows for {len(structure[0]) - 1} targets")


def _numpy(value: Tensor) -> np.ndarray:
    return value.detach().contiguous().numpy()


def _setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
    *tensors, ctx.csr_order, ctx.bound = inputs
    ctx.save_for_backward(*tensors, output)


def _backward(ctx: Any, grad: Tensor) -> tuple:
    per_target, per_source, weight, bias, *structure, out = ctx.saved_tensors
    if wants_definition(grad):

        def definition(*own: Any) -> tuple[Tensor]:
            settings: Any = (*structure[:3], ctx.csr_order, ctx.bound)
            return (plain_edge_mlp(*own, *settings),)

        inputs = (per_target, per_source, weight, bias)
        return (*differentiable_gradients(definition, inputs, ctx.needs_input_grad[:4], (grad,)), *[None] * 8)
    grads = edge_mlp_backward(
        grad.contiguous(), out, per_target, per_source, weight, *structure, ctx.csr_order, ctx.bound
    )
    return (*grads, *[None] * 8)


def plain_edge_mlp(
    per_target: Tensor,
    per_source: Tensor,
    weight: Tensor,
    bias: Tensor,
    ptr: Tensor,
    col: Tensor,
    perm: Tensor,
    csr_order: bool,
    bound: float,
) -> Tensor:
    """:func:`edge_mlp` in plain torch."""
    row = torch.repeat_interleave(torch.arange(len(ptr) - 1, device=ptr.device), ptr.diff())
    hidden = torch.relu(per_target.index_select(0, row) + per_source.index_select(0, col.long()))
    out = hidden @ weight.t() + bias
    out = 1 + bound * torch.tanh(out) if bound > 0 else out
    return out if csr_order else out.index_select(0, perm.long().argsort())


edge_mlp.register_autograd(_backward, setup_context=_setup_context)
