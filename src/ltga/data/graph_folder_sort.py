"""Edges in any order to edges by target, then by source, with no more of them in memory than agreed: an external sort.

Edges are collected until memory is full, sorted, and written as a run; at the end the runs are merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ltga.errors import DataError

MOST_NODES = 2**32
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
# Bytes that are in use at once for every edge of a run: its key as collected and as sorted, and of what it carries
# also the order that sorts it; and for every edge of a merged part, with all that its user makes of it.
_RUN, _RUN_CARRIED = 20, 32
_PART, _PART_CARRIED = 120, 40


class EdgeSorter:
    """Sorts edges on disk.

    Args:
        folder: where runs are kept; whoever gives it removes it.
        width: numbers that every edge carries along, as float64.
        memory: bytes to sort in.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorter = EdgeSorter(Path(folder), width=0, memory=1 << 20)
    ...     sorter.add(np.array([3, 0, 1]), np.array([1, 2, 0]))
    ...     [(target.tolist(), source.tolist()) for target, source, _ in sorter.merged()]
    [([0, 1, 2], [1, 3, 0])]
    """

    def __init__(self, folder: Path, width: int, memory: int) -> None:
        self._folder, self._width = folder, width
        self.run_rows = max(memory // (_RUN + _RUN_CARRIED * width), 1024)
        self.part_rows = max(memory // (_PART + _PART_CARRIED * width), 1024)
        self._keys: list[np.ndarray] = []
        self._carried: list[np.ndarray] = []
        self._held = 0
        self._rows: list[int] = []

    @property
    def num_runs(self) -> int:
        return len(self._rows)

    def add(self, source: np.ndarray, target: np.ndarray, carried: np.ndarray | None = None) -> None:
        """Edges ``[m]`` and what they carry ``[m, width]``."""
        for first in range(0, len(source), self.run_rows):
            part = slice(first, first + self.run_rows)
            keys = target[part].astype(np.uint64) << _HALF | source[part].astype(np.uint64)
            if self._held + len(keys) > self.run_rows:
                self._write_run()
            self._keys.append(keys)
            if carried is not None:
                self._carried.append(np.array(carried[part], dtype=np.float64))
            self._held += len(keys)

    def merged(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        """Targets, sources and what they carry, sorted, a part at a time."""
        self._write_run()
        block = max(self.part_rows // max(self.num_runs, 1), 1)
        left = self._rows.copy()
        at = [0] * self.num_runs
        while open_runs := [run for run in range(self.num_runs) if left[run]]:
            heads = {run: self._read("keys", run, at[run], min(block, left[run])) for run in open_runs}
            bound = min(head[-1] for head in heads.values())  # what is not beyond it can be in no later part
            until = {run: int(np.searchsorted(head, bound, side="right")) for run, head in heads.items()}
            keys = np.concatenate([heads.pop(run)[: until[run]] for run in open_runs])
            carried = None
            if self._width:
                order = np.argsort(keys, kind="stable")
                parts = [self._read("carried", run, at[run], until[run]) for run in open_runs]
                keys, carried = keys[order], np.concatenate(parts)[order]
            else:
                keys.sort()
            for run in open_runs:
                at[run] += until[run]
                left[run] -= until[run]
            yield (keys >> _HALF).astype(np.int64), (keys & _LOW).astype(np.int64), carried

    def _write_run(self) -> None:
        if not self._held:
            return
        keys = np.concatenate(self._keys)
        self._keys = []
        if self._width:
            order = np.argsort(keys, kind="stable")
            np.concatenate(self._carried)[order].tofile(self._file("carried", self.num_runs))
            keys = keys[order]
        else:
            keys.sort()
        keys.tofile(self._file("keys", self.num_runs))
        self._rows.append(len(keys))
        self._carried, self._held = [], 0

    def _read(self, what: str, run: int, first: int, count: int) -> np.ndarray:
        """Rows of a run. Not mapped: what is mapped counts as memory in use until the system wants it back."""
        if what == "keys":
            return np.fromfile(self._file(what, run), np.uint64, count, offset=8 * first)
        size, start = count * self._width, 8 * first * self._width
        return np.fromfile(self._file(what, run), np.float64, size, offset=start).reshape(count, self._width)

    def _file(self, what: str, run: int) -> Path:
        return self._folder / f"{what}-{run}"


class Symmetry:
    """Whether edges come in both directions, from sums over all of them: no edge is kept.

    Two sums of 64-bit hashes, of every edge and of every edge turned round, agree by chance once in 2^64.

    >>> sides = Symmetry()
    >>> sides.add(np.array([0]), np.array([1]))
    >>> sides.holds, sides.add(np.array([1]), np.array([0])), sides.holds
    (False, None, True)
    """

    def __init__(self) -> None:
        self._forth = self._back = np.uint64(0)

    def add(self, source: np.ndarray, target: np.ndarray) -> None:
        with np.errstate(over="ignore"):
            self._forth += _hash_of(source, target).sum(dtype=np.uint64)
            self._back += _hash_of(target, source).sum(dtype=np.uint64)

    @property
    def holds(self) -> bool:
        return bool(self._forth == self._back)


def _hash_of(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    z = (first.astype(np.uint64) << _HALF | second.astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def without_repeats(
    parts: Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]], repeats: str, where: str
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    """Sorted edges with repeats kept ("keep"), dropped ("drop"), or named in an error ("refuse")."""
    last = (-1, -1)
    for target, source, carried in parts:
        same = np.empty(len(target), bool)
        same[0] = (int(target[0]), int(source[0])) == last
        same[1:] = (target[1:] == target[:-1]) & (source[1:] == source[:-1])
        last = (int(target[-1]), int(source[-1]))
        if repeats == "keep" or not same.any():
            yield target, source, carried
            continue
        if repeats == "refuse":
            at = int(same.argmax())
            raise DataError(
                f"{where}: the edge from node {source[at]} to node {target[at]} (numbered from 0) is there twice; "
                "keep one of them, or prepare the tables (--prepare repeated_edges=sum)"
            )
        if not same.all():
            yield target[~same], source[~same], None if carried is None else carried[~same]
