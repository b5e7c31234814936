"""Compiled products of a sparse feature matrix with a dense one."""

from __future__ import annotations

import numpy as np

from ltga.kernels.scalar import compiled, reordered
from ltga.kernels.vectors import gather_sum, scatter_add


@reordered()
def multiply_rows(first, last, tile, channels, ptr, col, values, weight, start, out):  # type: ignore[no-untyped-def]
    """Columns tile..tile+channels of out[n] = start + sum of values times columns of weight [O, F].

    That part of the weights is turned over into a table small enough to stay in the core's own cache.
    """
    width = out.shape[1]
    table = np.empty((weight.shape[1], channels), weight.dtype)
    transpose_rows(0, weight.shape[1], weight[tile : tile + channels], table)
    for n in range(first, last):
        at = n * width + tile
        gather_sum(out, at, start, tile, table, channels, 0, col, values, ptr[n], ptr[n + 1], channels)


@reordered()
def weight_gradient(tile, channels, ptr, col, values, grad, out, bias):  # type: ignore[no-untyped-def]
    """Rows tile..tile+channels of out [O, F], the sum over n of grad[n] times the sparse row n, and of bias [O]."""
    table, total = np.zeros((out.shape[1], channels), grad.dtype), np.zeros(channels, grad.dtype)
    for n in range(len(ptr) - 1):
        at = n * grad.shape[1] + tile
        scatter_add(table, channels, col, values, ptr[n], ptr[n + 1], grad, at, channels)
        for c in range(channels):
            total[c] += grad[n, tile + c]
    transpose_rows(0, channels, table, out[tile : tile + channels])
    bias[tile : tile + channels] = total


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
def transpose_rows(first, last, source, out):  # type: ignore[no-untyped-def]
    """Rows first..last of out = source^T, tile by tile so that both sides stay in cache."""
    tile = 32
    for top in range(first, last, tile):
        bottom = min(top + tile, last)
        for left in range(0, source.shape[0], tile):
            right = min(left + tile, source.shape[0])
            for i in range(top, bottom):
                for j in range(left, right):
                    out[i, j] = source[j, i]


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
