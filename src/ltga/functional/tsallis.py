"""The Tsallis deformed exponential, logarithm and entropy, exact through the Shannon limit q = 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ltga.errors import InputError

Index = float | Tensor

# Odd reciprocals 1/3, 1/5, ...: atanh(s)/s = 1 + s^2 * (1/3 + s^2/5 + ...), used where |s| <= 1/3.
_ATANH_TERMS = 17


def exp_q(x: Tensor, q: Index) -> Tensor:
    r"""Deformed exponential :math:`\exp_q(x) = [1 + (q-1)x]_+^{1/(q-1)}`, with :math:`\exp_1 = \exp`.

    Evaluated for every q by the one formula
    :math:`\exp(x\,\log(1+u)/u),\ u = (q-1)x`, which has no singularity at q = 1. Where the true value
    overflows the result is the largest finite number; :math:`x=-\infty` gives 0.

    Args:
        x: any shape, floating point.
        q: a number, or a tensor broadcastable against ``x``.

    >>> exp_q(torch.tensor([-2.0, -1.0, 0.0]), 2.0)
    tensor([0., 0., 1.])
    >>> exp_q(torch.tensor(-1.0), 1.0)
    tensor(0.3679)
    """
    d = index_minus_one(q, x, "q")
    return (_ExpQ if torch.compiler.is_compiling() else _TransformableExpQ).apply(_floating(x, "x"), d)


def log_q(x: Tensor, q: Index) -> Tensor:
    r"""Deformed logarithm :math:`\ln_q(x) = (x^{q-1}-1)/(q-1)`, the inverse of :func:`exp_q`.

    Args:
        x: any shape, non-negative.
        q: a number, or a tensor broadcastable against ``x``.

    >>> log_q(exp_q(torch.tensor([-0.5, 0.0, 0.5]), 1.5), 1.5)
    tensor([-0.5000,  0.0000,  0.5000])
    """
    d = index_minus_one(q, x, "q")
    return (_LogQ if torch.compiler.is_compiling() else _TransformableLogQ).apply(_floating(x, "x"), d)


def tsallis_entropy(p: Tensor, q: Index, dim: int = -1) -> Tensor:
    r"""Tsallis entropy :math:`S_q(p) = (1-\sum_i p_i^q)/(q-1)`; Shannon's (in nats) at q = 1.

    Zero probabilities contribute nothing (the sum runs over the support).

    Args:
        p: probabilities along ``dim``.
        q: a number, or a tensor broadcastable against ``p``.

    >>> tsallis_entropy(torch.tensor([0.5, 0.5]), 2.0)
    tensor(0.5000)
    """
    support = p > 0
    inside = torch.where(support, p, torch.ones_like(p))
    return -(torch.where(support, p, torch.zeros_like(p)) * log_q(inside, q)).sum(dim)


def index_minus_one(q: Index, like: Tensor, name: str) -> Tensor:
    """``q - 1`` in the working precision of ``like``; a Python number is subtracted in double first."""
    if isinstance(q, Tensor):
        if not q.is_floating_point():
            q = q.to(torch.get_default_dtype())
        wide = working_dtype(like.dtype)
        return (q.to(torch.promote_types(q.dtype, wide)) - 1).to(wide)
    if isinstance(q, bool) or not isinstance(q, int | float):
        raise InputError(f"{name}: expected a number or a tensor, got {type(q).__name__}; pass e.g. {name}=1.5")
    return torch.tensor(float(q) - 1.0, dtype=working_dtype(like.dtype), device=like.device)


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """The precision the formulas run in: at least single."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def reduce_to(grad: Tensor, shape: torch.Size) -> Tensor:
    """Undo broadcasting: sum ``grad`` to ``shape`` (``sum_to_size`` would guard on sizes torch.compile cannot know)."""
    grad = grad.sum(tuple(range(grad.dim() - len(shape)))) if grad.dim() > len(shape) else grad
    stretched = tuple(k for k, size in enumerate(shape) if _is_one(size))
    return grad.sum(stretched, keepdim=True) if stretched else grad


def _is_one(size: int) -> bool:
    if torch.compiler.is_compiling():
        from torch.fx.experimental.symbolic_shapes import guard_or_false

        return guard_or_false(size == 1)
    return size == 1


def curvature(x: Tensor, d: Tensor) -> Tensor:
    r"""``d log(exp_q(x)) / dq`` = :math:`x^2 g(u)`, :math:`g(u) = (u/(1+u)-\log(1+u))/u^2`, inside the support.

    Near u = 0 the two terms cancel, so there g is evaluated through s = u/(2+u), where
    :math:`g = -\tfrac12 (1-s)^2 (1/(1+s) + s\,(1/3 + s^2/5 + \dots))` is a sum without cancellation.
    """
    u = (d * x).clamp(max=torch.finfo(x.dtype).max)
    near = (u > -0.5) & (u < 1.0)
    s = torch.where(near, u, torch.zeros_like(u))
    s = s / (2 + s)
    t = s * s
    series = torch.full_like(t, 1.0 / (2 * _ATANH_TERMS + 1))
    for n in range(_ATANH_TERMS - 1, 0, -1):
        series = series * t + 1.0 / (2 * n + 1)
    by_series = -0.5 * (1 - s) ** 2 * (1 / (1 + s) + s * series)
    far_u = torch.where(near, torch.ones_like(u), u)
    far_d = torch.where(near, torch.ones_like(u), d.expand_as(u))
    by_difference = (far_u / (1 + far_u) - torch.log1p(far_u)) / (far_d * far_d)
    near_x = torch.where(near, x.expand_as(u), torch.zeros_like(u))
    return torch.where(near, near_x * near_x * by_series, by_difference)


def _floating(x: Tensor, name: str) -> Tensor:
    if not isinstance(x, Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise InputError(f"{name}: expected a floating-point tensor, got {kind}; call {name}.float() first")
    return x


# From (x, q - 1): the derivative in x and, when asked for, in q.
_Slopes = Callable[[Tensor, Tensor], tuple[Tensor, Callable[[], Tensor]]]


def _gradients(ctx: Any, grad: Tensor, slopes: _Slopes) -> tuple[Tensor | None, Tensor | None]:
    x, d = ctx.saved_tensors
    slope, by_index = slopes(x, d)
    gx = gd = None
    if ctx.needs_input_grad[0]:
        gx = reduce_to(grad.to(d.dtype) * slope, x.shape).to(x.dtype)
    if ctx.needs_input_grad[1]:
        gd = reduce_to(grad.to(d.dtype) * by_index(), d.shape)
    return gx, gd


def _tangent(ctx: Any, x_tangent: Tensor | None, d_tangent: Tensor | None, slopes: _Slopes) -> Tensor:
    x, d = ctx.saved_tensors
    slope, by_index = slopes(x, d)
    along_x = 0 if x_tangent is None else slope * x_tangent.to(d.dtype)
    along_d = 0 if d_tangent is None else by_index() * d_tangent
    return torch.as_tensor(along_x + along_d).expand_as(slope).to(x.dtype)


class _ExpQ(torch.autograd.Function):
    """exp_q(x) as a function of x and d = q - 1."""

    @staticmethod
    def forward(x: Tensor, d: Tensor) -> Tensor:
        return _exp_q_value(x.to(d.dtype), d).to(x.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:  # type: ignore[override]
        return _gradients(ctx, grad, _exp_q_slopes)


class _TransformableExpQ(_ExpQ):
    """The same for torch.func and forward-mode differentiation, which torch.compile cannot trace."""

    generate_vmap_rule = True

    @staticmethod
    def jvp(ctx: Any, x_tangent: Tensor | None, d_tangent: Tensor | None) -> Tensor:  # type: ignore[override]
        return _tangent(ctx, x_tangent, d_tangent, _exp_q_slopes)


def _exp_q_slopes(x: Tensor, d: Tensor) -> tuple[Tensor, Callable[[], Tensor]]:
    """The derivatives of exp_q in x and, when asked for, in q; 0 outside the support and where it saturates."""
    wide = x.to(d.dtype)
    y = exp_q(wide, d + 1) if torch.is_grad_enabled() else _exp_q_value(wide, d)
    biggest = torch.finfo(d.dtype).max
    u = d * torch.where(torch.isinf(wide), torch.zeros_like(wide), wide)
    alive = (y > 0) & (u > -1) & (y < biggest)
    safe_x = torch.where(alive, wide.expand_as(y), torch.zeros_like(y))
    safe_y = torch.where(alive, y, torch.zeros_like(y))
    return (safe_y / (1 + d * safe_x)).clamp(max=biggest), lambda: safe_y * curvature(safe_x, d)


def _exp_q_value(x: Tensor, d: Tensor) -> Tensor:
    biggest = torch.finfo(d.dtype).max
    masked = x == -torch.inf
    x = x.clamp(-biggest, biggest)
    u = (d * x).clamp(max=biggest)
    inside = u > -1
    safe = torch.where(inside, u, torch.zeros_like(u))
    log1p = torch.log1p(safe)
    # Below |u| = 1 the quotient log1p(u)/u is the accurate one; above, 1/(q-1) cannot blow up.
    small = safe.abs() <= 1
    ratio = torch.where(safe == 0, torch.ones_like(u), log1p / torch.where(safe == 0, torch.ones_like(u), safe))
    steep = torch.where(small, torch.ones_like(u), d.expand_as(u))
    y = torch.exp(torch.where(small, x * ratio, log1p / steep)).clamp(max=biggest)
    # Outside the support: 0 for q > 1; for q < 1 (x too large) the value is infinite, so saturate.
    outside = torch.where(d.expand_as(u) < 0, torch.full_like(u, biggest), torch.zeros_like(u))
    y = torch.where(masked, torch.zeros_like(y), torch.where(inside, y, outside))
    return torch.where(torch.isnan(u), u, y)  # NaN is a fault to be seen, not a zero


class _LogQ(torch.autograd.Function):
    """ln_q(x) as a function of x and d = q - 1."""

    @staticmethod
    def forward(x: Tensor, d: Tensor) -> Tensor:
        log_x = torch.log(x.to(d.dtype))
        t = d * log_x
        ratio = torch.where(t == 0, torch.ones_like(t), torch.expm1(t) / torch.where(t == 0, torch.ones_like(t), t))
        at_zero = torch.where(d > 0, -1 / torch.where(d > 0, d, torch.ones_like(d)), -torch.inf)
        return torch.where(x == 0, at_zero.expand_as(t), log_x * ratio).to(x.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:  # type: ignore[override]
        return _gradients(ctx, grad, _log_q_slopes)


class _TransformableLogQ(_LogQ):
    """The same for torch.func and forward-mode differentiation, which torch.compile cannot trace."""

    generate_vmap_rule = True

    @staticmethod
    def jvp(ctx: Any, x_tangent: Tensor | None, d_tangent: Tensor | None) -> Tensor:  # type: ignore[override]
        return _tangent(ctx, x_tangent, d_tangent, _log_q_slopes)


def _log_q_slopes(x: Tensor, d: Tensor) -> tuple[Tensor, Callable[[], Tensor]]:
    """The derivatives of ln_q in x and, when asked for, in q."""
    log_x = torch.log(x.to(d.dtype))
    t = d * log_x

    def by_index() -> Tensor:
        near = t.abs() < 0.5
        small = torch.where(near, t, torch.zeros_like(t))
        series = torch.zeros_like(t)
        for n in range(18, 1, -1):  # (t e^t - expm1(t)) / t^2 = sum_{n>=2} (n-1) t^(n-2) / n!
            series = series * small + (n - 1) / math.factorial(n)
        far = torch.where(near, torch.ones_like(t), t)
        by_difference = (far * torch.exp(far) - torch.expm1(far)) / (far * far)
        return log_x * log_x * torch.where(near, series, by_difference)

    return torch.exp((d - 1) * log_x), by_index
