"""A study of hand-made records, and a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from fixtures.browser import chromium  # noqa: F401
from ltga.study import Store
from ltga.study.report import Study
from ltga.train.record import Record
from oracles.records import write_records


@pytest.fixture
def study(tmp_path: Path) -> Callable[[Iterable[Record]], Study]:
    """A study of these records."""

    def make(records: Iterable[Record]) -> Study:
        return Study(Store(write_records(tmp_path / "store", records)), tmp_path / "no data")

    return make
