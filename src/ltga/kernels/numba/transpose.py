"""Turning a matrix over, in blocks of eight by eight that stay in registers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from ltga.kernels.numba.scalar import compiled
from ltga.kernels.numba.vectors import WORD, _Emitter, _flat

SIDE = 8
# Three rounds of exchanges between pairs of rows: single numbers, pairs, halves.
_ROUNDS = (
    (1, [0, 8, 1, 9, 4, 12, 5, 13], [2, 10, 3, 11, 6, 14, 7, 15]),
    (2, [0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15]),
    (4, [0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]),
)


@intrinsic
def _transpose_block(typingctx, out, out_at, out_stride, source, at, stride):  # type: ignore[no-untyped-def]
    """out[out_at + j * out_stride + i] = source[at + i * stride + j] for i, j < 8, flat positions."""
    if not _flat(out, source):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = _Emitter(context, builder, signature, arguments)

        def place(position: int, stride: int, row: int) -> Any:
            return builder.add(emit.integer(position), builder.mul(emit.integer(stride), WORD(row)))

        rows = [emit.load(emit.array(3), place(4, 5, row), SIDE) for row in range(SIDE)]
        for distance, low, high in _ROUNDS:
            mixed = list(rows)
            for row in range(SIDE):
                if not row & distance:
                    for lanes, to in ((low, row), (high, row + distance)):
                        mask = ir.Constant(ir.VectorType(ir.IntType(32), SIDE), lanes)
                        mixed[to] = builder.shuffle_vector(rows[row], rows[row + distance], mask)
            rows = mixed
        # The first two rounds leave rows 1 and 2, 5 and 6 in each other's place.
        for row, value in zip((0, 2, 1, 3, 4, 6, 5, 7), rows, strict=True):
            emit.store(value, emit.array(0), place(1, 2, row), SIDE)
        return context.get_dummy_value()

    return types.void(out, out_at, out_stride, source, at, stride), codegen


@compiled()
def transpose(source, first, last, out, begin, end):  # type: ignore[no-untyped-def]
    """out[begin + j, i] = source[first + i, j] for i < last - first and j < end - begin, both C-contiguous."""
    rows, columns = last - first, end - begin
    width, stride = source.shape[1], out.shape[1]
    whole_rows, whole_columns = rows - rows % SIDE, columns - columns % SIDE
    for i in range(0, whole_rows, SIDE):
        for j in range(0, whole_columns, SIDE):
            _transpose_block(out, (begin + j) * stride + i, stride, source, (first + i) * width + j, width)
    for i in range(rows):
        for j in range(whole_columns if i < whole_rows else 0, columns):
            out[begin + j, i] = source[first + i, j]
