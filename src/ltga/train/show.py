"""A finished run as people look at it in a notebook: a line, a small table, a figure."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from ltga.data import Dataset
from ltga.errors import InputError
from ltga.train.record import Record, headline_score, kept_index


def summary(record: Record) -> str:
    """Score, best epoch and short id.

    >>> record = {"id": "1c556dcb" * 8, "metrics": {"val": {"accuracy": 0.5}}, "best_epoch": 3, "epochs": 9}
    >>> summary(record)
    'val accuracy 50.0 %, best epoch 3 of 9, id 1c556dcb'
    """
    part, metric, score = headline_score(record)
    shown = "unknown" if score is None else f"{100 * score:.1f} %"
    return f"{part} {metric} {shown}, best epoch {record['best_epoch']} of {record['epochs']}, id {record['id'][:8]}"


def html_table(record: Record) -> str:
    """The run as a small HTML table; everything in it is escaped."""
    config = record["config"]
    part, metric, _ = headline_score(record)
    rows = [("graph", config["dataset"]["name"]), ("method", config["method"]), ("seed", config["seed"])]
    rows += [
        (f"{part} {name}{' (chosen by)' if name == metric and record.get('metric') else ''}", f"{value:.4g}")
        for name, value in record["metrics"][part].items()
        if value is not None
    ]
    for number, layer in enumerate(kept_index(record), start=1):
        means = [value for value in layer.get("mean", []) if value is not None]
        if means:
            rows.append((f"index of layer {number}", " ".join(f"{value:.2f}" for value in means)))
    rows += [("best epoch", f"{record['best_epoch']} of {record['epochs']}"), ("id", record["id"][:8])]
    cells = "".join(f"<tr><th>{escape(str(name))}</th><td>{escape(str(value))}</td></tr>" for name, value in rows)
    return f"<table>{cells}</table>"


def plot_run(record: Record, arrays: Mapping[str, np.ndarray], dataset: Dataset | None) -> Any:
    """Loss and q over the epochs and, where the graph is given, the confusion matrix of its test nodes."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("plot: needs matplotlib; pip install matplotlib") from None
    course, courses = record["trajectory"], record["trajectory"]["q"]
    panels = 1 + bool(courses) + (dataset is not None)
    figure = Figure(figsize=(4.2 * panels, 3.2), layout="constrained")
    axes = iter(np.atleast_1d(figure.subplots(1, panels)))
    epochs = np.arange(1, record["epochs"] + 1)
    loss = next(axes)
    for name, label in (("train_loss", "training"), ("val_loss", "validation")):
        loss.plot(epochs, np.array(course[name], dtype=float), label=label)
    loss.axvline(record["best_epoch"], color="0.6", linestyle=":", label="kept")
    loss.set(xlabel="epoch", ylabel="loss")
    loss.legend(frameon=False)
    if courses:
        index = next(axes)
        for number, layer in enumerate(courses):
            heads = np.array(layer["mean"], dtype=float)  # [epochs, heads]
            index.plot(
                epochs,
                heads,
                color=f"C{number}",
                alpha=0.7,
                label=[f"layer {number + 1}"] + [""] * (heads.shape[1] - 1),
            )
        index.axhline(1, color="0.6", linestyle=":")
        index.set(xlabel="epoch", ylabel="index by layer and head")
        index.legend(frameon=False)
    if dataset is not None:
        _confusion(next(axes), record, arrays["log_probs"], dataset)
    return figure


def _confusion(axes: Any, record: Record, log_probs: np.ndarray, dataset: Dataset) -> None:
    test = dataset.split(record["config"]["split"])[2].numpy()
    if not test.any() or len(log_probs) != dataset.data.num_nodes:
        raise InputError("dataset: has no test nodes to show, or is not the graph of this run")
    true, said = dataset.data.y.numpy()[test], log_probs.argmax(1)[test]
    counts = np.zeros((dataset.num_classes,) * 2)
    np.add.at(counts, (true, said), 1)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.figure.colorbar(image, ax=axes, label="share of the true class")
    names = dataset.class_names if dataset.num_classes <= 12 else None
    if names is not None:
        axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
        axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="predicted", ylabel="true")
