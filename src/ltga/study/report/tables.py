"""A table as a value: cells that know the runs behind them and what the paper prints in their place."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ltga.train.record import Record, imported_from

MISSING = "not run"


@dataclass(frozen=True)
class Unit:
    """How a number is shown: as a multiple, with how many digits, with or without its spread.

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


@dataclass(frozen=True)
class Behind:
    """One run behind a number, and what it contributed, in the cell's unit."""

    record: Record
    value: float

    @property
    def id(self) -> str:
        return str(self.record["id"])

    @property
    def seed(self) -> int:
        return int(self.record["config"]["seed"])

    @property
    def archive(self) -> str:
        """The archive that the run was imported from; empty for one that was made here."""
        return imported_from(self.record) or ""


@dataclass(frozen=True)
class Cell:
    """What one place of a table shows.

    Attributes:
        text: as printed; empty if there is nothing to show.
        number: the same as a number, in the unit of the text; what the cell is sorted by.
        runs: the runs behind it.
        wanted: how many runs there should be behind it.
        reference: what the table's reference (usually the paper) has here, as printed.
        best: whether it is the best of its column.
        stand_in: the dataset of the paper that this cell's dataset takes the place of.
        note: what a reader should know about this cell.

    >>> cell = Cell("81.0±0.7", 81.0, wanted=10, reference="80.7±0.7")
    >>> cell.difference, cell.change, cell.missing, cell.same
    (0.3, '+0.3', True, False)
    """

    text: str = ""
    number: float | None = None
    runs: tuple[Behind, ...] = ()
    wanted: int = 0
    reference: str | None = None
    best: bool = False
    stand_in: str | None = None
    note: str = ""

    @property
    def missing(self) -> bool:
        """Whether it should have runs and has none."""
        return self.wanted > 0 and not self.runs

    @property
    def shown(self) -> str:
        """The text; where there is none because nothing was run, that."""
        return MISSING if self.missing and not self.text else self.text

    @property
    def partial(self) -> bool:
        """Whether it has some of its runs only."""
        return 0 < len(self.runs) < self.wanted

    @property
    def same(self) -> bool:
        """Whether it prints exactly as the reference does."""
        return self.reference is not None and self.text == self.reference

    @property
    def difference(self) -> float | None:
        """Number minus reference, if both are numbers."""
        printed = parse_mean(self.reference or "")
        return None if self.number is None or printed is None else round(self.number - printed, 9)

    @property
    def change(self) -> str:
        """The difference with its sign and as many decimals as the text has; empty if there is none."""
        decimals = re.match(r"[-−+]?\d+\.(\d+)", self.text)
        digits = len(decimals.group(1)) if decimals else 1
        return "" if self.difference is None else signed(self.difference, digits)

    @property
    def seeds(self) -> frozenset[int]:
        """The seeds of its runs."""
        return frozenset(run.seed for run in self.runs)

    @property
    def sort_key(self) -> float | str:
        """The number, or the text of a cell without one."""
        return self.text if self.number is None else self.number


def signed(difference: float, digits: int = 1) -> str:
    """A difference with its sign, which even a difference that rounds to zero has.

    >>> signed(0.04), signed(-1.26), signed(0)
    ('+0.0', '−1.3', '0.0')
    """
    sign = "+" if difference > 0 else "−" if difference < 0 else ""
    return f"{sign}{abs(difference):.{digits}f}"


def parse_mean(printed: str) -> float | None:
    """The mean of a printed cell.

    >>> parse_mean("80.7±0.7"), parse_mean("−0.5"), parse_mean("--")
    (80.7, -0.5, None)
    """
    try:
        return float(printed.removeprefix("±").split("±")[0].replace("−", "-"))
    except ValueError:
        return None


def mean_cell(
    runs: Sequence[Behind], wanted: int, unit: Unit, reference: str | None = None, stand_in: str | None = None
) -> Cell:
    """The mean over runs (their values in the unit of the record), or a cell that says they are missing."""
    if not runs:
        return Cell(wanted=wanted, reference=reference, stand_in=stand_in)
    text = unit.show([run.value for run in runs])
    scaled = tuple(replace(run, value=unit.factor * run.value) for run in runs)
    return Cell(text, statistics.fmean(run.value for run in scaled), scaled, wanted, reference, stand_in=stand_in)


@dataclass(frozen=True)
class Column:
    """The head of a column; ``stand_in`` as in :class:`Cell`."""

    label: str
    numeric: bool = True
    stand_in: str | None = None
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A titled table.

    Attributes:
        name: its file's stem.
        reference: where the reference values come from.
        imported: which of its runs came from an archive, in a sentence.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    warnings: tuple[str, ...] = ()
    reference: str = "paper"
    imported: str = ""

    @property
    def cells(self) -> list[Cell]:
        return [cell for row in self.rows for cell in row]

    @property
    def stand_ins(self) -> dict[str, str]:
        """Names in this table that stand in for a dataset of the paper."""
        heads = {column.label: column.stand_in for column in self.columns}
        heads |= {row[0].text: row[0].stand_in for row in self.rows if row}
        return {name: original for name, original in heads.items() if original is not None}


def imports(cells: Iterable[Cell]) -> str:
    """How many of the runs behind cells came from archives; see :func:`imports_among`."""
    return imports_among({run.id: run.archive for cell in cells for run in cell.runs})


def imports_among(archives: Mapping[str, str]) -> str:
    """How many runs came from archives, in a sentence that is empty if none did.

    Args:
        archives: by the id of a run the archive it came from, empty if it was made here.

    >>> imports_among({"a": "records.gz", "b": "records.gz", "c": ""})
    '2 of 3 runs imported from records.gz.'
    """
    imported = list(filter(None, archives.values()))
    names = ", ".join(dict.fromkeys(imported))
    return f"{len(imported)} of {len(archives)} runs imported from {names}." if imported else ""


def mark_best(rows: Sequence[tuple[Cell, ...]], first: int, lowest: bool = False) -> list[tuple[Cell, ...]]:
    """The rows with the best number of every column from the ``first`` on marked, ties included.

    Only cells over the same seeds compare, so a cell with fewer runs than the fullest one is left out.
    """
    columns = [list(column) for column in zip(*rows)]
    return list(zip(*columns[:first], *(_with_best(column, lowest) for column in columns[first:])))


def _with_best(cells: list[Cell], lowest: bool) -> list[Cell]:
    fullest = max((cell.seeds for cell in cells), key=len)
    numbers = {k: cell.number for k, cell in enumerate(cells) if fullest and cell.seeds == fullest}
    known = {k: number for k, number in numbers.items() if number is not None}
    if len(known) < 2:
        return cells
    best = min(known.values()) if lowest else max(known.values())
    return [replace(cell, best=k in known and abs(known[k] - best) < 1e-9) for k, cell in enumerate(cells)]
