"""One printed figure beside what its table gives, and the verdict.

A printed cell stands for all values that round to it, so a figure is judged against the range those values allow:
it *follows* (the printed cells give it), is open to *rounding* (they give another, but unrounded values that print
as these cells can give it), or is a *contradiction* (no such values can).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from ltga.study.paper.cells import DATASETS, PAPER_CELLS
from ltga.study.paper.printed import CHOSEN_CELLS
from ltga.study.paper.rounding import Range, could_print_as, prints_as

CELL_SLACK = 0.05  # a cell is printed to 0.1
PAIR_SLACK = 2 * CELL_SLACK

CELLS: Mapping[tuple[str, str], str] = {**PAPER_CELLS, **CHOSEN_CELLS}
"""(method, dataset) -> printed cell, with the rows chosen per dataset."""


def printed_mean(method: str, dataset: str) -> float:
    """In percent."""
    return float(CELLS[method, dataset].split("±")[0])


PRINTED_MEANS = pd.DataFrame(
    {
        method: [printed_mean(method, dataset) for dataset in DATASETS]
        for method in dict.fromkeys(method for method, _ in CELLS)
    },
    index=list(DATASETS),
)
"""Mean accuracies in percent as printed, ``[datasets, methods]``."""

Verdict = Literal["follows", "rounding", "contradiction"]


@dataclass(frozen=True)
class Check:
    """One printed figure beside what its table gives."""

    where: str
    printed: str
    recomputed: str
    verdict: Verdict
    why: str = ""


def judge(where: str, printed: str, value: float, reachable: Range, why: str = "") -> Check:
    """A printed number against its recomputed value and the range that rounding leaves open."""
    verdict: Verdict = "contradiction"
    if prints_as(value, printed):
        verdict = "follows"
    elif could_print_as(reachable, printed):
        verdict = "rounding"
    return Check(where, printed, _like(value, printed), verdict, why)


def claim(where: str, printed: str, recomputed: str, holds: bool, why: str = "") -> Check:
    """A printed statement against what its table shows."""
    return Check(where, printed, recomputed, "follows" if holds else "contradiction", why)


def _like(value: float, printed: str) -> str:
    """With one digit more than printed, so that the reader sees how near it is."""
    return f"{value:.{len(printed.partition('.')[2]) + 1}f}"
