"""What is to be predicted, as the loop sees it: a number, several labels, or the right one among candidates."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from ltga.data import Target
from ltga.data.target import rarer_class
from ltga.errors import InputError
from ltga.train.metrics import TWO_CLASSES, classification_metrics
from ltga.train.protocol import METRICS, Protocol
from ltga.train.targets import Classes, Objective, balanced_weights
from ltga.train.tasks.task_scores import label_scores, number_scores, rank_scores, ranks_of

SKEWED = 2.0  # a target that is never negative and more skewed than this is learned as its logarithm
_FIT: dict[str, tuple[str, ...]] = {
    "number": ("mae", "rmse"),
    "labels": ("micro_f1", "macro_f1", "average_precision", "roc_auc"),
    "classes": ("accuracy", "balanced_accuracy", "macro_f1"),
    "ranks": ("mrr",),
}


@dataclass(frozen=True)
class Scale:
    """From a number to what a network is to give: its logarithm if so chosen, less ``shift``, divided by ``scale``.

    Of a logarithm a wild output would become an astronomical number, so predictions end at ``lowest`` and ``highest``:
    half the smallest and twice the largest value of the training part. ``None``: no end.
    """

    log: bool
    shift: float
    scale: float
    lowest: float | None = None
    highest: float | None = None

    @classmethod
    def of(cls, y: Tensor, log: bool | None) -> Scale:
        """From the training part's known values; ``log`` as the skewness says if it is ``None``.

        >>> import torch
        >>> Scale.of(torch.tensor([0.0, 1.0, 2.0]), None)
        Scale(log=False, shift=1.0, scale=0.816496580927726, lowest=None, highest=None)
        """
        y = y[~y.isnan()].double()
        if log and float(y.min()) < 0:
            raise InputError(f"log: the target has negative values such as {float(y.min()):g}; leave log out")
        if log is None:
            spread = y - y.mean()
            cube, width = spread.pow(3).mean().item(), spread.square().mean().sqrt().item()
            log = float(y.min()) >= 0 and width > 0 and cube / width**3 > SKEWED
        shown = y.log1p() if log else y
        shift, scale = shown.mean().item(), max(shown.std(correction=0).item(), 1e-12)
        if not log:
            return cls(False, shift, scale)
        return cls(True, shift, scale, y.min().item() / 2, y.max().item() * 2)

    @classmethod
    def said(cls, said: dict[str, Any]) -> Scale:
        """What a record says of its target; those of old have no ends."""
        return cls(said["log"], said["shift"], said["scale"], said.get("lowest"), said.get("highest"))

    def scaled(self, y: Tensor) -> Tensor:
        y = y.double()
        return (((y.log1p() if self.log else y) - self.shift) / self.scale).float()

    def natural(self, scaled: Tensor) -> Tensor:
        """Back in the target's units; for what a network gives, see :meth:`predicted`."""
        y = scaled.double() * self.scale + self.shift
        return y.expm1() if self.log else y

    def predicted(self, out: Tensor) -> Tensor:
        """What a network's outputs mean, in the target's units and between its ends.

        >>> import torch
        >>> scale = Scale.of(torch.tensor([0.0, 9.0, 99.0]), log=True)
        >>> [round(value) for value in scale.predicted(torch.tensor([-90.0, 0.0, 90.0])).tolist()]
        [0, 9, 198]
        """
        y = self.natural(out)
        return y if self.highest is None else y.clamp(self.lowest, self.highest)


@dataclass(frozen=True, eq=False)
class Number:
    """One number, learned by squared error on its own scale, judged in its units."""

    metric: str
    scale: Scale

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.mse_loss(logits.squeeze(-1), labels)

    def mass(self, labels: Tensor) -> float:
        return float(len(labels))

    def score(self, logits: Tensor, labels: Tensor) -> float | None:
        """Less the error, so that higher is better."""
        return None if self.metric == "loss" else -self.metrics(logits, labels)[self.metric]

    def accuracy(self, logits: Tensor, labels: Tensor) -> float:
        return math.nan

    def metrics(self, logits: Tensor, labels: Tensor) -> dict[str, float]:
        """In the units of the target, and beside them on the logarithmic scale if it was learned on that."""
        predicted, truth = self.scale.predicted(logits.squeeze(-1)), self.scale.natural(labels)
        found = number_scores(predicted, truth)
        if not self.scale.log:
            return found
        on_log = number_scores(predicted.log1p(), truth.log1p())
        return found | {f"log_{name}": value for name, value in on_log.items()}


@dataclass(frozen=True, eq=False)
class Labels:
    """Any of several labels, each by itself; what is unknown is left out."""

    metric: str
    weights: Tensor | None = None

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        known = ~labels.isnan()
        weights = None if self.weights is None else self.weights.to(labels.device).expand_as(labels)[known]
        return F.binary_cross_entropy_with_logits(logits[known], labels[known], pos_weight=weights)

    def mass(self, labels: Tensor) -> float:
        return float((~labels.isnan()).sum())

    def score(self, logits: Tensor, labels: Tensor) -> float | None:
        return None if self.metric == "loss" else label_scores(logits, labels)[self.metric]

    def accuracy(self, logits: Tensor, labels: Tensor) -> float:
        return math.nan

    def metrics(self, logits: Tensor, labels: Tensor) -> dict[str, float]:
        return label_scores(logits, labels)


class MeasuredClasses(Classes):
    """One class, with the metrics of node classification."""

    def metrics(self, logits: Tensor, labels: Tensor) -> dict[str, float]:
        return classification_metrics(logits.log_softmax(-1), labels, positive=self.positive)


@dataclass(frozen=True, eq=False)
class Ranks:
    """The right one among candidates ``[B, C]``; those at minus infinity do not take part.

    With ``pairwise`` each candidate is told from the right one by itself (an edge or none), else all at once.
    """

    metric: str
    pairwise: bool

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        if not self.pairwise:
            return F.cross_entropy(logits, labels)
        truth = F.one_hot(labels, logits.size(1)).to(logits.dtype)
        return F.binary_cross_entropy_with_logits(logits, truth)

    def mass(self, labels: Tensor) -> float:
        return float(len(labels))

    def score(self, logits: Tensor, labels: Tensor) -> float | None:
        return None if self.metric == "loss" else rank_scores(ranks_of(logits, labels))["mrr"]

    def accuracy(self, logits: Tensor, labels: Tensor) -> float:
        return math.nan


def metric_for(kind: str, headline: str, protocol: Protocol, where: str) -> str:
    """What chooses the best epoch: the protocol's metric if it fits the target, the headline one for ``"auto"``."""
    if protocol.metric in ("loss", *_FIT[kind]):
        return str(protocol.metric)
    if protocol.metric == "auto":
        return headline if headline in _FIT[kind] else _FIT[kind][0]
    raise InputError(
        f"metric: {protocol.metric!r} does not fit {where}; use 'auto' ({headline}), 'loss'"
        + "".join(f", {name!r}" for name in _FIT[kind] if name in METRICS)
    )


def objective_for(
    target: Target, train: Tensor, headline: str, protocol: Protocol, log: bool | None, where: str
) -> tuple[Objective, Tensor, dict[str, Any]]:
    """The objective of a target, the target as the network learns it, and what the record says of both."""
    asked = headline if protocol.metric == "auto" else str(protocol.metric)
    two = target.kind == "classes" and target.outputs == 2 and asked in TWO_CLASSES
    metric = asked if two else metric_for(target.kind, headline, protocol, where)
    said: dict[str, Any] = {"kind": target.kind, "names": list(target.names)}
    known = target.y[train]
    if target.kind == "number":
        scale = Scale.of(known, log)
        if scale.log and protocol.metric == "auto":
            metric = "log_mae"  # in its units a few very large values would choose the epoch
        return Number(metric, scale), scale.scaled(target.y), said | asdict(scale)
    if log is not None:
        raise InputError("log: is for a number; the target here is " + target.kind)
    if target.kind == "labels":
        return Labels(metric, _rare_weights(known) if protocol.class_weights else None), target.y, said
    weights = balanced_weights(known, target.outputs) if protocol.class_weights else None
    return MeasuredClasses(metric, weights, rarer_class(target.y)), target.y, said


def _rare_weights(y: Tensor) -> Tensor:
    """How many times as often a label is absent as present ``[L]``, at least once each."""
    return ((y == 0).sum(0).clamp(min=1) / (y == 1).sum(0).clamp(min=1)).float()
