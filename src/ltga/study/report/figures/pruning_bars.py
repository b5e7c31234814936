"""What pruning is worth to a trained model, which edges it takes, and planted edges among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
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
Found = Mapping[str, Mapping[str, Sequence[Sequence[float]]]]
"""Method -> place -> groups of values in percent: the first is drawn filled, the second hollow."""


def draw_pruning(study: Study, experiment: Experiment) -> list[Drawing]:
    """What pruning is worth and which edges it takes, a figure per dataset."""
    models, edges = counterfactual_runs(study, experiment), pruned_edge_runs(study, experiment)
    drawings = []
    for dataset, here in grouped(models[models["analysed"]], "dataset").items():
        accuracy = {
            method: {name: [_percent(runs[key])] for key, (name, _) in COUNTERFACTUALS.items()}
            for method, runs in grouped(here, "method").items()
        }
        taken = edges[edges["analysed"] & (edges["dataset"] == dataset)]
        base = _percent(taken["base_rate"])
        agreement = _by_place(taken, "agreement_pruned", "agreement_kept")
        planted = _by_place(taken, "precision", "recall") if base else {}
        said = f"{dataset_title(dataset)}, mean and s.d. over seeds: accuracy with index or support changed at "
        said += "inference; label agreement (training labels) of pruned and kept edges"
        said += "; planted edges found by pruning." if planted else "."
        figure = _figure(accuracy, agreement, planted, base[0] if base else None)
        drawings.append(Drawing(drawing_name(experiment, dataset), said, figure))
    return drawings


def _by_place(edges: pd.DataFrame, *columns: str) -> Found:
    found: dict[str, dict[str, list[list[float]]]] = {}
    for (method, layer, head), runs in grouped(edges, "method", "layer", "head").items():
        groups = [_percent(runs[column]) for column in columns]
        found.setdefault(method, {})[f"layer {layer}, {HEADS[head]}"] = groups
    return found


def _percent(column: pd.Series[float]) -> list[float]:
    return (100 * column.dropna()).tolist()


def _figure(accuracy: Found, agreement: Found, planted: Found, base_rate: float | None) -> Figure:
    """Accuracy per counterfactual, label agreement of pruned and kept edges, and planted edges if there are any.

    ``base_rate`` is the precision of pruning blindly.
    """
    count = 3 if planted else 2
    figure = Figure(figsize=(2.4 + 2.4 * count, 3.2), layout="constrained")
    axes = figure.subplots(1, count)
    _rows(axes[0], accuracy)
    axes[0].set(title="(a) accuracy", xlabel="test accuracy (%)")
    room(axes[0], across=True)
    _print_means(axes[0], accuracy)
    _rows(axes[1], agreement)
    axes[1].set(title="(b) label agreement", xlabel="edges within a class (%)")
    names = ("pruned (b), precision (c)", "kept (b), recall (c)") if planted else ("pruned", "kept")
    entries = method_entries(accuracy, linestyle="")
    entries += [entry(n, color=GREY, marker="o", linestyle="", fillstyle=f) for n, f in zip(names, _FILLS)]
    if planted:
        _rows(axes[2], planted)
        axes[2].set(title="(c) planted edges", xlabel="precision, recall (%)", xlim=(-3, 103))
        axes[2].set_yticklabels([])  # the same as in (b)
    if planted and base_rate is not None:
        axes[2].axvline(base_rate, color=GREY, linestyle="--", linewidth=0.9, zorder=0)
        entries.append(entry("base rate (c)", color=GREY, linestyle="--"))
    legend_below(figure, entries, len(entries))
    return figure


def _print_means(axis: Axes, found: Found) -> None:
    """The means in figures at the right edge: one counterfactual may lie so far off that the others fall together."""
    places = list(dict.fromkeys(place for by_place in found.values() for place in by_place))
    for number, (method, by_place) in enumerate(found.items()):
        for place, values in by_place.items():
            height = places.index(place) + STEP * (number - (len(found) - 1) / 2)
            axis.annotate(
                f"{np.mean(values[0]):.1f}", (1.02, height), xycoords=("axes fraction", "data"), fontsize=6.5,
                va="center", color=look(method).colour, annotation_clip=False,
            )  # fmt: skip


def _rows(axis: Axes, found: Found) -> None:
    """A row per place, a method above the other in it; mean and s.d. of each group, the groups of a method joined."""
    places = list(dict.fromkeys(place for by_place in found.values() for place in by_place))
    for number, (method, by_place) in enumerate(found.items()):
        shift = STEP * (number - (len(found) - 1) / 2)
        for place, values in by_place.items():
            height = places.index(place) + shift
            drawn = [(group, fill) for group, fill in zip(values, _FILLS) if group]
            means = [float(np.mean(group)) for group, _ in drawn]
            axis.plot(means, [height] * len(means), color=look(method).colour, linewidth=0.7, alpha=0.6, zorder=1)
            for (group, fill), mean in zip(drawn, means):
                spread = float(np.std(group, ddof=1)) if len(group) > 1 else 0.0
                shape = look(method).line(linestyle="", fillstyle=fill)
                axis.errorbar(mean, height, xerr=spread, capsize=2, elinewidth=0.8, **shape)
    axis.set_yticks(range(len(places)), places)
    axis.set_ylim(len(places) - 0.4, -0.6)
    axis.grid(axis="x", color=GREY, alpha=0.2, linewidth=0.6)
    axis.set_axisbelow(True)
