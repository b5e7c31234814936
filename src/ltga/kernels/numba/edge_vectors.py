"""Edges that carry features: W_e e joins the scored vectors, and its gradients, edge by edge."""

from __future__ import annotations

import numpy as np

from ltga.kernels.numba.scalar import leaf, row
from ltga.kernels.numba.side_by_side import gatv2_edge_gradient
from ltga.kernels.numba.vectors import dot, gather_sum

AT_ONCE = 64  # edges whose gradients wait to be added up together


@leaf()
def with_edge(table, at, edge_attr, edge_weight, edge, every, features, buffer):  # type: ignore[no-untyped-def]
    """A node's row, which begins at ``at``, plus W_e e for one edge, into buffer [H, C]; edge_weight is [D, H, C].

    ``every`` is 0, 1 ... D - 1, ``features`` is room for D numbers.
    """
    width, count = edge_weight.shape[1] * edge_weight.shape[2], edge_attr.shape[1]
    for f in range(count):
        features[f] = edge_attr[edge, f]
    gather_sum(buffer, 0, table, at, edge_weight, width, 0, every, features, 0, count, width)


@row()
def score_with_edges(  # type: ignore[no-untyped-def]
    i, start, end, col, perm, x, target, att, edge_attr, edge_weight, gatv2, slope, dot_scale, every, features, buffer,
    logits,
):  # fmt: skip
    """Logits of row i: edge features join the target (GATv2) or the key (dot product)."""
    width = x.shape[1] * x.shape[2]
    for k in range(start, end):
        j = np.int64(col[k])
        if gatv2:
            with_edge(target, i * width, edge_attr, edge_weight, perm[k], every, features, buffer)
        else:
            with_edge(x, j * width, edge_attr, edge_weight, perm[k], every, features, buffer)
        for h in range(x.shape[1]):
            total = x.dtype.type(0)
            if gatv2:
                for c in range(x.shape[2]):
                    t = x[j, h, c] + buffer[h, c]
                    total += att[h, c] * (t if t > 0 else slope * t)
            else:
                for c in range(x.shape[2]):
                    total += buffer[h, c] * target[i, h, c]
                total *= dot_scale
            logits[k, h] = total


@row()
def edge_gradients(  # type: ignore[no-untyped-def]
    block, first, last, ptr, col, perm, x, target, att, edge_attr, edge_weight, gatv2, slope, dot_scale,
    grad_score, grad_target, grad_att, grad_edge_attr, grad_edge_weight, every, features, buffer, waiting, through,
):  # fmt: skip
    """Rows first..last: gradients of the target side, the attention vector and the edges, from those of the scores.

    ``waiting`` is 0, 1 ... AT_ONCE - 1, ``through`` is room for the gradients of as many scored vectors, ``features``
    for as many numbers, too.
    """
    heads, channels = x.shape[1], x.shape[2]
    width, count = heads * channels, 0
    for i in range(first, last):
        for h in range(heads):
            for c in range(channels):
                grad_target[i, h, c] = 0.0
        for k in range(ptr[i], ptr[i + 1]):
            j = np.int64(col[k])
            if gatv2:
                with_edge(target, i * width, edge_attr, edge_weight, perm[k], every, features, buffer)
            else:
                with_edge(x, j * width, edge_attr, edge_weight, perm[k], every, features, buffer)
            for h in range(heads):
                g, at = grad_score[k, h], h * channels
                if g == 0.0:
                    for c in range(channels):
                        through[count, at + c] = 0.0
                elif gatv2:
                    gatv2_edge_gradient(
                        through, count * width + at, grad_att, block * width + at, grad_target, i * width + at, x,
                        j * width + at, buffer, at, att, g, slope, channels,
                    )  # fmt: skip
                else:
                    for c in range(channels):
                        through[count, at + c] = g * dot_scale * target[i, h, c]
                        grad_target[i, h, c] += g * dot_scale * buffer[h, c]
            count += 1
            if count == AT_ONCE or k + 1 == ptr[last]:
                feature_gradients(
                    block, k + 1 - count, count, perm, edge_attr, edge_weight, grad_edge_attr, grad_edge_weight,
                    waiting, features, through,
                )  # fmt: skip
                count = 0


@leaf()
def feature_gradients(  # type: ignore[no-untyped-def]
    block, start, count, perm, edge_attr, edge_weight, grad_edge_attr, grad_edge_weight, waiting, factors, through
):
    """Gradients of the features of ``count`` edges from ``start`` on, and their part of those of the weights."""
    width = through.shape[1]
    for f in range(grad_edge_weight.shape[1]):
        for m in range(count):
            factors[m] = edge_attr[perm[start + m], f]
        at = (block * edge_attr.shape[1] + f) * width
        gather_sum(grad_edge_weight, at, grad_edge_weight, at, through, width, 0, waiting, factors, 0, count, width)
    for f in range(grad_edge_attr.shape[1]):
        for m in range(count):
            grad_edge_attr[perm[start + m], f] = dot(edge_weight, f * width, through, m * width, width)
