"""How good predicted class distributions are: by rank, by share of hits, and by how far they can be believed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from torch import Tensor

from ltga.errors import InputError


def classification_metrics(
    log_probs: Tensor, labels: Tensor, mask: Tensor | None = None, positive: int = 1
) -> dict[str, float]:
    r"""All metrics of a set of predictions, computed in float64.

    =====================  ==================================================================================
    ``accuracy``           share of nodes whose most probable class is theirs
    ``balanced_accuracy``  the same within each class, averaged over the classes that occur
    ``macro_f1``           mean F1 over the classes that occur among labels or predictions
    ``nll``                :math:`-\frac1n \sum_i \log p_{i,y_i}`; infinite if a true class has probability 0
    ``brier``              :math:`\frac1n \sum_i \sum_c (p_{ic} - [c = y_i])^2`, between 0 and 2
    ``ece``                :func:`expected_calibration_error` with 15 bins
    ``roc_auc``            two classes only: chance that a node of class 1 is ranked above one of class 0
                           (NaN if the nodes are all of one class)
    ``average_precision``  two classes only: area under the curve of precision over recall of the class ``positive``
                           (NaN likewise); runs take the rarer one, :func:`ltga.data.target.rarer_class`
    =====================  ==================================================================================

    Args:
        log_probs: ``[N, C]`` log-probabilities, as ``logits.log_softmax(-1)`` gives them.
        labels: ``[N]`` integers in ``0..C-1``; not looked at outside the mask.
        mask: boolean ``[N]``: the nodes to evaluate; all if ``None``.
        positive: which of two classes ``average_precision`` is about.

    >>> log_probs = torch.tensor([[0.5, 0.25, 0.25], [0.2, 0.6, 0.2]]).log()
    >>> metrics = classification_metrics(log_probs, torch.tensor([0, 2]))
    >>> {name: round(value, 3) for name, value in metrics.items()}
    {'accuracy': 0.5, 'balanced_accuracy': 0.5, 'macro_f1': 0.333, 'nll': 1.151, 'brier': 0.708, 'ece': 0.55}
    """
    log_probs, labels = _checked(log_probs, labels, mask)
    probs = log_probs.exp()
    target = F.one_hot(labels, probs.size(1))
    names = [name for name in _SCORES if probs.size(1) == 2 or name not in TWO_CLASSES]
    scores = {name: _score(name, log_probs, labels, positive) for name in names}
    errors = {
        "nll": F.nll_loss(log_probs, labels).item(),
        "brier": (probs - target).square().sum(dim=1).mean().item(),
        "ece": expected_calibration_error(probs, labels),
    }
    return {name: scores.pop(name) for name in names if name not in TWO_CLASSES} | errors | scores


def score_classes(metric: str, log_probs: Tensor, labels: Tensor, positive: int = 1) -> float:
    """One metric by its name, higher is better.

    >>> score_classes("accuracy", torch.tensor([[0.5, 0.5], [0.2, 0.8]]).log(), torch.tensor([0, 1]))
    1.0
    """
    return _score(metric, *_checked(log_probs, labels, None), positive)


def _score(metric: str, log_probs: Tensor, labels: Tensor, positive: int) -> float:
    if metric == "average_precision" and positive == 0:
        log_probs, labels = log_probs.flip(1), 1 - labels
    return _SCORES[metric](log_probs, labels)


def expected_calibration_error(probs: Tensor, labels: Tensor, num_bins: int = 15) -> float:
    r"""Mean gap between confidence and accuracy (Guo et al., 2017).

    .. math:: \mathrm{ECE} = \sum_b \frac{|B_b|}{n} \, |\mathrm{acc}(B_b) - \mathrm{conf}(B_b)|

    over equal-width bins :math:`B_b` of the top class's probability, each open on the left and
    closed on the right.

    Args:
        probs: ``[n, C]`` probabilities.
        labels: ``[n]`` integers in ``0..C-1``.

    >>> round(expected_calibration_error(torch.tensor([[0.9, 0.1], [0.3, 0.7]]), torch.tensor([0, 0])), 6)
    0.4
    """
    confidence, predictions = probs.double().max(dim=1)
    edges = torch.linspace(0, 1, num_bins + 1, dtype=torch.float64)[1:-1]
    bins = torch.bucketize(confidence, edges)
    gap = (predictions == labels).double() - confidence
    return torch.zeros(num_bins, dtype=torch.float64).index_add(0, bins, gap).abs().sum().item() / len(gap)


def _accuracy(log_probs: Tensor, labels: Tensor) -> float:
    return (log_probs.argmax(1) == labels).double().mean().item()


def _balanced_accuracy(log_probs: Tensor, labels: Tensor) -> float:
    found = (log_probs.argmax(1) == labels).double()
    counts = labels.bincount(minlength=log_probs.size(1))
    hits = labels.bincount(found, minlength=log_probs.size(1))
    return (hits[counts > 0] / counts[counts > 0]).mean().item()


def _macro_f1(log_probs: Tensor, labels: Tensor) -> float:
    return float(f1_score(labels.numpy(), log_probs.argmax(1).numpy(), average="macro", zero_division=0))


def _roc_auc(log_probs: Tensor, labels: Tensor) -> float:
    return float("nan") if labels.unique().numel() < 2 else float(roc_auc_score(labels.numpy(), _ranks(log_probs)))


def _average_precision(log_probs: Tensor, labels: Tensor) -> float:
    if labels.unique().numel() < 2:
        return float("nan")
    return float(average_precision_score(labels.numpy(), _ranks(log_probs)))


def _ranks(log_probs: Tensor) -> np.ndarray:
    """By class 1. The log-odds still tell apart what probabilities next to 0 or 1 round together; their ranks stand in
    for them because they may be infinite."""
    log_odds = log_probs[:, 1] - log_probs[:, 0]
    return log_odds.unique(return_inverse=True)[1].numpy()


_SCORES: Mapping[str, Callable[[Tensor, Tensor], float]] = {
    "accuracy": _accuracy,
    "balanced_accuracy": _balanced_accuracy,
    "macro_f1": _macro_f1,
    "roc_auc": _roc_auc,
    "average_precision": _average_precision,
}
TWO_CLASSES = ("roc_auc", "average_precision")


def _checked(log_probs: Tensor, labels: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The masked rows on the CPU, in float64 and int64, or an error that says what is wrong."""
    if log_probs.dim() != 2 or log_probs.size(1) < 2:
        raise InputError(f"log_probs: expected shape [N, C] with C >= 2, got {list(log_probs.shape)}")
    num_nodes, num_classes = log_probs.shape
    if labels.shape != (num_nodes,) or labels.is_floating_point() or labels.dtype == torch.bool:
        raise InputError(f"labels: expected {num_nodes} integers, got {labels.dtype} of shape {list(labels.shape)}")
    if mask is not None:
        if mask.shape != (num_nodes,) or mask.dtype != torch.bool:
            raise InputError(f"mask: expected {num_nodes} booleans, got {mask.dtype} of shape {list(mask.shape)}")
        log_probs, labels = log_probs[mask], labels[mask]
    if len(labels) == 0:
        raise InputError("mask: no node to evaluate; the mask is empty")
    log_probs, labels = log_probs.detach().cpu().double(), labels.cpu().long()
    if log_probs.isnan().any():
        count = int(log_probs.isnan().any(dim=1).sum())
        raise InputError(f"log_probs: NaN in {count} of {len(labels)} rows; the model has diverged")
    if labels.min() < 0 or labels.max() >= num_classes:
        raise InputError(
            f"labels: expected values in 0..{num_classes - 1}, got {int(labels.min())}..{int(labels.max())}"
        )
    error = (log_probs.exp().sum(dim=1) - 1).abs().max().item()
    if not error < 1e-3:
        raise InputError(
            f"log_probs: the probabilities of a row sum to 1 up to {error:.3g}; "
            "pass logits.log_softmax(-1) or probs.log()"
        )
    return log_probs, labels
