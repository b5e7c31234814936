"""What pruning is worth to a trained model, and which edges it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ltga.report.study.figures.accuracy import room
from ltga.report.study.figures.style import GREY, look
from ltga.report.study.names import label

Values = Sequence[float]
STEP = 0.3  # between the methods of one place


@dataclass(frozen=True)
class Between:
    """Two groups of values to compare: filled and hollow."""

    filled: Values
    hollow: Values


def pruning_figure(
    accuracy: Mapping[str, Mapping[str, Values]],
    agreement: Mapping[str, Mapping[str, Between]],
    planted: Mapping[str, Mapping[str, Between]],
    base_rate: float | None,
) -> Figure:
    """Accuracy per counterfactual, label agreement of pruned and kept edges, and planted edges if there are any.

    Args:
        accuracy: method -> counterfactual -> accuracies in percent.
        agreement: method -> place (layer and heads) -> pruned and kept, in percent.
        planted: method -> place -> precision and recall, in percent; no panel if empty.
        base_rate: the precision of pruning blindly.
    """
    count = 3 if planted else 2
    figure = Figure(figsize=(2.4 + 2.4 * count, 3.2), layout="constrained")
    axes = figure.subplots(1, count)
    _rows(axes[0], accuracy, lambda method, values: [(values, True)])
    axes[0].set(title="(a) accuracy", xlabel="test accuracy (%)")
    room(axes[0], across=True)
    _print_means(axes[0], accuracy)
    _rows(axes[1], agreement, lambda method, pair: [(pair.filled, True), (pair.hollow, False)])
    axes[1].set(title="(b) label agreement", xlabel="edges within a class (%)")
    marks = [_mark("pruned (b), precision (c)" if planted else "pruned", True),
             _mark("kept (b), recall (c)" if planted else "kept", False)]  # fmt: skip
    if planted:
        _rows(axes[2], planted, lambda method, pair: [(pair.filled, True), (pair.hollow, False)])
        axes[2].set(title="(c) planted edges", xlabel="precision, recall (%)", xlim=(-3, 103))
        axes[2].set_yticklabels([])  # the same as in (b)
        if base_rate is not None:
            axes[2].axvline(base_rate, color=GREY, linestyle="--", linewidth=0.9, zorder=0)
            marks.append(Line2D([], [], color=GREY, linestyle="--", label="base rate (c)"))
    methods = [Line2D([], [], **look(method).line(linestyle="", label=label(method))) for method in accuracy]
    figure.legend(handles=[*methods, *marks], loc="outside lower center", ncols=len(methods) + len(marks))
    return figure


def _mark(name: str, filled: bool) -> Line2D:
    return Line2D([], [], color=GREY, marker="o", linestyle="", fillstyle="full" if filled else "none", label=name)


def _print_means(axis: Axes, found: Mapping[str, Mapping[str, Values]]) -> None:
    """The means in figures at the right edge: one counterfactual may lie so far off that the others fall together."""
    places = list(dict.fromkeys(place for by_place in found.values() for place in by_place))
    for number, (method, by_place) in enumerate(found.items()):
        for place, values in by_place.items():
            height = places.index(place) + STEP * (number - (len(found) - 1) / 2)
            axis.annotate(
                f"{np.mean(values):.1f}", (1.02, height), xycoords=("axes fraction", "data"), fontsize=6.5,
                va="center", color=look(method).colour, annotation_clip=False,
            )  # fmt: skip


def _rows(axis: Axes, found: Mapping[str, Mapping[str, Any]], groups: Any) -> None:
    """A row per place, a method above the other in it; mean and s.d. of each group, the groups of a method joined."""
    places = list(dict.fromkeys(place for by_place in found.values() for place in by_place))
    for number, (method, by_place) in enumerate(found.items()):
        shift = STEP * (number - (len(found) - 1) / 2)
        for place, values in by_place.items():
            height = places.index(place) + shift
            drawn = [(group, filled) for group, filled in groups(method, values) if len(group)]
            means = [float(np.mean(group)) for group, _ in drawn]
            axis.plot(means, [height] * len(means), color=look(method).colour, linewidth=0.7, alpha=0.6, zorder=1)
            for (group, filled), mean in zip(drawn, means):
                spread = float(np.std(group, ddof=1)) if len(group) > 1 else 0.0
                shape = look(method).line(linestyle="", fillstyle="full" if filled else "none")
                axis.errorbar(mean, height, xerr=spread, capsize=2, elinewidth=0.8, **shape)
    axis.set_yticks(range(len(places)), places)
    axis.set_ylim(len(places) - 0.4, -0.6)
    axis.grid(axis="x", color=GREY, alpha=0.2, linewidth=0.6)
    axis.set_axisbelow(True)
