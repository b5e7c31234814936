"""What the edge gate does: q over edges, and against degrees, similarities, logit magnitude and score gap."""

from __future__ import annotations

import pandas as pd

from ltga.analysis.gate import COVARIATES
from ltga.analysis.results import Frames
from ltga.report.study.analysed import Analysed, Read, pick
from ltga.report.study.draw import Drawing, dataset_title, drawing_name
from ltga.report.study.figures.gate import GateLayer, gate_figure
from ltga.report.study.figures.index import edge_distribution
from ltga.report.study.figures.style import style
from ltga.report.study.runs import Study
from ltga.report.study.tables import Unit
from ltga.suite import Experiment

NAME, DISTRIBUTION = "gate", "edge-q"
_TWO, _THREE = Unit(1, 2, spread=True), Unit(1, 3, spread=True)


def _of(column: str, head: str, layer: int, covariate: str | None = None) -> Read:
    where = {"layer": layer, "head": head} | ({} if covariate is None else {"covariate": covariate})
    return lambda frames: pick(frames, "summary", column, where)


def _layers(experiment: Experiment) -> range:
    return range(1, experiment.runs[0].protocol.num_layers + 1)


def draw_gate(study: Study, experiment: Experiment) -> list[Drawing]:
    """Binned q against every covariate, importances and R², a figure per dataset."""
    runs = Analysed(study, experiment, NAME)
    drawings = []
    for dataset in experiment.datasets:
        at = {"dataset": dataset}
        found = list(runs.frames(at))
        if not found:
            continue
        layers = {}
        for layer in _layers(experiment):
            bins = {name: [_bins(frames, layer, name) for frames in found] for name in COVARIATES}
            spearman, importance = (
                {name: runs.values(at, _of(column, "all", layer, name)) for name in COVARIATES}
                for column in ("spearman", "importance")
            )
            r2 = {
                "paper's four": runs.values(at, _of("r2_paper", "all", layer)),
                "all six": runs.values(at, _of("r2", "all", layer)),
                "all six, one head": runs.values(at, _of("r2", "one", layer)),
            }
            layers[layer] = GateLayer(bins, spearman, importance, r2)
        with style():
            figure = gate_figure(layers)
        caption = (
            f"{dataset_title(dataset)}, {len(found)} seed{'s' if len(found) > 1 else ''}: mean q of LTGA-Edge in bins "
            "of as many edges each (seeds thin, their mean bold), with Spearman's ρ; permutation importances and R² of "
            "a linear probe, mean and s.d. over seeds. q is averaged over heads."
        )
        drawings.append(Drawing(drawing_name(experiment, dataset), caption, figure))
    return drawings


def draw_edge_q(study: Study, experiment: Experiment) -> list[Drawing]:
    """The distribution of q over edges and heads in the last layer, seeds pooled."""
    runs = Analysed(study, experiment, DISTRIBUTION)
    panels = {}
    for dataset in experiment.datasets:
        found = [frames["histogram"] for frames in runs.frames({"dataset": dataset})]
        if found:
            together = pd.concat(found)
            last = together[together["layer"] == together["layer"].max()]
            first = float(together.loc[together["layer"] == 1, "mean"].mean())
            title = f"{dataset_title(dataset)}, {len(found)} seed{'s' if len(found) > 1 else ''}"
            panels[title] = last.groupby(["low", "high"], as_index=False)["count"].sum(), first
    if not panels:
        return []
    with style():
        figure = edge_distribution(panels)
    return [Drawing(experiment.name, "q per edge and head of LTGA-Edge, last layer, self-loops aside.", figure)]


def _bins(frames: Frames, layer: int, covariate: str) -> pd.DataFrame:
    bins = frames["bins"]
    return bins[(bins["layer"] == layer) & (bins["covariate"] == covariate)]
