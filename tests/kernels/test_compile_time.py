"""What compiling takes is told apart from what training takes."""

from __future__ import annotations

import time

import numba
import pytest

from ltga.kernels.runtime.compile_time import compiling
from ltga.train.record_schema import timing_of


def test_the_first_call_compiles_and_the_second_does_not() -> None:
    @numba.njit
    def slowly_made(x):  # type: ignore[no-untyped-def]
        return sum([x**n for n in range(10)])

    started = time.perf_counter()
    with compiling() as first:
        slowly_made(2.0)
    assert 0 < first.seconds <= time.perf_counter() - started
    with compiling() as second:
        slowly_made(3.0)
    assert second.seconds == 0


def test_a_methods_time_is_without_it() -> None:
    record = {"timing": {"train_seconds": 40.0, "observe_seconds": 0.1, "compile_seconds": 39.0}}
    assert timing_of(record).own_seconds == pytest.approx(1.0)
    assert timing_of({"timing": {"train_seconds": 40.0, "observe_seconds": 0.1}}).own_seconds == 40.0
