"""The runs of an experiment as one tidy table: a row per run, columns for what varied and what was measured."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from statistics import fmean
from typing import Any

import pandas as pd

from ltga.data import CATALOGUE, csbm
from ltga.data.knobs import parse_knobs
from ltga.study import Experiment, RunSpec
from ltga.study.report.names import SWEPT
from ltga.study.report.runs import Study
from ltga.study.tuned import TUNED_ROWS, TunedRow, tuned
from ltga.train.record import Record, kept_index

RunTable = Callable[[Study, Experiment], pd.DataFrame]
_CSBM = inspect.signature(csbm).parameters


def made_once(make: RunTable) -> RunTable:
    """The same, but a study keeps the table of every experiment, which nobody may change then."""

    @wraps(make)
    def kept(study: Study, experiment: Experiment) -> pd.DataFrame:
        key = make, experiment.name
        if key not in study.tables:
            study.tables[key] = make(study, experiment)
        return study.tables[key]

    return kept


@made_once
def run_table(study: Study, experiment: Experiment) -> pd.DataFrame:
    """A row per run that the experiment wants, in the order of its datasets, then of its methods.

    What varied: ``dataset`` (and its ``homophily``), ``method``, ``seed``, every setting of the protocol, and
    ``changed``, the settings that are not the paper's, initialisation aside. What was measured: the
    columns of ``MEASURES``, NaN where a record does not say, and ``record`` itself. A run that is not finished has no
    ``id``.
    """
    found = study.runs(experiment)
    datasets, methods = experiment.datasets, experiment.methods
    specs = sorted(experiment.runs, key=lambda spec: (datasets.index(spec.dataset), methods.index(spec.method)))
    return pd.DataFrame([_varied(spec) | _measured(found.get(spec)) for spec in specs])


def _varied(spec: RunSpec) -> dict[str, Any]:
    facts = CATALOGUE.get(spec.dataset)
    return {
        **dict(spec.protocol),
        "dataset": spec.dataset,
        "homophily": math.nan if facts is None or facts.homophily is None else facts.homophily,
        "method": spec.method,
        "seed": spec.seed,
        "changed": frozenset(spec.overrides) - {"init"},
    }


def learned_q(record: Record) -> float | None:
    """Mean q over layers and heads (and edges) of the model that was kept; ``None`` for a method without q."""
    layers = (layer.get("mean", []) for layer in kept_index(record))
    means = [fmean(known) for heads in layers if (known := [head for head in heads if head is not None])]
    return fmean(means) if means else None


def attention(record: Record, name: str, first: bool = False) -> float | None:
    """One attention statistic, mean over heads and layers, or over the heads of the first layer."""
    layers = record.get("attention") or []
    heads = [value for layer in (layers[:1] if first else layers) for value in layer[name] if value is not None]
    return fmean(heads) if heads else None


def _score(name: str, part: str = "test") -> Callable[[Record], float | None]:
    return lambda record: record["metrics"].get(part, {}).get(name)


def _attention(name: str, first: bool = False) -> Callable[[Record], float | None]:
    return lambda record: attention(record, name, first)


MEASURES: Mapping[str, Callable[[Record], float | None]] = {
    **{name: _score(name) for name in ("accuracy", "ece", "nll", "brier")},
    "val_accuracy": _score("accuracy", "val"),
    "q": learned_q,
    "zeros": _attention("zero_fraction"),
    "neighbours": _attention("effective_neighbors"),
    "first_zeros": _attention("zero_fraction", first=True),
    "first_neighbours": _attention("effective_neighbors", first=True),
    "first_entropy": _attention("entropy", first=True),
    "first_top": _attention("top1", first=True),
}
"""Column of a run table -> how it is read from a record: scores on the test nodes, q of the kept model, attention."""


def _measured(record: Record | None) -> dict[str, Any]:
    if record is None:
        return {"id": None, "record": None, **dict.fromkeys(MEASURES, math.nan)}
    values = {name: read(record) for name, read in MEASURES.items()}
    numbers = {name: math.nan if value is None else float(value) for name, value in values.items()}
    return {"id": record["id"], "record": record, **numbers}


def finished(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs that are in the store."""
    return runs[runs["id"].notna()]


def grouped(runs: pd.DataFrame, *columns: str) -> dict[Any, pd.DataFrame]:
    """The runs by the values of one column, or of several, in the order of the table.

    >>> list(grouped(pd.DataFrame({"seed": [2, 1, 2]}), "seed"))
    [2, 1]
    """
    return dict(iter(runs.groupby(columns[0] if len(columns) == 1 else list(columns), sort=False)))


def in_percent(runs: pd.DataFrame) -> pd.DataFrame:
    """The same with accuracies in percent."""
    return runs.assign(accuracy=100 * runs["accuracy"], val_accuracy=100 * runs["val_accuracy"])


def on_common_seeds(runs: pd.DataFrame, column: str) -> pd.DataFrame:
    """Without seeds that not every value of a column has: means over other seeds do not compare.

    >>> runs = pd.DataFrame({"method": ["a", "a", "b"], "seed": [1, 2, 1]})
    >>> on_common_seeds(runs, "method")["seed"].tolist()
    [1, 1]
    """
    seeds = [set(group) for _, group in runs.groupby(column)["seed"]]
    return runs[runs["seed"].isin(set.intersection(*seeds) if seeds else set())]


def by_setting(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs by ``setting`` that is swept and its ``value``; those of the default belong to every setting.

    A setting counts as swept if some run departs from its default; a run that departs in others too is left out.
    """
    parts = [runs.head(0).assign(setting="", value=math.nan)]
    for setting in SWEPT:
        if any(setting in changed for changed in runs["changed"]):
            alone = runs[[changed <= {setting} for changed in runs["changed"]]]
            part = alone.assign(setting=setting, value=alone[setting].astype(float))
            parts += [here.sort_values("value", kind="stable") for here in grouped(part, "dataset").values()]
    return pd.concat(parts[1:] or parts, ignore_index=True)


def comparable_sweeps(runs: pd.DataFrame) -> pd.DataFrame:
    """The finished runs by setting and value, over the seeds that all values of a setting have on a dataset."""
    swept = by_setting(finished(runs))
    parts = [on_common_seeds(part, "value") for part in grouped(swept, "dataset", "setting").values()]
    return pd.concat(parts) if parts else swept


def sweep_runs(study: Study, experiment: Experiment) -> pd.DataFrame:
    """The run table of an experiment by setting and value."""
    return by_setting(run_table(study, experiment))


def synthetic_runs(study: Study, experiment: Experiment) -> pd.DataFrame:
    """The run table by ``degree`` and ``snr`` of the synthetic graph, whatever graph each seed has."""
    runs = run_table(study, experiment)
    knobs = [parse_knobs(base, csbm, text) for base, _, text in runs["dataset"].map(lambda name: name.partition(":"))]
    varied = {name: [float(found.get(name, _CSBM[name].default)) for found in knobs] for name in ("degree", "snr")}
    places = runs["method"].map(experiment.methods.index)
    return runs.assign(**varied, place=places).sort_values(["degree", "place"], kind="stable")


@made_once
def tuned_runs(study: Study, experiment: Experiment) -> pd.DataFrame:
    """The run table with a row more per seed for every tuned row whose candidates the experiment runs.

    ``tuned`` says which rows these are, and ``chosen`` the method that a tuned row chose on the dataset.
    """
    runs = run_table(study, experiment).assign(tuned=False, chosen=None)
    rows = [row for row in TUNED_ROWS if set(row.candidates) <= set(experiment.methods)]
    return pd.concat([runs, *(_tuned(runs, row) for row in rows)], ignore_index=True)


def _tuned(runs: pd.DataFrame, row: TunedRow) -> pd.DataFrame:
    picks = tuned(finished(runs)["record"], row)
    parts = []
    for dataset, here in grouped(runs, "dataset").items():
        pick = picks.get(dataset)
        method = row.candidates[0] if pick is None else pick.method
        used = set() if pick is None else {record["id"] for record in pick.records}
        part = here[here["method"] == method]
        part = part.assign(method=row.name, tuned=True, chosen=None if pick is None else method)
        part.loc[~part["id"].isin(used), ["id", "record"]] = None
        parts.append(part)
    return pd.concat(parts)


def complete_datasets(runs: pd.DataFrame, methods: Sequence[str], without: Collection[str] = ()) -> tuple[str, ...]:
    """Datasets on which all of these methods have runs, and over the same seeds."""
    found = []
    for dataset, here in grouped(finished(runs), "dataset").items():
        seeds = {frozenset(here.loc[here["method"] == method, "seed"]) for method in methods}
        if len(seeds) == 1 and seeds != {frozenset()} and dataset not in without:
            found.append(dataset)
    return tuple(found)


def mean_accuracies(runs: pd.DataFrame, methods: Sequence[str], datasets: Sequence[str]) -> pd.DataFrame:
    """Mean test accuracies ``[datasets, methods]``."""
    values = finished(runs).groupby(["dataset", "method"])["accuracy"]
    means = {place: sum(group) / len(group) for place, group in values}
    return pd.DataFrame({m: [means[d, m] for d in datasets] for m in methods}, index=list(datasets))
