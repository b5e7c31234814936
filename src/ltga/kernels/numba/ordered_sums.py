"""The compiled pass of :mod:`ltga.kernels.operators.weighted_sum`."""

from __future__ import annotations

import numpy as np

from ltga.kernels.numba.scalar import compiled
from ltga.kernels.numba.sweeps import longest_row
from ltga.kernels.numba.vectors import gather_sum_rounded, prefetch


@compiled()
def sum_rows_in_order(  # type: ignore[no-untyped-def]
    first, last, ptr, col, edge, weights, table, table_at, after, after_at, share, out, out_at, channels
):
    """out[i] = sum of weights[edge] table[col], in the order of the row's edges, plus share after[i] at the end.

    Tables are two-dimensional, and ``channels`` columns of each are meant, from ``table_at``, ``after_at`` and
    ``out_at`` on. ``after`` may be empty, one row for all, or ``out`` itself.
    """
    factors, zeros = np.empty(longest_row(first, last, ptr), table.dtype), np.zeros(channels, table.dtype)
    total = np.empty(channels, table.dtype)
    stride = table.shape[1]
    for i in range(first, last):
        start, end = ptr[i], ptr[i + 1]
        following = min(i + 1, last - 1)
        for k in range(ptr[following], ptr[following + 1]):
            prefetch(table, np.int64(col[k]) * stride + table_at, channels)
        for k in range(start, end):
            factors[k - start] = weights[edge[k]]
        rows, here = col[start:end], i * out.shape[1] + out_at
        if after.shape[0] == 0:
            gather_sum_rounded(out, here, zeros, 0, table, stride, table_at, rows, factors, 0, end - start, channels)
            continue
        gather_sum_rounded(total, 0, zeros, 0, table, stride, table_at, rows, factors, 0, end - start, channels)
        row = i if after.shape[0] > 1 else 0
        for c in range(channels):
            out[i, out_at + c] = total[c] + share * after[row, after_at + c]
