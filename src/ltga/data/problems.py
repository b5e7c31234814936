"""What is wrong with a graph's tables, all of it at once: counts, first rows, and what is done about it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from ltga.data.bounds import in_a_line
from ltga.errors import DataError


class MendedWarning(UserWarning):
    """Data were changed while they were prepared; the options of `ltga.data.Preparation` can forbid it.

    Attributes:
        notes: what was mended or is worth knowing, a line each, uncut.
    """

    def __init__(self, text: str, notes: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.notes = tuple(notes)


Weight = Literal["error", "mended", "note"]
SHOWN_ROWS = 5
_LONGEST_LINE = 600


@dataclass(frozen=True)
class Problem:
    """One kind of fault in one place.

    Attributes:
        where: the table, and the column if it is in one.
        what: the fault in words, with its first example.
        count: how many rows (or columns, classes) have it.
        rows: the first of them, data rows counted from 1.
        action: what is done about it, or what a person can do.
        weight: "error" if nothing can be done without a person, "mended" if the data were changed, else "note".
    """

    where: str
    what: str
    count: int
    rows: tuple[int, ...]
    action: str
    weight: Weight

    def __str__(self) -> str:
        row = f"row {self.rows[0]}: " if self.rows else ""
        others = f" ({self.count:,} rows)" if self.rows and self.count > 1 else ""
        return in_a_line(f"{self.where}: {row}{self.what}{others}; {self.action}", _LONGEST_LINE)


@dataclass
class Problems:
    """A list to add to while tables are read; with `numbers`, positions are those of rows that were picked out.

    >>> found = Problems()
    >>> found.add("nodes.csv", "age is 'old'", np.array([3, 7]), "give a number", "error")
    >>> print(found.errors[0])
    nodes.csv: row 4: age is 'old' (2 rows); give a number
    """

    found: list[Problem] = field(default_factory=list)
    numbers: np.ndarray | None = None

    def of_rows(self, numbers: np.ndarray) -> Problems:
        """The same list, for whoever looks at these rows only."""
        return Problems(self.found, numbers)

    def add(self, where: str, what: str, rows: Sequence[int] | np.ndarray | int, action: str, weight: Weight) -> None:
        """Add a fault; `rows` are positions from 0, or how many there are if they have none."""
        if isinstance(rows, int):
            self.found.append(Problem(where, in_a_line(what), rows, (), action, weight))
        elif len(rows):
            shown = rows[:SHOWN_ROWS]
            first = tuple(int(row if self.numbers is None else self.numbers[row]) + 1 for row in shown)
            self.found.append(Problem(where, in_a_line(what), len(rows), first, action, weight))

    @property
    def errors(self) -> list[Problem]:
        return [problem for problem in self.found if problem.weight == "error"]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was mended or is worth knowing, a line each."""
        return tuple(str(problem) for problem in self.found if problem.weight != "error")

    def as_json(self) -> list[dict[str, Any]]:
        return [asdict(problem) for problem in self.found]

    def refuse(self, where: str) -> None:
        """Raise one line about all that nobody but a person can mend."""
        errors = self.errors
        if len(errors) == 1:
            raise DataError(str(errors[0]))
        if errors:
            listed = " | ".join(map(str, errors))
            raise DataError(f"{where}: {len(errors)} problems: {in_a_line(listed, _LONGEST_LINE * 2)}")

    def warn(self, where: str, kept: str = "dataset.notes") -> None:
        """Warn in one line of what was changed in the data, for who does not read the notes, which are `kept` there."""
        mended = [str(problem) for problem in self.found if problem.weight == "mended"]
        if mended:
            listed = in_a_line(" | ".join(mended), _LONGEST_LINE)
            warnings.warn(MendedWarning(f"{where}: mended: {listed} (all: {kept})", self.notes), stacklevel=4)

    def __str__(self) -> str:
        return "\n".join(map(str, self.found))

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)
