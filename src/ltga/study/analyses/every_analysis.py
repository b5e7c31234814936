"""What reports need from trained models, as small tables that can be kept.

Head ``"one"`` pools or averages over the heads of a layer; head ``"all"`` is what the analysis itself calls so: the
edges that every head prunes, or q averaged over heads. Spreads are those over seeds, so nothing is bootstrapped here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ltga.data import Dataset
from ltga.study.analyses.calibration import calibration
from ltga.study.analyses.concentration import concentration, lorenz_curve, lorenz_curves
from ltga.study.analyses.counterfactual import counterfactuals
from ltga.study.analyses.gate import gate_bins, gate_summary, q_histogram
from ltga.study.analyses.inputs import attention_of, task_of
from ltga.study.analyses.pruning import planted_edges_found, pruned_against_kept
from ltga.study.analyses.smoothing import smoothing
from ltga.train.finished import Run

Frames = dict[str, pd.DataFrame]
POINTS = 101  # of a kept Lorenz curve
DRAWS = 5  # of random pruning
WORDS = frozenset({"counterfactual", "head", "quantity", "covariate", "stage"})
"""Columns that hold words; all others hold numbers."""


@dataclass(frozen=True)
class Material:
    """What an analysis may ask for; each raises an ``LTGAError`` if it is not to be had."""

    run: Callable[[], Run]
    dataset: Callable[[], Dataset]
    arrays: Callable[[], Mapping[str, np.ndarray]]


@dataclass(frozen=True)
class Analysis:
    """How a run is analysed.

    Attributes:
        version: to be raised whenever the same run would give other numbers or other tables.
        tables: the tables of a result and their columns.
    """

    version: int
    tables: Mapping[str, tuple[str, ...]]
    compute: Callable[[Material], Frames]


def _pruning(material: Material) -> Frames:
    run, dataset = material.run(), material.dataset()
    changes = counterfactuals(run, dataset, draws=DRAWS)
    changes = changes.groupby("counterfactual", sort=False)[["accuracy", "zero_fraction", "changed"]].mean()
    frames = {
        "counterfactuals": changes.reset_index(),
        "edges": _pooled_edges(pruned_against_kept(run, dataset, resamples=1)),
        "planted": pd.DataFrame(columns=list(ANALYSES["pruning"].tables["planted"])),
    }
    if dataset.data.get("planted_edge") is not None:
        found = planted_edges_found(run, dataset)
        found["head"] = np.where(found["head"] == "all", "all", "one")
        counts = ["edges", "planted", "pruned", "both"]
        frames["planted"] = found.groupby(["layer", "head"], sort=False)[counts].mean().reset_index()
    return frames


def _pooled_edges(compared: pd.DataFrame) -> pd.DataFrame:
    """Heads pooled: means over all pairs of edge and head, counts per head."""
    frame = compared.assign(head=np.where(compared["head"] == "all", "all", "one"))
    for side in ("pruned", "kept"):
        frame[side] = (frame[side] * frame[f"{side}_edges"]).fillna(0.0)  # sums, until divided again below
    columns = ["pruned", "kept", "pruned_edges", "kept_edges"]
    pooled = frame.groupby(["layer", "head", "quantity"], sort=False)[columns].mean()
    for side in ("pruned", "kept"):
        pooled[side] /= pooled[f"{side}_edges"].where(pooled[f"{side}_edges"] > 0)
    return pooled.reset_index()


def _gate(material: Material) -> Frames:
    arrays = material.arrays()
    summary = gate_summary(arrays)
    summary["head"] = np.where(summary["head"] == "all", "all", "one")
    values = ["spearman", "importance", "r2", "r2_paper", "q_mean", "q_std"]
    summary = summary.groupby(["layer", "head", "covariate"], sort=False)[values].mean().reset_index()
    return {"summary": summary, "bins": gate_bins(arrays)[["layer", "covariate", "centre", "q", "count"]]}


def _concentration(material: Material) -> Frames:
    run, dataset = material.run(), material.dataset()
    frame = concentration(run, dataset)
    columns = list(ANALYSES["concentration"].tables["layers"])
    edges, _ = attention_of(run, task_of(run, dataset))[0]
    size = np.bincount(edges[1].numpy())
    curve = lorenz_curves(run, dataset)[1, "all"]
    population = np.linspace(0.0, 1.0, POINTS)
    curves = {
        "population": population,
        "attention": np.interp(population, curve.population, curve.share),
        "even": lorenz_curve(1.0 / size[edges[1].numpy()], POINTS).share,
    }
    return {"layers": frame[frame["head"] == "all"][columns].reset_index(drop=True), "curves": pd.DataFrame(curves)}


def _smoothing(material: Material) -> Frames:
    return {"stages": smoothing(material.run(), material.dataset())}


def _calibration(material: Material) -> Frames:
    return {"bins": calibration(material.run(), material.dataset()).bins}


def _edge_q(material: Material) -> Frames:
    run = material.run()
    return {"histogram": q_histogram(run.arrays, run.record["config"]["protocol"]["delta"])}


ANALYSES: Mapping[str, Analysis] = {
    "pruning": Analysis(
        1,
        {
            "counterfactuals": ("counterfactual", "accuracy", "zero_fraction", "changed"),
            "edges": ("layer", "head", "quantity", "pruned", "kept", "pruned_edges", "kept_edges"),
            "planted": ("layer", "head", "edges", "planted", "pruned", "both"),
        },
        _pruning,
    ),
    "gate": Analysis(
        1,
        {
            "summary": (
                "layer", "head", "covariate", "spearman", "importance", "r2", "r2_paper", "q_mean", "q_std"
            ),
            "bins": ("layer", "covariate", "centre", "q", "count"),
        },
        _gate,
    ),
    "concentration": Analysis(
        1,
        {
            "layers": ("layer", "gini", "gini_even", "gini_neighbours", "gini_within", "loop_weight"),
            "curves": ("population", "attention", "even"),
        },
        _concentration,
    ),
    "smoothing": Analysis(
        1, {"stages": ("layer", "stage", "dirichlet_energy", "mean_average_distance")}, _smoothing
    ),
    "calibration": Analysis(1, {"bins": ("low", "high", "count", "confidence", "accuracy", "gap")}, _calibration),
    "edge-q": Analysis(1, {"histogram": ("layer", "low", "high", "count", "mean")}, _edge_q),
}  # fmt: skip
"""Name -> how it is done; gate needs the arrays of a run only, the others its model and its graph."""
