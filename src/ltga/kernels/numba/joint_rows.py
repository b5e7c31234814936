"""Compiled passes of :mod:`ltga.kernels.operators.joint_scores`.

Shapes: x ``[N, H, C]``, the vectors left and right ``[H, C]``, scores of nodes ``[N, 2, H]`` (as sources, as targets),
per-edge arrays ``[E, H]``.
"""

from __future__ import annotations

from ltga.kernels.numba.scalar import row
from ltga.kernels.numba.vectors import dot


@row()
def node_scores(first, last, x, left, right, scores):  # type: ignore[no-untyped-def]
    """Products of nodes first..last with both vectors."""
    heads, channels = x.shape[1], x.shape[2]
    for i in range(first, last):
        for h in range(heads):
            at = h * channels
            scores[i, 0, h] = dot(x, (i * heads + h) * channels, left, at, channels)
            scores[i, 1, h] = dot(x, (i * heads + h) * channels, right, at, channels)


@row()
def edge_scores(first, last, ptr, col, perm, scores, slope, out):  # type: ignore[no-untyped-def]
    """Rows first..last of the targets: out[edge, h] = leaky_relu(score of the source + score of the target)."""
    for i in range(first, last):
        for k in range(ptr[i], ptr[i + 1]):
            for h in range(out.shape[1]):
                t = scores[col[k], 0, h] + scores[i, 1, h]
                out[perm[k], h] = t if t > 0 else slope * t


@row()
def target_gradients(first, last, ptr, col, perm, scores, slope, grad, passed, grad_scores):  # type: ignore[no-untyped-def]
    """Rows first..last of the targets: gradients of the sums (CSR order), and of the nodes' scores as targets."""
    for i in range(first, last):
        for h in range(grad.shape[1]):
            total = passed.dtype.type(0)
            for k in range(ptr[i], ptr[i + 1]):
                g = grad[perm[k], h]
                g = g if scores[col[k], 0, h] + scores[i, 1, h] > 0 else slope * g
                passed[k, h] = g
                total += g
            grad_scores[i, 1, h] = total


@row()
def source_gradients(first, last, tptr, tpos, passed, grad_scores):  # type: ignore[no-untyped-def]
    """Gradients of the scores of nodes first..last as sources."""
    for j in range(first, last):
        for h in range(passed.shape[1]):
            total = passed.dtype.type(0)
            for slot in range(tptr[j], tptr[j + 1]):
                total += passed[tpos[slot], h]
            grad_scores[j, 0, h] = total


@row()
def node_gradients(block, first, last, x, left, right, grad_scores, grad_x, grad_vectors):  # type: ignore[no-untyped-def]
    """Nodes first..last: gradients of x, and this block's part of those of the vectors."""
    heads, channels = x.shape[1], x.shape[2]
    for i in range(first, last):
        for h in range(heads):
            sent, got = grad_scores[i, 0, h], grad_scores[i, 1, h]
            for c in range(channels):
                grad_x[i, h, c] = sent * left[h, c] + got * right[h, c]
            for c in range(channels):
                grad_vectors[block, 0, h, c] += sent * x[i, h, c]
            for c in range(channels):
                grad_vectors[block, 1, h, c] += got * x[i, h, c]
