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
from ltga.study.report.run_table import finished, grouped, run_table
from ltga.study.report.runs import Study, original, reference_of
from ltga.study.report.tables import Behind, Cell, Column, Table, mean_cell, number_cell, text_cell, with_reference
from ltga.study.report.units import Unit
from ltga.study.spec import STAND_INS

NOT_ANALYSED, UNDEFINED = "not analysed", "n/a"
RunTable = Callable[[Study, Experiment], pd.DataFrame]
Place = tuple[Any, ...]


@dataclass(frozen=True)
class Key:
    """A column of the run table that names the rows of a table, and how it is shown there."""

    column: str
    head: Column
    cell: Callable[[Any], Cell]


def number_key(column: str) -> Key:
    """A key that is a number."""
    return Key(column, Column(column), lambda value: number_cell(f"{value:g}", value))


def text_key(column: str, show: Callable[[str], str], head: str | None = None) -> Key:
    """A key that is a word; ``show`` says what tables call it."""
    return Key(column, Column(head or column, numeric=False), lambda value: text_cell(show(value)))


DATASET = Key("dataset", Column("dataset", numeric=False), lambda name: text_cell(name, STAND_INS.get(name)))
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

    def cell(self, runs: pd.DataFrame, reference: str | None) -> Cell:
        """The cell of these runs, finished or not."""
        if self.shows == "fact":
            value = float(runs[self.column].iloc[0])
            known = None if math.isnan(value) else value
            return number_cell("–" if known is None else self.unit.show([known]), known, reference=reference)
        if self.shows == "mean":
            return self._mean(runs, reference)
        mean = self._mean(runs, None)
        if len(mean.runs) < 2:
            return replace(mean, text="", number=None, runs=(), reference=reference)
        spread = statistics.stdev(run.value for run in mean.runs)
        return with_reference(replace(mean, text=f"{spread:.{self.unit.digits}f}", number=spread), reference)

    def _mean(self, runs: pd.DataFrame, reference: str | None) -> Cell:
        done = finished(runs)
        known = behind(done, self.column)
        stand_in = STAND_INS.get(runs["dataset"].iloc[0]) if len(runs) else None
        if known or done.empty:
            return mean_cell(known, len(runs), self.unit, reference, stand_in)
        analysed = "analysed" not in done or done["analysed"].any()
        return Cell(UNDEFINED if analysed else NOT_ANALYSED, reference=reference, stand_in=stand_in)


def behind(runs: pd.DataFrame, column: str) -> list[Behind]:
    """What finished runs contribute to a number; a run without the value is left out."""
    if column not in runs:
        return []
    known = runs[runs["id"].notna() & runs[column].notna()]
    return [Behind(*run) for run in zip(known["id"], known["seed"].tolist(), known[column].astype(float).tolist())]


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
        beside = self.printed if twin is None else self.shown(self.runs(study, twin))
        groups = self._cells(runs, beside)
        across: list[Place] = [(value,) for value in _values(runs, self.across)] if self.across else [()]
        missing = [measure.cell(runs.head(0), None) for measure in self.measures if measure.shows != "fact"]
        rows = []
        for place in dict.fromkeys(found[: len(self.rows)] for found in groups):
            heads = (key.cell(value) for key, value in zip(self.rows, place))
            rows.append((*heads, *(cell for value in across for cell in groups.get((*place, *value), missing))))
        columns = (*(key.head for key in self.rows), *self._columns(across))
        name, title = experiment.name + self.suffix, self.title or experiment.title
        return Table(name, title, columns, tuple(rows), self.note, reference=reference_of(experiment))

    def shown(self, runs: pd.DataFrame) -> pd.DataFrame:
        """What this table says of runs, as a reference for others: the same keys, and the means as text."""
        means = [(k, measure) for k, measure in enumerate(self.measures) if measure.shows == "mean"]
        return pd.DataFrame(
            [
                dict(zip(self._keys, place)) | {m.printed or m.column: cells[k].text for k, m in means if cells[k].runs}
                for place, cells in self._cells(runs, pd.DataFrame()).items()
            ]
        )

    def _cells(self, runs: pd.DataFrame, beside: pd.DataFrame) -> dict[Place, list[Cell]]:
        """The cells of every place, in the order of the measures."""
        text = {tuple(row[key] for key in self._keys): row for row in beside.to_dict("records")}
        found = {}
        for place, group in grouped(runs, *self._keys).items():
            place = place if len(self._keys) > 1 else (place,)
            printed = text.get(place, {})
            references = (printed.get(measure.printed or measure.column) for measure in self.measures)
            pairs = zip(self.measures, references)
            found[place] = [m.cell(group, said if isinstance(said, str) else None) for m, said in pairs]
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
