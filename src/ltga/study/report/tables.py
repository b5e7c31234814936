"""A table as a value: cells that know the runs behind them and what the paper prints in their place."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ltga.study.report.units import Unit

Flag = Literal["stand-in", "missing", "partial", "best", "same"]


@dataclass(frozen=True)
class Behind:
    """One run behind a number: the record's id, its seed and what it contributed, in the cell's unit."""

    id: str
    seed: int
    value: float


@dataclass(frozen=True)
class Cell:
    """What one place of a table shows.

    Attributes:
        text: as printed; empty if there is nothing to show.
        number: the same as a number, in the unit of the text; what the cell is sorted by.
        runs: the runs behind it.
        wanted: how many runs there should be behind it.
        reference: what the table's reference (usually the paper) has here, as printed.
        difference: number minus reference.
        best: whether it is the best of its column.
        stand_in: the dataset of the paper that this cell's dataset takes the place of.
        note: what a reader should know about this cell.

    >>> Cell("80.7±0.7", 80.7, wanted=10, reference="80.7±0.7").flags
    ('missing', 'same')
    """

    text: str = ""
    number: float | None = None
    runs: tuple[Behind, ...] = ()
    wanted: int = 0
    reference: str | None = None
    difference: float | None = None
    best: bool = False
    stand_in: str | None = None
    note: str = ""

    @property
    def missing(self) -> bool:
        """Whether it should have runs and has none."""
        return self.wanted > 0 and not self.runs

    @property
    def partial(self) -> bool:
        """Whether it has some of its runs only."""
        return 0 < len(self.runs) < self.wanted

    @property
    def same(self) -> bool:
        """Whether it prints exactly as the reference does."""
        return self.reference is not None and self.text == self.reference

    @property
    def flags(self) -> tuple[Flag, ...]:
        """What applies of stand-in, missing, partial, best, same."""
        states: dict[Flag, bool] = {
            "stand-in": self.stand_in is not None,
            "missing": self.missing,
            "partial": self.partial,
            "best": self.best,
            "same": self.same,
        }
        return tuple(flag for flag, holds in states.items() if holds)

    @property
    def sort_key(self) -> float | str:
        """The number, or the text of a cell without one."""
        return self.text if self.number is None else self.number


@dataclass(frozen=True)
class Column:
    """The head of a column; ``stand_in`` as in :class:`Cell`."""

    label: str
    numeric: bool = True
    stand_in: str | None = None
    note: str = ""


@dataclass(frozen=True)
class Imports:
    """Which of a table's runs were not made here but taken from an archive.

    Attributes:
        used: how many runs the table rests on.
        sources: the archive's name by the id of a run.

    >>> Imports(3, {"a": "records.gz", "b": "records.gz"}).sentence
    '2 of 3 runs imported from records.gz.'
    """

    used: int
    sources: Mapping[str, str]

    @property
    def sentence(self) -> str:
        """For a note; empty if nothing is imported."""
        archives = ", ".join(dict.fromkeys(self.sources.values()))
        return f"{len(self.sources)} of {self.used} runs imported from {archives}." if self.sources else ""

    def among(self, runs: Iterable[str]) -> Imports:
        """Of these runs only."""
        runs = set(runs)
        return Imports(len(runs), {run: name for run, name in self.sources.items() if run in runs})


NONE_IMPORTED = Imports(0, {})


@dataclass(frozen=True)
class Table:
    """A titled table; ``name`` is its file's stem, ``reference`` says where the reference values come from."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    warnings: tuple[str, ...] = ()
    reference: str = "paper"
    imported: Imports = NONE_IMPORTED

    @property
    def stand_ins(self) -> dict[str, str]:
        """Names in this table that stand in for a dataset of the paper."""
        heads = {column.label: column.stand_in for column in self.columns}
        heads |= {row[0].text: row[0].stand_in for row in self.rows if row}
        return {name: original for name, original in heads.items() if original is not None}

    @property
    def runs(self) -> set[str]:
        """The ids of the runs behind the table."""
        return {run.id for row in self.rows for cell in row for run in cell.runs}


def text_cell(text: str, stand_in: str | None = None, note: str = "") -> Cell:
    """A cell that only says something."""
    return Cell(text, stand_in=stand_in, note=note)


def number_cell(text: str, number: float | None, note: str = "", reference: str | None = None) -> Cell:
    """A number that was derived from other cells rather than from runs directly."""
    return with_reference(Cell(text, number, note=note), reference)


def mean_cell(
    runs: Sequence[Behind], wanted: int, unit: Unit, reference: str | None = None, stand_in: str | None = None
) -> Cell:
    """The mean over runs (their values in the unit of the record), or a cell that says they are missing.

    >>> mean_cell([Behind("a", 1, 0.5), Behind("b", 2, 0.6)], 10, Unit(100, 1), "54.0±1.0").difference
    1.0
    """
    if not runs:
        return Cell(wanted=wanted, reference=reference, stand_in=stand_in)
    scaled = tuple(Behind(run.id, run.seed, unit.factor * run.value) for run in runs)
    number = statistics.fmean(run.value for run in scaled)
    cell = Cell(unit.show([run.value for run in runs]), number, scaled, wanted, stand_in=stand_in)
    return with_reference(cell, reference)


def with_reference(cell: Cell, reference: str | None) -> Cell:
    """The cell with what the reference prints there and, if both are numbers, the difference."""
    printed = None if reference is None else parse_mean(reference)
    if cell.number is None or printed is None:
        return replace(cell, reference=reference)
    return replace(cell, reference=reference, difference=round(cell.number - printed, 9))


def parse_mean(printed: str) -> float | None:
    """The mean of a printed cell.

    >>> parse_mean("80.7±0.7"), parse_mean("−0.5"), parse_mean("--")
    (80.7, -0.5, None)
    """
    try:
        return float(printed.removeprefix("±").split("±")[0].replace("−", "-"))
    except ValueError:
        return None


def mark_best(rows: Sequence[tuple[Cell, ...]], column: int, lowest: bool = False) -> list[tuple[Cell, ...]]:
    """The rows with the best number of a column marked, ties included.

    Only cells over the same seeds compare, so a cell with fewer runs than the fullest one is left out.
    """
    seeds = [frozenset(run.seed for run in row[column].runs) for row in rows]
    fullest = max(seeds, key=len, default=frozenset())
    numbers = {
        k: number
        for k, row in enumerate(rows)
        if fullest and seeds[k] == fullest and (number := row[column].number) is not None
    }
    if len(numbers) < 2:
        return list(rows)
    best = min(numbers.values()) if lowest else max(numbers.values())
    return [
        (*row[:column], replace(row[column], best=k in numbers and abs(numbers[k] - best) < 1e-9), *row[column + 1 :])
        for k, row in enumerate(rows)
    ]
