"""What happens to q while a network is trained: over the epochs, per head, and the gradient that moves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ltga.study import Experiment
from ltga.study.report.figures.panels import entry, legend_below, panel_each, plain_log, shannon_line, softmax_entry
from ltga.study.report.figures.style import BLUE, PALETTE, RED, Drawing
from ltga.study.report.names import dataset_title, label
from ltga.study.report.run_table import finished, grouped, run_table
from ltga.study.report.runs import Study
from ltga.train.record import Record

T = TypeVar("T")
ByDataset = Mapping[str, Sequence[Record]]
MOVED = 1e-3  # a q closer to 1 than this has not left it
TINY = 1e-12  # what a norm of zero is drawn as
_DASHES = ("-", "--", "-.", ":")


def _by_dataset(study: Study, experiment: Experiment) -> dict[str, list[Record]]:
    runs = grouped(finished(run_table(study, experiment)), "dataset")
    return {dataset_title(name): here["record"].tolist() for name, here in runs.items()}


def q_heads(record: Record) -> list[np.ndarray]:
    """Per layer q ``[epochs, heads]``; for an edge gate its mean over edges."""
    return [np.asarray(layer["mean"], dtype=float) for layer in record["trajectory"]["q"] if layer.get("mean")]


def draw_trajectories(study: Study, experiment: Experiment) -> list[Drawing]:
    """q over the epochs per dataset, and per head where it moves."""
    (method,) = experiment.methods
    found = {name: records for name, records in _by_dataset(study, experiment).items() if q_heads(records[0])}
    if not found:
        return []
    moving = {
        name: records
        for name, records in found.items()
        if any(np.abs(layer - 1).max() > MOVED for record in records for layer in q_heads(record))
    }
    drawings = [Drawing(experiment.name, f"Mean q of {label(method)} over the epochs.", _mean_q(found))]
    if moving:
        caption = f"q of every head of {label(method)}, mean over seeds while all of them run, where it leaves 1."
        drawings.append(Drawing(f"{experiment.name}-heads", caption, _every_head(moving)))
    return drawings


def _mean_q(found: ByDataset) -> Figure:
    """Mean q over the epochs per dataset: seeds light, their mean bold, the epoch that was kept marked."""
    figure, drawn = panel_each(_with_counts(found), "epoch", "mean q", sharey=True)
    for axis, records in drawn:
        curves = [np.mean([layer.mean(axis=1) for layer in q_heads(record)], axis=0) for record in records]
        _seeds_and_mean(axis, curves, mean_curve(curves))
        for record, curve in zip(records, curves):
            best = record["best_epoch"]
            axis.plot(best, curve[best - 1], "|", color=RED, markersize=7, markeredgewidth=1.2, zorder=4)
        shannon_line(axis)
    _show_softmax(drawn[0][0])
    kept = entry("epoch kept", color=RED, marker="|", linestyle="")
    legend_below(figure, [*_entries("mean"), kept, softmax_entry()], 2 if len(found) == 1 else 4)
    return figure


def _seeds_and_mean(axis: Axes, curves: Sequence[np.ndarray], mean: np.ndarray, first: int = 1) -> None:
    """Seeds light, their mean bold, from the epoch ``first`` on."""
    for curve in curves:
        axis.plot(np.arange(first, first + len(curve)), curve, color=BLUE, alpha=0.3, linewidth=0.9)
    axis.plot(np.arange(first, first + len(mean)), mean, color=BLUE, linewidth=2.2)


def _entries(mean: str) -> list[Line2D]:
    bold = entry(f"{mean}, while half of the seeds run", color=BLUE, linewidth=2.2)
    return [entry("one seed", color=BLUE, alpha=0.3), bold]


def _with_counts(found: Mapping[str, Sequence[T]]) -> dict[str, Sequence[T]]:
    """The same under titles that say of how many seeds."""
    return {f"{name} ({len(runs)} seed{'s' if len(runs) > 1 else ''})": runs for name, runs in found.items()}


def _every_head(found: ByDataset) -> Figure:
    """q per layer and head over the epochs, averaged over seeds."""
    figure, drawn = panel_each(_with_counts(found), "epoch", "q of a head", sharey=True)
    depth = 0
    for axis, records in drawn:
        layers = [q_heads(record) for record in records]
        depth = max(depth, len(layers[0]))
        for number in range(len(layers[0])):
            for head in range(layers[0][number].shape[1]):
                mean = mean_curve([run[number][:, head] for run in layers], everyone=True)  # no jump where one ends
                axis.plot(np.arange(1, len(mean) + 1), mean, **_layer_line(number), linewidth=1.1, alpha=0.8)
        shannon_line(axis)
    _show_softmax(drawn[0][0])
    legend_below(figure, [*(entry(f"layer {k + 1}", **_layer_line(k)) for k in range(depth)), softmax_entry()], 4)
    return figure


def _layer_line(number: int) -> dict[str, Any]:
    return {"color": PALETTE[number % len(PALETTE)], "linestyle": _DASHES[number % len(_DASHES)]}


def _show_softmax(axis: Axes) -> None:
    """Widen an axis (and those that share it) so that q = 1 lies well inside and noise does not look like a trend."""
    low, high = axis.get_ylim()
    axis.set_ylim(min(low, 0.95), max(high, 1.05))


def mean_curve(curves: Sequence[np.ndarray], everyone: bool = False) -> np.ndarray:
    """Mean per epoch over the runs that got that far, as long as these are at least half of all (or all).

    >>> mean_curve([np.array([1.0, 2.0, 9.0]), np.array([3.0, 4.0]), np.array([5.0])])
    array([3., 3.])
    """
    lengths = sorted(map(len, curves), reverse=True)
    shown = lengths[-1 if everyone else (len(lengths) - 1) // 2]
    return np.array([np.mean([curve[k] for curve in curves if len(curve) > k]) for k in range(shown)])


def draw_gradients(study: Study, experiment: Experiment) -> list[Drawing]:
    """Norm of the loss's gradient at the index, per epoch after the warm-up."""
    (method,) = experiment.methods
    warmup = experiment.runs[0].protocol.warmup
    curves = {}
    for dataset, records in _by_dataset(study, experiment).items():
        norms = [np.asarray(record["trajectory"]["index_gradient_norm"], dtype=float) for record in records]
        if norms := [norm for norm in norms if len(norm) > warmup and norm[warmup:].max() > TINY]:
            curves[dataset] = norms
    caption = f"Norm of the gradient at the index of {label(method)}, per epoch after the warm-up of {warmup}."
    return [Drawing(experiment.name, caption, _gradients(curves, warmup))] if curves else []


def _gradients(curves: Mapping[str, Sequence[np.ndarray]], warmup: int) -> Figure:
    figure, drawn = panel_each(_with_counts(curves), "epoch", "gradient norm at the index", sharey=True)
    for axis, norms in drawn:
        above = [np.maximum(norm, TINY) for norm in norms]
        mean = 10 ** mean_curve([np.log10(norm) for norm in above])
        _seeds_and_mean(axis, [norm[warmup:] for norm in above], mean[warmup:], first=warmup + 1)
        axis.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    drawn[0][0].set_yscale("log")
    plain_log(drawn[0][0].yaxis)
    legend_below(figure, _entries("geometric mean"), 1 if len(curves) == 1 else 2)
    return figure
