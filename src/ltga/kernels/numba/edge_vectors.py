"""Edges that carry features: W_e e joins the scored vectors, and its gradients, edge by edge."""

from __future__ import annotations

import numpy as np

from ltga.kernels.numba.scalar import leaf, row
from ltga.kernels.numba.side_by_side import gatv2_edge_gradient
from ltga.kernels.numba.vectors import gather_sum, scatter_add


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
    block, i, start, end, col, perm, x, target, att, edge_attr, edge_weight, gatv2, slope, dot_scale,
    grad_score, grad_target, grad_att, grad_edge_attr, grad_edge_weight, every, places, features, buffer, through,
):  # fmt: skip
    """Row i: gradients of the target side, the attention vector and the edges, from those of the scores.

    ``places`` says where the gradients of a head's weights for every feature are: which row of C of grad_edge_weight.
    """
    heads, channels = x.shape[1], x.shape[2]
    width, count = heads * channels, edge_attr.shape[1]
    for h in range(heads):
        for c in range(channels):
            grad_target[i, h, c] = 0.0
    for k in range(start, end):
        e, j = perm[k], np.int64(col[k])
        if gatv2:
            with_edge(target, i * width, edge_attr, edge_weight, e, every, features, buffer)
        else:
            with_edge(x, j * width, edge_attr, edge_weight, e, every, features, buffer)
        for f in range(grad_edge_attr.shape[1]):
            grad_edge_attr[e, f] = 0.0
        for h in range(heads):
            g = grad_score[k, h]
            if g == 0.0:
                continue
            if gatv2:
                at = h * channels
                gatv2_edge_gradient(
                    through, grad_att, block * width + at, grad_target, i * width + at, x, j * width + at, buffer, at,
                    att, g, slope, channels,
                )  # fmt: skip
            else:
                for c in range(channels):
                    through[c] = g * dot_scale * target[i, h, c]
                    grad_target[i, h, c] += g * dot_scale * buffer[h, c]
            if grad_edge_weight.shape[1] > 0:
                for f in range(count):
                    places[f] = (block * count + f) * heads + h
                scatter_add(grad_edge_weight, channels, places, features, 0, count, through, 0, channels)
            for f in range(grad_edge_attr.shape[1]):
                total = x.dtype.type(0)
                for c in range(channels):
                    total += edge_weight[f, h, c] * through[c]
                grad_edge_attr[e, f] += total
