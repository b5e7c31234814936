"""How long a run will take, from those that are finished."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from statistics import median

from ltga.study.spec import RunSpec
from ltga.train.record import Record
from ltga.train.record_schema import configuration_of, seconds_of


class Durations:
    """Seconds of finished runs, asked for by what a new run has in common with them.

    The median over runs of the same dataset, method and protocol; failing that of the same dataset and
    method; then of the same dataset; for a generated graph at last of its kind with any knobs.

    >>> Durations().of(RunSpec("cora", "gat", 2)) is None
    True
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._seconds: dict[Hashable, list[float]] = defaultdict(list)
        for record in records:
            self.learn(record)

    def learn(self, record: Record) -> None:
        """Take a finished run into account."""
        seconds = seconds_of(record)
        for key in _keys(RunSpec.of(configuration_of(record))):
            self._seconds[key].append(seconds)

    def of(self, spec: RunSpec) -> float | None:
        """Expected seconds of a run; ``None`` if nothing like it has been run."""
        for key in _keys(spec):
            if key in self._seconds:
                return median(self._seconds[key])
        return None

    def total(self, specs: Iterable[RunSpec]) -> tuple[float, int]:
        """Expected seconds of several runs one after the other, and how many of them nothing is known about."""
        known = [self.of(spec) for spec in specs]
        return sum(seconds for seconds in known if seconds is not None), known.count(None)


def _keys(spec: RunSpec) -> Iterable[Hashable]:
    """From the closest likeness to the farthest."""
    yield spec.dataset, spec.method, spec.protocol
    yield spec.dataset, spec.method
    yield (spec.dataset,)
    yield spec.dataset.partition(":")[0]
