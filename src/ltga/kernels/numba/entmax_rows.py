"""alpha-entmax of one row and one head, compiled: exact by sorting for alpha 1.5 and 2, Newton otherwise."""

from __future__ import annotations

import math

import numpy as np

from ltga.kernels.numba.scalar import borrowing, by_alpha, exp_q, row

STEEPEST = 700.0  # of the logarithm of p^(2 - alpha), which would overflow above alpha = 8


@borrowing()
def alpha_minus_one(q, perm, k, h):  # type: ignore[no-untyped-def]
    return np.float64(q[perm[k] if q.shape[0] > 1 else 0, h]) - 1.0


@borrowing()
def log_alpha(log_p, d):  # type: ignore[no-untyped-def]
    """(p^d - 1)/d from log p."""
    t = d * log_p
    if abs(t) < 1e-300:
        return log_p
    return math.expm1(t) / d


@borrowing()
def entmax_row(start, end, h, perm, logits, q, weights, scratch, top):  # type: ignore[no-untyped-def]
    """Write the weights of one row and head."""
    if end == start:
        return
    d = alpha_minus_one(q, perm, start, h)
    if top != top:
        for k in range(start, end):
            weights[k, h] = math.nan
        return
    if q.shape[0] == 1 and (d == 1.0 or d == 0.5):
        threshold = sorted_threshold(start, end, h, logits, d, scratch, top)
        for k in range(start, end):
            a = max(d * (np.float64(logits[k, h]) - top) - threshold, 0.0)
            scratch[k - start] = a if d == 1.0 else a * a
    elif q.shape[0] == 1 and d > 1.0:
        by_support(start, end, h, logits, d, scratch, top)
    elif q.shape[0] == 1:
        nu = root_of_one(start, end, h, logits, d, scratch, top)
        for k in range(start, end):
            scratch[k - start] = exp_q(np.float64(logits[k, h]) - top + nu, d)
    else:
        nu = root(start, end, h, perm, logits, q, top)
        for k in range(start, end):
            scratch[k - start] = exp_q(np.float64(logits[k, h]) - top + nu, alpha_minus_one(q, perm, k, h))
    total = 0.0
    for k in range(end - start):
        total += scratch[k]
    for k in range(start, end):
        weights[k, h] = scratch[k - start] / total if total > 0.0 or total != total else 0.0


@borrowing()
def heap_sort(values):  # type: ignore[no-untyped-def]
    """Ascending, in place: a heap of ever fewer values gives its largest to the end of the array."""
    count = len(values)
    for step in range(count // 2 + count - 1):
        if step < count // 2:  # first the heap is made, from its last parent up
            at, end = count // 2 - 1 - step, count
            value = values[at]
        else:
            at, end = 0, count - 1 - (step - count // 2)
            value = values[end]
            values[end] = values[0]
        while 2 * at + 1 < end:
            child = 2 * at + 1
            if child + 1 < end and values[child + 1] > values[child]:
                child += 1
            if values[child] <= value:
                break
            values[at] = values[child]
            at = child
        values[at] = value


@borrowing()
def sort(values):  # type: ignore[no-untyped-def]
    """Ascending, in place; most rows are short. numba's own sort allocates, which rows must not."""
    if len(values) > 24:
        heap_sort(values)
        return
    for a in range(1, len(values)):
        value = values[a]
        b = a - 1
        while b >= 0 and values[b] > value:
            values[b + 1] = values[b]
            b -= 1
        values[b + 1] = value


@borrowing()
def by_support(start, end, h, logits, d, scratch, top):  # type: ignore[no-untyped-def]
    """alpha above 2: the probabilities into scratch; see ltga.functional.entmax_root._by_support."""
    count = 0
    for k in range(start, end):
        x = np.float64(logits[k, h]) - top
        if d * x > -1.0:
            scratch[count] = -x
            count += 1
    ordered = scratch[:count]
    sort(ordered)
    least, most = 1, max(count, 1)
    while least < most:
        middle = (least + most + 1) // 2
        total = 0.0
        for a in range(middle):
            total += (d * (ordered[middle - 1] - ordered[a])) ** (1.0 / d)
        if total < 1.0:
            least = middle
        else:
            most = middle - 1
    score = -ordered[least - 1] if count > 0 else 0.0
    w = 1.0 / least
    for _ in range(60):
        w_d, total, slope = w**d, 0.0, 0.0
        for a in range(least):
            p = (d * (-ordered[a] - score) + w_d) ** (1.0 / d)
            total += p
            slope += (w / p) ** (d - 1.0) if p > 0.0 else 0.0
        if total - 1.0 <= 1e-15 or slope == 0.0:
            break
        lower = max(w - (total - 1.0) / slope, 0.0)
        if lower == w:
            break
        w = lower
    w_d = w**d
    for k in range(start, end):
        x = np.float64(logits[k, h]) - top
        scratch[k - start] = (d * (x - score) + w_d) ** (1.0 / d) if x >= score and d * x > -1.0 else 0.0


@borrowing()
def sorted_threshold(start, end, h, logits, d, scratch, top):  # type: ignore[no-untyped-def]
    """The exact threshold of sparsemax (d = 1) or 1.5-entmax (d = 1/2) on d * (z - max)."""
    count = 0
    for k in range(start, end):
        x = d * (np.float64(logits[k, h]) - top)
        if x > -1.0:
            scratch[count] = -x
            count += 1
    ordered = scratch[:count]
    sort(ordered)
    total = squares = threshold = 0.0
    for k in range(count):
        x = -ordered[k]
        total += x
        squares += x * x
        size = k + 1.0
        if d == 1.0:
            candidate = (total - 1.0) / size
        else:
            mean = total / size
            candidate = mean - math.sqrt(max((1.0 - max(squares - total * mean, 0.0)) / size, 0.0))
        if candidate >= x:
            break
        threshold = candidate
    return threshold


@row()
def mass(scratch, count, nu, d):  # type: ignore[no-untyped-def]
    """Sum of exp_alpha(x + nu) over scratch, and its derivative by nu."""
    total = slope = 0.0
    for a in range(count):
        argument = scratch[a] + nu
        p, left = exp_q(argument, d), 1.0 + d * argument
        total += p
        slope += p / left if left > 0.0 else 0.0
    return total, slope


@borrowing()
def root_of_one(start, end, h, logits, d, scratch, top):  # type: ignore[no-untyped-def]
    """:func:`root` where all edges share alpha; only logits that can get a weight are looked at, side by side."""
    count = 0
    for k in range(start, end):
        x = np.float64(logits[k, h]) - top
        scratch[count] = x
        count += d * x > -1.0
    low, high, nu = log_alpha(-math.log(max(count, 1)), d), 0.0, 0.0
    for _ in range(60):
        total, slope = mass(scratch, count, nu, d)
        if total == 0.0:
            break
        excess = math.log(total)
        if abs(excess) < 1e-14 * count:
            break
        if excess > 0.0:
            high = nu
        else:
            low = nu
        proposal = nu + total / slope * log_alpha(-excess, d)
        if not low <= proposal <= high:
            proposal = 0.5 * (low + high)
        if proposal == nu:
            break
        nu = proposal
    return nu


@borrowing()
def root(start, end, h, perm, logits, q, top):  # type: ignore[no-untyped-def]
    """nu with sum exp_alpha(z - max + nu) = 1; Newton on ln_alpha of the sum, bracketed (see functional).

    Above alpha = 2 weights are steep where they vanish, and Newton's steps may go to and fro between the same points:
    one that is not less than half as long as the one before the last gives way to the middle of the bracket.
    """
    lowest = highest = alpha_minus_one(q, perm, start, h)
    if q.shape[0] > 1:
        for k in range(start + 1, end):
            d = alpha_minus_one(q, perm, k, h)
            lowest, highest = min(lowest, d), max(highest, d)
    low, high, nu = log_alpha(-math.log(end - start), lowest), 0.0, 0.0
    last = earlier = high - low
    for _ in range(120):
        total = slope = 0.0
        for k in range(start, end):
            d = alpha_minus_one(q, perm, k, h)
            argument = np.float64(logits[k, h]) - top + nu
            p = exp_q(argument, d)
            if p > 0.0:
                total += p
                slope += p / (1.0 + d * argument)
        if total == 0.0:
            break
        excess = math.log(total)
        if abs(excess) < 1e-14 * (end - start):
            break
        if excess > 0.0:
            high = nu
        else:
            low = nu
        proposal = nu + total / slope * log_alpha(-excess, highest)
        if not (low <= proposal <= high and abs(proposal - nu) <= 0.5 * earlier):
            proposal = 0.5 * (low + high)
        if proposal == nu:
            break
        last, earlier = abs(proposal - nu), last
        nu = proposal
    return nu


@borrowing()
def entmax_row_backward(start, end, h, perm, q, weights, grad, grad_q, block, scratch):  # type: ignore[no-untyped-def]
    """Turn ``grad`` of one row and head from that of the weights into that of the logits; as normalise_row_backward."""
    total = weighted = 0.0
    steep = False
    for k in range(start, end):
        p = np.float64(weights[k, h])
        s = 0.0
        if p > 0.0:
            d = alpha_minus_one(q, perm, k, h)
            s = 1.0 if d == 1.0 else (math.sqrt(p) if d == 0.5 else math.exp(min((1.0 - d) * math.log(p), STEEPEST)))
            steep |= d > 1.0
            weighted += s * grad[k, h]
            total += s
        scratch[k - start] = s
    mean = weighted / total if total > 0.0 else 0.0
    if steep:  # an s may exceed all others by far, and what is left of its gradient would be the mean's rounding
        for _ in range(2):
            weighted = 0.0
            for k in range(start, end):
                weighted += scratch[k - start] * (grad[k, h] - mean)
            mean += weighted / total
    for k in range(start, end):
        p = np.float64(weights[k, h])
        slack = grad[k, h] - mean
        grad[k, h] = scratch[k - start] * slack
        if grad_q.shape[0] > 0:
            value = 0.0
            if p > 0.0:
                d = alpha_minus_one(q, perm, k, h)
                log_p = math.log(p)
                x = log_alpha(log_p, d)
                value = slack * by_alpha(p, log_p, x, scratch[k - start], d)
            if q.shape[0] > 1:
                grad_q[perm[k], h] = value
            else:
                grad_q[block, h] += value
