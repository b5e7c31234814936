"""Draws the pictures of the theory page from ltga.functional: ``python docs/plots.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import torch
from matplotlib import pyplot
from matplotlib.figure import Figure

from ltga.functional import exp_q, q_softmax

IMAGES = Path(__file__).parent / "images"
COLOURS = {0.0: "#D55E00", 0.5: "#E69F00", 1.0: "#808892", 1.5: "#56B4E9", 2.0: "#0072B2"}
GREY = "#808892"  # readable on white and on black: the pictures have no background of their own
SCORES = torch.tensor([2.0, 1.7, 1.1, 0.6, 0.0, -0.8])  # one neighbourhood, best neighbour first
STYLE = {
    "svg.hashsalt": "ltga",
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": GREY,
    "axes.edgecolor": GREY,
    "axes.labelcolor": GREY,
    "axes.titlecolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
}


def deformed_exponential() -> Figure:
    """exp_q below the best neighbour, on a plain and on a logarithmic scale."""
    figure, (plain, logarithmic) = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    gap = torch.linspace(-5, 0, 1001, dtype=torch.float64)
    for q, colour in COLOURS.items():
        label = "q = 1, softmax" if q == 1 else f"q = {q:g}"
        value = exp_q(gap, q)
        plain.plot(gap, value, color=colour, label=label, linewidth=2)
        logarithmic.plot(gap, value.clamp(min=1e-9), color=colour, linewidth=2)
        if q > 1:
            plain.plot(-1 / (q - 1), 0, "o", color=colour, clip_on=False, zorder=3)
    plain.set_ylabel("exp_q(x)")
    plain.legend(frameon=False, loc="upper left")
    logarithmic.set_yscale("log")
    logarithmic.set_ylim(3e-3, 1.3)
    logarithmic.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    for axes, title in ((plain, "above q = 1 it reaches zero"), (logarithmic, "below q = 1 it has a heavy tail")):
        axes.set_xlabel("x, how far the score lies below the best")
        axes.set_title(title, fontsize=11)
    return figure


def three_regimes() -> Figure:
    """The weights of one neighbourhood in the three regimes."""
    figure, row = pyplot.subplots(1, 3, figsize=(9, 3.2), layout="constrained", sharey=True)
    neighbours = range(1, len(SCORES) + 1)
    for axes, (q, name) in zip(row, ((0.0, "heavy tail"), (1.0, "softmax"), (2.0, "sparse")), strict=True):
        weights = q_softmax(SCORES, q).tolist()
        axes.bar(neighbours, weights, color=COLOURS[q], width=0.7)
        for neighbour, weight in zip(neighbours, weights, strict=True):
            axes.text(neighbour, weight + 0.01, "0" if weight == 0 else f"{weight:.2f}", ha="center", fontsize=9)
        axes.set_title(f"q = {q:g}: {name}", fontsize=11)
        axes.set_xticks(neighbours, [f"{score:g}" for score in SCORES.tolist()])
    row[0].set_ylabel("weight")
    row[1].set_xlabel("score of the neighbour")
    return figure


def weights_against_q() -> Figure:
    """Every neighbour's weight as q runs from 0 to 2, and the q at which it vanishes."""
    figure, axes = pyplot.subplots(figsize=(7, 3.8), layout="constrained")
    q = torch.linspace(0, 2, 801)
    weights = torch.stack([q_softmax(SCORES, float(value)) for value in q])  # [q, neighbours]
    shades = pyplot.get_cmap("plasma")(torch.linspace(0.2, 0.85, len(SCORES)))
    for score, weight, shade in zip(SCORES.tolist(), weights.t(), shades, strict=True):
        axes.plot(q, weight, color=shade, linewidth=2)
        axes.text(-0.03, weight[0], f"{score:g}", ha="right", va="center", color=shade, fontsize=10)
        gap = float(SCORES.max()) - score
        if gap > 1:
            axes.plot(1 + 1 / gap, 0, "o", color=shade, clip_on=False, zorder=3)
    axes.axvline(1, color=GREY, linewidth=0.8, linestyle=":")
    axes.text(1.01, 0.58, "softmax", va="top")
    axes.set_xlim(0, 2)
    axes.set_ylim(0, 0.58)
    axes.set_xlabel("q")
    axes.set_ylabel("weight, by score", labelpad=26)
    axes.tick_params(axis="y", labelleft=False, length=0)
    axes.spines["left"].set_visible(False)
    return figure


PLOTS = {"exp-q": deformed_exponential, "regimes": three_regimes, "weights": weights_against_q}


def draw(folder: Path) -> None:
    """Write every picture into ``folder``."""
    for name, plot in PLOTS.items():
        with pyplot.rc_context(STYLE):
            figure = plot()
            figure.savefig(folder / f"{name}.svg", transparent=True, metadata={"Date": None})
            pyplot.close(figure)


if __name__ == "__main__":
    draw(IMAGES)
