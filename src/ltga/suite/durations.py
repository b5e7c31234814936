"""How long a run will take, from those that are finished."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from statistics import median
from typing import Any

from ltga.suite.spec import RunSpec
from ltga.train.record import Record


class Durations:
    """Seconds of finished runs, asked for by what a new run has in common with them.

    The median over runs of the same dataset, method and protocol; failing that of the same dataset and
    method; then of the same dataset; for a generated graph at last of its kind with any knobs.

    >>> protocol = RunSpec("cora", "gat", 1).protocol.model_dump()
    >>> config = {"dataset": {"name": "cora"}, "method": "gat", "protocol": protocol}
    >>> durations = Durations([{"config": config, "timing": {"train_seconds": 8.0, "observe_seconds": 1.0}}])
    >>> durations.of(RunSpec("cora", "gat", 2)), durations.of(RunSpec("texas", "gat", 2))
    (9.0, None)
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._seconds: dict[Hashable, list[float]] = defaultdict(list)
        for record in records:
            self.learn(record)

    def learn(self, record: Record) -> None:
        """Take a finished run into account."""
        config, seconds = record["config"], seconds_of(record)
        for key in _keys(config["dataset"]["name"], config["method"], config["protocol"]):
            self._seconds[key].append(seconds)

    def of(self, spec: RunSpec) -> float | None:
        """Expected seconds of a run; ``None`` if nothing like it has been run."""
        for key in _keys(spec.dataset, spec.method, spec.protocol.model_dump()):
            if key in self._seconds:
                return median(self._seconds[key])
        return None

    def total(self, specs: Iterable[RunSpec]) -> tuple[float, int]:
        """Expected seconds of several runs one after the other, and how many of them nothing is known about."""
        known = [self.of(spec) for spec in specs]
        return sum(seconds for seconds in known if seconds is not None), known.count(None)


def seconds_of(record: Record) -> float:
    """How long a finished run took."""
    timing = record["timing"]
    return float(timing["train_seconds"] + timing["observe_seconds"])


def _keys(dataset: str, method: str, protocol: Mapping[str, Any]) -> Iterable[Hashable]:
    """From the closest likeness to the farthest."""
    yield dataset, method, tuple(sorted(protocol.items()))
    yield dataset, method
    yield (dataset,)
    yield dataset.partition(":")[0]
