"""How concentrated the first layer's attention is: Lorenz curves."""

from __future__ import annotations

from statistics import fmean

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ltga.study import Experiment
from ltga.study.report.analysis_table import concentration_runs
from ltga.study.report.figures.panels import panel_each
from ltga.study.report.figures.style import GREY, Drawing, look
from ltga.study.report.names import dataset_title, label
from ltga.study.report.run_table import grouped
from ltga.study.report.runs import Study


def draw_lorenz(study: Study, experiment: Experiment) -> list[Drawing]:
    """A panel per dataset, a curve per method, mean over seeds, with its Gini in the legend."""
    runs = concentration_runs(study, experiment)
    runs = runs[runs["analysed"]]
    if runs.empty:
        return []
    found = {dataset_title(dataset): here for dataset, here in grouped(runs, "dataset").items()}
    figure, drawn = panel_each(found, "share of edges, lightest first", "share of attention", width=3.3, height=3.3)
    for axis, here in drawn:
        axis.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=0.9, label="equal weights")
        for number, (method, group) in enumerate(grouped(here, "method").items()):
            # Curves often lie on one another: markers start at different places.
            shape = look(method).line(linewidth=1.2, markersize=4, markevery=(4 + 3 * number, 6 * 3))
            _curve(axis, group, "attention", "gini", label(method), **shape)
        _curve(axis, group, "even", "gini_even", "even", color="black", linestyle=":")  # every method has the same
        axis.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        axis.legend(loc="upper left", fontsize=7.5, borderpad=0.2, labelspacing=0.3)
    caption = (
        "Lorenz curves of the first layer's attention weights, mean over seeds, with the mean Gini coefficient G; "
        "dotted: what the same graph gives if every node spreads its attention evenly."
    )
    return [Drawing(experiment.name, caption, figure)]


def _curve(axis: Axes, runs: pd.DataFrame, curve: str, gini: str, name: str, **line: object) -> None:
    curves = [frames["curves"] for frames in runs["frames"]]
    share = np.mean([found[curve].to_numpy() for found in curves], axis=0)
    said = f"{name}, G {fmean(runs[gini]):.2f}"
    axis.plot(curves[0]["population"].to_numpy(), share, label=said, **line)  # type: ignore[arg-type]
