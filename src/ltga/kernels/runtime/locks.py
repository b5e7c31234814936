"""A lock that a forked child finds free, whoever held it in the parent."""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType

_all: weakref.WeakSet[ForkSafeLock] = weakref.WeakSet()


class ForkSafeLock:
    """``threading.Lock`` as a context manager; the thread that held it at a fork does not exist in the child.

    >>> lock = ForkSafeLock()
    >>> with lock:
    ...     pass
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._lock.release()


def _free_all() -> None:
    for lock in _all:
        lock._lock = threading.Lock()


os.register_at_fork(after_in_child=_free_all)
