"""Let this process keep freed memory: page faults on fresh large arrays cost more than filling them."""

from __future__ import annotations

import ctypes
import os
import sys

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4


def keep_freed_memory() -> None:
    """Tell glibc not to return freed memory to the system; does nothing elsewhere.

    Only the command line calls this: a library must not change its host's allocator.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def children_keep_freed_memory() -> None:
    """The same for processes that this one will start; glibc reads these names when a process begins."""
    os.environ.setdefault("MALLOC_MMAP_MAX_", "0")
    os.environ.setdefault("MALLOC_TRIM_THRESHOLD_", str(2**31 - 1))
