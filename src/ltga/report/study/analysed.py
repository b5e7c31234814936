"""Cells and samples from the analyses of an experiment's runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from ltga.analysis.results import Frames
from ltga.report.study.runs import Study, Value, behind, original, reference_of
from ltga.report.study.tables import Cell, Unit, mean_cell
from ltga.suite import Experiment, RunSpec
from ltga.suite.spec import STAND_INS

NOT_ANALYSED, UNDEFINED = "not analysed", "n/a"
Read = Callable[[Frames], float]
Where = Mapping[str, object]


def analysed(study: Study, name: str, read: Read) -> Value:
    """A reader of one number of an analysis; ``None`` where there is no analysis or the number is not defined."""

    def value(record: dict) -> float | None:  # type: ignore[type-arg]
        frames = study.analysis(record, name)
        number = math.nan if frames is None else read(frames)
        return None if math.isnan(number) else number

    return value


def pick(frames: Frames, table: str, column: str, where: Where) -> float:
    """The mean of a column over the rows that have these values, NaN aside; NaN if there are none.

    >>> import pandas as pd
    >>> pick({"a": pd.DataFrame({"layer": [1, 2], "x": [3.0, 4.0]})}, "a", "x", {"layer": 2})
    4.0
    """
    frame = frames[table]
    chosen = np.ones(len(frame), dtype=bool)
    for name, wanted in where.items():
        chosen &= frame[name].to_numpy() == wanted
    values = frame[column].to_numpy(dtype=float)[chosen]
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else math.nan


class Analysed:
    """One analysis of the runs of an experiment.

    Under paired initialisation our own number under the paper's initialisation is the reference, elsewhere what
    the paper prints.
    """

    def __init__(self, study: Study, experiment: Experiment, name: str) -> None:
        self.study, self.experiment, self.name = study, experiment, name
        self._found = study.runs(experiment)
        twin = original(experiment)
        self._twin = None if twin is None else Analysed(study, twin, name)
        self.reference = reference_of(experiment)

    def frames(self, where: Where) -> Iterator[Frames]:
        """The results of the finished runs with these settings."""
        for spec in self.specs(where):
            if spec in self._found and (frames := self.study.analysis(self._found[spec], self.name)) is not None:
                yield frames

    def specs(self, where: Where) -> list[RunSpec]:
        """The runs with this ``dataset``, ``method`` or setting of the protocol."""
        return [
            spec
            for spec in self.experiment.runs
            if all(getattr(spec, key, getattr(spec.protocol, key, None)) == value for key, value in where.items())
        ]

    def values(self, where: Where, read: Read) -> tuple[float, ...]:
        """A number of every run with these settings, where it is defined."""
        numbers = (read(frames) for frames in self.frames(where))
        return tuple(number for number in numbers if not math.isnan(number))

    def cell(self, where: Where, read: Read, unit: Unit, printed: str | None = None) -> Cell:
        """The mean over the runs with these settings."""
        if self._twin is not None:
            beside = self._twin.cell(where, read, unit)
            printed = beside.text if beside.runs else None
        specs = self.specs(where)
        done = [spec for spec in specs if spec in self._found]
        stand_in = STAND_INS.get(str(where.get("dataset")))
        runs = behind(self._found, specs, analysed(self.study, self.name, read))
        if runs or not done:
            return mean_cell(runs, len(specs), unit, printed, stand_in)
        known = any(self.study.analysis(self._found[spec], self.name) is not None for spec in done)
        return Cell(UNDEFINED if known else NOT_ANALYSED, reference=printed, stand_in=stand_in)
