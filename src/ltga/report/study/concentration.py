"""How concentrated the first layer's attention is: Lorenz curves and Gini coefficients."""

from __future__ import annotations

from statistics import fmean

import numpy as np

from ltga.analysis.results import Frames
from ltga.report.study.analysed import Analysed, Read, pick
from ltga.report.study.draw import Drawing, dataset_title
from ltga.report.study.figures.concentration import Lorenz, lorenz_figure
from ltga.report.study.figures.style import style
from ltga.report.study.runs import Study
from ltga.report.study.tables import Unit
from ltga.suite import Experiment

NAME = "concentration"
_GINI = Unit(1, 2, spread=True)


def _first_layer(column: str) -> Read:
    return lambda frames: pick(frames, "layers", column, {"layer": 1})


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
