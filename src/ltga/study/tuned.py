"""Rows that no single method makes: the best of a grid per dataset, chosen on validation, or on test as an oracle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, NamedTuple

from ltga.errors import InputError
from ltga.train.record import Record
from ltga.train.record_schema import typed

FROZEN_Q = ("frozen-q0.5", "frozen-q0.8", "frozen-q1.0", "frozen-q1.2", "frozen-q1.5", "frozen-q2.0")
ENTMAX = ("entmax-1.2", "entmax-1.5", "sparsemax")
DECIMALS = 12  # means of the same fractions in another order are equal, but not as floats


@dataclass(frozen=True)
class Chosen:
    """What a grid search picks on one dataset.

    Attributes:
        method: the candidate picked.
        scores: mean accuracy of every candidate on the nodes the choice was made on.
        records: the runs of ``method``, one per seed all candidates have.
    """

    dataset: str
    method: str
    scores: dict[str, float]
    records: tuple[Record, ...]


@dataclass(frozen=True)
class TunedRow:
    """A row of a table that is chosen per dataset; ``chosen_on`` says by which nodes."""

    name: str
    label: str
    candidates: tuple[str, ...]
    chosen_on: Literal["val", "test"]


FROZEN_Q_TUNED = TunedRow("frozen-q-tuned", "frozen q (tuned on validation)", FROZEN_Q, "val")
ENTMAX_TUNED = TunedRow("entmax-tuned", "α-entmax (tuned on validation)", ENTMAX, "val")
FROZEN_Q_ORACLE = TunedRow("frozen-q-oracle", "frozen q (test oracle, not a baseline)", FROZEN_Q, "test")
TUNED_ROWS = (FROZEN_Q_TUNED, ENTMAX_TUNED, FROZEN_Q_ORACLE)


def tuned(records: Iterable[Record], row: TunedRow) -> dict[str, Chosen]:
    """Per dataset, the candidate with the highest mean accuracy over seeds on the row's nodes.

    Candidates are compared over the seeds that all of them have; a dataset where one of them has no run in
    common with the others is left out. Of equals the first in the row's order is taken.

    Args:
        records: runs under one protocol, of any methods and datasets.
        row: what to choose among, and on which nodes.

    >>> tuned([], ENTMAX_TUNED)
    {}
    """
    return {
        dataset: chosen
        for dataset, group in _by_dataset(records, row).items()
        if (chosen := _choose(dataset, group, row)) is not None
    }


class _Candidate(NamedTuple):
    accuracy: float
    record: Record


def _choose(dataset: str, runs: dict[str, dict[int, _Candidate]], row: TunedRow) -> Chosen | None:
    seeds = sorted(set.intersection(*(set(runs[method]) for method in row.candidates)))
    if not seeds:
        return None
    scores = {
        method: round(fmean(runs[method][seed].accuracy for seed in seeds), DECIMALS) for method in row.candidates
    }
    best = max(scores, key=scores.__getitem__)
    return Chosen(dataset, best, scores, tuple(runs[best][seed].record for seed in seeds))


def _by_dataset(records: Iterable[Record], row: TunedRow) -> dict[str, dict[str, dict[int, _Candidate]]]:
    """Dataset -> candidate -> seed -> run."""
    found: dict[str, dict[str, dict[int, _Candidate]]] = {}
    for record in records:
        run = typed(record)
        dataset, method, seed = run.config.dataset.name, run.config.method, run.config.seed
        if method not in row.candidates or row.chosen_on not in run.metrics:
            continue
        runs = found.setdefault(dataset, {candidate: {} for candidate in row.candidates})[method]
        if seed in runs:
            raise InputError(
                f"records: {dataset}, {method}, seed {seed} appears twice; pass the runs of one experiment only"
            )
        runs[seed] = _Candidate(run.metrics[row.chosen_on].accuracy, record)
    return found
