"""Large arrays that are handed out again once nobody holds them.

Fresh large arrays cost more in page faults than the arithmetic that fills them (see docs/kernels.md),
so arrays above a threshold come from a small pool. An array is free again when the pool holds the
only reference: torch keeps one for as long as any tensor uses the memory.
"""

from __future__ import annotations

import math
import os
import sys
import threading

import numpy as np
import torch
from torch import Tensor

SMALLEST = 1 << 20  # bytes; below this malloc reuses memory by itself

_lock = threading.Lock()


def _new_lock() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_new_lock)  # another thread may have held it
_pool: list[np.ndarray] = []
_UNUSED = 3  # references to a pooled array nobody uses: the list, the loop variable, getrefcount's argument
_TORCH_TO_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


def empty(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """An uninitialised CPU tensor, from the pool if one of about the right size is free."""
    numpy_dtype = np.dtype(_TORCH_TO_NUMPY[dtype])
    size = math.prod(shape) * numpy_dtype.itemsize
    if size < SMALLEST:
        return torch.empty(shape, dtype=dtype)
    with _lock:
        raw = _take(size)
        if raw is None:
            raw = np.empty(size, dtype=np.uint8)
            _pool.append(raw)
        # The tensor must be made under the lock: only its reference marks the array as taken.
        return torch.from_numpy(raw[:size].view(numpy_dtype)).view(shape)


def _take(size: int) -> np.ndarray | None:
    best, stale = None, []
    for position in range(len(_pool)):
        array = _pool[position]
        if sys.getrefcount(array) != _UNUSED:
            continue
        if size <= array.nbytes <= size + size // 4 and (best is None or array.nbytes < best.nbytes):
            best = array
        else:
            stale.append(position)
        del array
    if best is None:
        # Nothing fits, so the shapes have changed: give idle arrays back rather than hoard them.
        for position in reversed(stale):
            del _pool[position]
    return best


def release() -> None:
    """Give all idle pooled memory back to the system."""
    with _lock:
        _take(0)


def pooled_bytes() -> int:
    """How much memory the pool holds, in use or idle."""
    with _lock:
        return sum(array.nbytes for array in _pool)
