"""The fused attention operator, registered with torch: ``ltga::attend`` and its derivative.

One call scores every edge, normalises over each destination's incoming edges, and aggregates.
Everything is checked here, before compiled code sees it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ltga.errors import InputError
from ltga.functional.graph import aggregate_edges, normalise_edges, score_edges
from ltga.kernels import buffers
from ltga.kernels.checks import check_attention, check_gradients
from ltga.kernels.dispatch import differentiable_gradients, operator, wants_definition
from ltga.kernels.neighbourhoods import edge_order
from ltga.kernels.threads import row_blocks, run_blocks

SCORINGS = {"given": 0, "gatv2": 1, "dot": 2}
NORMALIZERS = {"softmax": 0, "q_softmax": 1, "entmax": 2}


class Operands(NamedTuple):
    """The tensors that attention is a function of, as the operator takes them; their gradients go by the same names."""

    x: Any  # [S, H, C]
    target: Any = None  # [T, H, C]
    att: Any = None  # [H, C]
    edge_attr: Any = None  # [E, D]
    edge_weight: Any = None  # [D, H, C]
    given: Any = None  # [E, H] logits
    scale: Any = None  # [1, H] or [E, H]
    shift: Any = None  # [E, H]
    q: Any = None  # [1, H] or [E, H]
    keep: Any = None  # [E, H]
    bias: Any = None  # [H, C] or [1, C]


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
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns (out [T, H, C] or [T, 1, C], weights [E, H], logits [E, H], unscaled logits), CSR order."""
    from ltga.kernels import sweeps

    optional = {
        "target": (target, 3), "att": (att, 2), "edge_attr": (edge_attr, 2), "edge_weight": (edge_weight, 3),
        "given": (given, 2), "scale": (scale, 2), "shift": (shift, 2), "keep": (keep, 2), "bias": (bias, 2),
    }  # fmt: skip
    check_attention(x, optional, q, (ptr, col, perm, tptr, tcol, tpos), scoring, normalizer, average)
    nodes, heads, channels = len(ptr) - 1, x.size(1), x.size(2)
    out = buffers.empty((nodes, 1 if average else heads, channels), x.dtype)
    edge_shape = (len(col), heads)
    weights, logits = buffers.empty(edge_shape, x.dtype), buffers.empty(edge_shape, x.dtype)
    raw = buffers.empty(edge_shape, x.dtype) if scale is not None else x.new_empty(0, 0)
    arrays = {name: _numpy(value, rank, x) for name, (value, rank) in optional.items()}
    if bias is None:
        arrays["bias"] = np.zeros(out.shape[1:], arrays["bias"].dtype)
    csr = (ptr.numpy(), col.numpy(), perm.numpy())
    inputs = (
        *csr, edge_order(perm, q_in_csr_order), _numpy(x, 3, x), arrays["target"], arrays["att"],
        arrays["edge_attr"], arrays["edge_weight"],
        arrays["given"], arrays["scale"], arrays["shift"], _numpy(q, 2, x), arrays["keep"], arrays["bias"],
        scoring, normalizer, _scalar(slope, x), _scalar(dot_scale, x),
        raw.numpy(), logits.numpy(), weights.numpy(), out.numpy(),
    )  # fmt: skip
    run_blocks(row_blocks(csr[0]), lambda _, first, last: sweeps.forward_rows(first, last, *inputs))
    return out, weights, logits, raw


@attend.register_fake
def _(  # type: ignore[no-untyped-def]
    x, target, att, edge_attr, edge_weight, given, scale, shift, q, keep, bias, ptr, col, perm, tptr, tcol, tpos,
    scoring, normalizer, slope, dot_scale, average, q_in_csr_order=False,
):  # fmt: skip
    edges = (col.size(0), x.size(1))
    raw = x.new_empty(edges) if scale is not None else x.new_empty(0, 0)
    out = x.new_empty(ptr.size(0) - 1, 1 if average else x.size(1), x.size(2))
    return out, x.new_empty(edges), x.new_empty(edges), raw


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
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of (x, target, att, edge_attr, edge_weight, given, scale, shift, q, bias); empty if not needed."""
    from ltga.kernels import sweeps

    optional = {
        "target": (target, 3), "att": (att, 2), "edge_attr": (edge_attr, 2), "edge_weight": (edge_weight, 3),
        "scale": (scale, 2), "keep": (keep, 2),
    }  # fmt: skip
    average = grad_out.dim() == 3 and x.dim() == 3 and grad_out.size(1) != x.size(1)
    check_attention(x, optional, q, (ptr, col, perm, tptr, tcol, tpos), scoring, normalizer, average)
    check_gradients(
        grad_out, grad_alpha, x, raw if scale is not None else None, logits, weights, len(ptr) - 1, len(col)
    )
    heads, channels, edges = x.size(1), x.size(2), len(col)
    scored = scoring != SCORINGS["given"]
    blocks = row_blocks(ptr.numpy())
    count = len(blocks)

    def zeros(*shape: int, needed: bool) -> np.ndarray:
        return np.zeros(shape if needed else (0,) * len(shape), _numpy(x, 3, x).dtype)

    grad_score = buffers.empty((edges, heads), x.dtype)
    grad_target = buffers.empty(tuple(target.shape), x.dtype) if scored and target is not None else x.new_empty(0, 0, 0)
    grad_att = zeros(count, heads, channels, needed=scored)
    features = 0 if edge_attr is None else edge_attr.size(1)
    with_edges = edge_attr is not None and scored
    grad_edge_weight = zeros(count, features, heads, channels, needed=with_edges)
    grad_edge_attr = zeros(edges, features, needed=with_edges and need_edge_attr)
    grad_scale = zeros(count if scale is None or len(scale) == 1 else edges, heads, needed=scale is not None)
    grad_q = np.zeros((count, heads) if need_q else (0, 0))
    if need_q and len(q) != 1:
        grad_q = buffers.empty((edges, heads), x.dtype).numpy()
    grad_shift = zeros(edges, heads, needed=need_shift)
    grad_given = zeros(edges, heads, needed=need_given)
    grad_bias = zeros(count, *grad_out.shape[1:], needed=True)
    csr = (ptr.numpy(), col.numpy(), perm.numpy())
    features_of = (
        _numpy(x, 3, x),
        _numpy(target, 3, x),
        _numpy(att, 2, x),
        _numpy(edge_attr, 2, x),
        _numpy(edge_weight, 3, x),
    )
    upstream = _numpy(grad_out, 3, x)
    sweep = (
        *csr, edge_order(perm, q_in_csr_order), *features_of, _numpy(scale, 2, x), _numpy(q, 2, x), _numpy(keep, 2, x),
        scoring, normalizer, _scalar(slope, x), _scalar(dot_scale, x),
        raw.numpy(), logits.numpy(), weights.numpy(), upstream, _numpy(grad_alpha, 2, x),
        grad_score.numpy(), grad_target.numpy(), grad_att, grad_q, grad_given, grad_scale, grad_shift, grad_edge_attr,
        grad_edge_weight, grad_bias,
    )  # fmt: skip
    run_blocks(blocks, lambda block, first, last: sweeps.backward_targets(block, first, last, *sweep))
    grad_x = buffers.empty(tuple(x.shape), x.dtype) if need_x else x.new_empty(0, 0, 0)
    if need_x:
        back = (
            tptr.numpy(), tcol.numpy(), tpos.numpy(), csr[2], *features_of, _numpy(keep, 2, x),
            scoring, _scalar(slope, x), _scalar(dot_scale, x), weights.numpy(), upstream,
            grad_score.numpy(), grad_x.numpy(),
        )  # fmt: skip
        run_blocks(row_blocks(tptr.numpy()), lambda _, first, last: sweeps.backward_sources(first, last, *back))

    def summed(parts: np.ndarray, like: Tensor | None) -> Tensor:
        """Per-edge gradients as they are; partial sums added in block order, which depends on the graph alone."""
        if like is None or len(parts) == 0:
            return torch.from_numpy(parts)
        return torch.from_numpy(parts if len(like) != 1 else parts.sum(0, keepdims=True)).to(like.dtype)

    return (
        grad_x,
        grad_target,
        torch.from_numpy(grad_att.sum(0)),
        torch.from_numpy(grad_edge_attr),
        torch.from_numpy(grad_edge_weight.sum(0)),
        torch.from_numpy(grad_given),
        summed(grad_scale, scale),
        torch.from_numpy(grad_shift),
        summed(grad_q, q).to(q.dtype),
        torch.from_numpy(grad_bias.sum(0)),
    )


@attend_backward.register_fake
def _(  # type: ignore[no-untyped-def]
    grad_out, grad_alpha, x, target, att, edge_attr, edge_weight, scale, q, keep, ptr, col, perm, tptr, tcol, tpos,
    raw, logits, weights, scoring, normalizer, slope, dot_scale, need_x, need_edge_attr, need_q, need_given,
    need_shift, q_in_csr_order=False,
):  # fmt: skip
    scored, edges, heads = scoring != SCORINGS["given"], col.size(0), x.size(1)
    per_head = x.new_empty(heads, x.size(2))
    with_edges = scored and edge_attr is not None
    return (
        torch.empty_like(x) if need_x else x.new_empty(0, 0, 0),
        torch.empty_like(target) if scored else x.new_empty(0, 0, 0),
        per_head if scored else x.new_empty(0, 0),
        torch.empty_like(edge_attr) if with_edges and need_edge_attr else x.new_empty(0, 0),
        x.new_empty(edge_attr.size(1), heads, x.size(2)) if with_edges else x.new_empty(0, 0, 0),
        x.new_empty(edges, heads) if need_given else x.new_empty(0, 0),
        torch.empty_like(scale) if scale is not None else x.new_empty(0, 0),
        x.new_empty(edges, heads) if need_shift else x.new_empty(0, 0),
        torch.empty_like(q) if need_q else q.new_empty(0, 0),
        grad_out.new_empty(grad_out.shape[1:]),
    )


def _setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
    *tensors, ctx.scoring, ctx.normalizer, ctx.slope, ctx.dot_scale, ctx.average, ctx.q_order = inputs
    _, weights, logits, raw = output
    at = Operands._fields.index("bias")  # its value is not needed, so it may change before the backward pass
    ctx.bias_shape, tensors[at] = getattr(tensors[at], "shape", None), None
    ctx.save_for_backward(*tensors, raw, logits, weights)
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(logits, raw)


def _backward(ctx: Any, grad_out: Tensor | None, grad_alpha: Tensor | None, *_: Tensor | None) -> tuple:
    *inputs, raw, logits, weights = ctx.saved_tensors
    given, structure = Operands(*inputs[: len(Operands._fields)]), inputs[len(Operands._fields) :]
    need = Operands(*ctx.needs_input_grad[: len(given)])
    if ctx.normalizer == NORMALIZERS["softmax"]:
        need = need._replace(q=False)
    if wants_definition(grad_out, grad_alpha):
        if need.bias:
            given = given._replace(bias=given.x.new_zeros(ctx.bias_shape, requires_grad=True))

        def definition(*own: Any) -> tuple[Tensor, Tensor]:
            kinds = (ctx.scoring, ctx.normalizer, ctx.slope, ctx.dot_scale, ctx.average, ctx.q_order)
            settings: Any = (*structure[:3], *kinds)
            return plain_attend(*own, *settings)

        return (*differentiable_gradients(definition, given, need, (grad_out, grad_alpha)), *[None] * 12)
    if need.keep:
        raise InputError("keep: a dropout mask has no gradient here; use the definition in ltga.functional")
    if grad_out is None:
        heads = 1 if ctx.average else given.x.size(1)
        grad_out = given.x.new_zeros(len(structure[0]) - 1, heads, given.x.size(2))
    found = attend_backward(
        grad_out.contiguous(), None if grad_alpha is None else grad_alpha.contiguous(),
        given.x, given.target, given.att, given.edge_attr, given.edge_weight, given.scale, given.q, given.keep,
        *structure, raw, logits, weights, ctx.scoring, ctx.normalizer, ctx.slope, ctx.dot_scale,
        need.x, need.edge_attr, need.q, need.given, need.shift, ctx.q_order,
    )  # fmt: skip
    grads = Operands._make((*found[:-1], None, found[-1]))
    return (*(grad if needed else None for grad, needed in zip(grads, need)), *[None] * 12)


def plain_attend(
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
    scoring: int,
    normalizer: int,
    slope: float,
    dot_scale: float,
    average: bool,
    q_in_csr_order: bool,
) -> tuple[Tensor, Tensor]:
    """(out, weights in CSR order) of :func:`attend` by the definitions in :mod:`ltga.functional`."""
    targets, order = len(ptr) - 1, perm.long()
    edges = torch.stack([col.long(), torch.repeat_interleave(torch.arange(targets), ptr.diff())])

    def sorted_by_target(value: Tensor) -> Tensor:
        return value if len(value) == 1 else value.index_select(0, order)

    if given is not None:
        logits = given.index_select(0, order)
    else:
        assert target is not None
        edge = None
        if edge_attr is not None:
            edge = torch.einsum("ed,dhc->ehc", edge_attr.index_select(0, order), edge_weight)
        name = "gatv2" if scoring == SCORINGS["gatv2"] else "dot"
        logits = score_edges(x, target, edges, name, att, slope, edge)
        logits = logits if name == "gatv2" else logits * (dot_scale * x.size(2) ** 0.5)
    logits = logits if scale is None else logits * sorted_by_target(scale)
    logits = logits if shift is None else logits + shift.index_select(0, order)
    kind = next(name for name, code in NORMALIZERS.items() if code == normalizer)
    weights = normalise_edges(logits, q if q_in_csr_order else sorted_by_target(q), edges[1], targets, kind)
    kept = weights if keep is None else weights * keep.index_select(0, order)
    out = aggregate_edges(kept, x, edges, targets)
    out = out.mean(1, keepdim=True) if average else out
    return out if bias is None else out + bias, weights


attend.register_autograd(_backward, setup_context=_setup_context)


@operator("aggregate")
def aggregate(weights: Tensor, x: Tensor, ptr: Tensor, col: Tensor) -> Tensor:
    """Weighted sums over incoming edges, ``[T, H, C]``, for weights [E, H] in CSR order; zeros cost nothing."""
    from ltga.kernels import sweeps

    perm = torch.arange(len(col), dtype=torch.int32)
    ones = x.new_ones(1, x.size(1)) if x.dim() == 3 else x
    check_attention(x, {"weights": (weights, 2)}, ones, (ptr, col, perm, None, None, None), 0, 0, False)
    out = buffers.empty((len(ptr) - 1, x.size(1), x.size(2)), x.dtype)
    values = _numpy(x, 3, x)
    inputs = (
        ptr.numpy(), col.numpy(), perm.numpy(), values, _numpy(None, 2, x), np.zeros(values.shape[1:], values.dtype),
        _numpy(weights, 2, x), _scalar(1.0, x), out.numpy(),
    )  # fmt: skip
    run_blocks(row_blocks(ptr.numpy()), lambda _, first, last: sweeps.aggregate_rows(first, last, *inputs))
    return out


@aggregate.register_fake
def _(weights, x, ptr, col):  # type: ignore[no-untyped-def]
    return x.new_empty(ptr.size(0) - 1, x.size(1), x.size(2))


def _numpy(value: Tensor | None, rank: int, like: Tensor) -> np.ndarray:
    """A contiguous array of ``like``'s type, empty where there is no tensor."""
    if value is None:
        value = like.new_empty((0,) * rank)
    return value.detach().to(like.dtype).contiguous().numpy()


def _scalar(value: float, like: Tensor) -> np.floating:
    return np.float32(value) if like.dtype == torch.float32 else np.float64(value)
