"""An npy file that grows row by row; how many there are is written into its head at the end."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

_HEAD = 128  # bytes, with room for any shape


class NpyWriter:
    """Rows of one kind, appended to a new file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = NpyWriter(Path(folder, "a.npy"), np.dtype("int32"), 2)
    ...     writer.write(np.array([[1, 2]], dtype=np.int32))
    ...     writer.close(), np.load(writer.path).tolist()
    ([1, 2], [[1, 2]])
    """

    def __init__(self, path: Path, dtype: np.dtype, columns: int | None = None) -> None:
        self.path, self.dtype, self._columns, self._rows = path, dtype, columns, 0
        self._stream = path.open("xb")
        self._stream.write(bytes(_HEAD))

    def write(self, rows: np.ndarray) -> None:
        """Append rows ``[n]`` or ``[n, columns]``."""
        if rows.dtype != self.dtype or rows.shape[1:] != self._shape()[1:]:
            raise ValueError(f"{self.path.name}: {rows.dtype} {rows.shape} instead of {self.dtype} {self._shape()}")
        self._stream.write(np.ascontiguousarray(rows).data.cast("B") if rows.size else b"")
        self._rows += len(rows)

    def close(self) -> list[int]:
        """Finish the file; its shape."""
        shape = self._shape()
        text = repr({"descr": self.dtype.str, "fortran_order": False, "shape": shape}).encode()
        self._stream.seek(0)
        self._stream.write(b"\x93NUMPY\x01\x00" + (_HEAD - 10).to_bytes(2, "little") + text.ljust(_HEAD - 11) + b"\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        return list(shape)

    def _shape(self) -> tuple[int, ...]:
        return (self._rows,) if self._columns is None else (self._rows, self._columns)
