"""What pruning is worth to a trained model, which edges it takes, and planted edges among them."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ltga.study import Experiment
from ltga.study.report.analysis_table import counterfactual_runs, pruned_edge_runs
from ltga.study.report.figures.panels import entry, legend_below, method_entries, room
from ltga.study.report.figures.style import GREY, Drawing, drawing_name, look
from ltga.study.report.names import COUNTERFACTUALS, HEADS, dataset_title
from ltga.study.report.run_table import grouped
from ltga.study.report.runs import Study

STEP = 0.3  # between the methods of one place
_FILLS = ("full", "none")


def draw_pruning(study: Study, experiment: Experiment) -> list[Drawing]:
    """What pruning is worth and which edges it takes, a figure per dataset."""
    models, edges = counterfactual_runs(study, experiment), pruned_edge_runs(study, experiment)
    drawings = []
    for dataset, here in grouped(models[models["analysed"]], "dataset").items():
        changed = here.melt(["method"], list(COUNTERFACTUALS), "place", "first")
        changed["place"] = [COUNTERFACTUALS[key][0] for key in changed["place"]]
        taken = edges[edges["analysed"] & (edges["dataset"] == dataset)]
        taken = taken.assign(place=[f"layer {n}, {HEADS[head]}" for n, head in zip(taken["layer"], taken["head"])])
        planted = taken["base_rate"].notna().any()
        said = f"{dataset_title(dataset)}, mean and s.d. over seeds: accuracy with index or support changed at "
        said += "inference; label agreement (training labels) of pruned and kept edges"
        said += "; planted edges found by pruning." if planted else "."
        drawings.append(Drawing(drawing_name(experiment, dataset), said, _figure(changed, taken, planted)))
    return drawings


def _figure(accuracy: pd.DataFrame, edges: pd.DataFrame, planted: bool) -> Figure:
    """Accuracy per counterfactual, label agreement of pruned and kept edges, and planted edges if there are any."""
    count = 3 if planted else 2
    figure = Figure(figsize=(2.4 + 2.4 * count, 3.2), layout="constrained")
    axes = figure.subplots(1, count)
    _rows(axes[0], accuracy, "first")
    axes[0].set(title="(a) accuracy", xlabel="test accuracy (%)")
    room(axes[0], across=True)
    _print_means(axes[0], accuracy)
    _rows(axes[1], edges, "agreement_pruned", "agreement_kept")
    axes[1].set(title="(b) label agreement", xlabel="edges within a class (%)")
    names = ("pruned (b), precision (c)", "kept (b), recall (c)") if planted else ("pruned", "kept")
    entries = method_entries(accuracy["method"].unique(), linestyle="")
    entries += [entry(n, color=GREY, marker="o", linestyle="", fillstyle=f) for n, f in zip(names, _FILLS)]
    if planted:
        _rows(axes[2], edges, "precision", "recall")
        axes[2].set(title="(c) planted edges", xlabel="precision, recall (%)", xlim=(-3, 103))
        axes[2].set_yticklabels([])  # the same as in (b)
        blind = 100 * edges["base_rate"].dropna().iloc[0]
        axes[2].axvline(blind, color=GREY, linestyle="--", linewidth=0.9, zorder=0)
        entries.append(entry("base rate (c)", color=GREY, linestyle="--"))
    legend_below(figure, entries, len(entries))
    return figure


def _heights(runs: pd.DataFrame) -> Iterator[tuple[str, float, pd.DataFrame]]:
    """A row per place, a method above the other in it: method, height and runs."""
    places, methods = runs["place"].unique().tolist(), runs["method"].unique().tolist()
    for (method, place), here in grouped(runs, "method", "place").items():
        yield method, places.index(place) + STEP * (methods.index(method) - (len(methods) - 1) / 2), here


def _print_means(axis: Axes, runs: pd.DataFrame) -> None:
    """The means in figures at the right edge: one counterfactual may lie so far off that the others fall together."""
    for method, height, here in _heights(runs):
        axis.annotate(
            f"{100 * here['first'].mean():.1f}", (1.02, height), xycoords=("axes fraction", "data"), fontsize=6.5,
            va="center", color=look(method).colour, annotation_clip=False,
        )  # fmt: skip


def _rows(axis: Axes, runs: pd.DataFrame, *columns: str) -> None:
    """Mean and s.d. of each column in percent, the first drawn filled, the second hollow, those of a method joined."""
    for method, height, here in _heights(runs):
        drawn = [(100 * here[name].dropna(), fill) for name, fill in zip(columns, _FILLS) if here[name].notna().any()]
        means = [values.mean() for values, _ in drawn]
        axis.plot(means, [height] * len(means), color=look(method).colour, linewidth=0.7, alpha=0.6, zorder=1)
        for values, fill in drawn:
            spread = values.std() if len(values) > 1 else 0.0
            shape = look(method).line(linestyle="", fillstyle=fill)
            axis.errorbar(values.mean(), height, xerr=spread, capsize=2, elinewidth=0.8, **shape)
    places = runs["place"].unique()
    axis.set_yticks(range(len(places)), places)
    axis.set_ylim(len(places) - 0.4, -0.6)
    axis.grid(axis="x", color=GREY, alpha=0.2, linewidth=0.6)
    axis.set_axisbelow(True)
