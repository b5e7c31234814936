"""What sparse attention gains over softmax, in accuracy and in epochs, from runs of all methods on many graphs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, log
from statistics import fmean

from ltga.data import Dataset
from ltga.data.graph_summary import summarise
from ltga.train.record import Record

SOFTMAX = "gatv2"
FIXED = ("entmax-1.5", "sparsemax", "frozen-q2.0")
CHOSEN = "chosen"
"""Stands among methods for the one of :data:`FIXED` that a seed's validation nodes prefer."""
COMPARED = {
    CHOSEN: "sparse, chosen",
    "entmax-head": "learned α",
    "ltga-head": "learned q",
    "ltga-edge": "edge gate",
    "gatv2-temperature": "temperature",
}
REACHED = 0.95  # of the best validation accuracy that softmax has in all of its epochs
MANY_LABELS = 0.1  # the share of nodes to learn from above which the recipe starts sparse


@dataclass(frozen=True)
class Setting:
    """What somebody can know of a graph before training: neighbours, their agreement, labels."""

    neighbours: float
    agreement: float
    labels: float

    @property
    def many_labels(self) -> bool:
        return self.labels >= MANY_LABELS


@dataclass(frozen=True)
class Gain:
    """A method against softmax on one graph.

    Attributes:
        points: mean difference in test accuracy, in points.
        ahead: on how many of the seeds it is ahead.
        speed: softmax's epochs to the mark divided by the method's, geometric mean.
        seeds: how many seeds both have.
    """

    points: float
    ahead: int
    speed: float
    seeds: int


def setting_of(dataset: Dataset) -> Setting:
    """Median neighbours, share of edges within a class, and share of nodes to learn from in the first split.

    >>> from ltga.data import csbm
    >>> setting_of(csbm(num_nodes=200, degree=20, homophily=0.8)).labels
    0.6
    """
    told = summarise(dataset)
    return Setting(told.median_degree, float(told.homophily or 0.0), told.train / told.nodes)


def gains(records: Iterable[Record]) -> dict[str, dict[str, Gain]]:
    """Graph -> method of :data:`COMPARED` -> its gain over softmax, over the seeds that have all that is needed."""
    runs: dict[str, dict[int, dict[str, Record]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        config = record["config"]
        runs[config["dataset"]["name"]][config["seed"]][config["method"]] = record
    found: dict[str, dict[str, Gain]] = {}
    for graph, seeds in runs.items():
        for method in COMPARED:
            pairs = [
                (of[SOFTMAX], run) for of in seeds.values() if SOFTMAX in of and (run := _run(of, method)) is not None
            ]
            if pairs:
                found.setdefault(graph, {})[method] = _gain(pairs)
    return found


def epochs_to(course: Iterable[float], mark: float, never: int) -> int:
    """The first epoch, counted from 1, whose accuracy is at least ``mark``; ``never`` if none is.

    >>> epochs_to([0.2, 0.5, 0.4, 0.6], 0.5, 200), epochs_to([0.2], 0.5, 200)
    (2, 200)
    """
    return next((epoch for epoch, value in enumerate(course, start=1) if value >= mark), never)


def _run(of: Mapping[str, Record], method: str) -> Record | None:
    if method != CHOSEN:
        return of.get(method)
    if not all(fixed in of for fixed in FIXED):
        return None
    return max((of[fixed] for fixed in FIXED), key=lambda record: record["metrics"]["val"]["accuracy"])


def _gain(pairs: list[tuple[Record, Record]]) -> Gain:
    points, ratios = [], []
    for softmax, other in pairs:
        points.append(100 * (other["metrics"]["test"]["accuracy"] - softmax["metrics"]["test"]["accuracy"]))
        courses = [run["trajectory"]["val_accuracy"] for run in (softmax, other)]
        mark, never = REACHED * max(courses[0]), len(courses[0])
        ratios.append(epochs_to(courses[0], mark, never) / epochs_to(courses[1], mark, never))
    speed = exp(fmean(log(ratio) for ratio in ratios))
    return Gain(fmean(points), sum(value > 0 for value in points), speed, len(pairs))
