"""Normalising one row (a node's incoming edges, all heads) and its derivative, compiled.

Rows are positions ``start..end`` of arrays ``[E, H]`` in CSR order. ``q`` is ``[1, H]`` or, in the
caller's edge order, ``[E, H]``; ``perm`` leads from CSR positions to the order of q. The inner
loops run over heads, which lie side by side in memory.
"""

from __future__ import annotations

import math

import numpy as np

from ltga.kernels.codes import ENTMAX, SOFTMAX
from ltga.kernels.numba.entmax_rows import entmax_row, entmax_row_backward
from ltga.kernels.numba.scalar import compiled, curvature, exp, exp_q, reordered


@compiled()
def row_maximum(start, end, logits, top):  # type: ignore[no-untyped-def]
    """Largest logit per head into top [H]; NaN if there is one, or an infinite one."""
    for h in range(len(top)):
        top[h] = -math.inf
    for k in range(start, end):
        for h in range(len(top)):
            value = np.float64(logits[k, h])
            top[h] = value if value > top[h] or value != value else top[h]
    for h in range(len(top)):  # a row of masked logits only must not become inf - inf; one that overflowed must be seen
        top[h] = 0.0 if top[h] == -math.inf else (math.nan if top[h] == math.inf else top[h])


@reordered()
def normalise_row(kind, start, end, perm, logits, q, weights, heads_scratch, scratch):  # type: ignore[no-untyped-def]
    """Write the weights of one row; a row of masked logits only (all -inf) becomes zero."""
    top, total = heads_scratch[0], heads_scratch[1]
    row_maximum(start, end, logits, top)
    if kind == ENTMAX:
        for h in range(len(top)):
            entmax_row(start, end, h, perm, logits, q, weights, scratch, top[h])
        return
    for h in range(len(top)):
        total[h] = 0.0
    for k in range(start, end):
        if kind == SOFTMAX:
            for h in range(len(top)):
                y = exp(np.float64(logits[k, h]) - top[h])
                weights[k, h] = y
                total[h] += y
        else:
            e = perm[k] if q.shape[0] > 1 else 0
            for h in range(len(top)):
                y = exp_q(np.float64(logits[k, h]) - top[h], np.float64(q[e, h]) - 1.0)
                weights[k, h] = y
                total[h] += y
    for h in range(len(top)):
        inverse = 1.0 / total[h] if total[h] > 0.0 or total[h] != total[h] else 0.0
        total[h] = inverse if top[h] == top[h] else math.nan
    for k in range(start, end):
        for h in range(len(top)):
            weights[k, h] = weights[k, h] * total[h]


@reordered()
def normalise_row_backward(  # type: ignore[no-untyped-def]
    kind, start, end, perm, logits, q, weights, grad, grad_q, block, heads_scratch, scratch
):
    """Gradient of one row: turns ``grad`` from that of the weights into that of the logits, and gives grad_q.

    grad_q is ``[B, H]`` (partial sums per block, added to), ``[E, H]`` in the order of q (written), or empty.
    """
    top, mean, total, ties = heads_scratch[0], heads_scratch[1], heads_scratch[2], heads_scratch[3]
    if kind == ENTMAX:
        for h in range(len(top)):
            entmax_row_backward(start, end, h, perm, q, weights, grad, grad_q, block, scratch)
        return
    for h in range(len(top)):
        mean[h] = total[h] = ties[h] = 0.0
    for k in range(start, end):
        for h in range(len(top)):
            mean[h] += np.float64(weights[k, h]) * grad[k, h]
    if kind == SOFTMAX:
        for k in range(start, end):
            for h in range(len(top)):
                grad[k, h] = weights[k, h] * (grad[k, h] - mean[h])
        return
    row_maximum(start, end, logits, top)
    gap, common, inverse = heads_scratch[4], heads_scratch[5], heads_scratch[6]
    # Short loops that write one array each: with more, LLVM gives up proving that they do not overlap
    # and nothing is vectorised. Where a weight is zero so is the gradient, and the gap is not used.
    for k in range(start, end):
        e = perm[k] if q.shape[0] > 1 else 0
        for h in range(len(top)):
            gap[h] = np.float64(logits[k, h]) - top[h] if weights[k, h] != 0.0 else 0.0
        for h in range(len(top)):
            common[h] = np.float64(weights[k, h]) * (grad[k, h] - mean[h])
        for h in range(len(top)):
            inverse[h] = 1.0 / (1.0 + (np.float64(q[e, h]) - 1.0) * gap[h])
        if grad_q.shape[0] > 0:
            if q.shape[0] > 1:
                for h in range(len(top)):
                    grad_q[e, h] = common[h] * curvature(gap[h], np.float64(q[e, h]) - 1.0, inverse[h])
            else:
                for h in range(len(top)):
                    grad_q[block, h] += common[h] * curvature(gap[h], np.float64(q[e, h]) - 1.0, inverse[h])
        for h in range(len(top)):
            common[h] = common[h] * inverse[h]
        for h in range(len(top)):
            grad[k, h] = common[h]
        for h in range(len(top)):
            total[h] += common[h]
        for h in range(len(top)):
            ties[h] += 1.0 if np.float64(logits[k, h]) == top[h] else 0.0
    # The row maximum moves every element: its share goes to the elements that attain it.
    for h in range(len(top)):
        total[h] = total[h] / max(ties[h], 1.0)
    for k in range(start, end):
        for h in range(len(top)):
            grad[k, h] -= total[h] if np.float64(logits[k, h]) == top[h] else 0.0
