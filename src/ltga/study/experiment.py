"""An experiment as data: one table or figure of the paper and the runs it is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ltga.study.spec import STAND_INS, RunSpec
from ltga.train.protocol import Protocol

PAIRED = "-paired"
"""What the name of a twin under paired initialisation ends with."""


@dataclass(frozen=True)
class Experiment:
    """One table or figure.

    Attributes:
        name: what to type.
        title: what a page prints above it.
        label: the paper's LaTeX label of the table or figure, or of the section for a result in the text.
        shows: what one can learn from it.
        runs: what it needs, most useful first.
    """

    name: str
    title: str
    label: str
    shows: str
    runs: tuple[RunSpec, ...]

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(spec.dataset for spec in self.runs))

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(spec.method for spec in self.runs))

    @property
    def stand_ins(self) -> dict[str, str]:
        """Which of its datasets stand in for which of the paper's."""
        return {name: STAND_INS[name] for name in self.datasets if name in STAND_INS}


def grid(
    datasets: Iterable[str], methods: Sequence[str], seeds: Sequence[int], split: int | None = None, **settings: Any
) -> tuple[RunSpec, ...]:
    """All combinations; a seed of all methods comes before the next seed, so that half a table is still paired.

    With ``split``, all seeds share that one.

    >>> [str(spec) for spec in grid(["texas"], ["gcn", "gat"], [1, 2], init="paired")][:2]
    ['texas, gcn, seed 1, init paired', 'texas, gat, seed 1, init paired']
    """
    protocol = Protocol(**settings)
    return tuple(
        RunSpec(dataset, method, seed, protocol, split) for dataset in datasets for seed in seeds for method in methods
    )


def sweep(
    datasets: Iterable[str],
    methods: Sequence[str],
    seeds: Sequence[int],
    setting: str,
    values: Iterable[float],
    split: int | None = None,
) -> tuple[RunSpec, ...]:
    """A grid for every value of one setting of the protocol.

    >>> [spec.overrides for spec in sweep(["texas"], ["ltga-head"], [1], "warmup", [0, 20])]
    [{'warmup': 0}, {}]
    """
    values = tuple(values)
    return tuple(
        spec
        for dataset in datasets
        for value in values
        for spec in grid([dataset], methods, seeds, split, **{setting: value})
    )


def union(*groups: Iterable[RunSpec]) -> tuple[RunSpec, ...]:
    """The runs of all groups, each once."""
    return tuple(dict.fromkeys(spec for group in groups for spec in group))


def paired(experiment: Experiment) -> Experiment:
    """The same experiment with all attention methods of a seed starting from the same weights.

    >>> paired(Experiment("a", "A", "tab:a", "that", (RunSpec("cora", "gat", 1),))).runs[0].protocol.init
    'paired'
    """
    changed: dict[Protocol, Protocol] = {}
    runs = []
    for spec in experiment.runs:
        protocol = changed.setdefault(spec.protocol, spec.protocol.with_overrides(init="paired"))
        runs.append(replace(spec, protocol=protocol))
    return replace(
        experiment,
        name=experiment.name + PAIRED,
        title=f"{experiment.title}, paired initialisation",
        shows=f"{experiment.shows}; every attention method of a seed starts from the same weights and sees "
        "the same dropout, so that no difference comes from the random numbers a method consumes",
        runs=tuple(runs),
    )
