"""Compiled passes of the edge gate: relu(a_i + b_j) W^T + b for every edge, bounded or not, and its gradients.

Shapes: per_target ``[T, D]``, per_source ``[S, D]``, weight ``[H, D]``, out and its gradient ``[E, H]`` in
the order that ``order`` leads to from CSR positions.
"""

from __future__ import annotations

import numpy as np

from ltga.kernels.numba.scalar import leaf, reordered, tanh
from ltga.kernels.numba.vectors import gather_sum, scatter_add


@leaf()
def hidden_layer(i, j, per_target, per_source, hidden):  # type: ignore[no-untyped-def]
    for d in range(hidden.shape[0]):
        t = per_target[i, d] + per_source[j, d]
        hidden[d] = t if t > 0 or t != t else hidden.dtype.type(0)


@reordered()
def gate_forward(first, last, ptr, col, order, per_target, per_source, turned, bias, bound, out):  # type: ignore[no-untyped-def]
    """``turned`` is the weight [D, H]; with a bound above 0 the result is 1 + bound * tanh of the perceptron."""
    depth, heads = turned.shape
    hidden, every = np.empty(depth, out.dtype), np.arange(depth)
    for i in range(first, last):
        for k in range(ptr[i], ptr[i + 1]):
            hidden_layer(i, col[k], per_target, per_source, hidden)
            e = np.int64(order[k])
            gather_sum(out, e * heads, bias, 0, turned, heads, 0, every, hidden, 0, depth, heads)
            if bound > 0:
                for h in range(heads):
                    out[e, h] = 1.0 + bound * tanh(np.float64(out[e, h]))


@reordered()
def gate_targets(  # type: ignore[no-untyped-def]
    block, first, last, ptr, col, order, per_target, per_source, weight, grad, out, bound,
    grad_hidden, grad_target, grad_weight, grad_bias,
):  # fmt: skip
    """Sweep over destinations: gradient of the hidden layer [E, D] (CSR order), of per_target, weight and bias."""
    heads, depth = weight.shape
    hidden, row = np.empty(depth, grad.dtype), np.empty(heads, grad.dtype)
    every, nothing = np.arange(heads), np.zeros(depth, grad.dtype)
    own = every + block * heads
    for i in range(first, last):
        for d in range(depth):
            grad_target[i, d] = 0.0
        for k in range(ptr[i], ptr[i + 1]):
            hidden_layer(i, col[k], per_target, per_source, hidden)
            e = order[k]
            if bound > 0:
                for h in range(heads):
                    t = (np.float64(out[e, h]) - 1.0) / bound
                    row[h] = grad[e, h] * (bound * (1.0 - t * t))
            else:
                for h in range(heads):
                    row[h] = grad[e, h]
            for h in range(heads):
                grad_bias[block, h] += row[h]
            scatter_add(grad_weight, depth, own, row, 0, heads, hidden, 0, depth)
            gather_sum(grad_hidden, k * depth, nothing, 0, weight, depth, 0, every, row, 0, heads, depth)
            for d in range(depth):
                grad_hidden[k, d] = grad_hidden[k, d] if hidden[d] > 0 else 0.0
            for d in range(depth):
                grad_target[i, d] += grad_hidden[k, d]


@reordered()
def gate_sources(first, last, tptr, tpos, grad_hidden, grad_source):  # type: ignore[no-untyped-def]
    """Sweep over sources: gradient of per_source."""
    for j in range(first, last):
        for d in range(grad_source.shape[1]):
            grad_source[j, d] = 0.0
        for slot in range(tptr[j], tptr[j + 1]):
            for d in range(grad_source.shape[1]):
                grad_source[j, d] += grad_hidden[tpos[slot], d]
