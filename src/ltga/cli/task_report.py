"""What ``ltga train`` says of other tasks than node classification: methods beside what needs no training."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from ltga.cli.terminal import plain_table
from ltga.nn.methods import Method
from ltga.train.record import Record, kept_index, plain
from ltga.train.record_schema import timing_of
from ltga.train.show import ERRORS, shown
from ltga.train.tasks.references import references
from ltga.train.tasks.task_run import PlannedTask

SHOWN: Mapping[str, tuple[str, ...]] = {
    "node regression": ("mae", "r2", "log_mae", "log_r2"),
    "multi-label nodes": ("micro_f1", "macro_f1", "average_precision"),
    "graph classification": ("accuracy", "macro_f1"),
    "graph regression": ("rmse", "mae", "r2"),
    "multi-label graphs": ("roc_auc", "average_precision"),
    "link prediction": ("mrr", "hits_at_1", "hits_at_10", "roc_auc", "average_precision"),
    "typed link prediction": ("mrr", "hits_at_1", "hits_at_3", "hits_at_10"),
}
"""The columns of a task's table; the first is what a method is judged by, unless labels or the user say otherwise."""


@dataclass(frozen=True)
class Row:
    """A method's, or a reference's, test metrics of every seed."""

    name: str
    label: str
    scores: list[dict[str, float | None]]
    q: float | None = None
    seconds: float | None = None
    records: tuple[str, ...] = ()

    def mean(self, metric: str) -> float | None:
        known = self.values(metric)
        return statistics.fmean(known) if known else None

    def values(self, metric: str) -> list[float]:
        return [float(found[metric]) for found in self.scores if found.get(metric) is not None]  # type: ignore[arg-type]


def judged_by(task: str, record: Mapping[str, Any]) -> str:
    """What a run's table is judged by: what was asked for, or what suits the task and its labels.

    >>> judged_by("link prediction", {"metric": "mrr", "config": {"protocol": {"metric": "auto"}}})
    'mrr'
    """
    asked, metric = record["config"]["protocol"]["metric"], record["metric"]
    chosen = asked not in ("auto", "loss") or task == "graph classification"
    return str(metric) if chosen and metric != "loss" else SHOWN[task][0]


def reference_rows(planned: Sequence[PlannedTask]) -> list[Row]:
    found = [references(run) for run in planned]
    return [Row(name, name, [one[name]["test"] for one in found if "test" in one[name]]) for name in found[0]]  # type: ignore[misc]


def row_of(method: Method, records: Sequence[Record], store: Path) -> Row:
    softmax = {**method.settings, **(method.paired or {})}.get("normalizer") == "softmax"
    q = [
        value
        for record in ([] if softmax else records)
        for layer in kept_index(record)
        for value in layer.get("mean", [])
        if value is not None
    ]
    return Row(
        method.name,
        method.label,
        [dict(record["metrics"].get("test", {})) for record in records],
        statistics.fmean(q) if q else None,
        statistics.median(timing_of(record).own_seconds for record in records),
        tuple(str(store / f"{record['id']}.json") for record in records),
    )


def table(task: str, rows: Sequence[Row], first: str) -> Table:
    """A row per reference and method, mean ± sample s.d. over seeds (folds) on the test part; judged by ``first``."""
    listed = dict.fromkeys((first, *SHOWN[task]))
    metrics = [metric for metric in listed if any(row.mean(metric) is not None for row in rows)]
    made = plain_table("method", *(f">test {metric}" for metric in metrics), ">mean q or α", ">seconds a run")
    made.columns[0].no_wrap = True
    for row in rows:
        q = "" if row.q is None else f"{row.q:.2f}"
        seconds = "" if row.seconds is None else f"{row.seconds:.1f}"
        made.add_row(escape(row.label), *(_spread(metric, row.values(metric)) for metric in metrics), q, seconds)
    return made


def sentences(task: str, rows: Sequence[Row], planned: PlannedTask, metric: str) -> list[str]:
    """What a reader must know: against what links are told, and which methods do not beat what needs no graph."""
    said = []
    if task == "link prediction":
        options = planned.options
        said.append(f"Every edge stands against {options.each} {options.negatives} pairs without one.")
    sign = -1 if metric in ERRORS else 1
    plain_rows = [row for row in rows if _is_simple(row) and row.mean(metric) is not None]
    if plain_rows:
        best = max(plain_rows, key=lambda row: sign * float(row.mean(metric) or 0))
        bar = sign * float(best.mean(metric) or 0)
        trained = [row for row in rows if row.seconds is not None and row is not best and row.mean(metric) is not None]
        short = [row.label for row in trained if sign * float(row.mean(metric) or 0) <= bar]
        if short:
            said.append(
                f"No better than {best.label} ({metric} {shown(metric, best.mean(metric))}): {', '.join(short)}."
            )
    return said


def _is_simple(row: Row) -> bool:
    """Whether a row knows nothing of the graph's edges, or learns nothing."""
    return row.seconds is None or row.name == "features"


def as_json(
    name: str, task: str, metric: str, planned: PlannedTask, rows: Sequence[Row], said: Sequence[str], store: Path
) -> dict[str, Any]:
    """The comparison for scripts; scores as they are, neither per cent nor rounded."""
    listed = [
        {
            "method": row.name,
            "label": row.label,
            "trained": row.seconds is not None,
            "mean": {name: row.mean(name) for name in dict.fromkeys((metric, *SHOWN[task]))},
            "runs": row.scores,
            "records": row.records,
            "q": row.q,
            "seconds": row.seconds,
        }
        for row in rows
    ]
    return plain(  # type: ignore[no-any-return]
        {
            "dataset": {"name": name, "fingerprint": planned.config["dataset"]["fingerprint"]},
            "task": task,
            "part": "test",
            "metric": metric,
            "options": planned.config["options"],
            "protocol": planned.config["protocol"],
            "methods": listed,
            "sentences": list(said),
            "store": str(store),
        }
    )


def _spread(metric: str, values: Sequence[float]) -> str:
    if not values:
        return ""
    return shown(metric, statistics.fmean(values)) + (
        f" ± {shown(metric, statistics.stdev(values))}" if len(values) > 1 else ""
    )
