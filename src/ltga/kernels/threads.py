"""Running blocks of rows on several threads, the same way whatever their number.

Compiled kernels release the GIL, so plain Python threads suffice. Compared with numba's own thread
pools this is safe from several Python threads at once and after a fork, and costs nothing until used.
"""

from __future__ import annotations

import bisect
import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

WORK_PER_BLOCK = 1024  # edges
ROW_WORK = 2  # a row costs about as much as two edges
MAX_BLOCKS = 64

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0


def _forget_pool() -> None:
    global _pool, _pool_size, _lock
    _pool, _pool_size, _lock = None, 0, threading.Lock()


os.register_at_fork(after_in_child=_forget_pool)


def _pool_of(size: int) -> ThreadPoolExecutor:
    global _pool, _pool_size
    with _lock:
        if _pool is None or _pool_size < size:
            _pool, _pool_size = ThreadPoolExecutor(size, thread_name_prefix="ltga"), size
        return _pool


class _Work:
    """Work before each row, as a sequence that computes only what is looked at."""

    def __init__(self, ptr: np.ndarray) -> None:
        self._ptr = ptr

    def __getitem__(self, row: int) -> int:
        return int(self._ptr[row]) + ROW_WORK * row

    def __len__(self) -> int:
        return len(self._ptr)


def row_blocks(ptr: np.ndarray) -> list[tuple[int, int]]:
    """Cut rows into blocks of about equal work, depending on the graph alone and not on the threads."""
    rows = len(ptr) - 1
    total = int(ptr[-1]) + ROW_WORK * rows
    count = min(max(total // WORK_PER_BLOCK, 1), MAX_BLOCKS)
    bounds = [0]
    for block in range(1, count):
        cut = bisect.bisect_left(_Work(ptr), block * total // count, lo=bounds[-1], hi=rows)
        if cut > bounds[-1]:
            bounds.append(cut)
    bounds.append(rows)
    return list(itertools.pairwise(bounds))


def run_blocks(blocks: list[tuple[int, int]], task: Callable[[int, int, int], None]) -> None:
    """Call ``task(block, first_row, end_row)`` for every block; a thread that is free takes the next."""
    threads = min(torch.get_num_threads(), len(blocks))
    if threads <= 1:
        for block, (first, end) in enumerate(blocks):
            task(block, first, end)
        return
    counter = itertools.count()

    def work() -> None:
        while (block := next(counter)) < len(blocks):
            task(block, *blocks[block])

    helpers = [_pool_of(threads - 1).submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        for helper in helpers:
            helper.result()
