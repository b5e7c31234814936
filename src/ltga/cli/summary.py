"""What a set of finished runs says: a table with spread, a sentence on q, the same as JSON."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.markup import escape
from rich.table import Table

from ltga.cli.advice import advice
from ltga.cli.plan import Plan
from ltga.cli.terminal import plain_table
from ltga.data import Dataset, GraphFolder
from ltga.data.target import rarer_class
from ltga.nn.methods import Method
from ltga.train import Protocol, Run
from ltga.train.record import kept_index, plain
from ltga.train.record_schema import RunRecord
from ltga.train.targets import metric_of
from ltga.train.yardsticks import yardsticks

UNMOVED = 0.01  # q closer to its start than this counts as not moved


@dataclass(frozen=True)
class Ignored:
    """Edges to which some head of some layer gives a weight of exactly zero, and those of them that are planted."""

    edges: int
    planted: int


@dataclass(frozen=True)
class Finished:
    """What a comparison needs of a run; its model stays on disk.

    Attributes:
        q: mean of every layer and head at the best epoch; alpha where it is entmax's; empty for softmax.
        ignored: where planted edges are known and the network can be looked into.
    """

    record: RunRecord
    path: Path
    q: list[float]
    ignored: Ignored | None
    reused: bool

    @property
    def mean_q(self) -> float | None:
        return statistics.fmean(self.q) if self.q else None

    def score(self, part: str, metric: str) -> float:
        value = getattr(self.record.metrics[part], metric)  # type: ignore[index]
        return math.nan if value is None else float(value)

    @property
    def zero_fraction(self) -> float | None:
        """Share of exactly zero attention weights, over layers and heads; ``None`` without attention."""
        return _mean(value for layer in self.record.attention or () for value in layer.zero_fraction)


@dataclass(frozen=True)
class Group:
    """The runs of one method, a seed each."""

    method: Method
    runs: list[Finished]


@dataclass(frozen=True)
class Simple:
    """A yardstick: its score and calibration error on every split."""

    label: str
    scores: list[float]
    ece: list[float]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.scores)


def finished(run: Run, path: Path, graph: Dataset | GraphFolder, reused: bool) -> Finished:
    """The part of ``run`` that the comparison keeps."""
    layers = kept_index(run.record) if run.model.normalizer in ("q_softmax", "entmax") else []
    q = [value for layer in layers for value in layer["mean"] if value is not None]
    return Finished(run.typed, path, q, _ignored(run, graph), reused)


def _ignored(run: Run, graph: Dataset | GraphFolder) -> Ignored | None:
    planted = None if isinstance(graph, GraphFolder) else graph.data.get("planted_edge")
    if isinstance(graph, GraphFolder) or planted is None or not run.model.attends:
        return None
    layers = run.model.attend(graph.data.x, graph.data.edge_index)
    zero = torch.stack([layer.zeros[: len(planted)].any(1) for layer in layers]).any(0)  # self-loops come last
    return Ignored(int(zero.sum()), int(zero[planted].sum()))


def score_name(graph: Dataset | GraphFolder, runs: Sequence[Finished]) -> tuple[str, str]:
    """Which part and metric to compare: test, or validation where a graph has no test nodes."""
    tested = all("test" in run.record.metrics for run in runs)
    return "test" if tested else "val", (runs[0].record.metric if runs else None) or metric_of(graph)


def judged_by(graph: Dataset | GraphFolder, metric: str) -> str:
    """The metric, and which class it is about if it is about one."""
    if metric != "average_precision":
        return metric
    return f"{metric} of {escape(repr(str(graph.class_names[rarer_class(graph.target.y)])))}"


def simple_rows(graph: Dataset | GraphFolder, groups: Sequence[Group]) -> list[Simple]:
    """What the methods have to beat, on the same splits."""
    runs = [run for group in groups for run in group.runs]
    part, metric = score_name(graph, runs)
    splits = dict.fromkeys(run.record.config.split for run in runs)
    found: dict[str, list[dict[str, float]]] = {}
    for split in splits:
        for one in yardsticks(graph, split, part):
            found.setdefault(one.label, []).append(one.metrics)
    return [
        Simple(label, [metrics[metric] for metrics in rows], [metrics["ece"] for metrics in rows])
        for label, rows in found.items()
    ]


def table(graph: Dataset | GraphFolder, groups: Sequence[Group], simple: Sequence[Simple] = ()) -> Table:
    """A row per method, mean ± sample s.d. over seeds; yardsticks first."""
    part, metric = score_name(graph, [run for group in groups for run in group.runs])
    judged = f">{part} {judged_by(graph, metric)}"
    shown = plain_table("method", judged, ">ECE", ">mean q or α", ">exact zeros", ">seconds a run")
    shown.columns[0].no_wrap = True
    for one in simple:
        shown.add_row(one.label, _percent(one.scores), f"{statistics.fmean(one.ece):.3f}", "", "", "")
    for group in groups:
        zeros = _mean(run.zero_fraction for run in group.runs)
        q = _mean(run.mean_q for run in group.runs)
        softmax = "1 (softmax)" if group.method.family in ("softmax", "control") else ""
        shown.add_row(
            escape(group.method.label),
            _percent([run.score(part, metric) for run in group.runs]),
            f"{statistics.fmean(run.score(part, 'ece') for run in group.runs):.3f}",
            softmax if q is None else f"{q:.2f}",
            "" if zeros is None else f"{100 * zeros:.1f} %",
            f"{statistics.median(run.record.timing.own_seconds for run in group.runs):.1f}",
        )
    return shown


def sentences(
    graph: Dataset | GraphFolder, plan: Plan, groups: Sequence[Group], simple: Sequence[Simple] = ()
) -> list[str]:
    """Who does not beat the yardsticks or knows one class only; what methods that learn q or alpha did and ignored."""
    return (
        _beaten(graph, groups, simple)
        + _of_one_class(graph, groups)
        + [
            " ".join(filter(None, (_what_q_did(group, plan.protocol), _what_was_ignored(graph, group))))
            for group in groups
            if group.method.learns_index
        ]
        + (advice(graph) if any(group.method.family == "learned α" for group in groups) else [])
    )


def _beaten(graph: Dataset | GraphFolder, groups: Sequence[Group], simple: Sequence[Simple]) -> list[str]:
    """Plain sentences about every yardstick that some method does not beat, or by less than its seeds differ."""
    part, metric = score_name(graph, [run for group in groups for run in group.runs])
    scores = {group.method.label: [run.score(part, metric) for run in group.runs] for group in groups}
    means = {label: statistics.fmean(values) for label, values in scores.items()}
    spreads = {label: statistics.stdev(values) if len(values) > 1 else 0.0 for label, values in scores.items()}
    if any(math.isnan(mean) for mean in means.values()):
        return [f"There is no {metric} where the {part} part has one class only (nan): label more nodes of the other."]
    said = []
    for one in simple:
        what = "always saying the commonest class" if one is simple[0] else "a linear model of the features alone"
        losers = [label for label, mean in means.items() if not mean > one.mean]
        if losers:
            who = "No method here beats" if len(losers) == len(means) > 1 else f"{_listed(losers)} does not beat"
            said.append(f"{who} {what} ({100 * one.mean:.1f} {metric}).")
        hardly = [label for label, mean in means.items() if 0 < mean - one.mean < spreads[label]]
        if hardly:
            said.append(f"{_listed(hardly)} beats {what} by less than seeds differ ({100 * one.mean:.1f} {metric}).")
    return said


def _of_one_class(graph: Dataset | GraphFolder, groups: Sequence[Group]) -> list[str]:
    """A sentence about every method that gives all test nodes one class, however well it may rank them."""
    said = []
    for group in groups:
        shares = [(run.record.predicted_share or {}).get("test") or [0.0] for run in group.runs]
        if graph.num_classes > 1 and all(max(share) == 1.0 for share in shares):  # type: ignore[type-var]
            names = {str(graph.class_names[share.index(1.0)]) for share in shares}
            what = repr(names.pop()) if len(names) == 1 else "one class in every run"
            off = statistics.fmean(run.score("test", "ece") for run in group.runs)
            said.append(
                f"{group.method.label} calls every test node {what}: train with --set class_weights=true, or rank "
                f"nodes by its probabilities (off by {100 * off:.0f} points on average, as ECE counts)."
            )
    return said


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"Each of {', '.join(names[:-1])} and {names[-1]}"


def _percent(scores: Sequence[float]) -> str:
    """Mean ± sample s.d. in percent."""
    shown = [100 * score for score in scores]
    spread = f" ± {statistics.stdev(shown):.1f}" if len(shown) > 1 else ""
    return f"{statistics.fmean(shown):.1f}{spread}"


def _what_q_did(group: Group, protocol: Protocol) -> str:
    values = [value for run in group.runs for value in run.q]
    low, mean, high = min(values), statistics.fmean(values), max(values)
    label, start = group.method.label, float(group.runs[0].record.config.as_protocol().index_start)
    q = "α" if group.method.family == "learned α" else "q"
    best = [run.record.best_epoch for run in group.runs]
    if max(best) <= protocol.warmup:
        when = f"epoch {best[0]}" if min(best) == max(best) else f"epochs {min(best)} to {max(best)}"
        return (
            f"{label}: {q} is still {start:g}, because the best epoch ({when}) came before the warm-up of "
            f"{protocol.warmup} ended."
        )
    if max(abs(low - start), abs(high - start)) < UNMOVED:
        return f"{label}: {q} stayed at {start:g}, where it began."
    direction = "sparser than softmax" if mean > 1 else "heavier-tailed than softmax"
    span = f"(layers and heads: {low:.2f} to {high:.2f})"
    return f"{label}: {q} moved from {start:g} to {mean:.2f} {span}, {direction}."


def _what_was_ignored(graph: Dataset | GraphFolder, group: Group) -> str:
    counts = [run.ignored for run in group.runs if run.ignored is not None]
    if isinstance(graph, GraphFolder) or not counts:
        return ""
    edges, planted = (statistics.fmean(getattr(count, name) for count in counts) for name in ("edges", "planted"))
    if edges == 0:
        return "No edge is ignored."
    share = 100 * float(graph.data.planted_edge.double().mean())
    a_seed = " a seed" if len(counts) > 1 else ""
    return (
        f"Of the {edges:,.0f} edges{a_seed} that some head ignores, {planted:,.0f} ({100 * planted / edges:.1f} %) "
        f"are planted noise; of all edges {share:.0f} % are."
    )


def as_json(
    graph: Dataset | GraphFolder,
    plan: Plan,
    groups: Sequence[Group],
    simple: Sequence[Simple],
    store: Path,
    page: Path | None,
) -> dict[str, Any]:
    """The comparison for scripts; scores are shares between 0 and 1."""
    part, metric = score_name(graph, [run for group in groups for run in group.runs])
    summary = {
        "dataset": {
            "name": graph.name,
            "fingerprint": graph.fingerprint,
            "nodes": graph.num_nodes,
            "edges": graph.num_edges,
            "classes": graph.num_classes,
        },
        "protocol": plan.protocol.model_dump(),
        "part": part,
        "metric": metric,
        "methods": [_group_json(group, part, metric) for group in groups],
        "yardsticks": {one.label: one.mean for one in simple},
        "sentences": sentences(graph, plan, groups, simple),
        "store": str(store),
        "page": None if page is None else str(page),
    }
    return plain(summary)  # type: ignore[no-any-return]


def _group_json(group: Group, part: str, metric: str) -> dict[str, Any]:
    scores = [run.score(part, metric) for run in group.runs]
    return {
        "method": group.method.name,
        "label": group.method.label,
        "mean": statistics.fmean(scores),
        "std": statistics.stdev(scores) if len(scores) > 1 else None,
        "q": _mean(run.mean_q for run in group.runs),
        "zero_fraction": _mean(run.zero_fraction for run in group.runs),
        "runs": [
            {
                "seed": run.record.config.seed,
                "record": str(run.path),
                "reused": run.reused,
                "score": score,
                "metrics": {part: scored.model_dump(exclude_unset=True) for part, scored in run.record.metrics.items()},
                "q": run.q or None,
                "ignored_edges": None if run.ignored is None else run.ignored.edges,
                "ignored_planted_edges": None if run.ignored is None else run.ignored.planted,
                "best_epoch": run.record.best_epoch,
                "seconds": run.record.timing.train_seconds,
            }
            for run, score in zip(group.runs, scores)
        ],
    }


def _mean(values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None
