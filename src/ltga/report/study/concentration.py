"""How concentrated the first layer's attention is: Lorenz curves and Gini coefficients."""

from __future__ import annotations

from statistics import fmean

import numpy as np

from ltga.analysis.results import Frames
from ltga.report.study.analysed import Analysed, Read, pick
from ltga.report.study.draw import Drawing, dataset_title
from ltga.report.study.figures.concentration import Lorenz, lorenz_figure
from ltga.report.study.figures.style import style
from ltga.report.study.measures import DATASET, dataset_cell, measure
from ltga.report.study.printed import GINI
from ltga.report.study.runs import Study, attention, label
from ltga.report.study.tables import PLAIN_PERCENT, THREE, TWO, Column, Table, Unit, text_cell
from ltga.suite import Experiment

NAME = "concentration"
_GINI = Unit(1, 2, spread=True)


def _first_layer(column: str) -> Read:
    return lambda frames: pick(frames, "layers", column, {"layer": 1})


def concentration_table(study: Study, experiment: Experiment) -> Table:
    """Gini coefficients beside the paper's, and how the attention of a neighbourhood is spread."""
    runs = Analysed(study, experiment, NAME)
    kinds = (("top weight", attention("top1", 0), THREE), ("entropy", attention("entropy", 0), THREE),
             ("effective neighbours", attention("effective_neighbors", 0), TWO),
             ("exact zeros (%)", attention("zero_fraction", 0), PLAIN_PERCENT))  # fmt: skip
    rows = []
    for dataset in experiment.datasets:
        for method in experiment.methods:
            at = {"dataset": dataset, "method": method}
            cells = [runs.cell(at, _first_layer("gini"), _GINI, GINI.get((dataset, method)))]
            cells += [runs.cell(at, _first_layer(column), _GINI) for column in ("gini_even", "gini_within")]
            cells += [measure(study, experiment, dataset, method, value, unit) for _, value, unit in kinds]
            rows.append((dataset_cell(dataset), text_cell(label(method)), *cells))
    columns = (
        DATASET, Column("method", numeric=False), Column("Gini"), Column("Gini if spread evenly"),
        Column("Gini within neighbourhoods"), *(Column(name) for name, _, _ in kinds),
    )  # fmt: skip
    note = (
        "First layer, self-loops included. Gini: over all weights of the graph, heads pooled, mean ± sample s.d. over "
        "seeds; beside it what the paper's text says, which does not say of how many seeds. Neighbourhoods differ in "
        "size, so that even attention has a Gini too; within neighbourhoods this is taken out. The rest: means over "
        "nodes, heads and seeds."
    )
    return Table(experiment.name, experiment.title, columns, tuple(rows), note, reference=runs.reference)


def draw_lorenz(study: Study, experiment: Experiment) -> list[Drawing]:
    """Lorenz curves per dataset and method, mean over seeds."""
    runs = Analysed(study, experiment, NAME)
    found: dict[str, dict[str, Lorenz]] = {}
    even: dict[str, Lorenz] = {}
    for dataset in experiment.datasets:
        title = dataset_title(dataset)
        for method in experiment.methods:
            results = list(runs.frames({"dataset": dataset, "method": method}))
            if results:
                found.setdefault(title, {})[method] = _mean_curve(results, "attention", "gini")
                even[title] = _mean_curve(results, "even", "gini_even")
    if not found:
        return []
    with style():
        figure = lorenz_figure(found, even)
    caption = (
        "Lorenz curves of the first layer's attention weights, mean over seeds, with the mean Gini coefficient G; "
        "dotted: what the same graph gives if every node spreads its attention evenly."
    )
    return [Drawing(experiment.name, caption, figure)]


def _mean_curve(results: list[Frames], curve: str, gini: str) -> Lorenz:
    population = results[0]["curves"]["population"].to_numpy()
    share = np.mean([frames["curves"][curve].to_numpy() for frames in results], axis=0)
    return Lorenz(population, share, fmean(_first_layer(gini)(frames) for frames in results))
