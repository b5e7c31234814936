"""Depth: accuracy and two measures of over-smoothing by number of layers."""

from __future__ import annotations

from ltga.analysis.results import Frames
from ltga.report.study.analysed import Analysed, Read, pick
from ltga.report.study.draw import Drawing, dataset_title
from ltga.report.study.figures.accuracy import Sample, curves_by_method
from ltga.report.study.figures.style import style
from ltga.report.study.runs import Study, accuracy, behind
from ltga.report.study.tables import Unit
from ltga.suite import Experiment

NAME = "smoothing"
MEASURES = {"dirichlet_energy": "Dirichlet energy", "mean_average_distance": "mean average distance"}
_SPREAD = Unit(1, 3, spread=True)


def last_hidden(measure: str) -> Read:
    """A measure of what the last layer reads, as in the paper; NaN for a network of one layer."""

    def read(frames: Frames) -> float:
        stages = frames["stages"]
        last = stages.loc[stages["stage"] == "hidden", "layer"].max()
        return pick(frames, "stages", measure, {"layer": last})

    return read


def _depths(experiment: Experiment) -> list[int]:
    return sorted({spec.protocol.num_layers for spec in experiment.runs})


def draw_depth(study: Study, experiment: Experiment) -> list[Drawing]:
    """Accuracy by number of layers, and the measures of over-smoothing."""
    runs, found = Analysed(study, experiment, NAME), study.runs(experiment)
    tested: dict[str, dict[str, list[Sample]]] = {}
    smooth: dict[str, dict[str, list[Sample]]] = {}
    for dataset in experiment.datasets:
        for method in experiment.methods:
            for depth in _depths(experiment):
                at = {"dataset": dataset, "method": method, "num_layers": depth}
                values = tuple(100 * run.value for run in behind(found, runs.specs(at), accuracy))
                _add(tested, dataset_title(dataset), method, Sample(depth, values))
                for measure, name in MEASURES.items():
                    values = runs.values(at, last_hidden(measure))
                    _add(smooth, f"{dataset_title(dataset)}\n{name}", method, Sample(depth, values))
    drawings = []
    with style():
        if tested := _with_curves(tested):
            caption = "Accuracy by depth, mean and standard error over seeds."
            drawings.append(Drawing(experiment.name, caption, curves_by_method(tested, "layers")))
        if smooth := _with_curves(smooth):
            caption = (
                "Over-smoothing of the last hidden layer by depth, mean and standard error; lower is more collapsed."
            )
            figure = curves_by_method(smooth, "layers", ylabel="1 − cosine")
            drawings.append(Drawing(f"{experiment.name}-smoothing", caption, figure))
    return drawings


def _add(panels: dict[str, dict[str, list[Sample]]], title: str, method: str, sample: Sample) -> None:
    if sample.values:
        panels.setdefault(title, {}).setdefault(method, []).append(sample)


def _with_curves(panels: dict[str, dict[str, list[Sample]]]) -> dict[str, dict[str, list[Sample]]]:
    """The panels in which some curve has more than one point."""
    return {name: group for name, group in panels.items() if any(len(samples) > 1 for samples in group.values())}
