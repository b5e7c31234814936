"""The softmax and the q-softmax of :mod:`.normalise`, bit for bit, by the loops of :mod:`.edgewise`.

For rows so short that a loop over one is mostly beginning and end, float32, and heads in fours; q is one per head, or
one per edge in CSR order.
"""

from __future__ import annotations

import math

import numpy as np

from ltga.kernels.codes import ENTMAX, SOFTMAX
from ltga.kernels.numba.edgewise import (
    GROUP,
    gaps_and_slack,
    less_part_of_top,
    row_gaps,
    row_means,
    row_shares,
    row_tops,
    row_totals,
    softmax_gradient,
    totals_into_grad,
)
from ltga.kernels.numba.normalise import end_of_panel
from ltga.kernels.numba.scalar import borrowing, curvature, exp, exp_q, leaf, reordered
from ltga.kernels.numba.sweeps import longest_row

PANEL = 512  # numbers, edges times heads
ROOMS = 8


@borrowing()
def goes_edgewise(kind, logits):  # type: ignore[no-untyped-def]
    """Whether the functions below do this; in float64 a product may or may not be rounded before it is added."""
    return kind != ENTMAX and logits.shape[1] % GROUP == 0 and logits.itemsize == 4


@leaf()
def deformations(q, first, last, heads, found):  # type: ignore[no-untyped-def]
    """q - 1 of edges first..last, side by side."""
    for k in range(first, last):
        for h in range(heads):
            found[(k - first) * heads + h] = np.float64(q[k if q.shape[0] > 1 else 0, h]) - 1.0


@leaf()
def tops_of(first, last, ptr, rows, logits, heads, tops):  # type: ignore[no-untyped-def]
    row_tops(tops, logits, rows, first, ptr[first], ptr[last], heads)
    for r in range((last - first) * heads):
        tops[r] = 0.0 if tops[r] == -math.inf else (math.nan if tops[r] == math.inf else tops[r])


@reordered()
def normalise_edges(kind, first, last, ptr, rows, logits, q, weights):  # type: ignore[no-untyped-def]
    """:func:`~.normalise.normalise_rows` of rows first..last; ``rows`` has every edge's."""
    heads = logits.shape[1]
    most = max(PANEL // heads, longest_row(first, last, ptr), 1)  # a row without edges has totals too
    room = np.empty((ROOMS, most * heads), np.float64)
    tops, totals, gaps, deforms = room[0], room[1], room[2], room[3]
    if kind != SOFTMAX and q.shape[0] == 1:
        deformations(q, 0, most, heads, deforms)
    panel = first
    while panel < last:
        stop = end_of_panel(panel, last, ptr, heads, room)
        at, end = ptr[panel], ptr[stop]
        count = (end - at) * heads
        tops_of(panel, stop, ptr, rows, logits, heads, tops)
        row_gaps(gaps, logits, tops, rows, panel, at, end, heads)
        if kind == SOFTMAX:
            for n in range(count):
                gaps[n] = exp(gaps[n])
        else:
            if q.shape[0] > 1:
                deformations(q, at, end, heads, deforms)
            for n in range(count):
                gaps[n] = exp_q(gaps[n], deforms[n])
        row_totals(totals, gaps, rows, panel, at, end, heads)
        for r in range((stop - panel) * heads):
            inverse = 1.0 / totals[r] if totals[r] > 0.0 or totals[r] != totals[r] else 0.0
            totals[r] = inverse if tops[r] == tops[r] else math.nan
        row_shares(weights, gaps, totals, rows, panel, at, end, heads)
        panel = stop


@reordered()
def normalise_edges_backward(  # type: ignore[no-untyped-def]
    kind, first, last, ptr, rows, logits, q, weights, grad, grad_q, block
):
    """:func:`~.normalise.normalise_rows_backward` of rows first..last."""
    heads = logits.shape[1]
    most = max(PANEL // heads, longest_row(first, last, ptr), 1)  # a row without edges has totals too
    room = np.empty((ROOMS, most * heads), np.float64)
    tops, totals, gaps, deforms, means = room[0], room[1], room[2], room[3], room[4]
    common, inverse, ties = room[5], room[6], room[7]
    if kind != SOFTMAX and q.shape[0] == 1:
        deformations(q, 0, most, heads, deforms)
    panel = first
    while panel < last:
        stop = end_of_panel(panel, last, ptr, heads, room)
        at, end = ptr[panel], ptr[stop]
        count = (end - at) * heads
        row_means(means, weights, grad, rows, panel, at, end, heads)
        if kind == SOFTMAX:
            softmax_gradient(grad, weights, means, rows, panel, at, end, heads)
            panel = stop
            continue
        tops_of(panel, stop, ptr, rows, logits, heads, tops)
        gaps_and_slack(ties, gaps, common, weights, logits, grad, tops, means, rows, panel, at, end, heads)
        if q.shape[0] > 1:
            deformations(q, at, end, heads, deforms)
        for n in range(count):
            inverse[n] = 1.0 / (1.0 + deforms[n] * gaps[n])
        if grad_q.shape[0] > 0:
            for n in range(count):
                gaps[n] = common[n] * curvature(gaps[n], deforms[n], inverse[n])
            add_to_q(at, end, heads, gaps, q, grad_q, block)
        for n in range(count):
            common[n] = common[n] * inverse[n]
        totals_into_grad(totals, grad, common, rows, panel, at, end, heads)
        for r in range((stop - panel) * heads):
            totals[r] = totals[r] / max(ties[r], 1.0)
        less_part_of_top(grad, logits, tops, totals, rows, panel, at, end, heads)
        panel = stop


@leaf()
def add_to_q(first, last, heads, numbers, q, grad_q, block):  # type: ignore[no-untyped-def]
    for k in range(first, last):
        place = k if q.shape[0] > 1 else block
        for h in range(heads):
            before = 0.0 if q.shape[0] > 1 else np.float64(grad_q[place, h])
            grad_q[place, h] = before + numbers[(k - first) * heads + h]
