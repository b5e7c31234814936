"""The compiled passes over a graph: score, normalise and aggregate fused, and their derivatives.

Every pass handles a range of rows and writes only to those rows (or to its own block's partial sums),
so no locks are needed and the result does not depend on how many threads share the work. Nothing of
size edges x heads x channels is ever stored: a neighbour's features are read while they are in cache.

Shapes: x ``[S, H, C]`` sources (keys and messages), target ``[T, H, C]``, att ``[H, C]``, per-edge
arrays ``[E, H]``: logits, weights and score gradients in CSR order, everything the caller gave (scale,
shift, keep, given, edge_attr) in the caller's order through ``perm``, q through ``q_order`` (the same, or
CSR order). Optional arrays are empty when absent. ``out`` is ``[T, H, C]``, or ``[T, 1, C]`` for the mean over heads.
"""

from __future__ import annotations

import numpy as np

from ltga.kernels.codes import DOT, GATV2, GIVEN
from ltga.kernels.numba.edge_vectors import AT_ONCE, edge_gradients, score_with_edges, with_edge
from ltga.kernels.numba.normalise import end_of_panel, new_room, normalise_rows, normalise_rows_backward
from ltga.kernels.numba.scalar import borrowing, compiled, leaf, reordered, row
from ltga.kernels.numba.vectors import (
    dot,
    gather_sum,
    gatv2_logit,
    gatv2_source_gradient,
    gatv2_target_gradient,
    prefetch,
)

AHEAD = 4  # edges; a neighbour's features are asked for that long before they are needed


@borrowing()
def longest_row(first, last, ptr):  # type: ignore[no-untyped-def]
    longest = 0
    for i in range(first, last):
        longest = max(longest, ptr[i + 1] - ptr[i])
    return longest


@compiled()
def cut_rows(ptr, count, row_work):  # type: ignore[no-untyped-def]
    """Bounds of at most ``count`` blocks of rows with about equal work (edges, and ``row_work`` for the row itself)."""
    rows = len(ptr) - 1
    total = ptr[rows] + row_work * rows
    bounds, used = np.zeros(count + 1, np.int64), 1
    for block in range(1, count):
        low, high, wanted = bounds[used - 1], rows, block * total // count
        while low < high:  # the first row with that much work before it
            middle = (low + high) // 2
            if ptr[middle] + row_work * middle < wanted:
                low = middle + 1
            else:
                high = middle
        if low > bounds[used - 1]:
            bounds[used] = low
            used += 1
    bounds[used] = rows
    return bounds[: used + 1]


@reordered()
def forward_rows(  # type: ignore[no-untyped-def]
    first, last, ptr, col, perm, q_order, x, target, att, edge_attr, edge_weight, given, scale, shift, q, keep, bias,
    scoring, kind, slope, dot_scale, raw, logits, weights, out,
):  # fmt: skip
    """Rows first..last: logits, weights and the aggregated output."""
    heads = x.shape[1]
    buffer, room = np.empty(x.shape[1:], x.dtype), new_room(heads)
    every, features = np.arange(edge_attr.shape[1]), np.empty(edge_attr.shape[1], x.dtype)
    longest = longest_row(first, last, ptr)
    scratch = np.empty(longest, np.float64)
    rows, factors = np.empty(longest, np.int32), np.empty(longest, x.dtype)
    share = x.dtype.type(1.0 / heads if out.shape[1] < heads else 1.0)
    panel = first
    while panel < last:
        stop = end_of_panel(panel, last, ptr, heads, room)
        for i in range(panel, stop):
            start, end = ptr[i], ptr[i + 1]
            if scoring == GIVEN:
                given_row(start, end, perm, given, logits)
            elif edge_attr.shape[0] > 0:
                score_with_edges(
                    i, start, end, col, perm, x, target, att, edge_attr, edge_weight, scoring == GATV2, slope,
                    dot_scale, every, features, buffer, logits,
                )  # fmt: skip
            else:
                score_row(i, start, end, ptr[last], col, x, target, att, scoring, slope, dot_scale, logits)
            if scale.shape[0] > 0 or shift.shape[0] > 0:
                modify_logits(start, end, perm, scale, shift, raw, logits)
        normalise_rows(kind, panel, stop, ptr, q_order, logits, q, weights, room, scratch)
        for i in range(panel, stop):
            aggregate_row(i, ptr, col, perm, x, keep, bias, weights, share, rows, factors, out)
        panel = stop


@leaf()
def given_row(start, end, perm, given, logits):  # type: ignore[no-untyped-def]
    for k in range(start, end):
        for h in range(logits.shape[1]):
            logits[k, h] = given[perm[k], h]


@leaf()
def score_row(i, start, end, stop, col, x, target, att, scoring, slope, dot_scale, logits):  # type: ignore[no-untyped-def]
    heads, channels = x.shape[1], x.shape[2]
    width = heads * channels
    for k in range(start, end):
        source, later = np.int64(col[k]) * width, np.int64(col[min(k + AHEAD, stop - 1)]) * width
        if scoring == GATV2:
            for h in range(heads):
                at = h * channels
                prefetch(x, later + at, channels)
                logits[k, h] = gatv2_logit(x, source + at, target, i * width + at, att, at, channels, slope)
        else:
            for h in range(heads):
                at = h * channels
                prefetch(x, later + at, channels)
                logits[k, h] = dot_scale * dot(x, source + at, target, i * width + at, channels)


@row()
def modify_logits(start, end, perm, scale, shift, raw, logits):  # type: ignore[no-untyped-def]
    """logits * scale + shift; the unscaled ones are kept for the gradient of the scale."""
    for k in range(start, end):
        e = perm[k]
        for h in range(logits.shape[1]):
            if scale.shape[0] > 0:
                raw[k, h] = logits[k, h]
                logits[k, h] *= scale[e if scale.shape[0] > 1 else 0, h]
            if shift.shape[0] > 0:
                logits[k, h] += shift[e, h]


@leaf()
def aggregate_row(i, ptr, col, perm, x, keep, bias, weights, share, rows, factors, out):  # type: ignore[no-untyped-def]
    """out[i] = bias (zeros if there is none) + weighted sum, one head after the other."""
    for h in range(x.shape[1]):
        aggregate_head(i, h, ptr, col, perm, x, keep, bias, weights, share, rows, factors, out)


@leaf()
def aggregate_head(i, h, ptr, col, perm, x, keep, bias, weights, share, rows, factors, out):  # type: ignore[no-untyped-def]
    """One head's part of a row; edges of weight zero are sorted out first."""
    heads, channels = x.shape[1], x.shape[2]
    count = 0
    for k in range(ptr[i], ptr[i + 1]):
        w = weights[k, h] * share
        if keep.shape[0] > 0:
            w = w * keep[perm[k], h]
        rows[count], factors[count] = col[k], w
        count += w != 0.0
    apart = out.shape[1] > 1
    at = i * out.shape[1] * channels + (h * channels if apart else 0)
    if apart or h == 0:
        gather_sum(out, at, bias, h * channels, x, heads * channels, h * channels, rows, factors, 0, count, channels)
    else:
        gather_sum(out, at, out, at, x, heads * channels, h * channels, rows, factors, 0, count, channels)


@reordered()
def aggregate_rows(first, last, ptr, col, perm, x, keep, bias, weights, share, out):  # type: ignore[no-untyped-def]
    """Aggregation alone, for weights that are already known."""
    heads, channels = x.shape[1], x.shape[2]
    longest = longest_row(first, last, ptr)
    rows, factors = np.empty(longest, np.int32), np.empty(longest, x.dtype)
    for i in range(first, last):
        next_row = min(i + 1, last - 1)
        for h in range(heads):
            for k in range(ptr[next_row], ptr[next_row + 1]):  # a little at a time: many at once would be dropped
                wanted = np.int64(col[k]) * heads * channels + h * channels
                prefetch(x, wanted if weights[k, h] != 0.0 else 0, channels)  # a branch would be guessed wrong
            aggregate_head(i, h, ptr, col, perm, x, keep, bias, weights, share, rows, factors, out)


@leaf()
def weight_gradients(i, start, end, stop, col, perm, x, keep, weights, grad_out, grad_alpha, share, grad):  # type: ignore[no-untyped-def]
    """Gradients of one row's weights, which are 0 where the weight is."""
    heads, channels = x.shape[1], x.shape[2]
    width, up_width = heads * channels, grad_out.shape[1] * channels
    zero, one = x.dtype.type(0), x.dtype.type(1)
    for k in range(start, end):
        j = np.int64(col[k])
        next_row = np.int64(col[min(k + AHEAD, stop - 1)]) * width
        for h in range(heads):
            at = h * channels
            prefetch(x, next_row + at, channels)
            g = zero
            if weights[k, h] != 0.0:
                kept = share * (keep[perm[k], h] if keep.shape[0] > 0 else one)
                if kept != 0.0:
                    up_at = i * up_width + (at if grad_out.shape[1] > 1 else 0)
                    g = kept * dot(x, j * width + at, grad_out, up_at, channels)
                if grad_alpha.shape[0] > 0:
                    g += grad_alpha[k, h]
            grad[k, h] = g


@reordered()
def backward_targets(  # type: ignore[no-untyped-def]
    block, first, last, ptr, col, perm, q_order, x, target, att, edge_attr, edge_weight, scale, q, keep,
    scoring, kind, slope, dot_scale, raw, logits, weights, grad_out, grad_alpha,
    grad_score, grad_target, grad_att, grad_q, grad_given, grad_scale, grad_shift, grad_edge_attr, grad_edge_weight,
    grad_bias,
):  # fmt: skip
    """Sweep over destinations: gradients of scores, index, attention vector, target side and bias."""
    heads, channels = x.shape[1], x.shape[2]
    width, with_edges = heads * channels, edge_attr.shape[0] > 0
    zeros, room = np.zeros(channels, x.dtype), new_room(heads)
    buffer, through = np.empty((heads, channels), x.dtype), np.empty((AT_ONCE if with_edges else 0, width), x.dtype)
    every, waiting = np.arange(edge_attr.shape[1]), np.arange(AT_ONCE)
    features = np.empty(max(edge_attr.shape[1], AT_ONCE), x.dtype)
    longest = longest_row(first, last, ptr)
    scratch = np.empty(longest, np.float64)
    rows, factors = np.empty(longest, np.int32), np.empty(longest, x.dtype)
    share = x.dtype.type(1.0 / heads if grad_out.shape[1] < heads else 1.0)
    panel = first
    while panel < last:
        stop = end_of_panel(panel, last, ptr, heads, room)
        for i in range(panel, stop):
            add_row(grad_bias, block, grad_out, i)
            weight_gradients(
                i, ptr[i], ptr[i + 1], ptr[last], col, perm, x, keep, weights, grad_out, grad_alpha, share, grad_score
            )  # fmt: skip
        normalise_rows_backward(
            kind, panel, stop, ptr, q_order, logits, q, weights, grad_score, grad_q, block, room, scratch
        )
        for i in range(panel, stop):
            start, end = ptr[i], ptr[i + 1]
            if grad_shift.shape[0] > 0 or scale.shape[0] > 0:
                modifier_gradients(block, start, end, perm, scale, raw, grad_score, grad_scale, grad_shift)
            if scoring == GIVEN and grad_given.shape[0] > 0:
                back_to_caller(start, end, perm, grad_score, grad_given)
        if with_edges and scoring != GIVEN:
            edge_gradients(
                block, panel, stop, ptr, col, perm, x, target, att, edge_attr, edge_weight, scoring == GATV2, slope,
                dot_scale, grad_score, grad_target, grad_att, grad_edge_attr, grad_edge_weight, every, features, buffer,
                waiting, through,
            )  # fmt: skip
        if scoring == GIVEN or with_edges:
            panel = stop
            continue
        for i in range(panel, stop):
            for h in range(heads):
                at, count = h * channels, 0
                for k in range(ptr[i], ptr[i + 1]):
                    rows[count], factors[count] = col[k], grad_score[k, h]
                    count += grad_score[k, h] != 0.0
                if scoring == GATV2:
                    gatv2_target_gradient(
                        grad_target, i * width + at, grad_att, block * width + at, att, target, x, width, at,
                        rows, factors, count, channels, slope,
                    )  # fmt: skip
                else:
                    for m in range(count):
                        factors[m] *= dot_scale
                    here = i * width + at
                    gather_sum(grad_target, here, zeros, 0, x, width, at, rows, factors, 0, count, channels)
        panel = stop


@leaf()
def add_row(sums, block, table, i):  # type: ignore[no-untyped-def]
    for h in range(table.shape[1]):
        for c in range(table.shape[2]):
            sums[block, h, c] += table[i, h, c]


@leaf()
def back_to_caller(start, end, perm, grad_score, grad_given):  # type: ignore[no-untyped-def]
    for k in range(start, end):
        for h in range(grad_score.shape[1]):
            grad_given[perm[k], h] = grad_score[k, h]


@row()
def modifier_gradients(block, start, end, perm, scale, raw, grad_score, grad_scale, grad_shift):  # type: ignore[no-untyped-def]
    """Gradients of what was added to and multiplied with the logits; grad_score becomes that of the raw score."""
    for k in range(start, end):
        e = perm[k]
        for h in range(grad_score.shape[1]):
            g = grad_score[k, h]
            if grad_shift.shape[0] > 0:
                grad_shift[e, h] = g
            if scale.shape[0] > 0:
                if grad_scale.shape[0] > 0:
                    if scale.shape[0] > 1:
                        grad_scale[e, h] = g * raw[k, h]
                    else:
                        grad_scale[block, h] += g * raw[k, h]
                grad_score[k, h] = g * scale[e if scale.shape[0] > 1 else 0, h]


@reordered()
def backward_sources(  # type: ignore[no-untyped-def]
    first, last, tptr, tcol, tpos, perm, x, target, att, edge_attr, edge_weight, keep,
    scoring, slope, dot_scale, weights, grad_out, grad_score, grad_x,
):  # fmt: skip
    """Sweep over sources: gradient of the message and key side."""
    heads, channels = x.shape[1], x.shape[2]
    width, up_width = heads * channels, grad_out.shape[1] * channels
    with_edges = scoring == GATV2 and edge_attr.shape[0] > 0
    buffer, zeros = np.empty((1, heads, channels), x.dtype), np.zeros(channels, x.dtype)
    every, features = np.arange(edge_attr.shape[1]), np.empty(edge_attr.shape[1], x.dtype)
    longest = longest_row(first, last, tptr)
    rows = np.empty(longest, np.int32)
    sent, factors = np.empty(longest, x.dtype), np.empty(longest, x.dtype)
    share = x.dtype.type(1.0 / heads if grad_out.shape[1] < heads else 1.0)
    for j in range(first, last):
        for h in range(heads):
            at, up_at, count = h * channels, h * channels if grad_out.shape[1] > 1 else 0, 0
            for slot in range(tptr[j], tptr[j + 1]):
                k, later = tpos[slot], np.int64(tcol[min(slot + AHEAD, tptr[last] - 1)])
                if scoring != GIVEN:
                    prefetch(target, later * width + at, channels)
                prefetch(grad_out, later * up_width + up_at, channels)
                w = weights[k, h] * share
                if keep.shape[0] > 0:
                    w = w * keep[perm[k], h]
                rows[count], sent[count], factors[count] = tcol[slot], w, grad_score[k, h]
                count += (w != 0.0) | (grad_score[k, h] != 0.0)
            if scoring == GATV2 and not with_edges:
                gatv2_source_gradient(
                    grad_x, j * width + at, x, att, target, width, at, grad_out, up_width, up_at,
                    rows, sent, factors, count, channels, slope,
                )  # fmt: skip
                continue
            here = j * width + at
            gather_sum(grad_x, here, zeros, 0, grad_out, up_width, up_at, rows, sent, 0, count, channels)
            if scoring == DOT:
                for m in range(count):
                    factors[m] *= dot_scale
                gather_sum(grad_x, here, grad_x, here, target, width, at, rows, factors, 0, count, channels)
        if with_edges:
            for slot in range(tptr[j], tptr[j + 1]):
                k = tpos[slot]
                own = np.int64(tcol[slot]) * width
                with_edge(target, own, edge_attr, edge_weight, perm[k], every, features, buffer)
                for h in range(heads):
                    g = grad_score[k, h]
                    for c in range(channels):
                        t = x[j, h, c] + buffer[0, h, c]
                        grad_x[j, h, c] += (g if t > 0 else g * slope) * att[h, c]
