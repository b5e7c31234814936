"""Compiled passes of :mod:`ltga.kernels.operators.edge_dot`."""

from __future__ import annotations

import numpy as np

from ltga.kernels.numba.scalar import reordered
from ltga.kernels.numba.vectors import dot, gather_sum


@reordered()
def dot_rows(first, last, ptr, col, perm, key, query, scale, out):  # type: ignore[no-untyped-def]
    """Rows first..last of the targets: out[edge, h] = scale <query, key>."""
    heads, channels = key.shape[1], key.shape[2]
    width = heads * channels
    for i in range(first, last):
        for k in range(ptr[i], ptr[i + 1]):
            for h in range(heads):
                at = h * channels
                out[perm[k], h] = scale * dot(key, np.int64(col[k]) * width + at, query, i * width + at, channels)


@reordered()
def weighted_rows(first, last, ptr, col, edge, weights, table, scale, out):  # type: ignore[no-untyped-def]
    """Rows first..last of out: the sum over a row's edges of scale weights[edge, h] table[col, h]."""
    heads, channels = table.shape[1], table.shape[2]
    width, longest = heads * channels, 0
    for i in range(first, last):
        longest = max(longest, ptr[i + 1] - ptr[i])
    factors, zeros = np.empty(longest, table.dtype), np.zeros(channels, table.dtype)
    for i in range(first, last):
        count = ptr[i + 1] - ptr[i]
        for h in range(heads):
            for m in range(count):
                factors[m] = scale * weights[edge[ptr[i] + m], h]
            rows = col[ptr[i] : ptr[i + 1]]
            at = h * channels
            gather_sum(out, i * width + at, zeros, 0, table, width, at, rows, factors, 0, count, channels)
