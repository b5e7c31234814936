"""Normalisers over a row: its statistics, its weights, and what their derivatives are made of.

All three are exp_q(z - top + nu) / total: softmax has q = 1, the q-softmax nu = 0, entmax the nu for which total is 1.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ltga.kernels import codes
from ltga.kernels.triton.deformation import curvature, exp_q, expm1_ratio
from ltga.kernels.triton.spans import index_minus_one, span

SOFTMAX = tl.constexpr(codes.SOFTMAX)
Q_SOFTMAX = tl.constexpr(codes.Q_SOFTMAX)
ENTMAX = tl.constexpr(codes.ENTMAX)
MOST_STEPS = tl.constexpr(100)


@triton.jit
def deformed(z, top, nu, d, NORMALIZER: tl.constexpr, ACC: tl.constexpr):  # type: ignore[no-untyped-def]
    """What a weight is before the division by the row's total."""
    if NORMALIZER == SOFTMAX:
        y = tl.exp(z - top[None, :])
    else:
        y = exp_q(z.to(tl.float64) - top.to(tl.float64)[None, :] + nu[None, :], d, ACC)
    return y


@triton.jit
def row_maximum(begin, end, h, heads, logits, SE: tl.constexpr, ACC: tl.constexpr):  # type: ignore[no-untyped-def]
    """(largest logit, whether one is NaN or infinite) of every head; 0 if all are masked (-inf)."""
    top = tl.full(h.shape, float("-inf"), ACC)
    broken = tl.zeros(h.shape, tl.int32)
    for start in range(begin, end, SE):
        k = start + tl.arange(0, SE)
        there = (k < end)[:, None] & (h < heads)[None, :]
        z = tl.load(logits + k[:, None] * heads + h[None, :], mask=there, other=float("-inf"))
        wrong = (z != z) | (z == float("inf"))
        top = tl.maximum(top, tl.max(tl.where(wrong, float("-inf"), z), 0))
        broken = tl.maximum(broken, tl.max(wrong.to(tl.int32), 0))
    return tl.where(top == float("-inf"), 0.0, top), broken > 0


@triton.jit
def row_mass(  # type: ignore[no-untyped-def]
    begin, end, h, heads, logits, q, q_order, top, nu, NORMALIZER: tl.constexpr, PER_EDGE: tl.constexpr,
    SE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """(sum over the row at a trial nu, its derivative in nu, smallest and largest q - 1) of every head."""
    total, slope = tl.zeros(h.shape, ACC), tl.zeros(h.shape, ACC)
    lowest, highest = tl.full(h.shape, 1e9, tl.float64), tl.full(h.shape, -1e9, tl.float64)
    for start in range(begin, end, SE):
        k = start + tl.arange(0, SE)
        there = (k < end)[:, None] & (h < heads)[None, :]
        z = tl.load(logits + k[:, None] * heads + h[None, :], mask=there, other=float("-inf"))
        d = index_minus_one(q, q_order, k, h, there, heads, PER_EDGE)
        y = deformed(z, top, nu, d, NORMALIZER, ACC)
        total += tl.sum(y, 0)
        if NORMALIZER == ENTMAX:
            live = there & (y > 0)
            left = 1.0 + d * (tl.where(live, z, 0.0).to(tl.float64) - top.to(tl.float64)[None, :] + nu[None, :])
            slope += tl.sum(tl.where(live, y / tl.where(live, left, 1.0).to(ACC), 0.0), 0)
            lowest = tl.minimum(lowest, tl.min(tl.where(there, d, 1e9), 0))
            highest = tl.maximum(highest, tl.max(tl.where(there, d, -1e9), 0))
    return total, slope, lowest, highest


@triton.jit
def entmax_shift(  # type: ignore[no-untyped-def]
    begin, end, h, heads, logits, q, q_order, top, PER_EDGE: tl.constexpr, SE: tl.constexpr, ACC: tl.constexpr
):
    """nu with a row sum of 1: Newton's method on ln_alpha of the sum, halving the bracket where it would not do."""
    NEAR: tl.constexpr = 1e-13 if ACC == tl.float64 else 1e-6  # noqa: SIM300
    nu = tl.zeros(h.shape, tl.float64)
    total, slope, lowest, highest = row_mass(
        begin, end, h, heads, logits, q, q_order, top, nu, ENTMAX, PER_EDGE, SE, ACC
    )
    least = -tl.log(tl.maximum(end - begin, 1).to(tl.float64))  # log of the smallest that the largest weight can be
    low, high = least * expm1_ratio(lowest * least, tl.float64), nu
    done = (h >= heads) | ~(total > 0.5)  # at nu = 0 the largest logit alone gives 1, unless nothing is there
    before, earlier, steps = high - low, high - low, 0
    while (steps < MOST_STEPS) & (tl.max(1 - done.to(tl.int32), 0) > 0):
        excess = tl.log(tl.where(total > 0, total, 1.0)).to(tl.float64)
        above = (total > 1.0) & (total > 0)
        high, low = tl.where(above, nu, high), tl.where(above, low, nu)
        ratio = total.to(tl.float64) / tl.where(slope > 0, slope, 1.0).to(tl.float64)
        trial = nu - ratio * excess * expm1_ratio(-excess * highest, tl.float64)
        newton = (trial >= low) & (trial <= high) & (tl.abs(trial - nu) <= 0.5 * earlier) & (slope > 0)
        trial = tl.where(newton, trial, 0.5 * (low + high))
        near = (tl.abs(excess) <= NEAR) & (total > 0)
        trial = tl.where(done | (near & ~newton), nu, trial)
        done, step = done | near | (trial == nu), tl.abs(trial - nu)  # the step from nearby is taken, and is the last
        earlier, before, nu = before, step, trial
        total, slope, _l, _h = row_mass(begin, end, h, heads, logits, q, q_order, top, nu, ENTMAX, PER_EDGE, SE, ACC)
        steps += 1
    return nu


@triton.jit
def row_statistics(  # type: ignore[no-untyped-def]
    begin, end, h, heads, logits, q, q_order, NORMALIZER: tl.constexpr, PER_EDGE: tl.constexpr, SE: tl.constexpr,
    ACC: tl.constexpr,
):  # fmt: skip
    """(top, nu, 1 / total) of every head; a row of masked logits only gets weights 0, a broken one NaN."""
    top, broken = row_maximum(begin, end, h, heads, logits, SE, ACC)
    nu = tl.zeros(h.shape, tl.float64)
    if NORMALIZER == ENTMAX:
        nu = entmax_shift(begin, end, h, heads, logits, q, q_order, top, PER_EDGE, SE, ACC)
    total, _s, _l, _h = row_mass(begin, end, h, heads, logits, q, q_order, top, nu, NORMALIZER, PER_EDGE, SE, ACC)
    inverse = tl.where(total > 0, 1.0 / tl.where(total > 0, total, 1.0), 0.0)
    inverse = tl.where(total != total, total, inverse)
    return top, nu, tl.where(broken, float("nan"), inverse)


@triton.jit
def long_row_statistics(  # type: ignore[no-untyped-def]
    ptr, part_row, first_part, rows, logits, q, q_order, stats, heads,
    NORMALIZER: tl.constexpr, PER_EDGE: tl.constexpr, SPLIT: tl.constexpr, SE: tl.constexpr, HB: tl.constexpr,
    ACC: tl.constexpr,
):  # fmt: skip
    """The statistics of rows that are worked on in parts, by the program of the first part: ``stats`` [parts, 3, H]."""
    item, h = tl.program_id(0), tl.program_id(1) * HB + tl.arange(0, HB)
    row, begin, _end, mine = span(item, ptr, part_row, first_part, rows, SPLIT)
    if mine & (begin == tl.load(ptr + row)):
        end = tl.load(ptr + row + 1)
        top, nu, inverse = row_statistics(begin, end, h, heads, logits, q, q_order, NORMALIZER, PER_EDGE, SE, ACC)
        at = stats + item.to(tl.int64) * 3 * heads + h
        tl.store(at, top.to(tl.float64), mask=h < heads)
        tl.store(at + heads, nu, mask=h < heads)
        tl.store(at + 2 * heads, inverse.to(tl.float64), mask=h < heads)


@triton.jit
def derivatives(z, w, top, d, NORMALIZER: tl.constexpr, ACC: tl.constexpr):  # type: ignore[no-untyped-def]
    """(s, c) of every edge: s times the centred gradient of its weight is its logit's, c times it that of q."""
    live = w != 0.0
    c = tl.zeros(w.shape, ACC)
    if NORMALIZER == SOFTMAX:
        s = w
    elif NORMALIZER == Q_SOFTMAX:
        gap = tl.where(live, z.to(tl.float64) - top.to(tl.float64)[None, :], 0.0)
        u = d * gap
        v = (1.0 + u).to(ACC)
        s = w / v
        c = w * curvature(gap.to(ACC), d.to(ACC), u.to(ACC), v, tl.log(v), ACC)
    else:
        s, c = entmax_slopes(tl.where(live, w, 1.0), d.to(ACC), ACC)
        s, c = tl.where(live, s, 0.0), tl.where(live, c, 0.0)
    return s, c


@triton.jit
def entmax_slopes(w, d, ACC: tl.constexpr):  # type: ignore[no-untyped-def]
    """(w^(1 - d), derivative of w in alpha with nu held) of weights w > 0; finite for the smallest of them."""
    LEAST: tl.constexpr = 2.3e-308 if ACC == tl.float64 else 1.2e-38  # noqa: SIM300  (devices may read less as 0)
    STEEPEST: tl.constexpr = 700.0 if ACC == tl.float64 else 80.0  # noqa: SIM300
    log_w = tl.log(tl.maximum(w, LEAST))
    log_v = d * log_w  # 1 + d x is w^d, for the x that exp_alpha makes w of
    s = tl.exp(tl.minimum((1.0 - d) * log_w, STEEPEST))
    near = log_v > -1.0  # further down w^d underflows; there it is left out, as w times 1 / w^d is s
    log_v_near = tl.where(near, log_v, 0.0)
    v = tl.exp(log_v_near)
    by_curvature = w * curvature(log_w * expm1_ratio(log_v_near, ACC), d, v - 1.0, v, log_v_near, ACC)
    far = (w * (1.0 - log_v) - s) / tl.where(near, 1.0, d * d)
    return s, tl.where(near, by_curvature, far)
