"""Lorenz curves of attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from ltga.report.study.figures.style import GREY, look, panels
from ltga.report.study.names import label


@dataclass(frozen=True, eq=False)
class Lorenz:
    """Share of the weight that the lightest part of the edges holds, both ``[P]``, and the Gini coefficient."""

    population: np.ndarray
    share: np.ndarray
    gini: float


def lorenz_figure(found: Mapping[str, Mapping[str, Lorenz]], even: Mapping[str, Lorenz]) -> Figure:
    """A panel per dataset, a curve per method with its Gini in the legend.

    Args:
        found: title of the panel -> method -> curve.
        even: title of the panel -> the curve of evenly spread attention on the same graph.
    """
    figure, axes = panels(len(found), width=3.3, height=3.3)
    for axis, (title, curves) in zip(axes, found.items()):
        axis.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=0.9, label="equal weights")
        for number, (method, curve) in enumerate(curves.items()):
            # Curves often lie on one another: markers start at different places.
            places = (4 + 3 * number, 6 * 3)
            shape = look(method).line(linewidth=1.2, markersize=4, markevery=places)
            axis.plot(curve.population, curve.share, label=f"{label(method)}, G {curve.gini:.2f}", **shape)
        flat = even[title]
        axis.plot(flat.population, flat.share, color="black", linestyle=":", label=f"even, G {flat.gini:.2f}")
        axis.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title=title, xlabel="share of edges, lightest first")
        axis.legend(loc="upper left", fontsize=7.5, borderpad=0.2, labelspacing=0.3)
    axes[0].set_ylabel("share of attention")
    return figure
