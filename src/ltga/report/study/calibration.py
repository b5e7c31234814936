"""How far predicted probabilities can be believed: scores, and reliability diagrams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from ltga.analysis.calibration import pool_reliability
from ltga.report.study.analysed import Analysed
from ltga.report.study.draw import Drawing, dataset_title
from ltga.report.study.figures.calibration import reliability, scores
from ltga.report.study.figures.style import style
from ltga.report.study.runs import Study, metric
from ltga.report.study.tables import Unit
from ltga.suite import Experiment, RunSpec
from ltga.train.record import Record

NAME = "calibration"
SCORES = {"ECE": metric("ece"), "NLL": metric("nll"), "Brier": metric("brier")}
SPREAD = Unit(1, 3, spread=True)


def draw_calibration(study: Study, experiment: Experiment) -> list[Drawing]:
    """Reliability diagrams where all runs could be analysed, and the three scores; over seeds that all methods have."""
    runs, records = Analysed(study, experiment, NAME), study.runs(experiment)
    shared = _shared_seeds(records, experiment.methods)
    groups: dict[str, dict[str, pd.DataFrame]] = {}
    for dataset, seeds in shared.items():
        found = {
            method: [
                frames["bins"]
                for seed in sorted(seeds)
                for frames in runs.frames({"dataset": dataset, "method": method, "seed": seed})
            ]
            for method in experiment.methods
        }
        if all(len(bins) == len(seeds) for bins in found.values()):
            title = f"{dataset_title(dataset)}, {len(seeds)} seed{'s' if len(seeds) > 1 else ''}"
            groups[title] = {method: pool_reliability(bins) for method, bins in found.items()}
    drawings = []
    with style():
        if groups:
            caption = "Accuracy against confidence on the test nodes, seeds pooled, the fifteen bins of the ECE."
            drawings.append(Drawing(experiment.name, caption, reliability(groups)))
        if shared:
            values = {
                name: {
                    method: [value for spec, run in records.items() if spec.method == method
                             and spec.seed in shared.get(spec.dataset, ()) and (value := read(run)) is not None]
                    for method in experiment.methods
                }
                for name, read in SCORES.items()
            }  # fmt: skip
            caption = "Calibration scores, mean over datasets and the seeds that all methods share there."
            drawings.append(
                Drawing(f"{experiment.name}-scores", caption, scores(values, [dataset_title(name) for name in shared]))
            )
    return drawings


def _shared_seeds(found: Mapping[RunSpec, Record], methods: Sequence[str]) -> dict[str, set[int]]:
    """Dataset -> the seeds that all methods have there; datasets without any are left out."""
    shared: dict[str, set[int]] = {}
    for dataset in dict.fromkeys(spec.dataset for spec in found):
        here = [{s.seed for s in found if (s.dataset, s.method) == (dataset, method)} for method in methods]
        if seeds := set.intersection(*here):
            shared[dataset] = seeds
    return shared
