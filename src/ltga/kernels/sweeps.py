"""The compiled passes over a graph: score, normalise and aggregate fused, and their derivatives.

Every pass handles a range of rows and writes only to those rows (or to its own block's partial sums),
so no locks are needed and the result does not depend on how many threads share the work. Nothing of
size edges x heads x channels is ever stored: a neighbour's features are read while they are in cache.

Shapes: x ``[S, H, C]`` sources (keys and messages), target ``[T, H, C]``, att ``[H, C]``, per-edge
arrays ``[E, H]``: logits, weights and score gradients in CSR order, everything the caller gave (q,
scale, shift, keep, given, edge_attr) in the caller's order through ``perm``. Optional arrays are
empty when absent. ``out`` is ``[T, H, C]``, or ``[T, 1, C]`` for the mean over heads.
"""

from __future__ import annotations

import numpy as np

from ltga.kernels.normalise import normalise_row, normalise_row_backward
from ltga.kernels.scalar import compiled, leaf, reordered

GIVEN, GATV2, DOT = 0, 1, 2


@leaf()
def with_edge(row, edge_attr, edge_weight, edge, buffer):  # type: ignore[no-untyped-def]
    """A node's row plus W_e e for one edge, into buffer [H, C]; edge_weight is [D, H, C]."""
    for h in range(buffer.shape[0]):
        for c in range(buffer.shape[1]):
            buffer[h, c] = row[h, c]
        for f in range(edge_attr.shape[1]):
            a = edge_attr[edge, f]
            for c in range(buffer.shape[1]):
                buffer[h, c] += a * edge_weight[f, h, c]


@leaf()
def score(scoring, source, target, att, slope, zero):  # type: ignore[no-untyped-def]
    """One logit from one head's source and target vectors [C]."""
    total = zero
    if scoring == GATV2:
        for c in range(source.shape[0]):
            t = source[c] + target[c]
            total += att[c] * (t if t > zero else slope * t)
    else:
        for c in range(source.shape[0]):
            total += source[c] * target[c]
    return total


@leaf()
def add_scaled(factor, values, total):  # type: ignore[no-untyped-def]
    for c in range(values.shape[0]):
        total[c] += factor * values[c]


@leaf()
def inner(a, b, zero):  # type: ignore[no-untyped-def]
    total = zero
    for c in range(a.shape[0]):
        total += a[c] * b[c]
    return total


@compiled()
def longest_row(first, last, ptr):  # type: ignore[no-untyped-def]
    longest = 0
    for i in range(first, last):
        longest = max(longest, ptr[i + 1] - ptr[i])
    return longest


@reordered()
def forward_rows(  # type: ignore[no-untyped-def]
    first, last, ptr, col, perm, x, target, att, edge_attr, edge_weight, given, scale, shift, q, keep, bias,
    scoring, kind, slope, dot_scale, raw, logits, weights, out,
):  # fmt: skip
    """Rows first..last: logits, weights and the aggregated output."""
    heads = x.shape[1]
    zero = x.dtype.type(0)
    buffer = np.empty((heads, x.shape[2]), x.dtype)
    scratch = np.empty(longest_row(first, last, ptr), np.float64)
    heads_scratch = np.empty((6, heads), np.float64)
    share = x.dtype.type(1.0 / heads if out.shape[1] < heads else 1.0)
    for i in range(first, last):
        for k in range(ptr[i], ptr[i + 1]):
            e, j = perm[k], col[k]
            key, row = x[j], x[j]
            if scoring != GIVEN:
                row = target[i]
            if edge_attr.shape[0] > 0:
                if scoring == GATV2:
                    with_edge(target[i], edge_attr, edge_weight, e, buffer)
                    row = buffer
                else:
                    with_edge(x[j], edge_attr, edge_weight, e, buffer)
                    key = buffer
            for h in range(heads):
                if scoring == GIVEN:
                    z = given[e, h]
                elif scoring == GATV2:
                    z = score(GATV2, x[j, h], row[h], att[h], slope, zero)
                else:
                    z = dot_scale * score(DOT, key[h], row[h], att[h], slope, zero)
                if scale.shape[0] > 0:
                    raw[k, h] = z
                    z = z * scale[e if scale.shape[0] > 1 else 0, h]
                if shift.shape[0] > 0:
                    z = z + shift[e, h]
                logits[k, h] = z
        normalise_row(kind, ptr[i], ptr[i + 1], perm, logits, q, weights, heads_scratch, scratch)
        aggregate_row(i, ptr, col, perm, x, keep, bias, weights, share, out)


@reordered()
def aggregate_row(i, ptr, col, perm, x, keep, bias, weights, share, out):  # type: ignore[no-untyped-def]
    for h in range(out.shape[1]):
        for c in range(out.shape[2]):
            out[i, h, c] = bias[h, c] if bias.shape[0] > 0 else 0.0
    for k in range(ptr[i], ptr[i + 1]):
        j = col[k]
        for h in range(x.shape[1]):
            w = weights[k, h]
            if w != 0.0:
                if keep.shape[0] > 0:
                    w = w * keep[perm[k], h]
                if w != 0.0:
                    add_scaled(w * share, x[j, h], out[i, h if out.shape[1] > 1 else 0])


@reordered()
def aggregate_rows(first, last, ptr, col, perm, x, keep, bias, weights, share, out):  # type: ignore[no-untyped-def]
    """Aggregation alone, for weights that are already known."""
    for i in range(first, last):
        aggregate_row(i, ptr, col, perm, x, keep, bias, weights, share, out)


@reordered()
def backward_targets(  # type: ignore[no-untyped-def]
    block, first, last, ptr, col, perm, x, target, att, edge_attr, edge_weight, scale, q, keep,
    scoring, kind, slope, dot_scale, raw, logits, weights, grad_out, grad_alpha,
    grad_score, grad_target, grad_att, grad_q, grad_scale, grad_shift, grad_edge_attr, grad_edge_weight,
):  # fmt: skip
    """Sweep over destinations: gradients of scores, index, attention vector and target side."""
    heads = x.shape[1]
    zero = x.dtype.type(0)
    one = x.dtype.type(1)
    buffer = np.empty((heads, x.shape[2]), x.dtype)
    through = np.empty(x.shape[2], x.dtype)
    scratch = np.empty(longest_row(first, last, ptr), np.float64)
    heads_scratch = np.empty((6, heads), np.float64)
    share = x.dtype.type(1.0 / heads if grad_out.shape[1] < heads else 1.0)
    for i in range(first, last):
        start, end = ptr[i], ptr[i + 1]
        for k in range(start, end):
            j = col[k]
            for h in range(heads):
                g = zero
                if weights[k, h] != 0.0:
                    kept = share * (keep[perm[k], h] if keep.shape[0] > 0 else one)
                    if kept != 0.0:
                        g = kept * inner(grad_out[i, h if grad_out.shape[1] > 1 else 0], x[j, h], zero)
                    if grad_alpha.shape[0] > 0:
                        g += grad_alpha[k, h]
                grad_score[k, h] = g
        normalise_row_backward(
            kind, start, end, perm, logits, q, weights, grad_score, grad_q, block, heads_scratch, scratch
        )
        if grad_target.shape[0] > 0:
            for h in range(heads):
                for c in range(grad_target.shape[2]):
                    grad_target[i, h, c] = 0.0
        for k in range(start, end):
            e, j = perm[k], col[k]
            if grad_shift.shape[0] > 0:
                for h in range(heads):
                    grad_shift[e, h] = grad_score[k, h]
            if scale.shape[0] > 0:
                for h in range(heads):
                    if grad_scale.shape[0] > 0:
                        if scale.shape[0] > 1:
                            grad_scale[e, h] = grad_score[k, h] * raw[k, h]
                        else:
                            grad_scale[block, h] += grad_score[k, h] * raw[k, h]
                    grad_score[k, h] *= scale[e if scale.shape[0] > 1 else 0, h]
            if scoring == GIVEN:
                continue
            row = target[i]
            if edge_attr.shape[0] > 0:
                with_edge(target[i] if scoring == GATV2 else x[j], edge_attr, edge_weight, e, buffer)
                row = buffer
                for f in range(grad_edge_attr.shape[1]):
                    grad_edge_attr[e, f] = 0.0
            for h in range(heads):
                g = grad_score[k, h]
                if g == 0.0:
                    continue
                if edge_attr.shape[0] == 0:
                    if scoring == GATV2:
                        score_gradient(g, x[j, h], row[h], att[h], slope, grad_att[block, h], grad_target[i, h])
                    else:
                        add_scaled(g * dot_scale, x[j, h], grad_target[i, h])
                    continue
                for c in range(through.shape[0]):
                    through[c] = zero
                if scoring == GATV2:
                    score_gradient(g, x[j, h], row[h], att[h], slope, grad_att[block, h], through)
                    add_scaled(one, through, grad_target[i, h])
                else:
                    add_scaled(g * dot_scale, target[i, h], through)
                    add_scaled(g * dot_scale, row[h], grad_target[i, h])
                for f in range(grad_edge_weight.shape[1]):
                    add_scaled(edge_attr[e, f], through, grad_edge_weight[block, f, h])
                for f in range(grad_edge_attr.shape[1]):
                    grad_edge_attr[e, f] += inner(edge_weight[f, h], through, zero)


@leaf()
def score_gradient(g, source, target, att, slope, grad_att, through):  # type: ignore[no-untyped-def]
    """GATv2: adds to grad_att and adds the gradient of the pre-activation to ``through``."""
    flat = g * slope
    for c in range(source.shape[0]):
        t = source[c] + target[c]
        f = g if t > 0 else flat
        grad_att[c] += f * t
        through[c] += f * att[c]


@reordered()
def backward_sources(  # type: ignore[no-untyped-def]
    first, last, tptr, tcol, tpos, perm, x, target, att, edge_attr, edge_weight, keep,
    scoring, slope, dot_scale, weights, grad_out, grad_score, grad_x,
):  # fmt: skip
    """Sweep over sources: gradient of the message and key side."""
    heads = x.shape[1]
    one = x.dtype.type(1)
    zero = x.dtype.type(0)
    buffer = np.empty((heads, x.shape[2]), x.dtype)
    share = x.dtype.type(1.0 / heads if grad_out.shape[1] < heads else 1.0)
    for j in range(first, last):
        for h in range(heads):
            for c in range(x.shape[2]):
                grad_x[j, h, c] = 0.0
        for slot in range(tptr[j], tptr[j + 1]):
            k, i = tpos[slot], tcol[slot]
            row = target[i] if scoring != GIVEN else x[j]
            if scoring == GATV2 and edge_attr.shape[0] > 0:
                with_edge(target[i], edge_attr, edge_weight, perm[k], buffer)
                row = buffer
            for h in range(heads):
                w = weights[k, h]
                if w != 0.0:
                    w *= share * (keep[perm[k], h] if keep.shape[0] > 0 else one)
                g = grad_score[k, h] if scoring != GIVEN else zero
                if scoring == GATV2 and g != 0.0:
                    both(
                        w,
                        grad_out[i, h if grad_out.shape[1] > 1 else 0],
                        g,
                        x[j, h],
                        row[h],
                        att[h],
                        slope,
                        grad_x[j, h],
                    )
                    continue
                if w != 0.0:
                    add_scaled(w, grad_out[i, h if grad_out.shape[1] > 1 else 0], grad_x[j, h])
                if g != 0.0:
                    add_scaled(g * dot_scale, row[h], grad_x[j, h])


@leaf()
def both(w, grad_out, g, source, target, att, slope, total):  # type: ignore[no-untyped-def]
    """Message and GATv2 key gradient of one edge and head in one loop."""
    flat = g * slope
    for c in range(source.shape[0]):
        t = source[c] + target[c]
        total[c] += w * grad_out[c] + (g if t > 0 else flat) * att[c]


@compiled()
def check_structure(ptr, col, perm, sources):  # type: ignore[no-untyped-def]
    """0 if the arrays describe a valid CSR structure, else the number of the first rule broken."""
    edges = len(col)
    if len(ptr) == 0 or ptr[0] != 0 or ptr[-1] != edges or len(perm) != edges:
        return 1
    for i in range(len(ptr) - 1):
        if ptr[i + 1] < ptr[i]:
            return 2
    for k in range(edges):
        if col[k] < 0 or col[k] >= sources:
            return 3
        if perm[k] < 0 or perm[k] >= edges:
            return 4
    return 0
