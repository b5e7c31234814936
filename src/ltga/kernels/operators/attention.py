"""The fused attention operator, registered with torch: ``ltga::attend`` and its derivative.

One call scores every edge, normalises over each destination's incoming edges, and aggregates. Everything is checked
here, before a backend sees it. Backends are modules beside this one with the same functions: :mod:`.attention_torch`
is the definition, :mod:`.attention_numba` is compiled for the CPU, :mod:`.attention_triton` for GPUs.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ltga.errors import InputError
from ltga.kernels.codes import GIVEN, SOFTMAX
from ltga.kernels.operators import attention_torch
from ltga.kernels.operators.checks import check_attention, check_gradients, sums_type
from ltga.kernels.operators.dispatch import differentiable_gradients, operator, wants_definition
from ltga.kernels.operators.operands import Kind, Needed, Operands, Results, Structure

_NOT_TENSORS = len(Structure._fields) + len(Kind._fields)  # inputs without gradients


def _fused(device: torch.device, backend: str = "") -> Any:
    """The backend that does the work on a device; loaded when first used, because that takes longer than the rest."""
    if backend == "triton" or device.type != "cpu":  # checked before
        from ltga.kernels.operators import attention_triton

        return attention_triton
    from ltga.kernels.operators import attention_numba

    return attention_numba


@operator("attend")
def attend(
    x: Tensor,
    target: Tensor | None,
    att: Tensor | None,
    edge_attr: Tensor | None,
    edge_weight: Tensor | None,
    given: Tensor | None,
    scale: Tensor | None,
    shift: Tensor | None,
    q: Tensor,
    keep: Tensor | None,
    bias: Tensor | None,
    ptr: Tensor,
    col: Tensor,
    perm: Tensor,
    tptr: Tensor,
    tcol: Tensor,
    tpos: Tensor,
    scoring: int,
    normalizer: int,
    slope: float,
    dot_scale: float,
    average: bool,
    q_in_csr_order: bool = False,
    backend: str = "",
    dropout: float = 0.0,
    key: int = 0,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns (out [T, H, C] or [T, 1, C], weights [E, H], logits [E, H], unscaled logits), CSR order.

    The arguments are the fields of ``Operands``, ``Structure`` and ``Kind``, one after the other as torch wants them.
    """
    operands = Operands(x, target, att, edge_attr, edge_weight, given, scale, shift, q, keep, bias)
    graph = Structure(ptr, col, perm, tptr, tcol, tpos)
    kind = Kind(scoring, normalizer, slope, dot_scale, average, q_in_csr_order, backend, dropout, key)
    check_attention(operands, graph, kind)
    return tuple(_fused(x.device, backend).forward(operands, graph, kind))


@attend.register_fake
def _(*inputs: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    operands, graph, kind = _packed(inputs)
    x, edges = operands.x, (graph.col.size(0), operands.x.size(1))
    wide = sums_type(x.dtype)
    raw = x.new_empty(edges if operands.scale is not None else (0, 0), dtype=wide)
    out = x.new_empty(graph.ptr.size(0) - 1, 1 if kind.average else x.size(1), x.size(2))
    return out, x.new_empty(edges, dtype=wide), x.new_empty(edges, dtype=wide), raw


def _packed(inputs: Any) -> tuple[Operands, Structure, Kind]:
    """The arguments of :func:`attend` by name."""
    tensors, arrays = len(Operands._fields), len(Structure._fields)
    return (
        Operands(*inputs[:tensors]),
        Structure(*inputs[tensors : tensors + arrays]),
        Kind(*inputs[tensors + arrays :]),
    )


@operator("attend_backward")
def attend_backward(
    grad_out: Tensor,
    grad_alpha: Tensor | None,
    x: Tensor,
    target: Tensor | None,
    att: Tensor | None,
    edge_attr: Tensor | None,
    edge_weight: Tensor | None,
    scale: Tensor | None,
    q: Tensor,
    keep: Tensor | None,
    ptr: Tensor,
    col: Tensor,
    perm: Tensor,
    tptr: Tensor,
    tcol: Tensor,
    tpos: Tensor,
    raw: Tensor,
    logits: Tensor,
    weights: Tensor,
    scoring: int,
    normalizer: int,
    slope: float,
    dot_scale: float,
    need_x: bool,
    need_edge_attr: bool,
    need_q: bool,
    need_given: bool,
    need_shift: bool,
    q_in_csr_order: bool = False,
    backend: str = "",
    dropout: float = 0.0,
    key: int = 0,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of (x, target, att, edge_attr, edge_weight, given, scale, shift, q, bias); empty if not needed."""
    average = grad_out.dim() == 3 and x.dim() == 3 and grad_out.size(1) != x.size(1)
    operands = Operands(x, target, att, edge_attr, edge_weight, scale=scale, q=q, keep=keep)
    graph = Structure(ptr, col, perm, tptr, tcol, tpos)
    kind = Kind(scoring, normalizer, slope, dot_scale, average, q_in_csr_order, backend, dropout, key)
    check_attention(operands, graph, kind, needs_logits=False)
    results = Results(grad_out, weights, logits, raw)
    check_gradients(grad_out, grad_alpha, operands, results, len(ptr) - 1, len(col))
    need = Needed(need_x, need_edge_attr, need_q, need_given, need_shift)
    found = _fused(x.device, backend).backward(grad_out, grad_alpha, operands, graph, results, kind, need)
    return tuple(grad for name, grad in found._asdict().items() if name != "keep")  # type: ignore[return-value]


@attend_backward.register_fake
def _(  # type: ignore[no-untyped-def]
    grad_out, grad_alpha, x, target, att, edge_attr, edge_weight, scale, q, keep, ptr, col, perm, tptr, tcol, tpos,
    raw, logits, weights, scoring, normalizer, slope, dot_scale, need_x, need_edge_attr, need_q, need_given,
    need_shift, q_in_csr_order=False, backend="", dropout=0.0, key=0,
):  # fmt: skip
    scored, edges, heads = scoring != GIVEN, col.size(0), x.size(1)
    with_edges = scored and edge_attr is not None

    def room(*shape: int, needed: bool) -> Tensor:
        return x.new_empty(shape if needed else (0,) * len(shape), dtype=sums_type(x.dtype))

    return (
        torch.empty_like(x) if need_x else x.new_empty(0, 0, 0),
        torch.empty_like(target) if scored else x.new_empty(0, 0, 0),
        room(heads, x.size(2), needed=scored),
        torch.empty_like(edge_attr) if with_edges and need_edge_attr else room(0, 0, needed=False),
        room(edge_attr.size(1) if with_edges else 0, heads, x.size(2), needed=with_edges),
        room(edges, heads, needed=need_given),
        torch.empty_like(scale) if scale is not None else room(0, 0, needed=False),
        room(edges, heads, needed=need_shift),
        torch.empty_like(q) if need_q else q.new_empty(0, 0),
        room(*grad_out.shape[1:], needed=True),
    )


def _setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
    operands, graph, ctx.kind = _packed(inputs)
    # The bias's value is not needed, so it may change before the backward pass.
    ctx.bias_shape = getattr(operands.bias, "shape", None)
    _, weights, logits, raw = output
    ctx.save_for_backward(*operands._replace(bias=None), *graph, raw, logits, weights)
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(logits, raw)


def _backward(ctx: Any, grad_out: Tensor | None, grad_alpha: Tensor | None, *_: Tensor | None) -> tuple:
    *inputs, raw, logits, weights = ctx.saved_tensors
    given, graph, kind = _packed((*inputs, *ctx.kind))
    need = Operands(*ctx.needs_input_grad[: len(given)])
    if kind.normalizer == SOFTMAX:
        need = need._replace(q=False)
    if wants_definition(grad_out, grad_alpha):
        if need.bias:
            given = given._replace(bias=given.x.new_zeros(ctx.bias_shape, requires_grad=True))

        def definition(*own: Any) -> tuple[Tensor, Tensor]:
            return attention_torch.forward(Operands(*own), graph, kind)

        return (*differentiable_gradients(definition, given, need, (grad_out, grad_alpha)), *[None] * _NOT_TENSORS)
    if need.keep:
        raise InputError("keep: a dropout mask has no gradient here; use the definition in ltga.functional")
    if grad_out is None:
        heads = 1 if kind.average else given.x.size(1)
        grad_out = given.x.new_zeros(len(graph.ptr) - 1, heads, given.x.size(2))
    found = attend_backward(
        grad_out.contiguous(), None if grad_alpha is None else grad_alpha.contiguous(),
        *given[:5], given.scale, given.q, given.keep, *graph, raw, logits, weights, *kind[:4],
        need.x, need.edge_attr, need.q, need.given, need.shift, *kind[5:],
    )  # fmt: skip
    grads = Operands._make((*found[:-1], None, found[-1]))
    return (*(grad if needed else None for grad, needed in zip(grads, need)), *[None] * _NOT_TENSORS)


attend.register_autograd(_backward, setup_context=_setup_context)


@operator("aggregate")
def aggregate(weights: Tensor, x: Tensor, ptr: Tensor, col: Tensor, backend: str = "") -> Tensor:
    """Weighted sums over incoming edges, ``[T, H, C]``, for weights [E, H] in CSR order; zeros cost nothing."""
    perm = torch.arange(len(col), dtype=torch.int32, device=col.device)
    ones = x.new_ones(1, x.size(1)) if x.dim() == 3 else x
    graph = Structure(ptr, col, perm, None, None, None)  # type: ignore[arg-type]
    kind = Kind(GIVEN, SOFTMAX, 0.0, 0.0, False, backend=backend)
    check_attention(Operands(x, q=ones), graph, kind, needs_logits=False)
    fits = tuple(weights.shape) == (len(col), x.size(1)) and weights.device == x.device
    if not fits or not weights.is_floating_point():
        raise InputError(f"weights: expected numbers {(len(col), x.size(1))} beside x, got {tuple(weights.shape)}")
    return _fused(x.device, backend).aggregate(weights, x, graph)  # type: ignore[no-any-return]


@aggregate.register_fake
def _(weights, x, ptr, col, backend=""):  # type: ignore[no-untyped-def]
    return x.new_empty(ptr.size(0) - 1, x.size(1), x.size(2))
