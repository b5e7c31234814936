"""What the panels of figures share: their grid, their room, the line at softmax, and the legend below them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatter

from ltga.study.report.figures.style import GREY, look
from ltga.study.report.names import label

T = TypeVar("T")


def panels(
    count: int, width: float = 2.6, height: float = 2.1, most: int = 3, **settings: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with ``count`` axes in rows of at most ``most``."""
    columns = min(count, most)
    rows = -(-count // columns)
    figure = Figure(figsize=(max(width * columns, 3.2), height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, **settings).ravel()
    for axes in grid[count:]:
        axes.set_visible(False)
    return figure, list(grid[:count])


def panel_each(
    found: Mapping[str, T], xlabel: str, ylabel: str, **settings: Any
) -> tuple[Figure, list[tuple[Axes, T]]]:
    """A figure with a panel for everything that was found, under its title; the first one names the vertical axis."""
    figure, axes = panels(len(found), **settings)
    for axis, title in zip(axes, found):
        axis.set(title=title, xlabel=xlabel)
    axes[0].set_ylabel(ylabel)
    return figure, list(zip(axes, found.values()))


def room(axis: Axes, least: float = 2.0, across: bool = False) -> None:
    """At least ``least`` points high (or wide), so that a flat curve looks flat."""
    low, high = axis.get_xlim() if across else axis.get_ylim()
    if high - low < least:
        middle = (low + high) / 2
        set_limits = axis.set_xlim if across else axis.set_ylim
        set_limits(middle - least / 2, middle + least / 2)


def entry(name: str, **line: Any) -> Line2D:
    """An entry of a legend."""
    return Line2D([], [], label=name, **line)


def method_entries(methods: Iterable[str], **changes: Any) -> list[Line2D]:
    """Entries for methods, as they look."""
    return [entry(label(method), **look(method).line(**changes)) for method in methods]


def softmax_entry() -> Line2D:
    """The entry for :func:`shannon_line`."""
    return entry("q = 1, softmax", color=GREY, linestyle="--")


def legend_below(figure: Figure, entries: Sequence[Line2D], columns: int) -> None:
    """A legend for all panels."""
    figure.legend(handles=entries, loc="outside lower center", ncols=columns)


def shannon_line(axes: Axes, vertical: bool = False) -> None:
    """The dashed line at q = 1, where attention is softmax."""
    draw = axes.axvline if vertical else axes.axhline
    draw(1.0, color=GREY, linestyle="--", linewidth=0.9, zorder=0)


def plain_log(axis: Axis) -> None:
    """Plain numbers on a logarithmic axis; matplotlib's own are mathematics, which is switched off here."""
    axis.set_major_formatter(LogFormatter(labelOnlyBase=False))
    axis.set_minor_formatter(LogFormatter(labelOnlyBase=False, minor_thresholds=(1.5, 0.5)))
