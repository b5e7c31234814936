"""Calibration from stored predictions: reliability diagrams beside ECE, NLL and Brier score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from ltga.data import Dataset
from ltga.errors import InputError
from ltga.explanation.reliability import reliability
from ltga.study.analyses.inputs import check_graph
from ltga.train.finished import Run
from ltga.train.metrics import classification_metrics

PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Calibration:
    """How far predicted probabilities can be believed.

    Attributes:
        accuracy, ece, nll, brier: as in :func:`ltga.train.metrics.classification_metrics`.
        bins: the reliability diagram, see :func:`~ltga.explanation.reliability.reliability`.
    """

    accuracy: float
    ece: float
    nll: float
    brier: float
    bins: pd.DataFrame


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
