"""The root that alpha-entmax needs: the shift nu of a row for which its probabilities add up to one."""

from __future__ import annotations

import torch
from torch import Tensor

from ltga.errors import InputError
from ltga.functional.rows import Rows
from ltga.functional.tsallis import _exp_q_value

MAX_ITERATIONS = 40


def log_alpha(log_p: Tensor, d: Tensor) -> Tensor:
    """ln_alpha(p) = (p^d - 1)/d from log p, smooth through d = 0."""
    t = d * log_p
    safe = torch.where(t == 0, torch.ones_like(t), t)
    return log_p * torch.where(t == 0, torch.ones_like(t), torch.expm1(safe) / safe)


def entmax_value(z: Tensor, d: Tensor, rows: Rows) -> Tensor:
    """entmax of float64 scores with d = alpha - 1 (no gradient)."""
    if bool(torch.isinf(d).any()):
        raise InputError("alpha: must be finite")
    top = rows.max(z)
    top = torch.where(top == -torch.inf, torch.zeros_like(top), top)
    x = z - top
    exact = round(float(d), 15) if d.numel() == 1 else None
    if exact == 1.0:
        p = _sparsemax_exact(x, rows)
    elif exact == 0.5:
        p = _entmax15_exact(x, rows)
    else:
        p, _ = solve(x, d, rows)
    p = torch.where(z == -torch.inf, torch.zeros_like(p), p)
    total = rows.sum(p)
    p = p / torch.where(total > 0, total, torch.ones_like(total))
    return torch.where(torch.isnan(top), top, p)  # NaN is a fault to be seen, not a zero


def solve(x: Tensor, d: Tensor, rows: Rows) -> tuple[Tensor, int]:
    r"""Find nu with :math:`\sum_i \exp_\alpha(x_i+\nu) = 1` per row; returns (p, iterations used).

    The root is bracketed by p_max in [1/n, 1]. Up to alpha = 2, Newton's method on
    :math:`G(\nu) = \ln_\alpha S(\nu)`, S the row sum: G is the logarithm of the sum for alpha = 1 and a
    norm of affine functions otherwise, convex and almost straight, so a handful of steps suffices.
    Above alpha = 2 the slope of S is infinite where an element enters the support, so the support is
    found first (:func:`_by_support`). Rows whose elements have different alphas above 2 fall back on
    Chandrupatla's inverse interpolation.
    """
    alive = x != -torch.inf
    count = rows.sum(alive.to(x.dtype)).clamp(min=1)
    d = d.expand_as(x)
    low = log_alpha(-torch.log(count), -rows.max(-d))  # the smallest alpha has the widest bracket
    steepest = rows.max(d)
    steep = steepest > 1
    if not bool(steep.any()):
        return _newton(x, d, rows, low, steepest, count)
    if bool((steep & (d != steepest)).any()):
        return _chandrupatla(x, d, rows, low, count)
    p, iterations = _by_support(x, d.clamp(min=1), rows)
    if bool(steep.all()):
        return p, iterations
    gentle, more = _newton(x, d.clamp(max=1), rows, low, steepest.clamp(max=1), count)
    return torch.where(steep, p, gentle), max(iterations, more)


def _row_sum(x: Tensor, d: Tensor, rows: Rows, nu: Tensor) -> tuple[Tensor, Tensor]:
    """(p, log of its row sum) at a trial nu."""
    p = _exp_q_value(x + nu, d)
    return p, torch.log(rows.sum(p).clamp(min=torch.finfo(x.dtype).tiny))


def _newton(x: Tensor, d: Tensor, rows: Rows, low: Tensor, row_d: Tensor, count: Tensor) -> tuple[Tensor, int]:
    high = nu = torch.zeros_like(x)
    tolerance = 4 * torch.finfo(x.dtype).eps * count
    for iteration in range(1, MAX_ITERATIONS + 1):
        p, excess = _row_sum(x, d, rows, nu)
        if bool((excess.abs() <= tolerance).all()):
            return p, iteration
        high = torch.where(excess > 0, nu, high)
        low = torch.where(excess > 0, low, nu)
        slope = rows.sum(torch.where(p > 0, p / (1 + d * (x + nu)), torch.zeros_like(p)))
        step = torch.exp(excess) / slope.clamp(min=torch.finfo(x.dtype).tiny) * -log_alpha(-excess, row_d)
        proposal = nu - step
        nu = torch.where((proposal >= low) & (proposal <= high), proposal, (low + high) / 2)
    return p, MAX_ITERATIONS


def _by_support(x: Tensor, d: Tensor, rows: Rows) -> tuple[Tensor, int]:
    r"""alpha >= 2: the support by bisection over the sorted scores, then Newton for its smallest probability w.

    With x_s the smallest score in the support, :math:`p_i = (d(x_i - x_s) + w^d)^{1/d}`: in w a norm, hence
    convex with slope at most 1 and no singularity, so Newton's method from w = 1/s falls straight to the root.
    """
    ordered, rank, _, _ = rows.sorted_prefixes(torch.maximum(x, -1 / d))
    least, most = torch.ones_like(rank), rows.max(rank)
    iterations = 0
    while bool((least < most).any()):
        iterations += 1
        middle = ((least + most + 1) / 2).floor()
        score = -rows.max(torch.where(rank <= middle, -ordered, torch.full_like(x, -torch.inf)))
        inside = rows.sum((d * (ordered - score)).clamp(min=0) ** (1 / d)) < 1
        least, most = torch.where(inside, middle, least), torch.where(inside, most, middle - 1)
    score = -rows.max(torch.where(rank <= least, -ordered, torch.full_like(x, -torch.inf)))
    support = x >= score
    above = torch.where(support, d * (x - score), torch.zeros_like(x))
    w = 1 / rows.sum(support.to(x.dtype)).clamp(min=1)
    p = torch.zeros_like(x)
    for _ in range(MAX_ITERATIONS):
        iterations += 1
        p = torch.where(support, (above + w**d) ** (1 / d), torch.zeros_like(x))
        excess = rows.sum(p) - 1
        if bool((excess <= 4 * torch.finfo(x.dtype).eps).all()):
            break
        slope = rows.sum(torch.where(support, (w / p.clamp(min=torch.finfo(x.dtype).tiny)) ** (d - 1), p))
        lower = (w - _quotient(excess, slope)).clamp(min=0)
        if bool((lower == w).all()):
            break
        w = lower
    return p, iterations


def _chandrupatla(x: Tensor, d: Tensor, rows: Rows, low: Tensor, count: Tensor) -> tuple[Tensor, int]:
    a, b = torch.zeros_like(x), low  # a: the newest point, b: the other end of the bracket
    fa, fb = (_row_sum(x, d, rows, nu)[1] for nu in (a, b))
    c, fc = b, fb
    eps = torch.finfo(x.dtype).eps
    done = torch.zeros_like(x, dtype=torch.bool)
    t = fa / torch.where(fa == fb, torch.ones_like(fa), fa - fb)
    for iteration in range(1, MAX_ITERATIONS + 1):
        margin = _quotient(2 * eps * a.abs(), (b - a).abs())
        nu = torch.where(done, a, a + torch.minimum(torch.maximum(t, margin), 1 - margin) * (b - a))
        p, f = _row_sum(x, d, rows, nu)
        # Where the slope is steep, rounding nu alone moves the sum: no trial can do better than that.
        slope = rows.sum(torch.where(p > 0, p / (1 + d * (x + nu)), torch.zeros_like(p)))
        done = done | (f.abs() <= 4 * eps * (count + slope * nu.abs())) | (margin >= 0.5)
        if bool(done.all()):
            return p, iteration
        same = (f > 0) == (fa > 0)
        c, fc = torch.where(same, a, b), torch.where(same, fa, fb)
        b, fb = torch.where(same, b, a), torch.where(same, fb, fa)
        a, fa = nu, f
        position, value = _quotient(a - b, c - b), _quotient(fa - fb, fc - fb)
        trust = (value**2 < position) & ((1 - value) ** 2 < 1 - position)
        inverse_quadratic = _quotient(fa, fb - fa) * _quotient(fc, fb - fc) + _quotient(c - a, b - a) * _quotient(
            fa, fc - fa
        ) * _quotient(fb, fc - fb)
        t = torch.where(trust, inverse_quadratic, torch.full_like(t, 0.5))
    return p, MAX_ITERATIONS


def _quotient(numerator: Tensor, denominator: Tensor) -> Tensor:
    return numerator / torch.where(denominator == 0, torch.ones_like(denominator), denominator)


def _sparsemax_exact(x: Tensor, rows: Rows) -> Tensor:
    x = x.clamp(min=-1)  # nothing further than 1 below the top can be in the support
    ordered, rank, total, _ = rows.sorted_prefixes(x)
    inside = (1 + rank * ordered > total).to(x.dtype)
    size = rows.sum(inside).clamp(min=1)
    tau = (rows.sum(ordered * inside) - 1) / size
    return (x - tau).clamp(min=0)


def _entmax15_exact(x: Tensor, rows: Rows) -> Tensor:
    x = x.clamp(min=-2) / 2
    ordered, rank, total, squares = rows.sorted_prefixes(x)
    mean = total / rank
    spread = (squares - total * mean).clamp(min=0)
    tau = mean - ((1 - spread) / rank).clamp(min=0).sqrt()
    inside = (tau <= ordered).to(x.dtype)
    size = rows.sum(inside).clamp(min=1)
    # Recompute the threshold from the support alone: prefix differences are only used to count.
    mean = rows.sum(ordered * inside) / size
    spread = rows.sum(((ordered - mean) * inside) ** 2)
    tau = mean - ((1 - spread) / size).clamp(min=0).sqrt()
    return (x - tau).clamp(min=0) ** 2
