"""The critical-difference diagram (Demšar, 2006)."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from ltga.study import Experiment
from ltga.study.report.figures.style import Drawing, look
from ltga.study.report.names import dataset_title, label
from ltga.study.report.run_table import complete_datasets, mean_accuracies, run_table
from ltga.study.report.runs import Study
from ltga.study.stats import CriticalDifference, critical_difference_diagram

_STEP = 0.42  # height of a line of text


def draw_ranks(study: Study, experiment: Experiment) -> list[Drawing]:
    """Average ranks over the datasets that every method has run."""
    runs, methods = run_table(study, experiment), experiment.methods
    datasets = complete_datasets(runs, methods)
    if len(datasets) < 2:
        return []
    diagram = critical_difference_diagram(mean_accuracies(runs, methods, datasets))
    caption = f"Average ranks over {', '.join(map(dataset_title, datasets))}."
    return [Drawing(experiment.name, caption, critical_difference_figure(diagram, len(datasets)))]


def critical_difference_figure(found: CriticalDifference, datasets: int) -> Figure:
    """Average ranks on an axis, the best on the left; bars join methods that cannot be told apart."""
    methods = list(found.ranks.index)
    count = len(methods)
    half = math.ceil(count / 2)
    bars = len(found.cliques)
    top = 0.25 + 0.22 * bars  # room between the axis and the first label
    depth = top + _STEP * half + 0.1
    figure = Figure(figsize=(7.2, 0.55 * (depth + 1.7)), layout="constrained")
    axis = figure.subplots()
    axis.set_axis_off()
    left, right = -0.34 * (count - 1) + 1, count + 0.34 * (count - 1)
    axis.set_xlim(left, right)
    axis.set_ylim(-depth, 1.6)
    axis.plot([1, count], [0, 0], color="black", linewidth=1)
    for tick in range(1, count + 1):
        axis.plot([tick, tick], [0, 0.1], color="black", linewidth=1)
        axis.text(tick, 0.16, str(tick), ha="center", va="bottom", fontsize=8)
    for number, (start, *rest) in enumerate(found.cliques):
        height = -0.16 - 0.22 * number
        low, high = found.ranks[start], found.ranks[rest[-1]]
        axis.plot([low - 0.04, high + 0.04], [height, height], color="black", linewidth=3.2, solid_capstyle="butt")
    for place, method in enumerate(methods):
        rank = found.ranks[method]
        on_left = place < half
        row = place if on_left else count - 1 - place
        height = -top - _STEP * row
        edge = 1 - 0.06 * (count - 1) if on_left else count + 0.06 * (count - 1)
        colour = look(method).colour
        axis.plot([rank, rank, edge], [0, height, height], color=colour, linewidth=1.2)
        text = f"{label(method)}  {rank:.2f}" if on_left else f"{rank:.2f}  {label(method)}"
        gap = -0.06 if on_left else 0.06
        axis.text(edge + gap, height, text, ha="right" if on_left else "left", va="center", fontsize=8.5)
    width = min(found.difference, count - 1)
    shown = f"critical difference {found.difference:.2f}" + (
        " (wider than the axis)" if width < found.difference else ""
    )
    axis.plot([1, 1 + width], [1.0, 1.0], color="black", linewidth=1.2)
    for end in (1, 1 + width):
        axis.plot([end, end], [0.92, 1.08], color="black", linewidth=1.2)
    axis.text(1 + width / 2, 1.14, shown, ha="center", va="bottom", fontsize=8)
    axis.text(
        right, -depth, f"average rank over {datasets} datasets, 1 is best; bars: no difference at {found.alpha:g}",
        ha="right", va="bottom", fontsize=7.5, color="#555555",
    )  # fmt: skip
    return figure
