"""Compiled products of a sparse feature matrix with a dense one."""

from __future__ import annotations

import numpy as np

from ltga.kernels.numba.scalar import compiled, reordered
from ltga.kernels.numba.transpose import transpose
from ltga.kernels.numba.vectors import gather_sum, scatter_add


@reordered()
def multiply_rows(first, last, begin, end, tile, ptr, col, values, weight, start, out):  # type: ignore[no-untyped-def]
    """Columns begin..end of out[n] = start + sum of values times columns of weight [O, F], ``tile`` columns at a time.

    That part of the weights is turned over into a table small enough to stay in the core's own cache.
    """
    width = out.shape[1]
    for column in range(begin, end, tile):
        channels = min(tile, end - column)
        table = np.empty((weight.shape[1], channels), weight.dtype)
        transpose(weight, column, column + channels, table, 0, weight.shape[1])
        for n in range(first, last):
            at = n * width + column
            gather_sum(out, at, start, column, table, channels, 0, col, values, ptr[n], ptr[n + 1], channels)


@reordered()
def weight_gradient(begin, end, tile, ptr, col, values, grad, out, bias):  # type: ignore[no-untyped-def]
    """Rows begin..end of out [O, F], the sum over n of grad[n] times the sparse row n, and of bias [O]."""
    for column in range(begin, end, tile):
        channels = min(tile, end - column)
        table, total = np.zeros((out.shape[1], channels), grad.dtype), np.zeros(channels, grad.dtype)
        for n in range(len(ptr) - 1):
            at = n * grad.shape[1] + column
            scatter_add(table, channels, col, values, ptr[n], ptr[n + 1], grad, at, channels)
            for c in range(channels):
                total[c] += grad[n, column + c]
        transpose(table, 0, out.shape[1], out, column, column + channels)
        bias[column : column + channels] = total


@reordered()
def sum_rows(first, last, tptr, trow, grad, out):  # type: ignore[no-untyped-def]
    """out[u] = sum of grad over the rows listed for u."""
    for u in range(first, last):
        for o in range(out.shape[1]):
            out[u, o] = 0.0
        for k in range(tptr[u], tptr[u + 1]):
            row = grad[trow[k]]
            for o in range(out.shape[1]):
                out[u, o] += row[o]


@compiled()
def check_sparse(ptr, col, columns, stored):  # type: ignore[no-untyped-def]
    """True if the arrays do not describe a CSR matrix with that many columns and values."""
    if len(ptr) == 0 or ptr[0] != 0 or ptr[-1] != stored or len(col) != stored:
        return True
    for n in range(len(ptr) - 1):
        if ptr[n + 1] < ptr[n]:
            return True
    outside = False
    for k in range(stored):
        outside |= col[k] < 0 or col[k] >= columns
    return outside
