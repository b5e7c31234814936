"""Reliability diagrams and calibration scores, over the seeds that all methods have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ltga.explanation.reliability import pool_reliability
from ltga.study import Experiment
from ltga.study.report.analysis_table import analysed_runs
from ltga.study.report.figures.panels import entry, legend_below, method_entries, panel_each, panels
from ltga.study.report.figures.style import GREY, Drawing, look
from ltga.study.report.names import dataset_title, label, with_seeds
from ltga.study.report.run_table import finished, grouped, on_common_seeds
from ltga.study.report.runs import Study

SCORES = ("ECE", "NLL", "Brier")


def draw_calibration(study: Study, experiment: Experiment) -> list[Drawing]:
    """Reliability diagrams where all runs could be analysed, and the three scores."""
    runs = finished(analysed_runs(study, experiment, "calibration", lambda frames: {}))
    shared = {
        dataset: common.sort_values("seed")
        for dataset, here in grouped(runs, "dataset").items()
        if set(here["method"]) == set(experiment.methods) and len(common := on_common_seeds(here, "method"))
    }
    groups = {}
    for dataset, here in shared.items():
        if here["analysed"].all():
            pooled = {
                method: pool_reliability([frames["bins"] for frames in here.loc[here["method"] == method, "frames"]])
                for method in experiment.methods
            }
            groups[with_seeds(dataset_title(dataset), here["seed"].nunique())] = pooled
    drawings = []
    if groups:
        caption = "Accuracy against confidence on the test nodes, seeds pooled, the fifteen bins of the ECE."
        drawings.append(Drawing(experiment.name, caption, _reliability(groups)))
    if shared:
        caption = "Calibration scores, mean over datasets and the seeds that all methods share there."
        titles = [dataset_title(name) for name in shared]
        figure = _scores(pd.concat(shared.values()), experiment.methods, titles)
        drawings.append(Drawing(f"{experiment.name}-scores", caption, figure))
    return drawings


def _reliability(found: Mapping[str, Mapping[str, pd.DataFrame]]) -> Figure:
    """A panel per dataset, the bins of a method as a line; a point's area grows with its share of predictions."""
    figure, drawn = panel_each(found, "confidence", "accuracy", height=2.5)
    for axis, group in drawn:
        axis.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=0.9)
        for method, bins in group.items():
            x, y, count = (bins.dropna()[name].to_numpy() for name in ("confidence", "accuracy", "count"))
            colour, marker = look(method).colour, look(method).marker
            axis.plot(x, y, color=colour, linewidth=1.2)
            points = partial(axis.scatter, color=colour, marker=marker, edgecolor="white", linewidth=0.5)
            points(x, y, s=8 + 90 * count / count.sum(), zorder=3, clip_on=False)
        axis.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    methods = dict.fromkeys(method for group in found.values() for method in group)
    entries = [*method_entries(methods), entry("perfect", color=GREY, linestyle="--")]
    legend_below(figure, entries, len(entries))
    return figure


def _scores(runs: pd.DataFrame, methods: Sequence[str], datasets: Sequence[str]) -> Figure:
    """A panel per score, a bar per method: mean over datasets and seeds; lower is better."""
    figure, axes = panels(len(SCORES), width=2.2, height=2.3)
    for axis, score in zip(axes, SCORES):
        for place, method in enumerate(methods):
            values = runs.loc[runs["method"] == method, score.lower()].dropna()
            bar = axis.bar(place, np.mean(values.to_numpy()), color=look(method).colour, width=0.6)
            axis.bar_label(bar, fmt="%.3f", padding=2, fontsize=8)
        axis.set_xticks(range(len(methods)), [label(method) for method in methods])
        axis.margins(y=0.15)
        axis.set_title(f"{score} (lower is better)")
    figure.supxlabel(f"mean over seeds of {', '.join(datasets)}", fontsize=8)
    return figure
