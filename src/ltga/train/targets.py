"""What is to be predicted, as the loop sees it; and one class per node: its loss, and which metric fits its labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol as Interface

import torch
from torch import Tensor
from torch.nn import functional as F

from ltga.data import Dataset, GraphFolder
from ltga.data.target import metric_of_classes, rarer_class
from ltga.errors import InputError
from ltga.train.metrics import score_classes
from ltga.train.protocol import Protocol


class Objective(Interface):
    """What the loop asks about predictions: how wrong they are, and how good by what chooses the best epoch."""

    @property
    def metric(self) -> str: ...
    def loss(self, logits: Tensor, labels: Tensor) -> Tensor: ...
    def mass(self, labels: Tensor) -> float: ...
    def score(self, logits: Tensor, labels: Tensor) -> float | None: ...
    def accuracy(self, logits: Tensor, labels: Tensor) -> float: ...


@dataclass(frozen=True, eq=False)
class Classes:
    """One class per node.

    Attributes:
        metric: which metric chooses the best epoch; ``"loss"`` for the lowest loss.
        weights: of the classes in the loss, ``[C]``; ``None`` if all count the same.
        positive: which of two classes average precision is about.
    """

    metric: str = "loss"
    weights: Tensor | None = None
    positive: int = 1

    @classmethod
    def of(cls, dataset: Dataset | GraphFolder, split: int, protocol: Protocol) -> Classes:
        """What ``protocol`` asks for, on a split of ``dataset``."""
        labels = dataset.target.y[dataset.split(split)[0]]
        weights = balanced_weights(labels, dataset.num_classes) if protocol.class_weights else None
        metric = metric_of(dataset) if protocol.metric == "auto" else protocol.metric
        if metric in ("roc_auc", "average_precision") and dataset.num_classes != 2:
            raise InputError(f"metric: {metric!r} needs two classes, {dataset.name} has {dataset.num_classes}")
        return cls(metric, weights, rarer_class(dataset.target.y))

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        weights = None if self.weights is None else self.weights.to(logits.device)
        return F.cross_entropy(logits, labels, weights)

    def mass(self, labels: Tensor) -> float:
        """What the loss divides by: the loss of several parts together is their mean weighed by this."""
        return float(len(labels)) if self.weights is None else float(self.weights[labels].double().sum())

    def score(self, logits: Tensor, labels: Tensor) -> float | None:
        """The metric on ``labels``, higher is better; ``None`` where the loss decides."""
        if self.metric == "loss":
            return None
        return score_classes(self.metric, logits.log_softmax(-1), labels, self.positive)

    def accuracy(self, logits: Tensor, labels: Tensor) -> float:
        """The share of hits, which every course shows."""
        return (logits.argmax(1) == labels).double().mean().item()


def metric_of(dataset: Dataset | GraphFolder) -> str:
    """What a graph is judged by: its authors' metric if it has one, else whatever its labels call for.

    >>> from ltga.data import csbm
    >>> metric_of(csbm(num_nodes=60))
    'accuracy'
    """
    if dataset.facts is not None:
        return dataset.metric
    return metric_of_classes(dataset.target.y, dataset.num_classes)


def balanced_weights(labels: Tensor, num_classes: int) -> Tensor:
    """Weights ``[C]`` that give every class the same part in the loss; 0 for one that does not occur.

    >>> balanced_weights(torch.tensor([0, 0, 0, 1]), 2).tolist()
    [0.6666666865348816, 2.0]
    """
    counts = labels.bincount(minlength=num_classes).double()
    present = counts > 0
    weights = torch.where(present, len(labels) / (int(present.sum()) * counts.clamp(min=1)), torch.zeros(()).double())
    return weights.float()
