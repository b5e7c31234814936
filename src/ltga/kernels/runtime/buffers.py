"""Large arrays that are handed out again once nobody holds them.

Fresh large arrays cost more in page faults than the arithmetic that fills them (see docs/kernels.md),
so arrays above a threshold come from a small pool. An array is free again when the pool holds the
only reference: torch keeps one for as long as any tensor uses the memory.
"""

from __future__ import annotations

import math
import sys

import numpy as np
import torch
from torch import Tensor

from ltga.kernels.runtime.locks import ForkSafeLock

SMALLEST = 1 << 20  # bytes; below this malloc reuses memory by itself

_lock = ForkSafeLock()
_pool: list[np.ndarray] = []
_peak = 0  # bytes: the most in use at once, slowly forgotten; no more than that may lie idle
_FADING = 0.999
_TORCH_TO_NUMPY: dict[torch.dtype, np.dtype] = {
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
}


def _references(pool: list[np.ndarray], position: int) -> int:
    """References to a pooled array as :func:`sys.getrefcount` counts them here, which differs between Pythons."""
    array = pool[position]
    return sys.getrefcount(array)


def _calibrated() -> int:
    """The count for an array that nobody uses; -1, and there is no pool, where a tensor's use does not show."""
    trial = [np.empty(64, np.uint8)]
    idle = _references(trial, 0)
    tensor = torch.from_numpy(trial[0][:8].view(np.float32)).view(2, 1)
    used = _references(trial, 0)
    storage = tensor.untyped_storage()
    del tensor
    still_used = _references(trial, 0)
    del storage
    counted = getattr(sys, "_is_gil_enabled", lambda: True)()  # without the GIL counts are estimates
    return idle if counted and used > idle and still_used > idle and _references(trial, 0) == idle else -1


_IDLE = _calibrated()


def empty(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """An uninitialised CPU tensor, from the pool if one of about the right size is free."""
    numpy_dtype = _TORCH_TO_NUMPY[dtype]
    size = math.prod(shape) * numpy_dtype.itemsize
    if size < SMALLEST or _IDLE < 0:
        return torch.empty(shape, dtype=dtype, device="cpu")  # whatever the default device
    with _lock:
        raw = _take(size)
        if raw is None:
            raw = np.empty(size, dtype=np.uint8)
            _pool.append(raw)
        # The tensor must be made under the lock: only its reference marks the array as taken.
        # And from an array of its shape: the view of a tensor could not be changed in place.
        return torch.from_numpy(raw[:size].view(numpy_dtype).reshape(shape))


def _take(size: int) -> np.ndarray | None:
    """A free array of about this size, if there is one; otherwise make room by the rule of :func:`_shrink`."""
    global _peak
    best, best_size, used, idle = None, 0, size, []
    for position in range(len(_pool)):
        nbytes = _pool[position].nbytes
        if _references(_pool, position) != _IDLE:
            used += nbytes
            continue
        idle.append(position)
        if size <= nbytes <= size + size // 4 and (best is None or nbytes < best_size):
            best, best_size = position, nbytes
    _peak = max(used, int(_FADING * _peak))
    if best is None:
        _shrink(idle, _peak)
        return None
    array = _pool.pop(best)
    _pool.append(array)  # the list is kept in order of last use
    return array


def _shrink(idle: list[int], limit: int) -> None:
    """Give back the idle arrays not used for longest, until at most ``limit`` bytes are idle."""
    surplus = sum(_pool[position].nbytes for position in idle) - limit
    dropped = []
    for position in idle:
        if surplus <= 0:
            break
        surplus -= _pool[position].nbytes
        dropped.append(position)
    for position in reversed(dropped):
        del _pool[position]


def release() -> None:
    """Give all idle pooled memory back to the system."""
    global _peak
    with _lock:
        _peak = 0
        idle = [position for position in range(len(_pool)) if _references(_pool, position) == _IDLE]
        _shrink(idle, 0)


def pooled_bytes() -> int:
    """How much memory the pool holds, in use or idle."""
    with _lock:
        return sum(array.nbytes for array in _pool)
