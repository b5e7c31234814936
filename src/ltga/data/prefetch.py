"""Work done ahead of time by threads, handed out in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


def prefetched(work: Callable[[Job], Result], jobs: Iterable[Job], threads: int) -> Iterator[Result]:
    """``map(work, jobs)``, but while a result is used ``threads`` threads are at the next ones.

    No more than ``threads`` results wait. An error of ``work`` is raised where its result would have
    come. Who stops in the middle waits for no more than the work that has begun.

    >>> list(prefetched(abs, [-3, 2, -1], threads=2))
    [3, 2, 1]
    """
    if threads == 0:
        yield from map(work, jobs)
        return
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="ltga-prefetch")
    try:
        for job in jobs:
            waiting.append(pool.submit(work, job))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
