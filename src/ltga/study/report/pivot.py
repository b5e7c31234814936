"""A table of the report as a declared pivot of two tables: the runs, and what stands beside them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pandas as pd

from ltga.study import Experiment
from ltga.study.report.names import label
from ltga.study.report.run_table import RunTable, finished, grouped, run_table
from ltga.study.report.runs import Study, original
from ltga.study.report.tables import Behind, Cell, Column, Table, Unit, mean_cell
from ltga.study.spec import STAND_INS

NOT_ANALYSED, UNDEFINED = "not analysed", "n/a"
Place = tuple[Any, ...]


@dataclass(frozen=True)
class Key:
    """A column of the run table that names the rows of a table, and how it is shown there."""

    column: str
    head: Column
    cell: Callable[[Any], Cell]


def number_key(column: str) -> Key:
    """A key that is a number."""
    return Key(column, Column(column), lambda value: Cell(f"{value:g}", value))


def text_key(column: str, show: Callable[[str], str], head: str | None = None) -> Key:
    """A key that is a word; ``show`` says what tables call it."""
    return Key(column, Column(head or column, numeric=False), lambda value: Cell(show(value)))


DATASET = Key("dataset", Column("dataset", numeric=False), lambda name: Cell(name, stand_in=STAND_INS.get(name)))
METHOD = text_key("method", label)


@dataclass(frozen=True)
class Measure:
    """A column of the run table as a column of a table.

    Attributes:
        shows: the ``mean`` over the runs, the ``spread`` of their values (s.d.), or a ``fact`` that needs no run.
        printed: the column of the reference that stands beside, if its name is another.
    """

    head: str
    column: str
    unit: Unit
    note: str = ""
    shows: Literal["mean", "spread", "fact"] = "mean"
    printed: str = ""

    @property
    def reference(self) -> str:
        """The column of the reference."""
        return self.printed or self.column

    def cell(self, runs: pd.DataFrame, reference: str | None) -> Cell:
        """The cell of these runs, finished or not."""
        if self.shows == "fact":
            value = float(runs[self.column].iloc[0])
            number = None if math.isnan(value) else value
            return Cell("–" if number is None else self.unit.show([number]), number, reference=reference)
        known = behind(runs, self.column)
        cell = mean_cell(known, len(runs), self.unit, reference, STAND_INS.get(runs["dataset"].iloc[0]))
        if not known and len(done := finished(runs)):
            analysed = "analysed" not in done or done["analysed"].any()
            cell = replace(cell, text=UNDEFINED if analysed else NOT_ANALYSED, wanted=0)
        return _spread(cell, self.unit.digits) if self.shows == "spread" else cell


def _spread(mean: Cell, digits: int) -> Cell:
    """The s.d. of the runs behind a mean, if there are several."""
    if len(mean.runs) < 2:
        return replace(mean, text="", number=None, runs=())
    spread = statistics.stdev(run.value for run in mean.runs)
    return replace(mean, text=f"{spread:.{digits}f}", number=spread)


def behind(runs: pd.DataFrame, column: str) -> list[Behind]:
    """What finished runs contribute to a number; a run without the value is left out."""
    values = runs[column] if column in runs else [math.nan] * len(runs)
    pairs = zip(runs["record"], values)
    return [Behind(record, float(value)) for record, value in pairs if record is not None and not math.isnan(value)]


@dataclass(frozen=True, eq=False)
class Pivot:
    """How a run table becomes a table; call it with a study and an experiment.

    Attributes:
        rows: what names a row; rows come in the order of the run table.
        measures: what is shown of the runs of a row.
        runs: the run table.
        printed: what the paper prints: the keys and, for some measures, text. Under paired initialisation, which
            the paper does not have, our own numbers under the paper's stand beside instead.
        across: a column of the run table for each of whose values the measures are shown.
        across_head: the head of a column from such a value and the head of a measure.
        suffix, title: what is added to the experiment's name, and what is shown instead of its title.
    """

    rows: tuple[Key, ...]
    measures: tuple[Measure, ...]
    note: str
    runs: RunTable = run_table
    printed: pd.DataFrame = field(default_factory=pd.DataFrame)
    across: str | None = None
    across_head: Callable[[Any, str], str] = lambda value, head: f"{value} {head}"
    suffix: str = ""
    title: str = ""

    @property
    def _keys(self) -> list[str]:
        return [key.column for key in self.rows] + ([self.across] if self.across else [])

    def __call__(self, study: Study, experiment: Experiment) -> Table:
        runs, twin = self.runs(study, experiment), original(experiment)
        groups = self._cells(runs, self.printed if twin is None else self.shown(self.runs(study, twin)))
        across: list[Place] = [(value,) for value in _values(runs, self.across)] if self.across else [()]
        nothing = [Cell()] * len(self.measures)
        rows = []
        for place in dict.fromkeys(found[: len(self.rows)] for found in groups):
            heads = (key.cell(value) for key, value in zip(self.rows, place))
            rows.append((*heads, *(cell for value in across for cell in groups.get((*place, *value), nothing))))
        return Table(
            experiment.name + self.suffix,
            self.title or experiment.title,
            (*(key.head for key in self.rows), *self._columns(across)),
            tuple(rows),
            self.note,
            reference="paper" if twin is None else "paper's init",
        )

    def shown(self, runs: pd.DataFrame) -> pd.DataFrame:
        """What this table says of runs, as a reference for others: the same keys, and the means as text."""
        rows = []
        for place, cells in self._cells(runs, pd.DataFrame()).items():
            means = {m.reference: cell.text for m, cell in zip(self.measures, cells) if m.shows == "mean" and cell.runs}
            rows.append(dict(zip(self._keys, place)) | means)
        return pd.DataFrame(rows)

    def _cells(self, runs: pd.DataFrame, beside: pd.DataFrame) -> dict[Place, list[Cell]]:
        """The cells of every place, in the order of the measures."""
        printed = {tuple(row[key] for key in self._keys): row for row in beside.to_dict("records")}
        found = {}
        for place, group in grouped(runs, *self._keys).items():
            place = place if len(self._keys) > 1 else (place,)
            said = {name: text for name, text in printed.get(place, {}).items() if isinstance(text, str)}
            found[place] = [measure.cell(group, said.get(measure.reference)) for measure in self.measures]
        return found

    def _columns(self, across: Iterable[Place]) -> Iterator[Column]:
        for place in across:
            for measure in self.measures:
                head = self.across_head(place[0], measure.head) if place else measure.head
                stand_in = STAND_INS.get(place[0]) if self.across == "dataset" else None
                yield Column(head, stand_in=stand_in, note=measure.note)


def _values(runs: pd.DataFrame, column: str) -> list[Any]:
    """The values of a column: numbers from small to large, words as they come."""
    values = runs[column].unique().tolist()
    return sorted(values) if pd.api.types.is_numeric_dtype(runs[column]) else values
