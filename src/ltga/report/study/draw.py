"""From an experiment's runs to its figures; a figure whose runs are not there is not drawn."""

from __future__ import annotations

import re
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from matplotlib.figure import Figure

from ltga.analysis.q_overview import distance_from_softmax, q_against_homophily
from ltga.report.study.figures import accuracy as by_accuracy
from ltga.report.study.figures import index
from ltga.report.study.figures.accuracy import FrozenCurve, Sample, Sweep
from ltga.report.study.figures.ranks import critical_difference_figure
from ltga.report.study.figures.style import style
from ltga.report.study.names import label
from ltga.report.study.run_table import complete_datasets, mean_accuracies, run_table
from ltga.report.study.runs import Study, accuracy, homophily, learned_q
from ltga.report.study.settings import SWEPT, on_common_seeds, sweep_points, synthetic_points
from ltga.stats import critical_difference_diagram
from ltga.suite import Experiment, RunSpec
from ltga.suite.spec import STAND_INS
from ltga.suite.tuned import FROZEN_Q
from ltga.train.record import Record

SOFTMAX = "gatv2"  # what the sweeps are compared with
MOVED = 1e-3  # a q closer to 1 than this has not left it


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure with the stem of its files and a caption."""

    name: str
    caption: str
    figure: Figure


def _by_dataset(found: dict[RunSpec, Record], method: str) -> dict[str, list[Record]]:
    """Dataset -> the runs of a method there."""
    groups: dict[str, list[Record]] = {}
    for spec, record in found.items():
        if spec.method == method:
            groups.setdefault(spec.dataset, []).append(record)
    return groups


def dataset_title(name: str) -> str:
    """A dataset's name, with a mark if it is a stand-in."""
    return f"{name} (stand-in)" if name in STAND_INS else name


def drawing_name(experiment: Experiment, dataset: str) -> str:
    """The stem of the files of an experiment's figure of one dataset, whatever characters its name has."""
    return f"{experiment.name}-{re.sub(r'[^A-Za-z0-9.-]+', '-', dataset)}"


def draw_trajectories(study: Study, experiment: Experiment) -> list[Drawing]:
    """q over the epochs per dataset, and per head where it moves."""
    (method,) = experiment.methods
    groups = {
        dataset_title(name): runs
        for name, runs in _by_dataset(study.runs(experiment), method).items()
        if index.q_heads(runs[0])
    }
    if not groups:
        return []
    moving = {
        name: runs
        for name, runs in groups.items()
        if any(np.abs(layer - 1).max() > MOVED for run in runs for layer in index.q_heads(run))
    }
    with style():
        drawings = [Drawing(experiment.name, f"Mean q of {label(method)} over the epochs.", index.trajectories(groups))]
        if moving:
            caption = f"q of every head of {label(method)}, mean over seeds while all of them run, where it leaves 1."
            drawings.append(Drawing(f"{experiment.name}-heads", caption, index.head_trajectories(moving)))
    return drawings


def draw_gradients(study: Study, experiment: Experiment) -> list[Drawing]:
    """The gradient that reaches the index."""
    (method,) = experiment.methods
    groups = {dataset_title(name): runs for name, runs in _by_dataset(study.runs(experiment), method).items()}
    warmup = experiment.runs[0].protocol.warmup
    with style():
        figure = index.gradients(groups, warmup) if groups else None
    caption = f"Norm of the gradient at the index of {label(method)}, per epoch after the warm-up of {warmup}."
    return [] if figure is None else [Drawing(experiment.name, caption, figure)]


def draw_overview(study: Study, experiment: Experiment) -> list[Drawing]:
    """What q became, where attention has zeros, and the sweeps by distance from softmax."""
    found = study.runs(experiment)
    learned = {spec: run for spec, run in found.items() if spec.method == "ltga-head"}
    defaults = [run for spec, run in learned.items() if set(spec.overrides) <= {"init"}]
    known = {spec.dataset: share for spec in learned if (share := homophily(spec.dataset)) is not None}
    reached = q_against_homophily(defaults, known).dropna(subset=["homophily", "q", "zero_fraction"])
    columns = (reached[name].tolist() for name in ("dataset", "homophily", "q", "zero_fraction"))
    points = {dataset_title(name): (share, q, zeros) for name, share, q, zeros in zip(*columns)}
    if not points:
        return []
    distances = _distances(learned, [run for spec, run in found.items() if spec.method == SOFTMAX])
    with style():
        figure = index.overview(points, distances)
    caption = "LTGA-Head: (a) mean q against homophily; (b) exact zeros in attention"
    if distances:
        caption += (
            f"; (c) the sweeps: accuracy against {label(SOFTMAX)}'s on the same seeds, by the mean distance of q from "
            "1, over the seeds that all values of a setting have."
        )
    else:
        caption += f". The sweeps and {label(SOFTMAX)}'s runs beside them (c) are not in the store."
    return [Drawing(experiment.name, caption, figure)]


def _distances(learned: dict[RunSpec, Record], softmax: list[Record]) -> dict[str, list[tuple[float, float]]]:
    """Sweep -> (distance of q from 1, points of accuracy gained over softmax) of every value that was run."""
    if not softmax:
        return {}
    lines: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for (dataset, setting, _), specs in on_common_seeds(sweep_points(learned)).items():
        frame = distance_from_softmax([*(learned[spec] for spec in specs), *softmax], SOFTMAX)
        frame = frame.dropna(subset=["accuracy_change"])
        if len(frame):
            point = float(frame["distance"].mean()), 100 * float(frame["accuracy_change"].mean())
            lines.setdefault((dataset, setting), []).append(point)
    lines = {key: points for key, points in lines.items() if len(points) > 1}
    several = len({dataset for dataset, _ in lines}) > 1
    return {
        SWEPT[setting] + (f", {dataset_title(dataset)}" if several else ""): points
        for (dataset, setting), points in lines.items()
    }


def draw_ranks(study: Study, experiment: Experiment) -> list[Drawing]:
    """The critical-difference diagram."""
    runs, methods = run_table(study, experiment), experiment.methods
    datasets = complete_datasets(runs, methods)
    if len(datasets) < 2:
        return []
    diagram = critical_difference_diagram(mean_accuracies(runs, methods, datasets))
    with style():
        figure = critical_difference_figure(diagram, len(datasets))
    return [Drawing(experiment.name, f"Average ranks over {', '.join(map(dataset_title, datasets))}.", figure)]


def draw_frozen(study: Study, experiment: Experiment) -> list[Drawing]:
    """Accuracy against a frozen q, over the seeds that every q and the learned one have."""
    found = study.runs(experiment)
    curves = {}
    for dataset in experiment.datasets:
        by_method: dict[str, dict[int, Record]] = {}
        for spec, run in found.items():
            if spec.dataset == dataset:
                by_method.setdefault(spec.method, {})[spec.seed] = run
        frozen = [method for method in FROZEN_Q if method in by_method]
        seeds = set.intersection(*(set(runs) for runs in by_method.values())) if by_method else set()
        if len(frozen) < 2 or not seeds:
            continue
        test, val = (
            tuple(
                Sample(
                    float(method.removeprefix("frozen-q")),
                    tuple(100 * by_method[method][seed]["metrics"][part]["accuracy"] for seed in sorted(seeds)),
                )
                for method in frozen
            )
            for part in ("test", "val")
        )
        learned = [_accuracy(by_method["ltga-head"][seed]) for seed in seeds] if "ltga-head" in by_method else []
        title = f"{dataset_title(dataset)}, {len(seeds)} seed{'s' if len(seeds) > 1 else ''}"
        curves[title] = FrozenCurve(test, val, 100 * fmean(learned) if learned else None)
    if not curves:
        return []
    with style():
        return [Drawing(experiment.name, "Accuracy with q held at a value.", by_accuracy.frozen(curves))]


def draw_sweeps(study: Study, experiment: Experiment) -> list[Drawing]:
    """Accuracy and q along every setting, a figure per dataset."""
    found = study.runs(experiment)
    points = on_common_seeds(sweep_points(found))
    drawings = []
    for dataset in dict.fromkeys(dataset for dataset, _, _ in points):
        lines = []
        for setting, name in SWEPT.items():
            here = {value: specs for (d, s, value), specs in points.items() if (d, s) == (dataset, setting)}
            if len(here) > 1:
                test, q = (
                    tuple(
                        Sample(value, values)
                        for value, specs in here.items()
                        if (values := tuple(factor * x for spec in specs if (x := read(found[spec])) is not None))
                    )
                    for read, factor in ((accuracy, 100), (learned_q, 1))
                )
                lines.append(Sweep(name, test, q, log=setting == "kappa"))
        if lines:
            with style():
                figure = by_accuracy.sweeps(lines, dataset_title(dataset))
            counts = {len(sample.values) for line in lines for sample in line.accuracy}
            seeds = " to ".join(str(count) for count in sorted({min(counts), max(counts)}))
            caption = (
                f"Accuracy and mean q of LTGA-Head on {dataset_title(dataset)}, one setting changed at a time, over "
                f"the seeds that all values have ({seeds})."
            )
            drawings.append(Drawing(drawing_name(experiment, dataset), caption, figure))
    return drawings


def draw_synthetic(study: Study, experiment: Experiment) -> list[Drawing]:
    """What a q other than 1 changes on the synthetic graphs, against their signal, a panel per degree."""
    found = study.runs(experiment)
    points = synthetic_points(found)
    panels: dict[str, dict[str, list[Sample]]] = {}
    for (degree, snr, method), specs in sorted(points.items()):
        softmax = {spec.dataset: found[spec] for spec in points.get((degree, snr, "frozen-q1.0"), ())}
        gains = tuple(
            100 * (_accuracy(found[spec]) - _accuracy(softmax[spec.dataset]))
            for spec in specs
            if spec.dataset in softmax
        )
        if gains and method != "frozen-q1.0":
            panels.setdefault(f"degree {degree:g}", {}).setdefault(method, []).append(Sample(snr, gains))
    panels = {name: group for name, group in panels.items() if any(len(samples) > 1 for samples in group.values())}
    if not panels:
        return []
    with style():
        figure = by_accuracy.curves_by_method(
            panels, "signal-to-noise ratio", log=True, ylabel="gain over q = 1 (points)", gains=True
        )
    caption = (
        "Contextual stochastic block model: accuracy against that of q = 1 on the same graph and seed, mean and "
        "standard error over seeds."
    )
    return [Drawing(experiment.name, caption, figure)]


def _accuracy(record: Record) -> float:
    return float(record["metrics"]["test"]["accuracy"])
