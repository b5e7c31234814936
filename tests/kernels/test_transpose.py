"""numpy is the oracle; what lies around the block that is written must stay as it was."""

from __future__ import annotations

import numpy as np
import pytest

from ltga.kernels.numba.transpose import transpose


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 32, 61])
@pytest.mark.parametrize("columns", [0, 1, 8, 15, 16, 100])
def test_part_of_a_matrix_is_turned_over(rows: int, columns: int, dtype: type) -> None:
    source = np.random.default_rng(0).random((rows + 5, columns)).astype(dtype)
    out = np.full((columns + 4, rows), -1.0, dtype)
    transpose(source, 2, 2 + rows, out, 3, 3 + columns)
    assert np.array_equal(out[3 : 3 + columns], source[2 : 2 + rows].T)
    assert (out[:3] == -1).all() and (out[3 + columns :] == -1).all()
