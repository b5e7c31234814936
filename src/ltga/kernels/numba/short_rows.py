"""The sweeps of :mod:`.sweeps` for GATv2's scores on graphs whose rows are short, bit for bit and much faster.

A new graph's rows have lengths that a processor cannot foresee, and with three edges or so in a row the ends of loops
are most of the work. So loops run over edges that know their row, or over all heads at a time. Channels must be a
multiple of ``LANES``; arrays are as in :mod:`.sweeps`, q is one per head or one per edge in CSR order.
"""

from __future__ import annotations

import numpy as np

from ltga.kernels.numba.normalise import end_of_panel, new_room, normalise_rows, normalise_rows_backward
from ltga.kernels.numba.normalise_edgewise import goes_edgewise, normalise_edges, normalise_edges_backward
from ltga.kernels.numba.scalar import compiled, leaf, reordered
from ltga.kernels.numba.side_by_side import LANES, gather_heads, gatv2_source_heads, gatv2_target_heads
from ltga.kernels.numba.sweeps import add_row, longest_row
from ltga.kernels.numba.vectors import dot, gatv2_logit, gatv2_source_gradient, gatv2_target_gradient

FREE = 4  # edges: sums of fewer are the same in any order, those of more have the order that the compiler gave them


@compiled()
def rows_of_edges(tcol, tpos):  # type: ignore[no-untyped-def]
    """The row of every edge, in CSR order."""
    rows = np.empty(len(tcol), np.int32)
    for slot in range(len(tcol)):
        rows[tpos[slot]] = tcol[slot]
    return rows


@reordered()
def message_factors(weights, keep, perm, share):  # type: ignore[no-untyped-def]
    """What messages are multiplied with, ``[E, H]``."""
    if keep.shape[0] == 0 and share == 1.0:
        return weights
    factors = np.empty(weights.shape, weights.dtype)
    for k in range(weights.shape[0]):
        for h in range(weights.shape[1]):
            w = weights[k, h] * share
            if keep.shape[0] > 0:
                w = w * keep[perm[k], h]
            factors[k, h] = w
    return factors


@leaf()
def score_edges(first, last, rows, col, x, target, att, slope, logits, channels):  # type: ignore[no-untyped-def]
    heads = x.shape[1]
    width = heads * channels
    for k in range(first, last):
        source, own = np.int64(col[k]) * width, np.int64(rows[k]) * width
        for h in range(heads):
            at = h * channels
            logits[k, h] = gatv2_logit(x, source + at, target, own + at, att, at, channels, slope)


@reordered()
def forward_short(  # type: ignore[no-untyped-def]
    first, last, ptr, col, perm, rows, order, x, target, att, q, keep, bias, kind, slope, logits, weights, out
):
    """Rows first..last: logits, weights and the aggregated output."""
    heads, channels, apart = x.shape[1], x.shape[2], out.shape[1] > 1
    width, at, end = heads * channels, ptr[first], ptr[last]
    if channels == LANES:  # a number that the compiler knows
        score_edges(at, end, rows, col, x, target, att, slope, logits, LANES)
    else:
        score_edges(at, end, rows, col, x, target, att, slope, logits, channels)
    if goes_edgewise(kind, logits):
        normalise_edges(kind, first, last, ptr, rows, logits, q, weights)
    else:
        room, scratch = new_room(heads), np.empty(longest_row(first, last, ptr), np.float64)
        panel = first
        while panel < last:
            stop = end_of_panel(panel, last, ptr, heads, room)
            normalise_rows(kind, panel, stop, ptr, order, logits, q, weights, room, scratch)
            panel = stop
    share = x.dtype.type(1.0 / heads if out.shape[1] < heads else 1.0)
    factors = message_factors(weights, keep, perm, share)
    for i in range(first, last):
        start, stop = ptr[i], ptr[i + 1]
        if apart or heads == 1:
            gather_heads(
                out, i * width, bias, 0, x, width, 0, col, factors, 0, heads, start, stop, width, channels
            )  # fmt: skip
            continue
        here = i * channels
        gather_heads(out, here, bias, 0, x, width, 0, col, factors, 0, heads, start, stop, channels, channels)
        for h in range(1, heads):
            gather_heads(
                out, here, out, here, x, width, h * channels, col, factors, h, heads, start, stop, channels, channels
            )  # fmt: skip


@leaf()
def gradients_of_weights(first, last, rows, col, perm, x, keep, weights, upstream, share, grad, channels):  # type: ignore[no-untyped-def]
    """0 where the weight is, or what it is kept with."""
    heads, zero = x.shape[1], x.dtype.type(0)
    width, up_width = heads * channels, upstream.shape[1] * channels
    step = channels if upstream.shape[1] > 1 else 0
    for k in range(first, last):
        source, above = np.int64(col[k]) * width, np.int64(rows[k]) * up_width
        for h in range(heads):
            kept = share * (keep[perm[k], h] if keep.shape[0] > 0 else x.dtype.type(1))
            g = kept * dot(x, source + h * channels, upstream, above + h * step, channels)
            grad[k, h] = g if (weights[k, h] != zero) & (kept != zero) else zero


@reordered()
def backward_targets_short(  # type: ignore[no-untyped-def]
    block, first, last, ptr, col, perm, rows, order, x, target, att, q, keep, kind, slope, logits, weights, upstream,
    grad_score, grad_target, grad_att, grad_q, grad_bias,
):  # fmt: skip
    """Sweep over destinations: gradients of scores, index, attention vector, target side and bias."""
    heads, channels = x.shape[1], x.shape[2]
    at, end, longest = ptr[first], ptr[last], longest_row(first, last, ptr)
    share = x.dtype.type(1.0 / heads if upstream.shape[1] < heads else 1.0)
    for i in range(first, last):
        add_row(grad_bias, block, upstream, i)
    if channels == LANES:
        gradients_of_weights(at, end, rows, col, perm, x, keep, weights, upstream, share, grad_score, LANES)
    else:
        gradients_of_weights(at, end, rows, col, perm, x, keep, weights, upstream, share, grad_score, channels)
    if goes_edgewise(kind, logits):
        normalise_edges_backward(kind, first, last, ptr, rows, logits, q, weights, grad_score, grad_q, block)
    else:
        room, scratch = new_room(heads), np.empty(longest, np.float64)
        panel = first
        while panel < last:
            stop = end_of_panel(panel, last, ptr, heads, room)
            normalise_rows_backward(
                kind, panel, stop, ptr, order, logits, q, weights, grad_score, grad_q, block, room, scratch
            )
            panel = stop
    width, listed, factors = heads * channels, np.empty(longest, np.int32), np.empty(longest, x.dtype)
    for i in range(first, last):
        start, stop = ptr[i], ptr[i + 1]
        if stop - start < FREE:
            gatv2_target_heads(
                grad_target, i * width, grad_att, block * width, att, target, x, col, grad_score, heads, start, stop,
                channels, slope,
            )  # fmt: skip
            continue
        for h in range(heads):
            here, count = h * channels, 0
            for k in range(start, stop):
                listed[count], factors[count] = col[k], grad_score[k, h]
                count += grad_score[k, h] != 0.0
            gatv2_target_gradient(
                grad_target, i * width + here, grad_att, block * width + here, att, target, x, width, here,
                listed, factors, count, channels, slope,
            )  # fmt: skip


@reordered()
def backward_sources_short(  # type: ignore[no-untyped-def]
    tptr, tcol, tpos, perm, x, target, att, keep, slope, weights, upstream, grad_score, grad_x
):
    """Sweep over sources: gradient of the message and key side."""
    heads, channels, apart = x.shape[1], x.shape[2], upstream.shape[1] > 1
    width, up_width, less = heads * channels, upstream.shape[1] * channels, 0 if apart else channels
    share = x.dtype.type(1.0 / heads if upstream.shape[1] < heads else 1.0)
    messages = message_factors(weights, keep, perm, share)
    longest = longest_row(0, len(tptr) - 1, tptr)
    listed = np.empty(longest, np.int32)
    sent, factors = np.empty(longest, x.dtype), np.empty(longest, x.dtype)
    for j in range(len(tptr) - 1):
        start, stop = tptr[j], tptr[j + 1]
        if stop - start < FREE:
            gatv2_source_heads(
                grad_x, j * width, x, att, target, upstream, up_width, less, tcol, tpos, messages, grad_score, heads,
                start, stop, channels, slope,
            )  # fmt: skip
            continue
        for h in range(heads):
            here, count = h * channels, 0
            for slot in range(start, stop):
                k = tpos[slot]
                listed[count], sent[count], factors[count] = tcol[slot], messages[k, h], grad_score[k, h]
                count += (messages[k, h] != 0.0) | (grad_score[k, h] != 0.0)
            gatv2_source_gradient(
                grad_x, j * width + here, x, att, target, width, here, upstream, up_width, here if apart else 0,
                listed, sent, factors, count, channels, slope,
            )  # fmt: skip
