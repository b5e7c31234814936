"""Compiled products of a sparse feature matrix with a dense one."""

from __future__ import annotations

from ltga.kernels.scalar import compiled, reordered


@reordered()
def multiply_rows(first, last, ptr, col, values, weight, start, out):  # type: ignore[no-untyped-def]
    """out[n] = start + sum of values times rows of weight [F, O]."""
    for n in range(first, last):
        for o in range(out.shape[1]):
            out[n, o] = start[o]
        for k in range(ptr[n], ptr[n + 1]):
            value, row = values[k], weight[col[k]]
            if value != 0.0:
                for o in range(out.shape[1]):
                    out[n, o] += value * row[o]


@reordered()
def gather_rows(first, last, tptr, trow, tpos, values, grad, out):  # type: ignore[no-untyped-def]
    """out[f] = sum over the rows n that use feature f of value times grad[n]."""
    for f in range(first, last):
        for o in range(out.shape[1]):
            out[f, o] = 0.0
        for k in range(tptr[f], tptr[f + 1]):
            value, row = values[tpos[k]], grad[trow[k]]
            if value != 0.0:
                for o in range(out.shape[1]):
                    out[f, o] += value * row[o]


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
