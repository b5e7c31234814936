"""Sparse matrices from untrusted parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse


def checked_csr(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]) -> Any:
    """The CSR matrix of these parts; :class:`ValueError` unless every row lies within them.

    scipy's own check looks at no row if the last one ends at 0, and then reads memory that is not the matrix's.

    >>> checked_csr(np.ones(1), np.array([0]), np.array([0, 9, 0]), (2, 1))
    Traceback (most recent call last):
    ...
    ValueError: rows that do not follow one another
    """
    if data.ndim != 1 or indices.ndim != 1 or indptr.ndim != 1 or data.size != indices.size:
        raise ValueError(f"parts of shapes {data.shape}, {indices.shape} and {indptr.shape}")
    if indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        raise ValueError(f"column numbers of {indices.dtype} and row starts of {indptr.dtype}")
    if min(shape) < 1 or indptr.size != shape[0] + 1:
        raise ValueError(f"{indptr.size} row starts for a matrix of shape {list(shape)}")
    if int(indptr[0]) != 0 or int(indptr[-1]) != data.size or bool((indptr[1:] < indptr[:-1]).any()):
        raise ValueError("rows that do not follow one another")
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < shape[1]:
        raise ValueError(f"a column number outside 0 to {shape[1] - 1}")
    matrix: Any = scipy.sparse.csr_matrix((data, indices, indptr), shape=shape)
    matrix.check_format(full_check=True)
    return matrix
