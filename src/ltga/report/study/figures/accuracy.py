"""Figures about accuracy: against a frozen q, along sweeps, by depth, on synthetic graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ltga.report.study.figures.style import BLUE, GREY, RED, look, panels, shannon_line
from ltga.report.study.names import label

ACCURACY = "accuracy (%)"
ASIDE = 1.06  # factor between methods side by side


@dataclass(frozen=True)
class Sample:
    """Values of several runs at one place of a curve, in percent for accuracies."""

    x: float
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def error(self) -> float:
        """Standard error of the mean; zero for a single run."""
        return float(np.std(self.values, ddof=1) / np.sqrt(len(self.values))) if len(self.values) > 1 else 0.0


def _curve(axis: Axes, samples: Sequence[Sample], **line: object) -> None:
    samples = sorted(samples, key=lambda sample: sample.x)
    x, y, error = ([getattr(sample, name) for sample in samples] for name in ("x", "mean", "error"))
    axis.errorbar(x, y, yerr=error, capsize=2, elinewidth=0.8, **line)  # type: ignore[arg-type]


@dataclass(frozen=True)
class FrozenCurve:
    """Test and validation accuracy of one dataset at each frozen q, and of the learned q (``None`` if not run)."""

    test: tuple[Sample, ...]
    val: tuple[Sample, ...]
    learned: float | None


def frozen(curves: Mapping[str, FrozenCurve]) -> Figure:
    """Accuracy against a frozen q per dataset: test solid, validation dashed, learned q dotted."""
    figure, axes = panels(len(curves))
    for axis, (dataset, curve) in zip(axes, curves.items()):
        shannon_line(axis, vertical=True)
        _curve(axis, curve.test, color=BLUE, marker="o", linestyle="-")
        beside = [Sample(sample.x + 0.03, sample.values) for sample in curve.val]  # so that error bars do not cover
        _curve(axis, beside, color=RED, marker="s", linestyle="--", fillstyle="none")
        if curve.learned is not None:
            axis.axhline(curve.learned, color="black", linestyle=":", linewidth=1.2)
        axis.set_title(dataset)
        axis.set_xlabel("frozen q")
        room(axis)
    axes[0].set_ylabel("accuracy (%)")
    handles = [
        Line2D([], [], color=BLUE, marker="o", label="test (mean, standard error)"),
        Line2D([], [], color=RED, marker="s", linestyle="--", fillstyle="none", label="validation"),
        Line2D([], [], color="black", linestyle=":", label="LTGA-Head, test"),
        Line2D([], [], color=GREY, linestyle="--", label="q = 1, softmax"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2 if len(curves) < 3 else 4)
    return figure


def room(axis: Axes, least: float = 2.0, across: bool = False) -> None:
    """At least ``least`` points high (or wide), so that a flat curve looks flat."""
    low, high = axis.get_xlim() if across else axis.get_ylim()
    if high - low < least:
        middle = (low + high) / 2
        set_limits = axis.set_xlim if across else axis.set_ylim
        set_limits(middle - least / 2, middle + least / 2)


@dataclass(frozen=True)
class Sweep:
    """Accuracy and mean q along one setting."""

    name: str
    accuracy: tuple[Sample, ...]
    q: tuple[Sample, ...]
    log: bool = False


def sweeps(found: Sequence[Sweep], dataset: str) -> Figure:
    """A panel per setting: accuracy on the left axis, mean q on the right one, both with standard errors."""
    figure, axes = panels(len(found), width=3.4, height=2.5, most=2)
    for letter, axis, sweep in zip("abcdefgh", axes, found):
        _curve(axis, sweep.accuracy, color=BLUE, marker="o", linestyle="-")
        right = axis.twinx()
        right.spines["right"].set_visible(True)
        _curve(right, sweep.q, color=RED, marker="s", linestyle="--", fillstyle="none")
        right.axhline(1.0, color=GREY, linestyle=":", linewidth=0.9)
        if sweep.log:
            axis.set_xscale("log")
        ticks = sorted(sample.x for sample in sweep.accuracy)
        if sweep.log or len(ticks) < 5:
            axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axis.minorticks_off()
        axis.set_title(f"({letter}) {sweep.name}")
        axis.set_xlabel(sweep.name)
        axis.set_ylabel("accuracy (%)", color=BLUE)
        right.set_ylabel("mean q", color=RED)
        room(axis)
    handles = [
        Line2D([], [], color=BLUE, marker="o", label="test accuracy (left)"),
        Line2D([], [], color=RED, marker="s", linestyle="--", fillstyle="none", label="mean q (right)"),
        Line2D([], [], color=GREY, linestyle=":", label="q = 1"),
    ]
    figure.suptitle(f"{dataset}, LTGA-Head, mean ± standard error over seeds", fontsize=9.5)
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def curves_by_method(
    found: Mapping[str, Mapping[str, Sequence[Sample]]],
    xlabel: str,
    log: bool = False,
    ylabel: str = ACCURACY,
    gains: bool = False,
) -> Figure:
    """A panel per group, a line per method: accuracy (or another measure) against depth or signal.

    Args:
        found: title of the panel -> method -> samples.
        log: whether the horizontal axis is logarithmic.
        gains: whether values are differences, so that zero is drawn; the methods' points then stand side by side.
    """
    figure, axes = panels(len(found), width=3.2, height=2.6)
    methods = list(dict.fromkeys(method for group in found.values() for method in group))
    for axis, (title, group) in zip(axes, found.items()):
        for place, (method, samples) in enumerate(group.items()):
            aside = place - (len(group) - 1) / 2 if gains else 0.0
            _curve(axis, [Sample(s.x * ASIDE**aside, s.values) for s in samples], **look(method).line())
        if log:
            axis.set_xscale("log")
        ticks = sorted({sample.x for samples in group.values() for sample in samples})
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
        axis.set_title(title)
        axis.set_xlabel(xlabel)
        if gains:
            axis.axhline(0.0, color=GREY, linestyle="--", linewidth=0.9, zorder=0)
        elif ylabel == ACCURACY:
            room(axis)
        else:
            axis.set_ylim(bottom=0)
    axes[0].set_ylabel(ylabel)
    handles = [Line2D([], [], **look(method).line(label=label(method))) for method in methods]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(methods), 2 * len(found), 4))
    return figure
