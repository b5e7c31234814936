"""How good predictions are that are not classes: numbers, several labels of which some are unknown, and ranks."""

from __future__ import annotations

import math

import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import Tensor

from ltga.errors import InputError

HITS = (1, 3, 10)


def number_scores(predicted: Tensor, y: Tensor) -> dict[str, float]:
    """Mean absolute error, root mean squared error and R2, in the units of the target; NaN in ``y`` is left out.

    >>> number_scores(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 3.0, 5.0]))
    {'mae': 0.6666666666666666, 'rmse': 0.816496580927726, 'r2': 0.75}
    """
    known = ~y.isnan()
    y, error = y[known].double(), (predicted[known].double() - y[known].double())
    spread = (y - y.mean()).square().sum()
    return {
        "mae": error.abs().mean().item(),
        "rmse": error.square().mean().sqrt().item(),
        "r2": float("nan") if spread == 0 else (1 - error.square().sum() / spread).item(),
    }


def label_scores(logits: Tensor, y: Tensor) -> dict[str, float]:
    """F1 at a probability of one half, over all labels and as a mean over labels; and how well each label ranks.

    Unknown entries (NaN) are left out. The mean F1 runs over labels that occur or are predicted, average precision and
    the area under the ROC curve over labels of which both values occur; NaN where there is none.

    >>> truth = torch.tensor([[1.0, 0], [0, float("nan")], [0, 1]])
    >>> scores = label_scores(torch.tensor([[2.0, -1], [-1, 1], [1, -1]]), truth)
    >>> {name: round(value, 3) for name, value in scores.items()}
    {'micro_f1': 0.5, 'macro_f1': 0.333, 'average_precision': 0.75, 'roc_auc': 0.75}
    """
    logits, y = logits.detach().cpu(), y.cpu()
    _refuse_nan(logits)
    known = ~y.isnan()
    chosen, truth = (logits > 0) & known, (y == 1) & known
    hits, wrong = (chosen & truth).sum(0).double(), (chosen != truth).sum(0).double()
    occurs = hits + wrong > 0
    f1 = 2 * hits[occurs] / (2 * hits + wrong)[occurs]
    whole = 2 * float(hits.sum()) + float(wrong.sum())
    precisions, areas = [], []
    for column in range(y.size(1)):
        rows = known[:, column]
        labels, ranks = y[rows, column].numpy(), logits[rows, column].double().numpy()
        if 0 < labels.sum() < len(labels):
            precisions.append(float(average_precision_score(labels, ranks)))
            areas.append(float(roc_auc_score(labels, ranks)))
    return {
        "micro_f1": 2 * float(hits.sum()) / whole if whole else math.nan,
        "macro_f1": f1.mean().item() if len(f1) else math.nan,
        "average_precision": sum(precisions) / len(precisions) if precisions else math.nan,
        "roc_auc": sum(areas) / len(areas) if areas else math.nan,
    }


def ranks_of(scores: Tensor, truth: Tensor) -> Tensor:
    """The rank ``[B]`` of candidate ``truth`` ``[B]`` among ``scores`` ``[B, C]``, 1 for the best.

    Candidates with the same score share the mean of their ranks, so a model that gives all the same has learned nothing
    and is told so; candidates at minus infinity are left out.

    >>> ranks_of(torch.tensor([[0.0, 2.0, 1.0], [1.0, 1.0, 1.0]]), torch.tensor([2, 0])).tolist()
    [2.0, 2.0]
    """
    _refuse_nan(scores)
    own = scores.gather(1, truth.unsqueeze(1))
    return 1 + (scores > own).sum(1).double() + ((scores == own).sum(1).double() - 1) / 2


def rank_scores(ranks: Tensor) -> dict[str, float]:
    """Mean reciprocal rank, and the share of ranks among the first 1, 3 and 10.

    >>> rank_scores(torch.tensor([1.0, 4.0]))
    {'mrr': 0.625, 'hits_at_1': 0.5, 'hits_at_3': 0.5, 'hits_at_10': 1.0}
    """
    return {"mrr": ranks.reciprocal().mean().item()} | {
        f"hits_at_{most}": (ranks <= most).double().mean().item() for most in HITS
    }


def link_scores(scores: Tensor) -> dict[str, float]:
    """Edges against pairs without one, from ``scores`` ``[P, 1 + each]`` whose first column are the edges'.

    The ranks are among an edge's own negatives; the area under the ROC curve and average precision compare all edges
    with all negatives, each edge as often as it has negatives, so that half of the pairs are edges.
    """
    each = scores.size(1) - 1
    flat = torch.cat([scores[:, :1].expand(-1, each), scores[:, 1:]]).flatten().double().numpy()
    labels = torch.cat([torch.ones(len(scores) * each), torch.zeros(len(scores) * each)]).numpy()
    order = torch.zeros(len(scores), dtype=torch.long)
    return {
        **rank_scores(ranks_of(scores, order)),
        "roc_auc": float(roc_auc_score(labels, flat)),
        "average_precision": float(average_precision_score(labels, flat)),
    }


def _refuse_nan(scores: Tensor) -> None:
    """Every comparison with NaN is false, so it would pass for an absent label, or for a rank above the first."""
    count = int(scores.isnan().any(dim=1).sum())
    if count:
        raise InputError(f"scores: NaN in {count} of {len(scores)} rows; the model has diverged")
