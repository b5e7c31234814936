"""Draws docs/images/recipe-noise.png from the records of *recipe-noise*: ``python docs/recipe_figure.py``."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot
from matplotlib.figure import Figure

from ltga.nn.methods import METHODS
from ltga.study.archive import stored_records
from ltga.study.experiments import EXPERIMENTS
from ltga.study.lookup import find_records
from ltga.study.report.figures.style import LOOKS
from ltga.train.record import Record

ROOT = Path(__file__).parents[1]
TITLES = {
    "digits-noise:planted_per_edge=0": "digits, no noise",
    "digits-noise": "digits, 3 planted per edge",
    "digits-noise:planted_per_edge=10": "digits, 10 planted per edge",
    "digits-noise:planted_per_edge=20": "digits, 20 planted per edge",
    "cora:planted_per_edge=5": "Cora, 5 planted, few labels",
    "pubmed:planted_per_edge=5": "PubMed, 5 planted, few labels",
}
SHOWN = ("gatv2", "gatv2-temperature", "entmax-1.5", "sparsemax", "frozen-q2.0", "ltga-head", "entmax-head")


def draw(records: list[Record]) -> Figure:
    """Best validation accuracy so far against epochs, mean over the seeds; a panel per graph."""
    courses: dict[tuple[str, str], list[np.ndarray]] = defaultdict(list)
    for record in records:
        config = record["config"]
        best = np.maximum.accumulate(np.array(record["trajectory"]["val_accuracy"]))
        courses[config["dataset"]["name"], config["method"]].append(100 * best)
    figure, grid = pyplot.subplots(2, 3, figsize=(12, 7), layout="constrained")
    for axes, (graph, title) in zip(grid.flat, TITLES.items(), strict=True):
        for method in SHOWN:
            if found := courses.get((graph, method)):
                mean = np.mean(found, axis=0)
                look = LOOKS[method]
                width = 2.4 if method == "entmax-head" else 1.3
                axes.plot(range(1, len(mean) + 1), mean, color=look.colour, linestyle=look.dashes, linewidth=width,
                          label=METHODS[method].label)  # fmt: skip
        axes.set_title(title, fontsize=11)
        axes.grid(alpha=0.3)
    for axes in grid[-1]:
        axes.set_xlabel("epochs")
    for axes in grid[:, 0]:
        axes.set_ylabel("best validation accuracy so far, %")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


if __name__ == "__main__":
    found = find_records(EXPERIMENTS["recipe-noise"].runs, stored_records(ROOT / "results" / "own.jsonl.gz"))
    draw(list(found.values())).savefig(ROOT / "docs" / "images" / "recipe-noise.png", dpi=110)
