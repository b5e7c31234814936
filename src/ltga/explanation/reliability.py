"""Reliability diagrams: how far the confidence of predictions can be believed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from torch import Tensor

from ltga.errors import InputError


def reliability(log_probs: Tensor, labels: Tensor, num_bins: int = 15) -> pd.DataFrame:
    r"""Confidence against accuracy in equal-width bins of the top class's probability, ``(low, high]``.

    With 15 bins :math:`\sum_b n_b |\mathrm{gap}_b| / n` is the ECE of ``classification_metrics``.

    Args:
        log_probs: ``[n, C]``.
        labels: ``[n]`` in ``0..C-1``.

    Returns:
        A row per bin: ``low``, ``high``, ``count``, mean ``confidence``, ``accuracy`` and ``gap``
        (accuracy minus confidence); NaN in a bin without nodes.

    >>> import torch
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

    >>> import torch
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


def _diagram(low: np.ndarray, high: np.ndarray, count: np.ndarray, sums: dict[str, np.ndarray]) -> pd.DataFrame:
    means = {
        name: np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0) for name, total in sums.items()
    }
    gap = means["accuracy"] - means["confidence"]
    return pd.DataFrame({"low": low, "high": high, "count": count, **means, "gap": gap})
