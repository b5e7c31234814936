"""Rows of a matrix that stays on disk: a few are read or written at a time, and what was looked at is let go again."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ltga.errors import DataError

RESIDENT = 256 * 1024**2  # bytes of mapped files that may be in memory at a time
_CHUNK = 64  # rows between two looks at that: each may bring in as much as 2 MiB around it


class Residency:
    """Hands pages of mapped files back when more than ``RESIDENT`` bytes of them have come into memory.

    The system would do so only when memory runs out; until then they count as the process's own, in a container too.
    What is mapped to a file keeps its content, written or not.
    """

    def __init__(self, arrays: Iterable[np.ndarray | None]) -> None:
        mapped = [array for array in arrays if isinstance(array, np.memmap)]
        self._maps = [array._mmap for array in mapped]  # type: ignore[attr-defined]
        self._bytes = sum(array.nbytes for array in mapped)
        self._before = _mapped_bytes()

    def tidy(self) -> None:
        """Let go, if there is enough to let go."""
        if self._bytes > RESIDENT and _mapped_bytes() - self._before > RESIDENT:
            for mapped in self._maps:
                mapped.madvise(mmap.MADV_DONTNEED)
            self._before = _mapped_bytes()


def _mapped_bytes() -> int:
    """Bytes of files in this process's memory; 0 where the system does not tell (and the system alone decides)."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[2])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * mmap.PAGESIZE if hasattr(mmap, "MADV_DONTNEED") else 0


class MappedRows:
    """A matrix on disk that is indexed by row numbers as a float32 tensor would be.

    Args:
        array: ``[n, width]``, mapped; float16 or float32.
        residency: of all that is read together with it.
        what: opens the message about a number that is not finite; not looked for if left out.

    >>> rows = scratch_rows(3, 2)
    >>> rows[torch.tensor([2, 0])] = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> rows[torch.tensor([0, 2])].tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """

    def __init__(self, array: np.ndarray, residency: Residency | None = None, what: str | None = None) -> None:
        self._array = array
        self._residency = residency or Residency([array])
        self._what = what

    def __len__(self) -> int:
        return len(self._array)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    def __getitem__(self, rows: Tensor) -> Tensor:
        numbers = rows.numpy()
        found = np.empty((len(numbers), *self.shape[1:]), self._array.dtype)
        for first in range(0, len(numbers), _CHUNK):
            part = slice(first, first + _CHUNK)
            found[part] = np.take(self._array, numbers[part], axis=0)
            self._residency.tidy()
        found = found.astype(np.float32, copy=False)
        if self._what is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                doubtful = not np.isfinite(found.sum())  # finite numbers may add up to infinity too
            if doubtful:
                self._complain(found, numbers)
        return torch.from_numpy(found)

    def __setitem__(self, rows: Tensor, values: Tensor) -> None:
        numbers, given = rows.numpy(), values.detach().numpy()
        for first in range(0, len(numbers), _CHUNK):
            part = slice(first, first + _CHUNK)
            self._array[numbers[part]] = given[part]
            self._residency.tidy()

    def tensor(self) -> Tensor:
        """All of it as a tensor whose memory is the file; only for what was mapped to be written."""
        return torch.from_numpy(np.asarray(self._array))

    def _complain(self, found: np.ndarray, numbers: np.ndarray) -> None:
        bad = np.argwhere(~np.isfinite(found))
        if len(bad):
            row, column = bad[0].tolist()
            raise DataError(f"{self._what} {numbers[row]}: number {column} is {found[row, column]}; it is damaged")


def scratch_rows(count: int, width: int, folder: str | Path | None = None) -> MappedRows:
    """Room on disk for ``count`` rows, in ``folder`` or where temporary files go (``TMPDIR``).

    The file has no name, so that it is gone when nobody has it any more, however the process ends.
    """
    size = 4 * count * width
    try:
        with tempfile.TemporaryFile(prefix="ltga-", dir=folder) as stream:
            _reserve(stream, size)
            array: Any = np.memmap(stream, np.float32, "r+", shape=(count, width))
    except OSError as error:
        where = folder or tempfile.gettempdir()
        raise DataError(
            f"{where}: no room for {size / 2**30:,.1f} GiB of hidden layers ({error.strerror or error}); "
            "set TMPDIR to a folder on a disk that has it"
        ) from None
    return MappedRows(array)


def _reserve(stream: Any, size: int) -> None:
    """Take the room now: writing to a mapped file on a full disk ends the process without a word."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(stream.fileno(), 0, size)
    else:
        stream.truncate(size)
