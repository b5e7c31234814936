"""The fused attention operator, registered with torch: ``ltga::attend`` and its derivative.

One call scores every edge, normalises over each destination's incoming edges, and aggregates.
Everything is checked here, before compiled code sees it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ltga.errors import GraphError, InputError
from ltga.kernels import buffers
from ltga.kernels.threads import row_blocks, run_blocks

SCORINGS = {"given": 0, "gatv2": 1, "dot": 2}
NORMALIZERS = {"softmax": 0, "q_softmax": 1, "entmax": 2}


@torch.library.custom_op("ltga::attend", mutates_args=())
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
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns (out [T, H, C] or [T, 1, C], weights [E, H], logits [E, H], unscaled logits), CSR order."""
    from ltga.kernels import sweeps

    optional = {
        "target": (target, 3), "att": (att, 2), "edge_attr": (edge_attr, 2), "edge_weight": (edge_weight, 3),
        "given": (given, 2), "scale": (scale, 2), "shift": (shift, 2), "keep": (keep, 2), "bias": (bias, 2),
    }  # fmt: skip
    _check(x, optional, q, (ptr, col, perm, tptr, tcol, tpos), scoring)
    nodes, heads, channels = len(ptr) - 1, x.size(1), x.size(2)
    out = buffers.empty((nodes, 1 if average else heads, channels), x.dtype)
    edge_shape = (len(col), heads)
    weights, logits = buffers.empty(edge_shape, x.dtype), buffers.empty(edge_shape, x.dtype)
    raw = buffers.empty(edge_shape, x.dtype) if scale is not None else x.new_empty(0, 0)
    arrays = {name: _numpy(value, rank, x) for name, (value, rank) in optional.items()}
    csr = (ptr.numpy(), col.numpy(), perm.numpy())
    inputs = (
        *csr, _numpy(x, 3, x), arrays["target"], arrays["att"], arrays["edge_attr"], arrays["edge_weight"],
        arrays["given"], arrays["scale"], arrays["shift"], _numpy(q, 2, x), arrays["keep"], arrays["bias"],
        scoring, normalizer, _scalar(slope, x), _scalar(dot_scale, x),
        raw.numpy(), logits.numpy(), weights.numpy(), out.numpy(),
    )  # fmt: skip
    run_blocks(row_blocks(csr[0]), lambda _, first, last: sweeps.forward_rows(first, last, *inputs))
    return out, weights, logits, raw


@attend.register_fake
def _(x, target, att, edge_attr, edge_weight, given, scale, shift, q, keep, bias, ptr, col, *rest):  # type: ignore[no-untyped-def]
    average = rest[-1]
    edges = (col.size(0), x.size(1))
    raw = x.new_empty(edges) if scale is not None else x.new_empty(0, 0)
    out = x.new_empty(ptr.size(0) - 1, 1 if average else x.size(1), x.size(2))
    return out, x.new_empty(edges), x.new_empty(edges), raw


@torch.library.custom_op("ltga::attend_backward", mutates_args=())
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
    need_shift: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of (x, target, att, edge_attr, edge_weight, scale, shift or given, q); empty if not needed."""
    from ltga.kernels import sweeps

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
    grad_scale = zeros(edges if scale is not None and len(scale) > 1 else count, heads, needed=scale is not None)
    grad_q = np.zeros((edges if len(q) > 1 else count, heads) if need_q else (0, 0))
    grad_shift = zeros(edges, heads, needed=need_shift)
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
        *csr, *features_of, _numpy(scale, 2, x), _numpy(q, 2, x), _numpy(keep, 2, x),
        scoring, normalizer, _scalar(slope, x), _scalar(dot_scale, x),
        raw.numpy(), logits.numpy(), weights.numpy(), upstream, _numpy(grad_alpha, 2, x),
        grad_score.numpy(), grad_target.numpy(), grad_att, grad_q, grad_scale, grad_shift, grad_edge_attr,
        grad_edge_weight,
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
    # Partial sums are added in block order, which depends on the graph alone.
    per_edge_q, per_edge_scale = len(q) > 1, scale is not None and len(scale) > 1
    return (
        grad_x,
        grad_target,
        torch.from_numpy(grad_att.sum(0)),
        torch.from_numpy(grad_edge_attr),
        torch.from_numpy(grad_edge_weight.sum(0)),
        torch.from_numpy(grad_scale if per_edge_scale else grad_scale.sum(0, keepdims=True)),
        torch.from_numpy(grad_shift),
        torch.from_numpy(grad_q if per_edge_q else grad_q.sum(0, keepdims=True)).to(q.dtype),
    )


@attend_backward.register_fake
def _(grad_out, grad_alpha, x, target, att, edge_attr, edge_weight, scale, q, keep, ptr, col, *rest):  # type: ignore[no-untyped-def]
    scoring, need_x, need_edge_attr, need_q, need_shift = rest[7], *rest[-4:]
    scored, edges, heads = scoring != SCORINGS["given"], col.size(0), x.size(1)
    per_head = x.new_empty(heads, x.size(2))
    with_edges = scored and edge_attr is not None
    return (
        torch.empty_like(x) if need_x else x.new_empty(0, 0, 0),
        torch.empty_like(target) if scored else x.new_empty(0, 0, 0),
        per_head if scored else x.new_empty(0, 0),
        torch.empty_like(edge_attr) if with_edges and need_edge_attr else x.new_empty(0, 0),
        x.new_empty(edge_attr.size(1), heads, x.size(2)) if with_edges else x.new_empty(0, 0, 0),
        torch.empty_like(scale) if scale is not None else x.new_empty(1, 0),
        x.new_empty(edges, heads) if need_shift else x.new_empty(0, 0),
        torch.empty_like(q) if need_q else q.new_empty(1, 0),
    )


def _setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
    x, target, att, edge_attr, edge_weight, given, scale, shift, q, keep, bias, *rest = inputs
    structure, (ctx.scoring, ctx.normalizer, ctx.slope, ctx.dot_scale, ctx.average) = rest[:6], rest[6:]
    _, weights, logits, raw = output
    ctx.save_for_backward(x, target, att, edge_attr, edge_weight, scale, q, keep, *structure, raw, logits, weights)
    ctx.set_materialize_grads(False)
    ctx.present = [value is not None for value in (target, att, edge_attr, edge_weight, given, scale, shift, bias)]


def _backward(ctx: Any, grad_out: Tensor | None, grad_alpha: Tensor | None, *_: Tensor | None) -> tuple:
    saved = ctx.saved_tensors
    x, q, weights = saved[0], saved[6], saved[-1]
    needs = ctx.needs_input_grad
    if grad_out is None:
        shape = (len(saved[8]) - 1, 1 if ctx.average else x.size(1), x.size(2))
        grad_out = x.new_zeros(shape)
    gx, g_target, g_att, g_edge_attr, g_edge_weight, g_scale, g_shift, g_q = attend_backward(
        grad_out.contiguous(), None if grad_alpha is None else grad_alpha.contiguous(), *saved,
        ctx.scoring, ctx.normalizer, ctx.slope, ctx.dot_scale,
        needs[0], needs[3], needs[8] and ctx.normalizer != NORMALIZERS["softmax"], needs[5] or needs[7],
    )  # fmt: skip
    del q, weights

    def if_needed(position: int, value: Tensor) -> Tensor | None:
        return value if needs[position] else None

    grads = [
        if_needed(0, gx), if_needed(1, g_target), if_needed(2, g_att), if_needed(3, g_edge_attr),
        if_needed(4, g_edge_weight), if_needed(5, g_shift), if_needed(6, g_scale), if_needed(7, g_shift),
        if_needed(8, g_q) if ctx.normalizer != NORMALIZERS["softmax"] else None,
        None, grad_out.sum(0) if needs[10] else None,
    ]  # fmt: skip
    return (*grads, *[None] * 11)


attend.register_autograd(_backward, setup_context=_setup_context)


@torch.library.custom_op("ltga::aggregate", mutates_args=())
def aggregate(weights: Tensor, x: Tensor, ptr: Tensor, col: Tensor) -> Tensor:
    """Weighted sums over incoming edges, ``[T, H, C]``, for weights [E, H] in CSR order; zeros cost nothing."""
    from ltga.kernels import sweeps

    perm = torch.arange(len(col), dtype=torch.int32)
    _check(x, {"weights": (weights, 2)}, x.new_ones(1, x.size(1)), (ptr, col, perm, None, None, None), 0)
    out = buffers.empty((len(ptr) - 1, x.size(1), x.size(2)), x.dtype)
    none = _numpy(None, 2, x)
    inputs = (
        ptr.numpy(), col.numpy(), perm.numpy(), _numpy(x, 3, x), none, none, _numpy(weights, 2, x),
        _scalar(1.0, x), out.numpy(),
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


def _check(
    x: Tensor,
    optional: dict[str, tuple[Tensor | None, int]],
    q: Tensor,
    structure: tuple[Tensor | None, ...],
    scoring: int,
) -> None:
    """Everything that compiled code relies on; raises before it runs."""
    from ltga.kernels.sweeps import check_structure

    if x.dim() != 3 or x.dtype not in (torch.float32, torch.float64) or x.device.type != "cpu":
        raise InputError(f"x: expected a CPU float32/float64 tensor [S, H, C], got {x.dtype} {list(x.shape)}")
    ptr, col, perm, tptr, tcol, tpos = structure
    for name, array, dtype in (
        ("ptr", ptr, torch.int64), ("col", col, torch.int32), ("perm", perm, torch.int32),
        ("tptr", tptr, torch.int64), ("tcol", tcol, torch.int32), ("tpos", tpos, torch.int32),
    ):  # fmt: skip
        if array is not None and (array.dim() != 1 or array.dtype != dtype or not array.is_contiguous()):
            raise GraphError(f"{name}: expected a contiguous 1-D {dtype} tensor, got {array.dtype} {list(array.shape)}")
    assert ptr is not None and col is not None and perm is not None
    broken = check_structure(ptr.numpy(), col.numpy(), perm.numpy(), x.size(0))
    if not broken and tptr is not None:
        assert tcol is not None and tpos is not None
        broken = 10 * check_structure(tptr.numpy(), tcol.numpy(), tpos.numpy(), len(ptr) - 1)
        if not broken and (len(tptr) != x.size(0) + 1 or len(tcol) != len(col)):
            broken = 50
    if broken:
        raise GraphError(
            f"neighbourhoods: not a valid CSR structure for {x.size(0)} sources (rule {broken}); "
            f"build it with ltga.kernels.neighbourhoods"
        )
    nodes, edges, heads, channels = len(ptr) - 1, len(col), x.size(1), x.size(2)
    expected: dict[str, tuple[tuple[int, ...], ...]] = {
        "target": ((nodes, heads, channels),),
        "att": ((heads, channels),),
        "given": ((edges, heads),),
        "weights": ((edges, heads),),
        "scale": ((1, heads), (edges, heads)),
        "shift": ((edges, heads),),
        "keep": ((edges, heads),),
        "bias": ((heads, channels), (1, channels)),
    }
    for name, (value, _) in optional.items():
        if value is not None and name in expected and tuple(value.shape) not in expected[name]:
            raise InputError(
                f"{name}: expected shape {' or '.join(map(str, expected[name]))}, got {tuple(value.shape)}"
            )
    if tuple(q.shape) not in ((1, heads), (edges, heads)):
        raise InputError(f"q: expected shape (1, {heads}) or ({edges}, {heads}), got {tuple(q.shape)}")
    if scoring == SCORINGS["given"]:
        if "given" in optional and optional["given"][0] is None:
            raise InputError("given: logits are needed when scoring='given'")
    elif optional["target"][0] is None or optional["att"][0] is None:
        raise InputError("target, att: are needed unless the logits are given")
    edge_attr, edge_weight = (optional.get(n, (None, 0))[0] for n in ("edge_attr", "edge_weight"))
    if (edge_attr is None) != (edge_weight is None):
        raise InputError("edge_attr, edge_weight: give both or neither")
    if edge_attr is not None and edge_weight is not None:
        if edge_attr.dim() != 2 or len(edge_attr) != edges:
            raise InputError(f"edge_attr: expected [{edges}, D], got {list(edge_attr.shape)}")
        if tuple(edge_weight.shape) != (edge_attr.size(1), heads, channels):
            raise InputError(
                f"edge_weight: expected [{edge_attr.size(1)}, {heads}, {channels}], got {list(edge_weight.shape)}"
            )
