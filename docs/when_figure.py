"""Draws docs/images/when.png from the records of the experiment *when*: ``python docs/when_figure.py``."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from ltga.data import load_graph
from ltga.study.archive import stored_records
from ltga.study.experiments import EXPERIMENTS
from ltga.study.lookup import find_records
from ltga.study.when import CHOSEN, Gain, Setting, gains, setting_of

ROOT = Path(__file__).parents[1]
SETTINGS = ROOT / "results" / "when-graphs.json"
MARKERS = {"csbm": ("o", "block model"), "digits-noise": ("s", "digits"), "cora": ("^", "Cora"),
           "pubmed": ("v", "PubMed"), "roman-words": ("D", "roman-words")}  # fmt: skip
WORST = 12.0  # points beyond which the colour does not change any more
FASTEST = 4.0


def settings() -> dict[str, Setting]:
    """What is known of each graph, from results/when-graphs.json."""
    if not SETTINGS.exists():
        return {}
    return {name: Setting(**told) for name, told in json.loads(SETTINGS.read_text()).items()}


def compared() -> dict[str, dict[str, Gain]]:
    """The gains on every graph that has runs, in the order of the experiment."""
    experiment = EXPERIMENTS["when"]
    records = stored_records(ROOT / "results" / "own.jsonl.gz")
    found = gains(find_records(experiment.runs, records).values())
    return {name: found[name] for name in experiment.datasets if name in found}


def draw(found: dict[str, dict[str, Gain]], known: dict[str, Setting]) -> Figure:
    """Every graph by its neighbours and their agreement; colour is what sparse attention gains over softmax."""
    figure, grid = pyplot.subplots(2, 2, figsize=(11, 8), layout="constrained", sharex=True, sharey=True)
    for row, (label, most, shown) in enumerate((
        ("points of test accuracy", WORST, lambda gain: gain.points),
        ("speed, powers of two", np.log2(FASTEST), lambda gain: np.log2(gain.speed)),
    )):  # fmt: skip
        drawn = None
        for axes, many in zip(grid[row], (True, False), strict=True):
            chosen = {
                name: of[CHOSEN] for name, of in found.items() if CHOSEN in of and known[name].many_labels == many
            }
            drawn = _panel(axes, chosen, known, shown, most) or drawn
            labels = "a tenth of the nodes or more to learn from" if many else "fewer labels"
            axes.set_title(
                f"{('Accuracy', 'Speed of learning')[row]} of sparse attention against softmax:\n{labels}", fontsize=11
            )
        if drawn is not None:
            figure.colorbar(drawn, ax=grid[row], label=label)
    for axes in grid[:, 0]:
        axes.set_ylabel("neighbours of a node, median")
    for axes in grid[-1]:
        axes.set_xlabel("share of edges that join two of one class")
    handles = [pyplot.Line2D([], [], marker=marker, linestyle="", color="#555555", label=name)
               for marker, name in MARKERS.values()]  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False)
    return figure


def _panel(
    axes: Axes, chosen: dict[str, Gain], known: dict[str, Setting], shown: Callable[[Gain], float], most: float
) -> PathCollection | None:
    drawn = None
    axes.set_yscale("log")
    axes.set_xlim(-0.03, 1.12)
    axes.set_ylim(1.5, 230)
    axes.set_yticks([2, 5, 10, 20, 50, 100], ["2", "5", "10", "20", "50", "100"])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    together: dict[tuple[float, float], list[tuple[str, Gain]]] = {}
    for name, gain in chosen.items():  # graphs that differ in their labels only lie on one another
        at = known[name].agreement, max(known[name].neighbours, 1)
        together.setdefault(at, []).append((MARKERS[name.partition(":")[0]][0], gain))
    for at, here in together.items():
        colour = np.mean([shown(gain) for _, gain in here])
        drawn = axes.scatter(*at, c=[colour], s=190, marker=here[0][0], cmap="RdBu", vmin=-most, vmax=most,
                             edgecolors="#555555", linewidths=0.6)  # fmt: skip
        values = ", ".join(f"{gain.points:+.1f}" if most == WORST else f"×{gain.speed:.1f}" for _, gain in here)
        left = any(_right_beside(at, other) for other in together)
        side = {"xytext": (-10, -3), "ha": "right"} if left else {"xytext": (10, -3), "ha": "left"}
        halo = [withStroke(linewidth=2, foreground="white")]
        axes.annotate(values, at, textcoords="offset points", fontsize=8.5, path_effects=halo, **side)
    return drawn


def _right_beside(at: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether another mark stands where the numbers of this one would."""
    return 0 < other[0] - at[0] < 0.13 and abs(np.log10(other[1] / at[1])) < 0.1


def measure() -> None:
    """Look at the graphs that results/when-graphs.json does not have yet."""
    known = settings()
    for name in EXPERIMENTS["when"].datasets:
        if name not in known:
            known[name] = setting_of(load_graph(name))
    SETTINGS.write_text(json.dumps({name: asdict(told) for name, told in known.items()}, indent=1) + "\n")


if __name__ == "__main__":
    measure()
    figure = draw(compared(), settings())
    figure.savefig(ROOT / "docs" / "images" / "when.png", dpi=110)
