"""What q became: against homophily, where attention has zeros, and the sweeps by distance from softmax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ltga.study import Experiment
from ltga.study.analyses.q_overview import distance_from_softmax, q_against_homophily
from ltga.study.report.figures.panels import shannon_line
from ltga.study.report.figures.style import GREY, PALETTE, Drawing, look
from ltga.study.report.names import SWEPT, dataset_title, label
from ltga.study.report.run_table import comparable_sweeps, finished, grouped, run_table
from ltga.study.report.runs import Study

SOFTMAX = "gatv2"  # what the sweeps are compared with
MIDDLE, LETTER = 0.5, 0.022  # where labels change sides, and the width of a letter, both in homophily
Points = Mapping[str, tuple[float, float, float]]
"""Dataset -> homophily, mean q, share of exact zeros."""
Sweeps = Mapping[str, Sequence[tuple[float, float]]]
"""Name of a sweep -> (distance of q from 1, points of accuracy gained over softmax) of its points."""


def draw_overview(study: Study, experiment: Experiment) -> list[Drawing]:
    """What q became, where attention has zeros, and the sweeps by distance from softmax."""
    runs = finished(run_table(study, experiment))
    learned = runs[runs["method"] == "ltga-head"]
    defaults = learned[learned["changed"].map(len) == 0]
    known = dict(zip(learned["dataset"], learned["homophily"]))
    reached = q_against_homophily(defaults["record"], known).dropna(subset=["homophily", "q", "zero_fraction"])
    columns = (reached[name].tolist() for name in ("dataset", "homophily", "q", "zero_fraction"))
    points = {dataset_title(name): (share, q, zeros) for name, share, q, zeros in zip(*columns)}
    if not points:
        return []
    sweeps = _distances(learned, runs[runs["method"] == SOFTMAX])
    caption = "LTGA-Head: (a) mean q against homophily; (b) exact zeros in attention"
    if sweeps:
        caption += (
            f"; (c) the sweeps: accuracy against {label(SOFTMAX)}'s on the same seeds, by the mean distance of q from "
            "1, over the seeds that all values of a setting have."
        )
    else:
        caption += f". The sweeps and {label(SOFTMAX)}'s runs beside them (c) are not in the store."
    return [Drawing(experiment.name, caption, overview(points, sweeps))]


def _distances(learned: pd.DataFrame, softmax: pd.DataFrame) -> Sweeps:
    """The sweeps of which more than one value was run."""
    if softmax.empty:
        return {}
    lines: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for place, runs in grouped(comparable_sweeps(learned), "dataset", "setting", "value").items():
        frame = distance_from_softmax([*runs["record"], *softmax["record"]], SOFTMAX)
        frame = frame.dropna(subset=["accuracy_change"])
        if len(frame):
            point = float(frame["distance"].mean()), 100 * float(frame["accuracy_change"].mean())
            lines.setdefault(place[:2], []).append(point)
    lines = {key: points for key, points in lines.items() if len(points) > 1}
    several = len({dataset for dataset, _ in lines}) > 1
    return {
        SWEPT[setting] + (f", {dataset_title(dataset)}" if several else ""): points
        for (dataset, setting), points in lines.items()
    }


def overview(points: Points, sweeps: Sweeps) -> Figure:
    """(a) q against homophily, (b) exact zeros where there are any, (c) all sweeps, left out if there are none."""
    figure = Figure(figsize=(9.6 if sweeps else 7.0, 3.3), layout="constrained")
    axes = figure.subplots(1, 3 if sweeps else 2, width_ratios=[1.5, 1, 1.2] if sweeps else [1.5, 1])
    _against_homophily(axes[0], points)
    _zeros(axes[1], points)
    if sweeps:
        _by_distance(axes[2], sweeps)
    return figure


def _against_homophily(axis: Axes, points: Points) -> None:
    shannon_line(axis)
    x, y = ([point[k] for point in points.values()] for k in (0, 1))
    axis.plot(x, y, **look("ltga-head").line(linestyle=""))
    axis.set_xlim(-0.02, 1.0)
    low, high = min([*y, 0.95]), max([*y, 1.05])
    step = 0.11 * (high - low)
    heights = stack_labels(points, step)
    for name, height in heights.items():
        homophily, q, _ = points[name]
        axis.plot([homophily, homophily], [q, height], color=GREY, linewidth=0.5, zorder=0)
        side = "left" if homophily < MIDDLE else "right"
        axis.text(homophily, height, name, fontsize=7.5, va="bottom", ha=side)
    axis.set_ylim(low - step, max(heights.values()) + 2 * step)
    axis.set_xlabel("homophily")
    axis.set_ylabel("mean q")
    axis.set_title("(a) learned q")


def stack_labels(points: Points, step: float) -> dict[str, float]:
    """A height for the label of each point, so that no label covers another, a point, or the line to another's point.

    Labels start at their point and run towards the middle; going outwards, each is put above all it would meet.
    """
    taken = [(point[0] - 0.015, point[0] + 0.015, point[1]) for point in points.values()]
    heights: dict[str, float] = {}
    for name in sorted(points, key=lambda name: abs(points[name][0] - MIDDLE)):
        homophily, q, _ = points[name]
        width = LETTER * len(name)
        left, right = (homophily, homophily + width) if homophily < MIDDLE else (homophily - width, homophily)
        below = [height for start, end, height in taken if start < right and left < end and height >= q - step]
        heights[name] = max([q, *below]) + step
        taken.append((left, right, heights[name]))
    return heights


def _zeros(axis: Axes, points: Points) -> None:
    shares = {name: 100 * point[2] for name, point in points.items() if point[2] > 0}
    axis.set_title("(b) exact zeros in attention")
    if shares:
        names = sorted(shares, key=shares.__getitem__)
        bars = axis.barh(names, [shares[name] for name in names], color=look("ltga-head").colour, height=0.5)
        axis.bar_label(bars, fmt="%.1f %%", padding=3, fontsize=8)
        axis.set_xlim(0, 1.25 * max(shares.values()))
        axis.set_ylim(-0.8, len(names) + 0.1)
        axis.set_xlabel("share of weights (%)")
    else:
        axis.set_axis_off()
    rest = len(points) - len(shares)
    if rest:
        said = f"{rest} dataset{'s' if rest > 1 else ''} at 0 %"
        axis.text(0.98, 0.98, said, transform=axis.transAxes, ha="right", va="top", fontsize=8, color=GREY)


def _by_distance(axis: Axes, sweeps: Sweeps) -> None:
    for k, (name, points) in enumerate(sweeps.items()):
        marker = "osD^vPX"[k % 7]
        x, y = zip(*sorted(points))
        axis.plot(x, y, color=PALETTE[k % len(PALETTE)], marker=marker, linestyle="-", linewidth=0.9, label=name)
    axis.axhline(0.0, color=GREY, linestyle="--", linewidth=0.9, zorder=0)
    axis.set_xlabel("distance of q from 1")
    axis.set_ylabel("gain over softmax (points)")
    axis.set_title("(c) all sweeps")
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=4 if len(sweeps) <= 4 else 2)
