"""How long kernels are compiled: once for a machine, so it is no part of the time that a method takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ltga.kernels.runtime.backends import has_compiled_kernels


class Spent:
    """Seconds, filled in as they are spent."""

    seconds = 0.0

    def add(self, seconds: float) -> None:
        self.seconds += seconds


@contextmanager
def compiling() -> Iterator[Spent]:
    """Seconds that numba compiles within, in whatever thread; what it reads from disk is not counted.

    >>> with compiling() as spent:
    ...     pass
    >>> spent.seconds
    0.0
    """
    spent = Spent()
    if not has_compiled_kernels():
        yield spent
        return
    from numba.core.event import install_timer

    with install_timer("numba:compile", spent.add):
        yield spent
