"""A finished run as a figure: the courses of loss and q, and on the test part what was said beside what is true."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from ltga.data import Dataset, GraphCollection, GraphFolder, NodeDataset
from ltga.errors import InputError
from ltga.train.record import Record

BINS = 10  # of probabilities, for calibration
_MOST_NAMES = 12
Panel = Callable[[Any], None]


def plot_run(record: Record, arrays: Mapping[str, np.ndarray], dataset: Any = None) -> Any:
    """Loss and q over the epochs and, given the data, confusion and calibration, or numbers beside the true ones."""
    try:
        from ltga.train.picture import Picture
    except ImportError:
        raise InputError("plot: needs matplotlib; pip install 'ltga[plot]'") from None
    panels: list[Panel] = [lambda axes: _loss(axes, record)]
    if record["trajectory"]["q"]:
        panels.append(lambda axes: _index(axes, record))
    if isinstance(dataset, Dataset | GraphFolder | NodeDataset | GraphCollection):
        panels += _outcome(record, arrays, dataset)
    figure = Picture(figsize=(4.2 * len(panels), 3.2), layout="constrained")
    for axes, draw in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels):
        draw(axes)
    return figure


def _loss(axes: Any, record: Record) -> None:
    epochs = np.arange(1, record["epochs"] + 1)
    for name, label in (("train_loss", "training"), ("val_loss", "validation")):
        axes.plot(epochs, np.array(record["trajectory"][name], dtype=float), label=label)
    axes.axvline(record["best_epoch"], color="0.6", linestyle=":", label="kept")
    axes.set(xlabel="epoch", ylabel="loss")
    axes.legend(frameon=False)


def _index(axes: Any, record: Record) -> None:
    epochs = np.arange(1, record["epochs"] + 1)
    for number, layer in enumerate(record["trajectory"]["q"]):
        heads = np.array(layer["mean"], dtype=float)  # [epochs, heads]
        names = [f"layer {number + 1}"] + [""] * (heads.shape[1] - 1)
        axes.plot(epochs, heads, color=f"C{number}", alpha=0.7, label=names)
    axes.axhline(1, color="0.6", linestyle=":")
    axes.set(xlabel="epoch", ylabel="index by layer and head")
    axes.legend(frameon=False)


def _outcome(record: Record, arrays: Mapping[str, np.ndarray], dataset: Any) -> list[Panel]:
    """What was said of the test part beside what is true, by the kind of target."""
    target = dataset.target
    logits = arrays["log_probs"] if "log_probs" in arrays else arrays["outputs"]
    test = dataset.split(record["config"]["split"])[2].numpy()
    if not test.any() or len(logits) != len(target.y):
        raise InputError("dataset: has nothing in the test part to show, or is not what this run was made on")
    true, said = target.y[torch.from_numpy(test)], torch.from_numpy(np.asarray(logits, dtype=np.float32)[test])
    if target.kind == "number":
        from ltga.train.tasks.objectives import Scale  # it stands on this file

        values = Scale.said(record["target"]).predicted(said.squeeze(-1)).numpy()
        return [lambda axes: _numbers(axes, true.numpy(), values, target.names[0])]
    if target.kind == "labels":
        known = ~true.isnan()
        hits, shares = true[known].numpy(), said.sigmoid()[known].numpy()
        return [lambda axes: _calibration(axes, shares, hits, "label")]
    shares, classes = said.softmax(-1).numpy(), true.numpy()
    hits = (shares.argmax(1) == classes).astype(float)
    return [
        lambda axes: _confusion(axes, classes, shares.argmax(1), target.names),
        lambda axes: _calibration(axes, shares.max(1), hits, "predicted class"),
    ]


def _confusion(axes: Any, true: np.ndarray, said: np.ndarray, names: tuple[str, ...]) -> None:
    counts = np.zeros((len(names),) * 2)
    np.add.at(counts, (true, said), 1)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.figure.colorbar(image, ax=axes, label="share of the true class")
    if len(names) <= _MOST_NAMES:
        axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
        axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="predicted", ylabel="true")


def _calibration(axes: Any, shares: np.ndarray, hits: np.ndarray, of: str) -> None:
    """How often what is said with a probability is so; the size of a point is how often it is said."""
    bins = np.minimum((shares * BINS).astype(int), BINS - 1)
    counts = np.bincount(bins, minlength=BINS)
    full = counts > 0
    mean = np.bincount(bins, shares, BINS)[full] / counts[full]
    rate = np.bincount(bins, hits, BINS)[full] / counts[full]
    axes.plot([0, 1], [0, 1], color="0.6", linestyle=":", label="calibrated")
    axes.scatter(mean, rate, s=10 + 150 * counts[full] / counts.sum())
    axes.plot(mean, rate, alpha=0.5)
    axes.set(xlabel=f"probability of the {of}", ylabel="share that is so", xlim=(0, 1), ylim=(0, 1.02))
    axes.legend(frameon=False)


def _numbers(axes: Any, true: np.ndarray, said: np.ndarray, name: str) -> None:
    known = ~np.isnan(true)
    axes.scatter(true[known], said[known], s=8, alpha=0.6)
    ends = [float(np.min(true[known])), float(np.max(true[known]))]
    axes.plot(ends, ends, color="0.6", linestyle=":", label="as it is")
    axes.set(xlabel=f"{name}, true", ylabel="predicted")
    axes.legend(frameon=False)
