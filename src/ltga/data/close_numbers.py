"""Numbers that float32, in which networks compute, cannot tell apart."""

from __future__ import annotations

import numpy as np

_LOST = 0.02  # of the standard deviation
_NOISE = 1e-14  # of the numbers; what differs by less is meant to be equal


def rounded_away(values: np.ndarray) -> tuple[float, float] | None:
    """The number `[N]` (NaN: not known) that float32 changes most, and to what, if that is much beside how they differ.

    >>> rounded_away(np.array([123456789.0, 123456790.0]))
    (123456789.0, 123456792.0)
    >>> rounded_away(np.array([0.1, 123456789.0, np.nan]))
    """
    known = values[np.isfinite(values)].astype(np.float64)
    if known.size < 2:
        return None
    with np.errstate(over="ignore"):
        stored = known.astype(np.float32).astype(np.float64)
    largest = np.abs(known).max() or 1.0
    change = np.abs(stored - known) / largest  # squares of tiny numbers would be zero
    most, spread = int(change.argmax()), (known / largest).std()
    if not np.isfinite(change[most]) or change[most] <= _LOST * spread or spread <= _NOISE:
        return None
    return float(known[most]), float(stored[most])
