"""Figures about q: over the epochs, per head, against homophily, over edges, and the gradient that moves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ltga.report.study.figures.style import BLUE, GREY, PALETTE, RED, look, panels, plain_log, shannon_line
from ltga.train.record import Record

ByDataset = Mapping[str, Sequence[Record]]
TINY = 1e-12  # what a norm of zero is drawn as
MIDDLE, LETTER = 0.5, 0.022  # where labels change sides, and the width of a letter, both in homophily
_DASHES: tuple[Literal["-", "--", "-.", ":"], ...] = ("-", "--", "-.", ":")


def q_heads(record: Record) -> list[np.ndarray]:
    """Per layer q ``[epochs, heads]``; for an edge gate its mean over edges."""
    return [np.asarray(layer["mean"], dtype=float) for layer in record["trajectory"]["q"] if layer.get("mean")]


def trajectories(runs: ByDataset) -> Figure:
    """Mean q over the epochs per dataset: seeds light, their mean bold, the epoch that was kept marked."""
    figure, axes = panels(len(runs), sharey=True)
    for axis, (dataset, records) in zip(axes, runs.items()):
        curves = [np.mean([layer.mean(axis=1) for layer in q_heads(record)], axis=0) for record in records]
        for record, curve in zip(records, curves):
            axis.plot(np.arange(1, len(curve) + 1), curve, color=BLUE, alpha=0.3, linewidth=0.9)
            best = record["best_epoch"]
            axis.plot(best, curve[best - 1], "|", color=RED, markersize=7, markeredgewidth=1.2, zorder=4)
        mean = mean_curve(curves)
        axis.plot(np.arange(1, len(mean) + 1), mean, color=BLUE, linewidth=2.2)
        _trajectory_axes(axis, dataset, len(records))
    _show_softmax(axes[0])
    axes[0].set_ylabel("mean q")
    handles = [
        Line2D([], [], color=BLUE, alpha=0.3, label="one seed"),
        Line2D([], [], color=BLUE, linewidth=2.2, label="mean, while half of the seeds run"),
        Line2D([], [], color=RED, marker="|", linestyle="", label="epoch kept"),
        Line2D([], [], color=GREY, linestyle="--", label="q = 1, softmax"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2 if len(runs) == 1 else 4)
    return figure


def head_trajectories(runs: ByDataset) -> Figure:
    """q per layer and head over the epochs, averaged over seeds."""
    figure, axes = panels(len(runs), sharey=True)
    depth = 0
    for axis, (dataset, records) in zip(axes, runs.items()):
        layers = [q_heads(record) for record in records]
        depth = max(depth, len(layers[0]))
        for number in range(len(layers[0])):
            for head in range(layers[0][number].shape[1]):
                mean = mean_curve([run[number][:, head] for run in layers], everyone=True)  # no jump where one ends
                axis.plot(
                    np.arange(1, len(mean) + 1), mean, color=PALETTE[number % len(PALETTE)],
                    linestyle=_DASHES[number % len(_DASHES)], linewidth=1.1, alpha=0.8,
                )  # fmt: skip
        _trajectory_axes(axis, dataset, len(records))
    _show_softmax(axes[0])
    axes[0].set_ylabel("q of a head")
    handles = [
        Line2D([], [], color=PALETTE[k % len(PALETTE)], linestyle=_DASHES[k % len(_DASHES)], label=f"layer {k + 1}")
        for k in range(depth)
    ]
    handles.append(Line2D([], [], color=GREY, linestyle="--", label="q = 1, softmax"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


def _trajectory_axes(axis: Axes, dataset: str, seeds: int) -> None:
    shannon_line(axis)
    axis.set_title(f"{dataset} ({seeds} seed{'s' if seeds > 1 else ''})")
    axis.set_xlabel("epoch")


def _show_softmax(axis: Axes) -> None:
    """Widen an axis (and those that share it) so that q = 1 lies well inside and noise does not look like a trend."""
    low, high = axis.get_ylim()
    axis.set_ylim(min(low, 0.95), max(high, 1.05))


def mean_curve(curves: Sequence[np.ndarray], everyone: bool = False) -> np.ndarray:
    """Mean per epoch over the runs that got that far, as long as these are at least half of all (or all).

    >>> mean_curve([np.array([1.0, 2.0, 9.0]), np.array([3.0, 4.0]), np.array([5.0])])
    array([3., 3.])
    """
    lengths = sorted(map(len, curves), reverse=True)
    shown = lengths[-1 if everyone else (len(lengths) - 1) // 2]
    return np.array([np.mean([curve[k] for curve in curves if len(curve) > k]) for k in range(shown)])


def gradients(runs: ByDataset, warmup: int) -> Figure | None:
    """Norm of the loss's gradient at the index, per epoch after the warm-up, on a logarithmic axis."""
    curves = {}
    for dataset, records in runs.items():
        norms = [np.asarray(record["trajectory"]["index_gradient_norm"], dtype=float) for record in records]
        norms = [norm for norm in norms if len(norm) > warmup and norm[warmup:].max() > TINY]
        if norms:
            curves[dataset] = norms
    if not curves:
        return None
    figure, axes = panels(len(curves), sharey=True)
    for axis, (dataset, norms) in zip(axes, curves.items()):
        for norm in norms:
            epochs = np.arange(warmup + 1, len(norm) + 1)
            axis.plot(epochs, np.maximum(norm[warmup:], TINY), color=BLUE, alpha=0.3, linewidth=0.9)
        mean = 10 ** mean_curve([np.log10(np.maximum(norm, TINY)) for norm in norms])
        axis.plot(np.arange(warmup + 1, len(mean) + 1), mean[warmup:], color=BLUE, linewidth=2.2)
        axis.set_title(f"{dataset} ({len(norms)} seed{'s' if len(norms) > 1 else ''})")
        axis.set_xlabel("epoch")
        axis.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes[0].set_yscale("log")
    plain_log(axes[0].yaxis)
    axes[0].set_ylabel("gradient norm at the index")
    handles = [
        Line2D([], [], color=BLUE, alpha=0.3, label="one seed"),
        Line2D([], [], color=BLUE, linewidth=2.2, label="geometric mean, while half of the seeds run"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=1 if len(curves) == 1 else 2)
    return figure


def overview(
    points: Mapping[str, tuple[float, float, float]], sweeps: Mapping[str, Sequence[tuple[float, float]]]
) -> Figure:
    """(a) q against homophily, (b) exact zeros where there are any, (c) all sweeps by their distance from softmax.

    Args:
        points: dataset -> homophily, mean q, share of exact zeros.
        sweeps: name of a sweep -> (distance of q from 1, points of accuracy gained over softmax) of its points;
            (c) is left out if empty.
    """
    figure = Figure(figsize=(9.6 if sweeps else 7.0, 3.3), layout="constrained")
    axes = figure.subplots(1, 3 if sweeps else 2, width_ratios=[1.5, 1, 1.2] if sweeps else [1.5, 1])
    _against_homophily(axes[0], points)
    _zeros(axes[1], points)
    if sweeps:
        _distances(axes[2], sweeps)
    return figure


def _against_homophily(axis: Axes, points: Mapping[str, tuple[float, float, float]]) -> None:
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


def stack_labels(points: Mapping[str, tuple[float, float, float]], step: float) -> dict[str, float]:
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


def _zeros(axis: Axes, points: Mapping[str, tuple[float, float, float]]) -> None:
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


def _distances(axis: Axes, sweeps: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    for k, (name, points) in enumerate(sweeps.items()):
        marker = "osD^vPX"[k % 7]
        x, y = zip(*sorted(points))
        axis.plot(x, y, color=PALETTE[k % len(PALETTE)], marker=marker, linestyle="-", linewidth=0.9, label=name)
    axis.axhline(0.0, color=GREY, linestyle="--", linewidth=0.9, zorder=0)
    axis.set_xlabel("distance of q from 1")
    axis.set_ylabel("gain over softmax (points)")
    axis.set_title("(c) all sweeps")
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=4 if len(sweeps) <= 4 else 2)


def edge_distribution(q: Mapping[str, tuple[pd.DataFrame, float]]) -> Figure:
    """How q is distributed over edges and heads: last layer's histogram, first layer's mean dotted.

    Args:
        q: title of the panel -> bins of the last layer (``low``, ``high``, ``count``), and the mean q of the first.
    """
    figure, axes = panels(len(q), width=3.4, height=2.5)
    for axis, (title, (bins, first)) in zip(axes, q.items()):
        low, high = float(bins["low"].min()), float(bins["high"].max())
        axis.axvspan(2.0, max(high, 2.0) + 0.1, color=GREY, alpha=0.15, linewidth=0)
        share = 100 * bins["count"] / bins["count"].sum()
        axis.bar(bins["low"], share, bins["high"] - bins["low"], align="edge", color=look("ltga-edge").colour)
        shannon_line(axis, vertical=True)
        axis.axvline(first, color="black", linestyle=":", linewidth=1.2)
        axis.set_xlim(low - 0.05, max(high, 2.0) + 0.1)
        axis.set_title(title)
        axis.set_xlabel("q of an edge and head")
    axes[0].set_ylabel("share (%)")
    handles = [
        Line2D([], [], color=look("ltga-edge").colour, linewidth=5, label="last layer"),
        Line2D([], [], color="black", linestyle=":", label="mean of the first layer"),
        Line2D([], [], color=GREY, linestyle="--", label="q = 1, softmax"),
        Line2D([], [], color=GREY, alpha=0.3, linewidth=7, label="q ≥ 2"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2 if len(q) == 1 else 4)
    return figure
