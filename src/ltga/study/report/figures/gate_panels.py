"""The gate of every edge: how q is distributed over edges, what it follows, and what a linear probe makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ltga.study import Experiment
from ltga.study.report.analysis_table import analysed_runs, covariate_runs, gate_runs
from ltga.study.report.figures.panels import entry, legend_below, panel_each, shannon_line, softmax_entry
from ltga.study.report.figures.style import GREY, PALETTE, Drawing, drawing_name, look
from ltga.study.report.names import COVARIATES, dataset_title, with_seeds
from ltga.study.report.run_table import grouped
from ltga.study.report.runs import Study

PROBES = {"r2_paper": "paper's four", "r2": "all six", "r2_one": "all six, one head"}
_MARKERS = "osD^vP"


def draw_edge_q(study: Study, experiment: Experiment) -> list[Drawing]:
    """The distribution of q over edges and heads in the last layer, seeds pooled."""
    runs = analysed_runs(study, experiment, "edge-q", lambda frames: {})
    found = {}
    for dataset, here in grouped(runs[runs["analysed"]], "dataset").items():
        together = pd.concat([frames["histogram"] for frames in here["frames"]])
        last = together[together["layer"] == together["layer"].max()]
        first = float(together.loc[together["layer"] == 1, "mean"].mean())
        title = with_seeds(dataset_title(dataset), len(here))
        found[title] = last.groupby(["low", "high"], as_index=False)["count"].sum(), first
    caption = "q per edge and head of LTGA-Edge, last layer, self-loops aside."
    return [Drawing(experiment.name, caption, edge_distribution(found))] if found else []


def edge_distribution(q: Mapping[str, tuple[pd.DataFrame, float]]) -> Figure:
    """How q is distributed over edges and heads: last layer's histogram, first layer's mean dotted.

    Args:
        q: title of the panel -> bins of the last layer (``low``, ``high``, ``count``), and the mean q of the first.
    """
    figure, drawn = panel_each(q, "q of an edge and head", "share (%)", width=3.4, height=2.5)
    for axis, (bins, first) in drawn:
        low, high = float(bins["low"].min()), float(bins["high"].max())
        axis.axvspan(2.0, max(high, 2.0) + 0.1, color=GREY, alpha=0.15, linewidth=0)
        share = 100 * bins["count"] / bins["count"].sum()
        axis.bar(bins["low"], share, bins["high"] - bins["low"], align="edge", color=look("ltga-edge").colour)
        shannon_line(axis, vertical=True)
        axis.axvline(first, color="black", linestyle=":", linewidth=1.2)
        axis.set_xlim(low - 0.05, max(high, 2.0) + 0.1)
    entries = [
        entry("last layer", color=look("ltga-edge").colour, linewidth=5),
        entry("mean of the first layer", color="black", linestyle=":"),
        softmax_entry(),
        entry("q ≥ 2", color=GREY, alpha=0.3, linewidth=7),
    ]
    legend_below(figure, entries, 2 if len(q) == 1 else 4)
    return figure


def draw_gate(study: Study, experiment: Experiment) -> list[Drawing]:
    """Binned q against every covariate, importances and R², a figure per dataset."""
    probes, covariates = gate_runs(study, experiment), covariate_runs(study, experiment)
    drawings = []
    for dataset, here in grouped(covariates[covariates["analysed"]], "dataset").items():
        figure = _gate(here, probes[probes["analysed"] & (probes["dataset"] == dataset)])
        caption = (
            f"{with_seeds(dataset_title(dataset), here['id'].nunique())}: mean q of LTGA-Edge in bins of as many "
            "edges each (seeds thin, their mean bold), with Spearman's ρ; permutation importances and R² of a linear "
            "probe, mean and s.d. over seeds. q is averaged over heads."
        )
        drawings.append(Drawing(drawing_name(experiment, dataset), caption, figure))
    return drawings


def _gate(covariates: pd.DataFrame, probes: pd.DataFrame) -> Figure:
    """Six panels of q against a covariate, one of importances, one of R²; a colour per layer."""
    figure = Figure(figsize=(10.4, 5.4), layout="constrained")
    grid = figure.subplots(2, 4)
    first = grid[0, 0]
    layers = covariates["layer"].unique().tolist()
    for axis, (covariate, name) in zip([*grid[0, :3], *grid[1, :3]], COVARIATES.items()):
        if axis is not first:
            axis.sharey(first)
        here = covariates[covariates["covariate"] == covariate]
        for layer, runs in grouped(here, "layer").items():
            _binned(axis, [_bins(frames["bins"], layer, covariate) for frames in runs["frames"]], layer)
        _correlations(axis, here)
        axis.set_title(name, pad=17)
        axis.axhline(1.0, color=GREY, linestyle="--", linewidth=0.9, zorder=0)
    for axis in grid[:, 0]:
        axis.set_ylabel("mean q of an edge")
    for axis in grid[:, 1:3].ravel():
        axis.tick_params(labelleft=False)
    _bars(grid[0, 3], covariates.assign(place=covariates["covariate"].map(COVARIATES), value=covariates["importance"]))
    grid[0, 3].set_title("permutation importance", pad=17)
    explained = probes.melt(["layer"], list(PROBES), "probe")
    _bars(grid[1, 3], explained.assign(place=explained["probe"].map(PROBES)))
    grid[1, 3].set_title("R² of the probe", pad=17)
    entries = [*(entry(f"layer {n}", color=_colour(n), marker=_marker(n)) for n in layers), softmax_entry()]
    legend_below(figure, entries, len(entries))
    return figure


def _bins(bins: pd.DataFrame, layer: object, covariate: str) -> pd.DataFrame:
    return bins[(bins["layer"] == layer) & (bins["covariate"] == covariate)]


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


def _correlations(axis: Axes, runs: pd.DataFrame) -> None:
    """Above the panel, where no curve can be, the mean correlation of each layer."""
    means = {layer: here["spearman"].mean() for layer, here in grouped(runs, "layer").items()}
    for place, (layer, mean) in enumerate(means.items()):
        text = "ρ n/a" if np.isnan(mean) else f"ρ = {round(mean, 2) + 0.0:+.2f}".replace("-", "−")
        x, colour = (place + 0.5) / len(means), _colour(layer)
        axis.text(x, 1.02, text, transform=axis.transAxes, ha="center", va="bottom", fontsize=8, color=colour)


def _bars(axis: Axes, found: pd.DataFrame) -> None:
    """Horizontal bars, mean and s.d. of ``value``, a bar per layer in each ``place``."""
    places, layers = found["place"].unique().tolist(), found["layer"].unique().tolist()
    height = 0.8 / max(len(layers), 1)
    means = found.dropna(subset="value").groupby(["layer", "place"], sort=False)["value"].agg(["mean", "std"]).fillna(0)
    for (layer, place), mean, spread in means.itertuples():
        error = {"elinewidth": 0.8, "capsize": 2, "ecolor": "black"}
        at = places.index(place) + height * (layers.index(layer) - (len(layers) - 1) / 2)
        axis.barh(at, mean, height * 0.9, xerr=spread, color=_colour(layer), error_kw=error)
    axis.set_yticks(range(len(places)), places)
    axis.set_ylim(len(places) - 0.4, -0.6)
    axis.axvline(0.0, color="black", linewidth=0.8)
