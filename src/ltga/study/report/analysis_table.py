"""What analyses of trained models measured, as a run table: a row per run and place (a layer, a head, a covariate)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from ltga.study import Experiment
from ltga.study.analyses.every_analysis import Frames
from ltga.study.report.names import COUNTERFACTUALS, COVARIATES, HEADS
from ltga.study.report.run_table import run_table
from ltga.study.report.runs import Study

SIDES = ("pruned", "kept")


def analysed_runs(
    study: Study,
    experiment: Experiment,
    name: str,
    measure: Callable[..., Mapping[str, float]],
    places: Iterable[Mapping[str, Any]] = ({},),
) -> pd.DataFrame:
    """The run table with what an analysis measured at every place, and whether the run is ``analysed``.

    Args:
        name: one of ``ltga.study.analyses.every_analysis.ANALYSES``.
        measure: from its result, and a place, to the columns to add.
    """
    places, rows = list(places), []
    runs: list[dict[str, Any]] = run_table(study, experiment).to_dict("records")  # type: ignore[assignment]
    for run in runs:
        frames = None if run["record"] is None else study.analysis(run["record"], name)
        for place in places:
            row: dict[str, Any] = {**run, **place, "frames": frames, "analysed": frames is not None}
            rows.append(row if frames is None else {**row, **measure(frames, **place)})
    return pd.DataFrame(rows)


def pick(frame: pd.DataFrame, column: str, **where: object) -> float:
    """The mean of a column over the rows that have these values, NaN aside; NaN if there are none.

    >>> pick(pd.DataFrame({"layer": [1, 2], "x": [3.0, 4.0]}), "x", layer=2)
    4.0
    """
    chosen = np.ones(len(frame), dtype=bool)
    for name, wanted in where.items():
        chosen &= frame[name].to_numpy() == wanted
    values = frame[column].to_numpy(dtype=float)[chosen]
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else math.nan


def _layers(experiment: Experiment) -> range:
    return range(1, experiment.runs[0].protocol.num_layers + 1)


def smoothing_runs(study: Study, experiment: Experiment) -> pd.DataFrame:
    """Energy and distance of what the last layer reads, as in the paper; NaN for a network of one layer."""

    def measure(frames: Frames) -> dict[str, float]:
        stages = frames["stages"]
        last = stages.loc[stages["stage"] == "hidden", "layer"].max()
        return {name: pick(stages, name, layer=last) for name in ("dirichlet_energy", "mean_average_distance")}

    return analysed_runs(study, experiment, "smoothing", measure)


def concentration_runs(study: Study, experiment: Experiment) -> pd.DataFrame:
    """Gini coefficients of the first layer's attention."""

    def measure(frames: Frames) -> dict[str, float]:
        return {name: pick(frames["layers"], name, layer=1) for name in ("gini", "gini_even", "gini_within")}

    return analysed_runs(study, experiment, "concentration", measure)


def gate_runs(study: Study, experiment: Experiment) -> pd.DataFrame:
    """How q is spread over edges and what a probe explains, by ``layer``: heads averaged, and ``…_one`` head."""

    def measure(frames: Frames, layer: int) -> dict[str, float]:
        names = ("q_mean", "q_std", "r2_paper", "r2")
        return _both_heads(frames["summary"], names, layer=layer)

    return analysed_runs(study, experiment, "gate", measure, ({"layer": layer} for layer in _layers(experiment)))


def covariate_runs(study: Study, experiment: Experiment) -> pd.DataFrame:
    """Rank correlation of q with every ``covariate`` and the covariate's importance, by ``layer``."""

    def measure(frames: Frames, **place: object) -> dict[str, float]:
        return _both_heads(frames["summary"], ("spearman", "importance"), **place)

    places = product(_layers(experiment), COVARIATES)
    return analysed_runs(
        study, experiment, "gate", measure, ({"layer": layer, "covariate": name} for layer, name in places)
    )


def _both_heads(summary: pd.DataFrame, names: Iterable[str], **place: object) -> dict[str, float]:
    suffixes = {"all": "", "one": "_one"}
    return {
        name + suffix: pick(summary, name, head=head, **place) for name in names for head, suffix in suffixes.items()
    }


def counterfactual_runs(study: Study, experiment: Experiment) -> pd.DataFrame:
    """Accuracy under every counterfactual, and label agreement of the edges that every head prunes."""

    def measure(frames: Frames) -> dict[str, float]:
        changed, edges = frames["counterfactuals"], frames["edges"]
        return {
            "learned_zeros": pick(changed, "zero_fraction", counterfactual="learned"),
            **{name: pick(changed, "accuracy", counterfactual=name) for name in COUNTERFACTUALS},
            **{f"agreement_{side}": pick(edges, side, head="all", quantity="label_agreement") for side in SIDES},
        }

    return analysed_runs(study, experiment, "pruning", measure)


def pruned_edge_runs(study: Study, experiment: Experiment) -> pd.DataFrame:
    """Which edges are pruned, by ``layer`` and ``head`` (``one`` or ``all``), and planted ones among them."""
    places = ({"layer": layer, "head": head} for layer, head in product(_layers(experiment), HEADS))
    return analysed_runs(study, experiment, "pruning", _pruned_edges, places)


def _pruned_edges(frames: Frames, **place: object) -> dict[str, float]:
    edges, planted = frames["edges"], frames["planted"]
    # The degree of the target is known for every edge, so its counts are those of all edges.
    pruned, kept = (pick(edges, f"{side}_edges", quantity="target_degree", **place) for side in SIDES)
    found = {"share": _ratio(pruned, pruned + kept)}
    found["labelled"] = pick(edges, "pruned_edges", quantity="label_agreement", **place)
    for name, quantity in (
        ("agreement", "label_agreement"), ("cosine", "feature_cosine"), ("degree", "target_degree")
    ):  # fmt: skip
        found |= {f"{name}_{side}": pick(edges, side, quantity=quantity, **place) for side in SIDES}
    counts = {name: pick(planted, name, **place) for name in ("edges", "planted", "pruned", "both")}
    return found | {
        "planted_share": _ratio(counts["pruned"], counts["edges"]),
        "precision": _ratio(counts["both"], counts["pruned"]),
        "base_rate": _ratio(counts["planted"], counts["edges"]),
        "recall": _ratio(counts["both"], counts["planted"]),
    }


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else math.nan


def planted_edge_runs(study: Study, experiment: Experiment) -> pd.DataFrame:
    """The same where the noise is known."""
    runs = pruned_edge_runs(study, experiment)
    return runs[[name.partition(":")[0] == "digits-noise" for name in runs["dataset"]]]


def lacking(study: Study, experiment: Experiment, name: str) -> str:
    """A sentence on the finished runs that could not be analysed; empty if all were."""
    records = list(study.runs(experiment).values())
    without = [record for record in records if study.analysis(record, name) is None]
    if not without:
        return ""
    reasons = "; ".join(dict.fromkeys(reason for record in without if (reason := study.why_not(record, name))))
    reasons = f" ({reasons})" if reasons else ""
    whose = "None of the" if len(without) == len(records) else f"{len(without)} of the"
    verb = "could be analysed" if len(without) == len(records) else "could not be analysed"
    return (
        f"{whose} {len(records)} finished runs {verb}: that needs their trained models and their graph, or the "
        f"results of an earlier analysis{reasons}."
    )
