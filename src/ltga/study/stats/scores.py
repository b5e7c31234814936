"""Scores: one number per method, dataset and seed, checked once and then safe to pair."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from ltga.data.catalogue import CATALOGUE
from ltga.errors import InputError, RecordError

COLUMNS = ("method", "dataset", "seed", "value")
LOWER_IS_BETTER = frozenset({"nll", "brier", "ece"})


class Pairs(NamedTuple):
    """The scores of two methods on the same seeds of one dataset; ``unpaired`` seeds have only one of them."""

    first: np.ndarray
    second: np.ndarray
    seeds: tuple[int, ...]
    unpaired: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Scores:
    """A tidy table with the columns method, dataset, seed, value and, where known, split.

    >>> scores = Scores(pd.DataFrame({"method": ["gat", "gcn"], "dataset": "cora", "seed": 1, "value": [0.8, 0.7]}))
    >>> scores.pairs("gat", "gcn", "cora").first
    array([0.8])
    >>> scores.means().loc["cora", "gcn"]
    np.float64(0.7)
    """

    table: pd.DataFrame
    better: Literal["higher", "lower"] = "higher"

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", _checked(self.table))
        if self.better not in ("higher", "lower"):
            raise InputError(f"better: got {self.better!r}; pass 'higher' or 'lower'")

    @property
    def methods(self) -> tuple[str, ...]:
        """In order of appearance."""
        return tuple(self.table["method"].unique())

    @property
    def datasets(self) -> tuple[str, ...]:
        """In order of appearance."""
        return tuple(self.table["dataset"].unique())

    @property
    def direction(self) -> int:
        """1 if a higher score is better, -1 if a lower one is."""
        return 1 if self.better == "higher" else -1

    def of(self, method: str, dataset: str) -> pd.Series[float]:
        """The scores of a method on a dataset by seed, in order of the seeds; empty if there are none."""
        rows = self.table[(self.table["method"] == method) & (self.table["dataset"] == dataset)]
        return rows.set_index("seed")["value"].sort_index()

    def pairs(self, first: str, second: str, dataset: str) -> Pairs:
        """The two methods on the seeds they share."""
        a, b = self.of(first, dataset), self.of(second, dataset)
        seeds = a.index.intersection(b.index).sort_values()
        unpaired = a.index.symmetric_difference(b.index)
        return Pairs(a[seeds].to_numpy(), b[seeds].to_numpy(), tuple(map(int, seeds)), tuple(map(int, unpaired)))

    def on_common_seeds(self) -> Scores:
        """Only the seeds that, within a dataset, every method with scores there has."""
        wanted = self.table.groupby("dataset")["method"].transform("nunique")
        found = self.table.groupby(["dataset", "seed"])["method"].transform("nunique")
        return Scores(self.table[wanted == found], self.better)

    def means(self) -> pd.DataFrame:
        """Mean over seeds, ``[datasets, methods]``; NaN where a method was not run on a dataset at all.

        Means over different seeds do not compare, so methods with different seeds on one dataset are refused.
        """
        for dataset in self.datasets:
            rows = self.table[self.table["dataset"] == dataset]
            seeds = {method: frozenset(rows.loc[rows["method"] == method, "seed"]) for method in rows["method"]}
            if len(set(seeds.values())) > 1:
                short = min(seeds, key=lambda method: len(seeds[method]))
                raise InputError(
                    f"scores: methods have different seeds on {dataset} (for example {short} has only "
                    f"{sorted(seeds[short])}); finish the runs or take scores.on_common_seeds()"
                )
        means = self.table.pivot_table(index="dataset", columns="method", values="value", aggfunc="mean", sort=False)
        return means.reindex(index=list(self.datasets), columns=list(self.methods))

    def single_split(self, dataset: str) -> bool:
        """Whether all seeds on this dataset share one split, so that their spread leaves out the choice of split."""
        rows = self.table[self.table["dataset"] == dataset]
        if rows["split"].isna().any() or rows["seed"].nunique() <= 1:  # the runs cannot tell
            return dataset in CATALOGUE and CATALOGUE[dataset].splits == 1
        return rows["split"].nunique() == 1


def scores_from_records(
    records: Iterable[Mapping[str, Any]], metric: str = "accuracy", init: str = "paper", part: str = "test"
) -> Scores:
    """The scores of finished runs with one initialisation.

    Runs with another ``init`` are left out. Everything else that would make the numbers incomparable is
    refused: two runs of one method, dataset and seed, different versions of a dataset, different protocols,
    interrupted runs, a seed that stands for different splits.

    Args:
        records: as :func:`ltga.fit` makes them.
        metric: ``accuracy``, ``macro_f1``, ``nll``, ``brier`` or ``ece``.
        init: ``"paper"`` or ``"paired"``.
        part: ``train``, ``val`` or ``test``.
    """
    rows = []
    first_seen: dict[tuple[str, ...], tuple[str, Any]] = {}
    for record in records:
        try:
            config, run = record["config"], str(record["id"])[:12]
            protocol = config["protocol"]
            if protocol["init"] != init:
                continue
            row = _row(record, metric, part)
            constant = {("protocol", key): value for key, value in protocol.items()}
            constant["major_version", ""] = config["major_version"]
            constant["fingerprint of dataset", row["dataset"]] = config["dataset"]["fingerprint"]
            constant[f"split of seed {row['seed']} on", row["dataset"]] = row["split"]
        except (KeyError, TypeError) as error:
            raise RecordError(f"records: not a run record, {error} is missing or malformed") from error
        for what, value in constant.items():
            run_before, before = first_seen.setdefault(what, (run, value))
            if value != before:
                name = " ".join(filter(None, what))
                raise RecordError(
                    f"records: {name} is {before!r} in run {run_before} and {value!r} in run {run}; "
                    "pass runs of one kind"
                )
        rows.append(row)
    if not rows:
        raise RecordError(f"records: none with init={init!r}; run some or choose another init")
    return Scores(pd.DataFrame(rows), "lower" if metric in LOWER_IS_BETTER else "higher")


def _row(record: Mapping[str, Any], metric: str, part: str) -> dict[str, Any]:
    run = str(record["id"])[:12]
    if record["interrupted"]:
        raise RecordError(f"records: run {run} was interrupted; run it again")
    metrics = record["metrics"]
    if part not in metrics:
        raise InputError(f"part: got {part!r}; pass one of {', '.join(metrics)}")
    if metric not in metrics[part]:
        raise InputError(f"metric: got {metric!r}; run {run} has {', '.join(metrics[part])}")
    value = metrics[part][metric]
    if value is None or not math.isfinite(value):
        raise RecordError(f"records: {part} {metric} of run {run} is not a finite number; leave the run out")
    config = record["config"]
    return {
        "method": config["method"],
        "dataset": config["dataset"]["name"],
        "seed": config["seed"],
        "split": config["split"],
        "value": value,
    }


def _checked(table: pd.DataFrame) -> pd.DataFrame:
    if not isinstance(table, pd.DataFrame):
        raise InputError(f"table: expected a pandas DataFrame, got {type(table).__name__}")
    missing = [column for column in COLUMNS if column not in table]
    if missing:
        raise InputError(f"table: no column {missing[0]!r}; it needs {', '.join(COLUMNS)}")
    table = table.loc[:, [*COLUMNS, *(["split"] if "split" in table else [])]].reset_index(drop=True)
    if "split" not in table:
        table["split"] = pd.NA
    if table.empty:
        raise InputError("table: it has no rows")
    if table[list(COLUMNS)].isna().any(axis=None):
        row = table[table[list(COLUMNS)].isna().any(axis=1)].iloc[0]
        raise InputError(f"table: a missing value at {_place(row)}; leave the row out or finish the run")
    try:
        table = table.astype({"method": str, "dataset": str, "seed": "int64", "value": "float64", "split": "Int64"})
    except (TypeError, ValueError) as error:
        raise InputError(f"table: seed and split must be whole numbers, value a number ({error})") from error
    if not np.isfinite(table["value"]).all():
        row = table[~np.isfinite(table["value"])].iloc[0]
        raise InputError(f"table: the value at {_place(row)} is {row['value']}; leave the row out")
    repeated = table.duplicated(["method", "dataset", "seed"])
    if repeated.any():
        raise InputError(f"table: more than one value at {_place(table[repeated].iloc[0])}; keep one")
    return table


def _place(row: pd.Series[Any]) -> str:
    return f"method {row['method']}, dataset {row['dataset']}, seed {row['seed']}"
