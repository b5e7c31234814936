"""alpha-entmax of many short rows at once, compiled: the Newton steps of :mod:`.entmax_rows` side by side.

One head of a panel of rows (see :mod:`.normalise`), all edges with the same alpha below 2. ``room[0]`` has the rows'
maxima, heads side by side; the other rooms are scratch, per edge or per row. Loops write one array each, so that they
become vector code.
"""

from __future__ import annotations

import math

import numpy as np

from ltga.kernels.numba.scalar import borrowing, by_alpha, exp, exp_q, expm1, leaf, log, row

STEPS = 60


@borrowing()
def fits_panel(q, h):  # type: ignore[no-untyped-def]
    """Whether a head's rows are found by Newton's steps with one alpha; other alphas have exact ways of their own."""
    if q.shape[0] != 1:  # a q per edge, of which there may be none to look at
        return False
    d = np.float64(q[0, h]) - 1.0
    return d < 1.0 and d != 0.5


@leaf()
def log_alpha(log_p, d):  # type: ignore[no-untyped-def]
    """(p^d - 1)/d from log p, without branches."""
    t = d * log_p
    v = t if abs(t) > 1e-290 else 1e-290
    return log_p * (expm1(v) / v)


@row()
def entmax_panel(first, last, ptr, h, logits, q, weights, room):  # type: ignore[no-untyped-def]
    """Write the weights of rows first..last, head h."""
    heads, at, rows = logits.shape[1], ptr[first], last - first
    tops, gaps, parts, slopes = room[0], room[1], room[2], room[3]
    nu, totals, low, high, steps = room[4], room[5], room[6], room[7], room[8]
    d = np.float64(q[0, h]) - 1.0
    for i in range(first, last):
        top = tops[(i - first) * heads + h]
        for k in range(ptr[i], ptr[i + 1]):
            gaps[k - at] = np.float64(logits[k, h]) - top
    for i in range(first, last):
        count = 0
        for k in range(ptr[i], ptr[i + 1]):
            count += d * gaps[k - at] > -1.0
        low[i - first] = max(count, 1)
    for r in range(rows):
        low[r] = log_alpha(-log(low[r]), d)
    for r in range(rows):
        high[r] = 0.0
    for r in range(rows):
        nu[r] = 0.0
    for _ in range(STEPS):
        for i in range(first, last):
            for k in range(ptr[i], ptr[i + 1]):
                slopes[k - at] = gaps[k - at] + nu[i - first]
        for n in range(ptr[last] - at):
            parts[n] = exp_q(slopes[n], d)
        for n in range(ptr[last] - at):
            left = 1.0 + d * slopes[n]
            slopes[n] = parts[n] / left if left > 0.0 else 0.0
        row_sums(first, last, ptr, parts, totals)
        row_sums(first, last, ptr, slopes, steps)
        if newton_step(first, last, ptr, d, totals, steps, nu, low, high) == 0:
            break
    for i in range(first, last):
        top, total = tops[(i - first) * heads + h], totals[i - first]
        for k in range(ptr[i], ptr[i + 1]):
            weight = parts[k - at] / total if total > 0.0 else 0.0
            weights[k, h] = weight if top == top else math.nan


@leaf()
def row_sums(first, last, ptr, values, sums):  # type: ignore[no-untyped-def]
    """Sums of a panel's per-edge values by row."""
    for i in range(first, last):
        total = 0.0
        for k in range(ptr[i], ptr[i + 1]):
            total += values[k - ptr[first]]
        sums[i - first] = total


@leaf()
def newton_step(first, last, ptr, d, totals, steps, nu, low, high):  # type: ignore[no-untyped-def]
    """Move nu of every row towards a total of 1, from the totals and their slopes; how many rows moved.

    Newton on ln_alpha of the total, bracketed; a row that has arrived stays where it is.
    """
    rows, moved = last - first, 0
    for r in range(rows):
        high[r] = nu[r] if totals[r] > 1.0 else high[r]
    for r in range(rows):
        low[r] = nu[r] if totals[r] <= 1.0 else low[r]
    for r in range(rows):
        excess = log(totals[r] if totals[r] > 0.0 else 1.0)
        proposal = nu[r] + totals[r] / steps[r] * log_alpha(-excess, d)
        inside = (proposal >= low[r]) & (proposal <= high[r])
        proposal = proposal if inside else 0.5 * (low[r] + high[r])
        steps[r] = proposal if abs(excess) >= 1e-14 * (ptr[first + r + 1] - ptr[first + r]) else nu[r]
    for r in range(rows):
        moved += steps[r] != nu[r]
    for r in range(rows):
        nu[r] = steps[r]
    return moved


@row()
def entmax_panel_backward(first, last, ptr, h, q, weights, grad, grad_q, block, room):  # type: ignore[no-untyped-def]
    """Turn ``grad`` of a head of rows first..last from that of the weights into that of the logits; add to grad_q."""
    at, edges = ptr[first], ptr[last] - ptr[first]
    logs, shares, slacks, means, weighted = room[1], room[2], room[3], room[4], room[5]
    d = np.float64(q[0, h]) - 1.0
    for n in range(edges):
        logs[n] = np.float64(weights[at + n, h])
    for n in range(edges):
        logs[n] = log(logs[n] if logs[n] > 0.0 else 1.0)
    for n in range(edges):
        shares[n] = exp((1.0 - d) * logs[n])
    for n in range(edges):
        shares[n] = shares[n] if weights[at + n, h] > 0.0 else 0.0
    for n in range(edges):
        slacks[n] = shares[n] * grad[at + n, h]
    row_sums(first, last, ptr, slacks, weighted)
    row_sums(first, last, ptr, shares, means)
    for r in range(last - first):
        means[r] = weighted[r] / means[r] if means[r] > 0.0 else 0.0
    for i in range(first, last):
        for k in range(ptr[i], ptr[i + 1]):
            slacks[k - at] = grad[k, h] - means[i - first]
    for n in range(edges):
        grad[at + n, h] = shares[n] * slacks[n]
    if grad_q.shape[0] > 0:
        for n in range(edges):
            p = np.float64(weights[at + n, h])
            slope = by_alpha(p, logs[n], log_alpha(logs[n], d), shares[n], d)
            logs[n] = slacks[n] * slope if p > 0.0 else 0.0
        total = 0.0
        for n in range(edges):
            total += logs[n]
        grad_q[block, h] += total
