"""Reliability diagrams and calibration scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ltga.report.study.figures.style import GREY, look, panels
from ltga.report.study.names import label


def reliability(found: Mapping[str, Mapping[str, pd.DataFrame]]) -> Figure:
    """Accuracy against confidence; a point's area grows with its share of predictions.

    Args:
        found: title of the panel -> method -> bins, as :func:`ltga.analysis.calibration.reliability` gives them.
    """
    figure, axes = panels(len(found), width=2.6, height=2.5)
    methods = list(dict.fromkeys(method for group in found.values() for method in group))
    for axis, (dataset, group) in zip(axes, found.items()):
        axis.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=0.9)
        for method, bins in group.items():
            x, y, count = (bins.dropna()[name].to_numpy() for name in ("confidence", "accuracy", "count"))
            shape = look(method)
            axis.plot(x, y, color=shape.colour, linewidth=1.2)
            points: dict[str, Any] = {
                "color": shape.colour,
                "marker": shape.marker,
                "edgecolor": "white",
                "linewidth": 0.5,
            }
            axis.scatter(x, y, s=8 + 90 * count / count.sum(), **points, zorder=3, clip_on=False)
        axis.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title=dataset, xlabel="confidence")
    axes[0].set_ylabel("accuracy")
    handles = [Line2D([], [], **look(method).line(label=label(method))) for method in methods]
    handles.append(Line2D([], [], color=GREY, linestyle="--", label="perfect"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def scores(found: Mapping[str, Mapping[str, Sequence[float]]], datasets: Sequence[str]) -> Figure:
    """A panel per score (ECE, NLL, Brier), a bar per method: mean over datasets and seeds; lower is better."""
    figure, axes = panels(len(found), width=2.2, height=2.3)
    for axis, (name, group) in zip(axes, found.items()):
        for place, (method, values) in enumerate(group.items()):
            bar = axis.bar(place, np.mean(values), color=look(method).colour, width=0.6)
            axis.bar_label(bar, fmt="%.3f", padding=2, fontsize=8)
        axis.set_xticks(range(len(group)), [label(method) for method in group])
        axis.margins(y=0.15)
        axis.set_title(f"{name} (lower is better)")
    figure.supxlabel(f"mean over seeds of {', '.join(datasets)}", fontsize=8)
    return figure
