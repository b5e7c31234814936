"""The finished runs of a study, and the numbers one reads from a record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from ltga.data import CATALOGUE, Dataset, load_dataset
from ltga.data.store import is_here
from ltga.errors import DataError, RecordError
from ltga.nn.methods import METHODS
from ltga.report.study.tables import Behind
from ltga.suite import Experiment, RunSpec, Store, find_records
from ltga.suite.tuned import TUNED_ROWS
from ltga.train.record import Record
from ltga.train.storage import read_arrays

Value = Callable[[Record], float | None]


class Study:
    """Everything a report draws on: the records of a store and, where they are at hand, arrays and datasets.

    Args:
        store: the folder of the runs.
        root: folder with datasets, as for :func:`~ltga.data.load_dataset`; nothing is downloaded.
    """

    def __init__(self, store: Store, root: str | Path | None = None) -> None:
        self.store = store
        self._root = root
        self._runs: dict[str, dict[RunSpec, Record]] = {}
        self._datasets: dict[str, Dataset | None] = {}

    @cached_property
    def records(self) -> list[Record]:
        """All finished runs."""
        return list(self.store.records())

    def runs(self, experiment: Experiment) -> dict[RunSpec, Record]:
        """The finished runs of an experiment."""
        if experiment.name not in self._runs:
            self._runs[experiment.name] = find_records(experiment.runs, self.records)
        return self._runs[experiment.name]

    def arrays(self, record: Record) -> dict[str, np.ndarray] | None:
        """The arrays beside a record; ``None`` if only the record was kept."""
        try:
            return read_arrays(self.store.folder / f"{record['id']}.json")
        except RecordError:
            return None

    def dataset(self, record: Record) -> Dataset | None:
        """The very graph of a run, if it is on this machine."""
        config = record["config"]["dataset"]
        name = config["name"]
        if name not in self._datasets:
            self._datasets[name] = self._load(name)
        dataset = self._datasets[name]
        return dataset if dataset is not None and dataset.fingerprint == config["fingerprint"] else None

    def _load(self, name: str) -> Dataset | None:
        facts = CATALOGUE.get(name.partition(":")[0])
        if facts is not None and not is_here(facts, self._root):
            return None
        try:
            return load_dataset(name, self._root)
        except DataError:
            return None


def behind(runs: dict[RunSpec, Record], specs: Iterable[RunSpec], value: Value) -> list[Behind]:
    """What the finished ones of these runs contribute; a run without the value is left out."""
    found = []
    for spec in specs:
        if spec in runs and (number := value(runs[spec])) is not None:
            found.append(Behind(runs[spec]["id"], spec.seed, number))
    return found


def metric(name: str, part: str = "test") -> Value:
    """A reader of one metric."""
    return lambda record: record["metrics"].get(part, {}).get(name)


accuracy = metric("accuracy")


def learned_q(record: Record) -> float | None:
    """Mean q over layers and heads (and edges) of the model that was kept; ``None`` for a method without q."""
    means = [layer["mean"][record["best_epoch"] - 1] for layer in record["trajectory"]["q"] if layer.get("mean")]
    return fmean(fmean(heads) for heads in means) if means else None


def attention(name: str, layer: int | None = None) -> Value:
    """A reader of one attention statistic, mean over heads and, unless one is named, over layers."""

    def read(record: Record) -> float | None:
        layers: Sequence[dict[str, Any]] = record.get("attention") or ()
        if layer is not None:
            layers = layers[layer : layer + 1]
        heads = [value for found in layers for value in found[name] if value is not None]
        return fmean(heads) if heads else None

    return read


def label(method: str) -> str:
    """What tables and figures call a method; a method nobody knows keeps its name."""
    if method in METHODS:
        return METHODS[method].label
    return next((row.label for row in TUNED_ROWS if row.name == method), method)


def homophily(dataset: str) -> float | None:
    """The share of edges within a class, as far as the catalogue knows."""
    facts = CATALOGUE.get(dataset)
    return None if facts is None else facts.homophily
