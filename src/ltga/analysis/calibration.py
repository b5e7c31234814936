"""Calibration from stored predictions: reliability diagrams beside ECE, NLL and Brier score."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ltga.analysis.inputs import check_graph
from ltga.data import Dataset
from ltga.errors import InputError
from ltga.train.fit import Run
from ltga.train.metrics import classification_metrics

PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Calibration:
    """How far predicted probabilities can be believed.

    Attributes:
        accuracy, ece, nll, brier: as in :func:`ltga.train.metrics.classification_metrics`.
        bins: the reliability diagram, see :func:`reliability`.
    """

    accuracy: float
    ece: float
    nll: float
    brier: float
    bins: pd.DataFrame


def reliability(log_probs: Tensor, labels: Tensor, num_bins: int = 15) -> pd.DataFrame:
    r"""Confidence against accuracy in equal-width bins of the top class's probability, ``(low, high]``.

    With 15 bins :math:`\sum_b n_b |\mathrm{gap}_b| / n` is the ECE of ``classification_metrics``.

    Args:
        log_probs: ``[n, C]``.
        labels: ``[n]`` in ``0..C-1``.

    Returns:
        A row per bin: ``low``, ``high``, ``count``, mean ``confidence``, ``accuracy`` and ``gap``
        (accuracy minus confidence); NaN in a bin without nodes.

    >>> bins = reliability(torch.tensor([[0.9, 0.1], [0.3, 0.7]]).log(), torch.tensor([0, 0]), num_bins=2)
    >>> bins["count"].tolist(), bins["accuracy"].tolist()
    ([0, 2], [nan, 0.5])
    """
    confidence, predicted = log_probs.double().exp().max(dim=1)
    return reliability_bins(confidence.numpy(), (predicted == labels).numpy(), num_bins)


def reliability_bins(confidence: np.ndarray, correct: np.ndarray, num_bins: int = 15) -> pd.DataFrame:
    """:func:`reliability` from the confidence and correctness ``[n]`` of predictions already made.

    >>> reliability_bins(np.array([0.75, 0.75, 0.25]), np.array([True, False, True]), 2)["count"].tolist()
    [1, 2]
    """
    if num_bins < 1:
        raise InputError(f"num_bins: expected at least 1, got {num_bins}")
    edges = np.linspace(0, 1, num_bins + 1)
    bins = np.searchsorted(edges[1:-1], confidence)
    count = np.bincount(bins, minlength=num_bins)
    sums = {
        "confidence": np.bincount(bins, confidence, num_bins),
        "accuracy": np.bincount(bins, correct, num_bins),
    }
    return _diagram(edges[:-1], edges[1:], count, sums)


def pool_reliability(diagrams: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """One diagram of several with the same bins, every node counting once: say the ten seeds of a method.

    >>> one = reliability(torch.tensor([[0.9, 0.1]]).log(), torch.tensor([0]), num_bins=2)
    >>> two = reliability(torch.tensor([[0.7, 0.3]]).log(), torch.tensor([1]), num_bins=2)
    >>> pool_reliability([one, two]).iloc[1][["count", "confidence", "accuracy"]].round(6).tolist()
    [2.0, 0.8, 0.5]
    """
    frames = list(diagrams)
    if not frames:
        raise InputError("diagrams: expected at least one, got none")
    first = frames[0]
    if any(not np.array_equal(frame[["low", "high"]], first[["low", "high"]]) for frame in frames):
        raise InputError("diagrams: their bins differ; make them with the same num_bins")
    count = np.sum([frame["count"] for frame in frames], axis=0)
    sums = {
        name: np.sum([(frame["count"] * frame[name]).fillna(0.0) for frame in frames], axis=0)
        for name in ("confidence", "accuracy")
    }
    return _diagram(first["low"].to_numpy(), first["high"].to_numpy(), count, sums)


def calibration(run: Run, dataset: Dataset, part: str = "test") -> Calibration:
    """Calibration of a run on one part of its split, from the stored predictions.

    >>> from ltga.data import csbm
    >>> from ltga.train import fit
    >>> graph = csbm(num_nodes=60)
    >>> run = fit(graph, "gcn", protocol={"epochs": 1, "hidden_channels": 2})
    >>> calibration(run, graph).ece == run.metrics["ece"]
    True
    """
    if part not in PARTS:
        raise InputError(f"part: expected one of {', '.join(map(repr, PARTS))}, got {part!r}")
    check_graph(run, dataset)
    mask = dataset.split(run.typed.config.split)[PARTS.index(part)]
    log_probs, labels = torch.from_numpy(np.asarray(run.arrays["log_probs"])), dataset.data.y
    metrics = classification_metrics(log_probs, labels, mask)
    bins = reliability(log_probs[mask], labels[mask])
    return Calibration(**{name: metrics[name] for name in ("accuracy", "ece", "nll", "brier")}, bins=bins)


def _diagram(low: np.ndarray, high: np.ndarray, count: np.ndarray, sums: dict[str, np.ndarray]) -> pd.DataFrame:
    means = {
        name: np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0) for name, total in sums.items()
    }
    gap = means["accuracy"] - means["confidence"]
    return pd.DataFrame({"low": low, "high": high, "count": count, **means, "gap": gap})
