"""Curves over runs, mean and standard error: accuracy against a frozen q, along sweeps, by depth and by signal."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ltga.study import Experiment
from ltga.study.report.analysis_table import smoothing_runs
from ltga.study.report.figures.panels import (
    entry,
    legend_below,
    method_entries,
    panel_each,
    panels,
    room,
    shannon_line,
    softmax_entry,
)
from ltga.study.report.figures.style import BLUE, GREY, RED, Drawing, drawing_name, look
from ltga.study.report.names import SWEPT, dataset_title, with_seeds
from ltga.study.report.run_table import (
    comparable_sweeps,
    finished,
    grouped,
    in_percent,
    on_common_seeds,
    run_table,
    synthetic_runs,
)
from ltga.study.report.runs import Study
from ltga.study.tuned import FROZEN_Q

ACCURACY = "accuracy (%)"
ASIDE = 1.06  # factor between methods side by side
SOFTMAX = "frozen-q1.0"
_TEST = {"color": BLUE, "marker": "o", "linestyle": "-"}
_OTHER = {"color": RED, "marker": "s", "linestyle": "--", "fillstyle": "none"}


def _curve(axis: Axes, runs: pd.DataFrame, x: str, y: str, **line: object) -> None:
    """Mean and standard error of a column over the runs at each place; a single run has no error."""
    found = runs.dropna(subset=[y]).groupby(x)[y].agg(["mean", "sem"]).fillna(0.0)
    error = found["sem"].to_list()
    axis.errorbar(found.index.to_list(), found["mean"].to_list(), yerr=error, capsize=2, elinewidth=0.8, **line)  # type: ignore[arg-type]


def draw_frozen(study: Study, experiment: Experiment) -> list[Drawing]:
    """Accuracy against a frozen q, over the seeds that every q and the learned one have."""
    found = {}
    for dataset, runs in grouped(in_percent(finished(run_table(study, experiment))), "dataset").items():
        runs = on_common_seeds(runs, "method")
        if runs.loc[runs["method"].isin(FROZEN_Q), "method"].nunique() > 1:
            found[with_seeds(dataset_title(dataset), runs["seed"].nunique())] = runs
    return [Drawing(experiment.name, "Accuracy with q held at a value.", _frozen(found))] if found else []


def _frozen(found: Mapping[str, pd.DataFrame]) -> Figure:
    """A panel per dataset: test solid, validation dashed, learned q dotted."""
    figure, drawn = panel_each(found, "frozen q", ACCURACY)
    for axis, runs in drawn:
        held = runs[runs["method"].isin(FROZEN_Q)]
        held = held.assign(held_q=held["method"].str.removeprefix("frozen-q").astype(float))
        shannon_line(axis, vertical=True)
        _curve(axis, held, "held_q", "accuracy", **_TEST)
        beside = held.assign(held_q=held["held_q"] + 0.03)  # so that error bars do not cover
        _curve(axis, beside, "held_q", "val_accuracy", **_OTHER)
        learned = runs.loc[runs["method"] == "ltga-head", "accuracy"]
        if len(learned):
            axis.axhline(fmean(learned), color="black", linestyle=":", linewidth=1.2)
        room(axis)
    entries = [
        entry("test (mean, standard error)", color=BLUE, marker="o"),
        entry("validation", **_OTHER),
        entry("LTGA-Head, test", color="black", linestyle=":"),
        softmax_entry(),
    ]
    legend_below(figure, entries, 2 if len(found) < 3 else 4)
    return figure


def draw_sweeps(study: Study, experiment: Experiment) -> list[Drawing]:
    """Accuracy and q along every setting, a figure per dataset."""
    drawings = []
    for name, runs in grouped(comparable_sweeps(in_percent(run_table(study, experiment))), "dataset").items():
        swept = runs[runs.groupby("setting")["value"].transform("nunique") > 1]
        if swept.empty:
            continue
        dataset = dataset_title(name)
        counts = swept.groupby(["setting", "value"]).size()
        seeds = " to ".join(str(count) for count in sorted({counts.min(), counts.max()}))
        caption = (
            f"Accuracy and mean q of LTGA-Head on {dataset}, one setting changed at a time, over the seeds that all "
            f"values have ({seeds})."
        )
        drawings.append(Drawing(drawing_name(experiment, name), caption, _sweeps(swept, dataset)))
    return drawings


def _sweeps(swept: pd.DataFrame, dataset: str) -> Figure:
    """A panel per setting: accuracy on the left axis, mean q on the right one."""
    settings = [setting for setting in SWEPT if (swept["setting"] == setting).any()]
    figure, axes = panels(len(settings), width=3.4, height=2.5, most=2)
    for letter, axis, setting in zip("abcdefgh", axes, settings):
        runs = swept[swept["setting"] == setting]
        _curve(axis, runs, "value", "accuracy", **_TEST)
        right = axis.twinx()
        right.spines["right"].set_visible(True)
        _curve(right, runs, "value", "q", **_OTHER)
        right.axhline(1.0, color=GREY, linestyle=":", linewidth=0.9)
        if setting == "kappa":
            axis.set_xscale("log")
        ticks = sorted(runs["value"].unique())
        if setting == "kappa" or len(ticks) < 5:
            _ticks(axis, ticks)
        axis.set(title=f"({letter}) {SWEPT[setting]}", xlabel=SWEPT[setting])
        axis.set_ylabel(ACCURACY, color=BLUE)
        right.set_ylabel("mean q", color=RED)
        room(axis)
    figure.suptitle(f"{dataset}, LTGA-Head, mean ± standard error over seeds", fontsize=9.5)
    entries = [
        entry("test accuracy (left)", color=BLUE, marker="o"),
        entry("mean q (right)", **_OTHER),
        entry("q = 1", color=GREY, linestyle=":"),
    ]
    legend_below(figure, entries, 3)
    return figure


def _ticks(axis: Axes, ticks: list[float]) -> None:
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()


def draw_depth(study: Study, experiment: Experiment) -> list[Drawing]:
    """Accuracy by number of layers, and the measures of over-smoothing."""
    runs = in_percent(finished(smoothing_runs(study, experiment)))
    measures = {"dirichlet_energy": "Dirichlet energy", "mean_average_distance": "mean average distance"}
    tested, smooth = {}, {}
    for name, here in grouped(runs, "dataset").items():
        dataset = dataset_title(name)
        tested[dataset] = here.assign(y=here["accuracy"])
        for column, measure in measures.items():
            if column in here:
                smooth[f"{dataset}\n{measure}"] = here.assign(y=here[column]).dropna(subset=["y"])
    drawings = []
    if tested := _with_curves(tested, "num_layers"):
        caption = "Accuracy by depth, mean and standard error over seeds."
        drawings.append(Drawing(experiment.name, caption, _by_method(tested, "num_layers", "layers")))
    if smooth := _with_curves(smooth, "num_layers"):
        caption = "Over-smoothing of the last hidden layer by depth, mean and standard error; lower is more collapsed."
        figure = _by_method(smooth, "num_layers", "layers", ylabel="1 − cosine")
        drawings.append(Drawing(f"{experiment.name}-smoothing", caption, figure))
    return drawings


def draw_synthetic(study: Study, experiment: Experiment) -> list[Drawing]:
    """What a q other than 1 changes on the synthetic graphs, against their signal, a panel per degree."""
    runs = in_percent(finished(synthetic_runs(study, experiment))).sort_values(["degree", "snr", "method"])
    softmax = runs[runs["method"] == SOFTMAX].groupby("dataset")["accuracy"].last()
    runs["y"] = runs["accuracy"] - runs["dataset"].map(softmax).astype(float)
    gains = runs[runs["method"] != SOFTMAX].dropna(subset=["y"])
    found = _with_curves({f"degree {degree:g}": here for degree, here in grouped(gains, "degree").items()}, "snr")
    if not found:
        return []
    figure = _by_method(found, "snr", "signal-to-noise ratio", ylabel="gain over q = 1 (points)", gains=True)
    caption = (
        "Contextual stochastic block model: accuracy against that of q = 1 on the same graph and seed, mean and "
        "standard error over seeds."
    )
    return [Drawing(experiment.name, caption, figure)]


def _with_curves(found: Mapping[str, pd.DataFrame], x: str) -> dict[str, pd.DataFrame]:
    """The panels in which some method has more than one point."""
    return {title: runs for title, runs in found.items() if (runs.groupby("method")[x].nunique() > 1).any()}


def _by_method(
    found: Mapping[str, pd.DataFrame], x: str, xlabel: str, ylabel: str = ACCURACY, gains: bool = False
) -> Figure:
    """A panel per group of runs, a line per method: column ``y`` against ``x``.

    ``gains``: the values are differences, so that zero is drawn; the axis is then logarithmic and the methods' points
    stand side by side.
    """
    figure, drawn = panel_each(found, xlabel, ylabel, width=3.2, height=2.6)
    for axis, runs in drawn:
        lines = grouped(runs, "method")
        for place, (method, here) in enumerate(lines.items()):
            aside = place - (len(lines) - 1) / 2 if gains else 0.0
            _curve(axis, here.assign(aside=here[x] * ASIDE**aside), "aside", "y", **look(method).line())
        if gains:
            axis.set_xscale("log")
        _ticks(axis, sorted(runs[x].unique()))
        if gains:
            axis.axhline(0.0, color=GREY, linestyle="--", linewidth=0.9, zorder=0)
        elif ylabel == ACCURACY:
            room(axis)
        else:
            axis.set_ylim(bottom=0)
    methods = list(dict.fromkeys(method for runs in found.values() for method in runs["method"]))
    legend_below(figure, method_entries(methods), min(len(methods), 2 * len(found), 4))
    return figure
