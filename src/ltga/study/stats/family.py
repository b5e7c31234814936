"""Families of comparisons: every test of one family is corrected for all of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ltga.data.catalogue import CATALOGUE
from ltga.errors import InputError
from ltga.study.stats.intervals import mean_difference, probability_of_improvement
from ltga.study.stats.paired import PairedTest, holm, paired_test, resampled_p, smallest_possible_holm
from ltga.study.stats.scores import Scores, scores_from_records

KEY = ["dataset", "method", "control"]


@dataclass(frozen=True)
class Family:
    """Every method against one control on every dataset.

    >>> len(Family("small", ("gat", "gcn"), "gatv2", ("cora", "texas")))
    4
    """

    name: str
    methods: tuple[str, ...]
    control: str
    datasets: tuple[str, ...]

    def __post_init__(self) -> None:
        for what, values in (("methods", self.methods), ("datasets", self.datasets)):
            if not values or len(set(values)) != len(values):
                raise InputError(f"{what}: got {values!r}; pass one or more different names")
        if self.control in self.methods:
            raise InputError(f"control: {self.control} is also among the methods; compare it with others only")

    def __len__(self) -> int:
        return len(self.methods) * len(self.datasets)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """(dataset, method) of every comparison."""
        return ((dataset, method) for dataset in self.datasets for method in self.methods)

    def on(self, datasets: Sequence[str]) -> Family:
        """The same comparisons on other datasets."""
        return dataclasses.replace(self, datasets=tuple(datasets))


PRIMARY = Family(
    "primary",
    methods=("ltga-edge", "ltga-head"),
    control="gatv2",
    datasets=("cora", "citeseer", "pubmed", "texas", "wisconsin", "cornell", "gum-syntax"),
)
"""What the study asks: do LTGA-Edge and LTGA-Head differ from GATv2 under paired initialisation? 14 comparisons, so
that with ten seeds even Wilcoxon can reach significance after Holm (14 x 0.002 = 0.027). All else is exploration."""


def compare(
    scores: Scores, family: Family = PRIMARY, alpha: float = 0.05, confidence: float = 0.95, seed: int = 0
) -> pd.DataFrame:
    """One row per comparison of the family, over the seeds that both methods have.

    ``improvement`` (with its BCa bootstrap limits ``low`` and ``high``), wins, Cohen's d and ``probability`` are
    positive or large when the method is better than the control, whatever the metric's direction. A comparison
    without runs stays in the table, without numbers, and in the family that Holm corrects for. ``reachable`` is
    False where no outcome of these tests could have been significant, ``single_split`` True where the seeds share
    one split; ``note`` says both in words. ``p_resampled`` is :func:`resampled_p` where every seed has a random
    split of its own, of known sizes.

    Args:
        seed: of the bootstrap.
    """
    pairs = {key: scores.pairs(key[1], family.control, key[0]) for key in family}
    first = {key: scores.direction * pair.first for key, pair in pairs.items()}
    second = {key: scores.direction * pair.second for key, pair in pairs.items()}
    tests = {key: paired_test(first[key], second[key], alpha) for key in pairs}
    adjusted = holm([test.p for test in tests.values()])
    smallest = smallest_possible_holm([test.smallest_p for test in tests.values()])
    rows = []
    for (key, test), p_holm, smallest_holm in zip(tests.items(), adjusted, smallest, strict=True):
        row: dict[str, Any] = {"dataset": key[0], "method": key[1], "control": family.control}
        row |= _columns(test) | {"p_holm": p_holm, "smallest_p_holm": smallest_holm}
        row |= {"significant": bool(p_holm <= alpha), "reachable": bool(smallest_holm <= alpha)}
        if test.n:
            change = mean_difference(first[key], second[key], confidence, seed=seed)
            chance = probability_of_improvement(first[key], second[key], confidence)
            row |= {"low": change.low, "high": change.high}
            row |= dict(zip(("probability", "probability_low", "probability_high"), chance, strict=True))
        row["unpaired"] = len(pairs[key].unpaired)
        row["single_split"] = test.n > 0 and scores.single_split(key[0])
        row["p_resampled"] = _resampled(key[0], first[key], second[key], row["single_split"])
        row["note"] = _note(row, test, len(family), alpha)
        rows.append(row)
    return pd.DataFrame(rows, columns=_ORDER)


_ORDER = [
    *KEY, "n", "unpaired", "wins", "losses", "ties", "improvement", "low", "high", "cohens_d", "test", "shapiro_p",
    "p", "p_resampled", "p_holm", "smallest_p_holm", "significant", "reachable", "probability", "probability_low",
    "probability_high", "single_split", "note",
]  # fmt: skip


def _resampled(dataset: str, first: np.ndarray, second: np.ndarray, single_split: bool) -> float:
    facts = CATALOGUE.get(dataset)
    if single_split or facts is None or facts.splits < 2 or facts.split_sizes is None:
        return float("nan")
    train, _, test = facts.split_sizes
    return resampled_p(first, second, test / train)


def _columns(test: PairedTest) -> dict[str, Any]:
    return {
        "n": test.n,
        **test.counts._asdict(),
        "improvement": test.mean_difference,
        "cohens_d": test.cohens_d,
        "test": test.test,
        "shapiro_p": test.shapiro_p,
        "p": test.p,
    }


def _note(row: Mapping[str, Any], test: PairedTest, family: int, alpha: float) -> str:
    notes = []
    if not test.n:
        notes.append("not run")
    elif test.test == "none":
        notes.append("too few seeds for a test")
    elif test.counts.ties == test.n:
        notes.append("the same on every seed")
    elif not row["reachable"]:
        notes.append(
            f"{test.test} with {test.n - test.counts.ties} pairs that differ cannot reach {alpha:g}: "
            f"at best {row['smallest_p_holm']:.3f} after Holm over {family}"
        )
    if row["unpaired"] and test.n:
        notes.append(f"{row['unpaired']} seeds without partner left out")
    if row["single_split"]:
        notes.append("all seeds share one split: nothing is said about other splits")
    return "; ".join(notes)


def compare_by_init(
    records: Iterable[Mapping[str, Any]], family: Family = PRIMARY, metric: str = "accuracy", alpha: float = 0.05
) -> pd.DataFrame:
    """The same comparisons under the paper's initialisation and under paired initialisation, side by side.

    Rows are (dataset, method, control); columns are (init, column of :func:`compare`).
    """
    records = list(records)
    return pd.concat(
        {
            init: compare(scores_from_records(records, metric, init), family, alpha).set_index(KEY)
            for init in ("paper", "paired")
        },
        axis=1,
    )


def compare_across_datasets(table: pd.DataFrame, method: str, alpha: float = 0.05) -> pd.DataFrame:
    """``method`` against each other column of ``table``, every dataset one observation, Holm over the rows.

    This asks whether a method is better on datasets in general, which few datasets can hardly answer: see the
    column ``reachable``.

    Args:
        table: scores ``[datasets, methods]`` without gaps, greater is better.

    >>> table = pd.DataFrame({"a": [3.0, 5.0, 6.0, 9.0], "b": [2.0, 3.0, 4.0, 6.0]})
    >>> compare_across_datasets(table, "a")[["control", "wins", "improvement"]].to_dict("records")
    [{'control': 'b', 'wins': 4, 'improvement': 2.0}]
    """
    if method not in table:
        raise InputError(f"method: no column {method!r} in the table; it has {', '.join(map(str, table.columns))}")
    values = {name: table[name].to_numpy(dtype=float) for name in table}
    tests = {other: paired_test(values[method], values[other], alpha) for other in values if other != method}
    if not tests:
        raise InputError("table: there is no other method to compare with")
    rows = pd.DataFrame([{"method": method, "control": other} | _columns(test) for other, test in tests.items()])
    rows["p_holm"] = holm(rows["p"].to_numpy())
    rows["smallest_p_holm"] = smallest_possible_holm([test.smallest_p for test in tests.values()])
    rows["significant"] = np.asarray(rows["p_holm"] <= alpha)
    rows["reachable"] = np.asarray(rows["smallest_p_holm"] <= alpha)
    return rows
