"""What the edge gate looks at: binned q against covariates, and what a linear probe makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ltga.report.study.figures.style import GREY, PALETTE

COVARIATE_NAMES: Mapping[str, str] = {
    "source_degree": "source degree",
    "target_degree": "target degree",
    "feature_cosine": "feature cosine",
    "embedding_cosine": "embedding cosine",
    "logit_magnitude": "logit magnitude",
    "score_gap": "score gap",
}
_MARKERS = "osD^vP"


@dataclass(frozen=True, eq=False)
class GateLayer:
    """One layer's gate over the seeds.

    Attributes:
        bins: covariate -> per seed a table with ``centre`` and ``q``.
        spearman, importance: covariate -> values of the seeds.
        r2: probe -> values of the seeds.
    """

    bins: Mapping[str, Sequence[pd.DataFrame]]
    spearman: Mapping[str, Sequence[float]]
    importance: Mapping[str, Sequence[float]]
    r2: Mapping[str, Sequence[float]]


def gate_figure(layers: Mapping[int, GateLayer]) -> Figure:
    """Six panels of q against a covariate, one of importances, one of R²; a colour per layer."""
    figure = Figure(figsize=(10.4, 5.4), layout="constrained")
    grid = figure.subplots(2, 4)
    first = grid[0, 0]
    panels = [*grid[0, :3], *grid[1, :3]]
    for axis, (covariate, name) in zip(panels, COVARIATE_NAMES.items()):
        if axis is not first:
            axis.sharey(first)
        for number, layer in layers.items():
            _binned(axis, layer.bins[covariate], number)
        _correlations(axis, {number: layer.spearman[covariate] for number, layer in layers.items()})
        axis.set_title(name, pad=17)
        axis.axhline(1.0, color=GREY, linestyle="--", linewidth=0.9, zorder=0)
    for axis in grid[:, 0]:
        axis.set_ylabel("mean q of an edge")
    for axis in grid[:, 1:3].ravel():
        axis.tick_params(labelleft=False)
    names = {covariate: layer.importance for covariate, layer in layers.items()}
    _bars(grid[0, 3], {n: {COVARIATE_NAMES[c]: v for c, v in found.items()} for n, found in names.items()})
    grid[0, 3].set_title("permutation importance", pad=17)
    _bars(grid[1, 3], {number: layer.r2 for number, layer in layers.items()})
    grid[1, 3].set_title("R² of the probe", pad=17)
    handles = [Line2D([], [], color=_colour(n), marker=_marker(n), label=f"layer {n}") for n in layers]
    handles.append(Line2D([], [], color=GREY, linestyle="--", label="q = 1, softmax"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _colour(layer: int) -> str:
    return PALETTE[(layer - 1) % len(PALETTE)]


def _marker(layer: int) -> str:
    return _MARKERS[(layer - 1) % len(_MARKERS)]


def _binned(axis: Axes, seeds: Sequence[pd.DataFrame], layer: int) -> None:
    """Seeds thin; bold their mean, bin by bin, where all have as many bins."""
    for bins in seeds:
        axis.plot(bins["centre"], bins["q"], color=_colour(layer), alpha=0.3, linewidth=0.8)
    if len({len(bins) for bins in seeds}) == 1:
        x, y = (np.mean([bins[name].to_numpy() for bins in seeds], axis=0) for name in ("centre", "q"))
        axis.plot(x, y, color=_colour(layer), marker=_marker(layer), markersize=4, linewidth=1.8)


def _correlations(axis: Axes, spearman: Mapping[int, Sequence[float]]) -> None:
    """Above the panel, where no curve can be, the mean correlation of each layer."""
    for place, (number, values) in enumerate(spearman.items()):
        text = f"ρ = {round(float(np.mean(values)), 2) + 0.0:+.2f}".replace("-", "−") if values else "ρ n/a"
        x = (place + 0.5) / len(spearman)
        axis.text(x, 1.02, text, transform=axis.transAxes, ha="center", va="bottom", fontsize=8, color=_colour(number))


def _bars(axis: Axes, found: Mapping[int, Mapping[str, Sequence[float]]]) -> None:
    """Horizontal bars, mean and s.d., a bar per layer in each place."""
    height = 0.8 / max(len(found), 1)
    places: list[str] = []
    for k, (number, groups) in enumerate(found.items()):
        places = list(groups)
        for place, values in enumerate(groups.values()):
            if values:
                spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
                error = {"elinewidth": 0.8, "capsize": 2, "ecolor": "black"}
                at = place + height * (k - (len(found) - 1) / 2)
                axis.barh(at, np.mean(values), height * 0.9, xerr=spread, color=_colour(number), error_kw=error)
    axis.set_yticks(range(len(places)), places)
    axis.set_ylim(len(places) - 0.4, -0.6)
    axis.axvline(0.0, color="black", linewidth=0.8)
