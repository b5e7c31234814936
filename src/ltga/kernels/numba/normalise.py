"""Normalising rows (nodes' incoming edges, all heads) and the derivative, compiled.

Per-edge arrays are ``[E, H]`` in CSR order. ``q`` is ``[1, H]`` or, in the caller's edge order, ``[E, H]``; ``order``
leads from CSR positions to the order of q. Most rows are short, and a few heads do not fill a vector register, so
rows come in panels: the deformed exponential of a whole panel's edges and heads is one loop over numbers side by side.
A panel holds as many rows as have ``room`` (:func:`new_room`), or one longer row, which is then taken piece by piece.
"""

from __future__ import annotations

import math

import numpy as np

from ltga.kernels.codes import ENTMAX, SOFTMAX
from ltga.kernels.numba.entmax_panel import entmax_panel, entmax_panel_backward, fits_panel
from ltga.kernels.numba.entmax_rows import entmax_row, entmax_row_backward
from ltga.kernels.numba.scalar import borrowing, compiled, curvature, exp, exp_q, inlined, leaf, row

PANEL = 256  # numbers, edges times heads: small enough for what they were made from to stay in cache
FEWEST_EDGES = 32
ROOMS = 9


@compiled()
def new_room(heads):  # type: ignore[no-untyped-def]
    """Scratch arrays for a panel's numbers, one per edge and head, or per row and head."""
    return np.empty((ROOMS, max(PANEL // max(heads, 1), FEWEST_EDGES) * heads), np.float64)


@borrowing()
def end_of_panel(first, last, ptr, heads, room):  # type: ignore[no-untyped-def]
    """The row after those that make a panel with row ``first``."""
    most = room.shape[1] // max(heads, 1)
    stop = first + 1
    while stop < last and ptr[stop + 1] - ptr[first] <= most and stop - first < most:
        stop += 1
    return stop


# With one head, loops over heads cost more than what they do, and running sums go through memory for every edge. The
# same operations in the same order, in registers:


@inlined()
def row_maximum(start, end, logits):  # type: ignore[no-untyped-def]
    top = -math.inf
    for k in range(start, end):
        value = np.float64(logits[k, 0])
        top = value if value > top or value != value else top
    return top


@inlined()
def running_total(total, start, end, at, numbers):  # type: ignore[no-untyped-def]
    for k in range(start, end):
        total += numbers[k - at]
    return total


@inlined()
def running_product(start, end, weights, grad):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(start, end):
        total += np.float64(weights[k, 0]) * grad[k, 0]
    return total


@leaf()
def add_to_totals(first, last, at, stop, ptr, heads, numbers, totals):  # type: ignore[no-untyped-def]
    """Add the numbers of edges at..stop, side by side, to their row's total."""
    for i in range(first, last):
        start, end = max(ptr[i], at), min(ptr[i + 1], stop)
        if heads == 1:
            totals[i - first] = running_total(totals[i - first], start, end, at, numbers)
        else:
            for k in range(start, end):
                for h in range(heads):
                    totals[(i - first) * heads + h] += numbers[(k - at) * heads + h]


@inlined()
def row_maxima(first, last, ptr, logits, tops, heads):  # type: ignore[no-untyped-def]
    """Largest logit per row and head into tops; NaN if there is one, or an infinite one."""
    for i in range(first, last):
        top = tops[(i - first) * heads : (i - first + 1) * heads]
        if heads == 1:
            top[0] = row_maximum(ptr[i], ptr[i + 1], logits)
        else:
            for h in range(heads):
                top[h] = -math.inf
            for k in range(ptr[i], ptr[i + 1]):
                for h in range(heads):
                    value = np.float64(logits[k, h])
                    top[h] = value if value > top[h] or value != value else top[h]
        for h in range(heads):  # a row of masked logits must not become inf - inf; one that overflowed must be seen
            top[h] = 0.0 if top[h] == -math.inf else (math.nan if top[h] == math.inf else top[h])


@leaf()
def gaps_below(first, last, at, stop, ptr, logits, tops, gaps, heads):  # type: ignore[no-untyped-def]
    """Logits of edges at..stop less their row's maximum, side by side."""
    for i in range(first, last):
        start, end = max(ptr[i], at), min(ptr[i + 1], stop)
        if heads == 1:
            top = tops[i - first]
            for k in range(start, end):
                gaps[k - at] = np.float64(logits[k, 0]) - top
        else:
            for k in range(start, end):
                for h in range(heads):
                    gaps[(k - at) * heads + h] = np.float64(logits[k, h]) - tops[(i - first) * heads + h]


@leaf()
def deformations(at, stop, order, q, found, heads):  # type: ignore[no-untyped-def]
    """q - 1 of edges at..stop, side by side."""
    for k in range(at, stop):
        e = order[k] if q.shape[0] > 1 else 0
        for h in range(heads):
            found[(k - at) * heads + h] = np.float64(q[e, h]) - 1.0


@row()
def normalise_rows(kind, first, last, ptr, order, logits, q, weights, room, scratch):  # type: ignore[no-untyped-def]
    """Write the weights of a panel of rows; a row of masked logits only (all -inf) becomes zero."""
    heads = logits.shape[1]
    if kind == ENTMAX:
        tops = room[0]
        row_maxima(first, last, ptr, logits, tops, heads)
        for h in range(heads):
            if last - first > 1 and fits_panel(q, h):
                entmax_panel(first, last, ptr, h, logits, q, weights, room)
                continue
            for i in range(first, last):
                top = tops[(i - first) * heads + h]
                entmax_row(ptr[i], ptr[i + 1], h, order, logits, q, weights, scratch, top)
        return
    if heads == 4:  # numbers that the compiler knows: the loops over heads below become single instructions
        deformed(kind, first, last, ptr, order, logits, q, weights, room, 4)
    elif heads == 8:
        deformed(kind, first, last, ptr, order, logits, q, weights, room, 8)
    else:
        deformed(kind, first, last, ptr, order, logits, q, weights, room, heads)


@leaf()
def deformed(kind, first, last, ptr, order, logits, q, weights, room, heads):  # type: ignore[no-untyped-def]
    """:func:`normalise_rows` of the softmax and the q-softmax."""
    tops, totals, gaps, deforms = room[0], room[1], room[2], room[3]
    row_maxima(first, last, ptr, logits, tops, heads)
    for r in range((last - first) * heads):
        totals[r] = 0.0
    piece = room.shape[1] // max(heads, 1)
    for at in range(ptr[first], ptr[last], piece):
        stop = min(at + piece, ptr[last])
        gaps_below(first, last, at, stop, ptr, logits, tops, gaps, heads)
        if kind == SOFTMAX:
            for n in range((stop - at) * heads):
                gaps[n] = exp(gaps[n])
        else:
            deformations(at, stop, order, q, deforms, heads)
            for n in range((stop - at) * heads):
                gaps[n] = exp_q(gaps[n], deforms[n])
        add_to_totals(first, last, at, stop, ptr, heads, gaps, totals)
        for k in range(at, stop):
            for h in range(heads):
                weights[k, h] = gaps[(k - at) * heads + h]
    for r in range((last - first) * heads):
        inverse = 1.0 / totals[r] if totals[r] > 0.0 or totals[r] != totals[r] else 0.0
        totals[r] = inverse if tops[r] == tops[r] else math.nan
    for i in range(first, last):
        for k in range(ptr[i], ptr[i + 1]):
            for h in range(heads):
                weights[k, h] = weights[k, h] * totals[(i - first) * heads + h]


@row()
def normalise_rows_backward(  # type: ignore[no-untyped-def]
    kind, first, last, ptr, order, logits, q, weights, grad, grad_q, block, room, scratch
):
    """Gradient of a panel of rows: turns ``grad`` from that of the weights into that of the logits, and gives grad_q.

    grad_q is ``[B, H]`` (partial sums per block, added to), ``[E, H]`` in the order of q (written), or empty.
    """
    heads = weights.shape[1]
    if kind == ENTMAX:
        for h in range(heads):
            if last - first > 1 and fits_panel(q, h):
                entmax_panel_backward(first, last, ptr, h, q, weights, grad, grad_q, block, room)
                continue
            for i in range(first, last):
                entmax_row_backward(ptr[i], ptr[i + 1], h, order, q, weights, grad, grad_q, block, scratch)
        return
    if heads == 4:
        deformed_backward(kind, first, last, ptr, order, logits, q, weights, grad, grad_q, block, room, 4)
    elif heads == 8:
        deformed_backward(kind, first, last, ptr, order, logits, q, weights, grad, grad_q, block, room, 8)
    else:
        deformed_backward(kind, first, last, ptr, order, logits, q, weights, grad, grad_q, block, room, heads)


@leaf()
def deformed_backward(kind, first, last, ptr, order, logits, q, weights, grad, grad_q, block, room, heads):  # type: ignore[no-untyped-def]
    """:func:`normalise_rows_backward` of the softmax and the q-softmax."""
    means = room[1]
    for r in range((last - first) * heads):
        means[r] = 0.0
    for i in range(first, last):
        if heads == 1:
            means[i - first] = running_product(ptr[i], ptr[i + 1], weights, grad)
            continue
        for k in range(ptr[i], ptr[i + 1]):
            for h in range(heads):
                means[(i - first) * heads + h] += np.float64(weights[k, h]) * grad[k, h]
    if kind != SOFTMAX:
        q_softmax_backward(first, last, ptr, order, logits, q, weights, grad, grad_q, block, room, heads)
        return
    for i in range(first, last):
        for k in range(ptr[i], ptr[i + 1]):
            for h in range(heads):
                grad[k, h] = weights[k, h] * (grad[k, h] - means[(i - first) * heads + h])


@leaf()
def q_softmax_backward(first, last, ptr, order, logits, q, weights, grad, grad_q, block, room, heads):  # type: ignore[no-untyped-def]
    """The same of the q-softmax, from the rows' means of weight times gradient in room[1]."""
    tops, means, gaps, deforms, common = room[0], room[1], room[2], room[3], room[4]
    inverse, totals, ties = room[5], room[6], room[7]
    row_maxima(first, last, ptr, logits, tops, heads)
    for r in range((last - first) * heads):
        totals[r] = 0.0
    for r in range((last - first) * heads):
        ties[r] = 0.0
    piece = room.shape[1] // max(heads, 1)
    # Short loops that write one array each: with more, LLVM gives up proving that they do not overlap and nothing is
    # vectorised. Where a weight is zero so is the gradient, and the gap is not used.
    for at in range(ptr[first], ptr[last], piece):
        stop = min(at + piece, ptr[last])
        count = (stop - at) * heads
        gaps_below(first, last, at, stop, ptr, logits, tops, gaps, heads)
        for k in range(at, stop):
            for h in range(heads):
                gaps[(k - at) * heads + h] = gaps[(k - at) * heads + h] if weights[k, h] != 0.0 else 0.0
        deformations(at, stop, order, q, deforms, heads)
        for i in range(first, last):
            for k in range(max(ptr[i], at), min(ptr[i + 1], stop)):
                for h in range(heads):
                    slack = grad[k, h] - means[(i - first) * heads + h]
                    common[(k - at) * heads + h] = np.float64(weights[k, h]) * slack
        for n in range(count):
            inverse[n] = 1.0 / (1.0 + deforms[n] * gaps[n])
        if grad_q.shape[0] > 0:
            for n in range(count):
                gaps[n] = common[n] * curvature(gaps[n], deforms[n], inverse[n])
            for k in range(at, stop):
                place = order[k] if q.shape[0] > 1 else block
                for h in range(heads):
                    before = 0.0 if q.shape[0] > 1 else np.float64(grad_q[place, h])
                    grad_q[place, h] = before + gaps[(k - at) * heads + h]
        for n in range(count):
            common[n] = common[n] * inverse[n]
        for k in range(at, stop):
            for h in range(heads):
                grad[k, h] = common[(k - at) * heads + h]
        add_to_totals(first, last, at, stop, ptr, heads, common, totals)
        for i in range(first, last):
            for k in range(max(ptr[i], at), min(ptr[i + 1], stop)):
                for h in range(heads):
                    r = (i - first) * heads + h
                    ties[r] += 1.0 if np.float64(logits[k, h]) == tops[r] else 0.0
    # The row maximum moves every element: its share goes to the elements that attain it.
    for r in range((last - first) * heads):
        totals[r] = totals[r] / max(ties[r], 1.0)
    for i in range(first, last):
        for k in range(ptr[i], ptr[i + 1]):
            for h in range(heads):
                r = (i - first) * heads + h
                grad[k, h] -= totals[r] if np.float64(logits[k, h]) == tops[r] else 0.0
