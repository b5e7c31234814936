"""Whether the texts of a figure can be read: none may cover another."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from ltga.study.report.figures.style import style


def texts(figure: Figure) -> list[tuple[str, Any]]:
    """Every visible text with its box in pixels."""
    with style():
        FigureCanvasAgg(figure)
        figure.draw_without_rendering()
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        renderer = canvas.get_renderer()
        unseen = {label for axis in figure.axes for label in _beyond(axis)}
        found = [item for item in figure.findobj(Text) if item.get_visible() and item.get_text().strip()]
        found = [item for item in found if item not in unseen]
        boxes = [(item.get_text(), item.get_window_extent(renderer)) for item in found]
    whole = figure.bbox
    return [(text, box) for text, box in boxes if box.width and whole.overlaps(box)]


def _beyond(axes: Any) -> list[Any]:
    """Labels of ticks outside the view: matplotlib keeps them but does not draw them."""
    labels = []
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        labels += [text for t in ticks if not low <= t.get_loc() <= high for text in (t.label1, t.label2)]
    return labels


def covering(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts that cover each other."""
    return [
        (a, b)
        for (a, first), (b, second) in combinations(texts(figure), 2)
        if min(first.x1, second.x1) - max(first.x0, second.x0) > 1
        and min(first.y1, second.y1) - max(first.y0, second.y0) > 1
    ]
