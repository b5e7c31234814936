"""How far predicted probabilities can be believed: scores, and reliability diagrams."""

from __future__ import annotations

import pandas as pd

from ltga.analysis.calibration import pool_reliability
from ltga.report.study.accuracy import read_grid
from ltga.report.study.analysed import Analysed
from ltga.report.study.draw import Drawing, dataset_title
from ltga.report.study.figures.calibration import reliability, scores
from ltga.report.study.figures.style import style
from ltga.report.study.measures import DATASET, dataset_cell, measure
from ltga.report.study.runs import Study, label, metric, reference_of
from ltga.report.study.tables import Column, Table, Unit, mark_best, text_cell
from ltga.suite import Experiment

NAME = "calibration"
SCORES = {"ECE": metric("ece"), "NLL": metric("nll"), "Brier": metric("brier")}
SPREAD = Unit(1, 3, spread=True)


def calibration_table(study: Study, experiment: Experiment) -> Table:
    """ECE, NLL and Brier score on the test nodes; lower is better."""
    rows = []
    for dataset in experiment.datasets:
        group = []
        for method in experiment.methods:
            cells = (measure(study, experiment, dataset, method, value, SPREAD) for value in SCORES.values())
            group.append((dataset_cell(dataset), text_cell(label(method)), *cells))
        for column in range(2, 2 + len(SCORES)):
            group = mark_best(group, column, lowest=True)
        rows += group
    columns = (DATASET, Column("method", numeric=False), *(Column(name) for name in SCORES))
    note = "Test nodes, mean ± sample s.d. over seeds, lower is better; bold: the better one on that dataset."
    return Table(experiment.name, experiment.title, columns, tuple(rows), note, reference=reference_of(experiment))


def draw_calibration(study: Study, experiment: Experiment) -> list[Drawing]:
    """Reliability diagrams where every run could be analysed, and the three scores averaged."""
    runs = Analysed(study, experiment, NAME)
    grid = read_grid(study, experiment)
    shared = grid.complete(experiment.methods, stand_ins=True)
    groups: dict[str, dict[str, pd.DataFrame]] = {}
    for dataset in shared:
        found = {method: list(runs.frames({"dataset": dataset, "method": method})) for method in experiment.methods}
        number = len(grid.runs[experiment.methods[0], dataset])
        if all(len(frames) == number for frames in found.values()):
            title = f"{dataset_title(dataset)}, {number} seed{'s' if number > 1 else ''}"
            groups[title] = {
                method: pool_reliability(frames["bins"] for frames in results) for method, results in found.items()
            }
    drawings = []
    with style():
        if groups:
            caption = "Accuracy against confidence on the test nodes, seeds pooled, the fifteen bins of the ECE."
            drawings.append(Drawing(experiment.name, caption, reliability(groups)))
        if shared:
            records = study.runs(experiment).items()
            values = {
                name: {
                    method: [value for spec, run in records if spec.method == method and spec.dataset in shared
                             and (value := read(run)) is not None]
                    for method in experiment.methods
                }
                for name, read in SCORES.items()
            }  # fmt: skip
            caption = "Calibration scores over the datasets that all methods share."
            drawings.append(Drawing(f"{experiment.name}-scores", caption, scores(values, shared)))
    return drawings
