"""Running blocks of rows on several threads, the same way whatever their number.

Compiled kernels release the GIL, so plain threads suffice. Where torch's OpenMP runtime can be reached its
own threads do the work: they keep spinning for a while after every torch operation, so a second set of
threads would have to fight them for the cores. Otherwise, and in a forked child (OpenMP does not survive
a fork), a small pool of Python threads takes over. Both are safe from several Python threads at once.
"""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import torch

from ltga.kernels.runtime.locks import ForkSafeLock

WORK_PER_BLOCK = 2048  # edges
ROW_WORK = 2  # a row costs about as much as two edges
MAX_BLOCKS = 64
EVEN = 8

_lock = ForkSafeLock()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_forked = False
_TeamFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _after_fork() -> None:
    global _pool, _pool_size, _forked
    _pool, _pool_size, _forked = None, 0, True


os.register_at_fork(after_in_child=_after_fork)


def _pool_of(size: int) -> ThreadPoolExecutor:
    global _pool, _pool_size
    with _lock:
        if _pool is None or _pool_size < size:
            _pool, _pool_size = ThreadPoolExecutor(size, thread_name_prefix="ltga"), size
        return _pool


@cache
def _open_team() -> Callable[..., None] | None:
    """libgomp's entry point for a parallel region, if that is what torch runs on."""
    root = Path(torch.__file__).parent
    for path in sorted([*(root / "lib").glob("libgomp*"), *root.with_name("torch.libs").glob("libgomp*")]):
        try:
            entry = ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_LAZY).GOMP_parallel
        except (OSError, AttributeError):
            continue  # not the one torch has loaded
        entry.argtypes = [_TeamFunction, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        entry.restype = None
        return entry  # type: ignore[no-any-return]
    return None


def row_blocks(ptr: np.ndarray) -> list[tuple[int, int]]:
    """Cut rows into blocks of about equal work, depending on the graph alone and not on the threads."""
    from ltga.kernels.numba.sweeps import cut_rows

    count = most_blocks(int(ptr[-1]), len(ptr) - 1)
    if count <= 1:
        return [(0, len(ptr) - 1)]
    bounds = cut_rows(ptr, count, ROW_WORK)
    return list(itertools.pairwise(bounds.tolist()))


def most_blocks(edges: int, rows: int) -> int:
    """Into how many blocks rows are cut, if no row is as long as a block."""
    count = max(min((edges + ROW_WORK * rows) // WORK_PER_BLOCK, MAX_BLOCKS), 1)
    return count - (count % EVEN if count > EVEN else 0)  # so that 2, 4 or 8 threads end together


def run_blocks(blocks: Sequence[tuple[int, ...]], task: Callable[..., None]) -> None:
    """Call ``task(number, *block)`` for every block; a thread that is free takes the next."""
    threads = len(blocks) if len(blocks) <= 1 else min(torch.get_num_threads(), len(blocks))
    if threads <= 1:
        for number, block in enumerate(blocks):
            task(number, *block)
        return
    counter = itertools.count()

    def work() -> None:
        while (number := next(counter)) < len(blocks):
            task(number, *blocks[number])

    team = None if _forked else _open_team()
    if team is None:
        helpers = [_pool_of(threads - 1).submit(work) for _ in range(threads - 1)]
        try:
            work()
        finally:
            for helper in helpers:
                helper.result()
        return
    failures: list[BaseException] = []

    def share(_: object) -> None:
        try:
            work()
        except BaseException as error:  # C code in between: an exception would be lost
            failures.append(error)

    team(_TeamFunction(share), None, threads, 0)
    if failures:
        raise failures[0]
