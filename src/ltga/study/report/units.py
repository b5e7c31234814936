"""How numbers are shown: as percent, with how many digits, with or without their spread."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Unit:
    """How a number is shown.

    >>> Unit(100, 1, spread=True).show([0.5, 0.6]), Unit(1, 3).show([1.5, 1.25]), Unit(1, 1).show([-0.01])
    ('55.0±7.1', '1.375', '0.0')
    """

    factor: float = 1.0
    digits: int = 3
    spread: bool = False

    def show(self, values: Sequence[float]) -> str:
        """Mean and, if wanted and possible, sample standard deviation."""
        scaled = [self.factor * value for value in values]
        text = f"{round(statistics.fmean(scaled), self.digits) + 0.0:.{self.digits}f}"  # adding 0 turns -0.0 into 0.0
        if self.spread and len(scaled) > 1:
            text += f"±{statistics.stdev(scaled):.{self.digits}f}"
        return text


PERCENT = Unit(100, 1, spread=True)
PLAIN_PERCENT = Unit(100, 1)
FINE_PERCENT = Unit(100, 2, spread=True)
THREE, THREE_SPREAD = Unit(1, 3), Unit(1, 3, spread=True)
TWO, TWO_SPREAD = Unit(1, 2), Unit(1, 2, spread=True)
COUNT = Unit(1, 0)
