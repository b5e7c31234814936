"""The deformed exponential and its derivatives, element by element.

The formulas of :mod:`ltga.functional`, with one series through q = 1. Differences are taken in double precision, where
they cancel and cost next to nothing; exponentials and logarithms in the precision of the sums (``ACC``).
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def atanh_tail(t, ACC: tl.constexpr):  # type: ignore[no-untyped-def]
    """1/3 + t/5 + t^2/7 + ... for t up to 1/9; atanh(s) is s (1 + s^2 times this), t = s^2."""
    TERMS: tl.constexpr = 17 if ACC == tl.float64 else 8  # noqa: SIM300
    series = t * 0.0 + 1.0 / (2 * TERMS + 1)
    for m in tl.static_range(1, TERMS):
        series = series * t + 1.0 / (2 * (TERMS - m) + 1)
    return series


@triton.jit
def expm1_ratio(t, ACC: tl.constexpr):  # type: ignore[no-untyped-def]
    """(exp(t) - 1) / t, 1 at 0."""
    TERMS: tl.constexpr = 15 if ACC == tl.float64 else 8  # noqa: SIM300
    near = tl.abs(t) < 0.5
    small = tl.where(near, t, 0.0)
    series = small * 0.0 + 1.0
    for m in tl.static_range(0, TERMS):
        series = series * small / (TERMS + 1 - m) + 1.0
    large = tl.where(near, 1.0, t)
    return tl.where(near, series, (tl.exp(large) - 1.0) / large)


@triton.jit
def exp_q(x, d, ACC: tl.constexpr):  # type: ignore[no-untyped-def]
    """exp_q(x) for x <= 0 and d = q - 1, both float64; 0 at -inf and outside the support."""
    masked = x == float("-inf")
    x = tl.where(masked, 0.0, x)
    u = d * x
    inside = u > -1.0
    near = (u > -0.5) & (u < 1.0)
    s = tl.where(near, u, 0.0).to(ACC)
    s = s / (2.0 + s)
    t = s * s
    ratio = (1.0 - s) * (1.0 + t * atanh_tail(t, ACC))  # log(1 + u) / u
    by_log = tl.log(tl.where(inside, 1.0 + u, 1.0).to(ACC)) / tl.where(near, 1.0, d).to(ACC)
    y = tl.exp(tl.where(near, x.to(ACC) * ratio, by_log))
    y = tl.where(inside, y, 0.0)
    y = tl.where(u != u, u.to(ACC), y)  # NaN is a fault to be seen, not a zero
    return tl.where(masked, 0.0, y)


@triton.jit
def curvature(x, d, u, v, log_v, ACC: tl.constexpr):  # type: ignore[no-untyped-def]
    """d log(exp_q(x)) / dq inside the support, for u = d x, v = 1 + u and its logarithm."""
    near = (u > -0.5) & (u < 1.0)
    s = tl.where(near, u, 0.0)
    s = s / (2.0 + s)
    by_series = -0.5 * (1.0 - s) * (1.0 - s) * (1.0 / (1.0 + s) + s * atanh_tail(s * s, ACC))
    by_difference = (1.0 - 1.0 / v - log_v) / tl.where(near, 1.0, d * d)
    return tl.where(near, x * x * by_series, by_difference)
