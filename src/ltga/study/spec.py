"""A run before it is run: which graph, which method, which seed, which protocol; and its id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ltga.data import CATALOGUE, Dataset, load_graph
from ltga.data.obtain import is_here
from ltga.errors import DataError
from ltga.train.planned import plan_run
from ltga.train.protocol import Protocol
from ltga.train.record_schema import Configuration

STAND_INS: Mapping[str, str] = {"roman-words": "roman-empire", "gum-syntax": "roman-empire"}
"""Graphs that take the place of one that cannot be had, always under their own name."""

_DEFAULT = Protocol()


@dataclass(frozen=True)
class RunSpec:
    """One run of an experiment.

    Args:
        dataset: a name ``load_dataset`` knows; a generated graph carries its knobs (``"csbm:degree=20"``).
        method: a name of the method catalogue.
        seed: decides weights, dropout and split, as in :func:`~ltga.train.fit`.
        protocol: how it is trained, initialisation included.
        split: which split, where the seed does not decide that.

    >>> spec = RunSpec("cora", "ltga-head", 1, Protocol(warmup=0, init="paired"))
    >>> spec.overrides
    {'warmup': 0, 'init': 'paired'}
    >>> spec == RunSpec("cora", "ltga-head", 1, Protocol(init="paired", warmup=0, kappa=1))
    True
    """

    dataset: str
    method: str
    seed: int
    protocol: Protocol = _DEFAULT
    split: int | None = None

    @classmethod
    def of(cls, config: Configuration) -> RunSpec:
        """The spec of a run that was made, with the split it was made on."""
        return cls(config.dataset.name, config.method, config.seed, config.as_protocol(), config.split)

    @property
    def overrides(self) -> dict[str, Any]:
        """The settings that differ from the paper's headline protocol."""
        return {name: value for name, value in self.protocol if value != getattr(_DEFAULT, name)}

    @property
    def stand_in(self) -> str | None:
        """The paper's dataset that this run's graph stands in for, if it does."""
        return STAND_INS.get(self.dataset)

    def __str__(self) -> str:
        settings = ", ".join(f"{name} {value}" for name, value in self.overrides.items())
        split = "" if self.split is None else f", split {self.split}"
        return f"{self.dataset}, {self.method}, seed {self.seed}{split}" + (f", {settings}" if settings else "")


def load_if_here(name: str, root: str | Path | None = None) -> Dataset:
    """The dataset of this name; a :class:`~ltga.errors.DataError` if it would have to be downloaded."""
    facts = CATALOGUE.get(name.partition(":")[0])
    if facts is not None and not is_here(facts, root):
        raise DataError(f"{name}: not on this machine")
    return load_graph(name, root)


@dataclass(frozen=True)
class Identified:
    """Specs with their ids, in the order given, and the datasets that are not to be had, each with the reason."""

    ids: Mapping[RunSpec, str]
    absent: Mapping[str, str]


def identify(specs: Iterable[RunSpec], root: str | Path | None = None, *, download: bool = False) -> Identified:
    """The id each spec's record has, or would have: the one ``fit`` gives it.

    An id contains the graph's fingerprint, so every dataset is loaded, once.

    Args:
        specs: any number; repetitions do not matter.
        root: folder with datasets, as for :func:`~ltga.data.load_dataset`.
        download: whether to fetch what is not on this machine; else it counts as absent.

    >>> tiny = RunSpec("csbm:num_nodes=60", "gcn", 1)
    >>> len(identify([tiny, tiny]).ids[tiny])
    64
    """
    specs = list(dict.fromkeys(specs))
    ids: dict[RunSpec, str] = {}
    absent: dict[str, str] = {}
    for name in dict.fromkeys(spec.dataset for spec in specs):
        try:
            dataset = load_graph(name, root) if download else load_if_here(name, root)
        except DataError as error:
            absent[name] = str(error)
            continue
        fingerprint = dataset.fingerprint
        for spec in specs:
            if spec.dataset == name:
                what = (spec.method, spec.seed, spec.split, spec.protocol)
                ids[spec] = plan_run(dataset, *what, fingerprint=fingerprint).id
    return Identified({spec: ids[spec] for spec in specs if spec in ids}, absent)
