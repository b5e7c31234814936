"""Metrics against torchmetrics, scikit-learn and loops, whichever the code does not use."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torchmetrics.functional.classification as tm
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import log_loss
from torch import Tensor

from ltga.errors import InputError
from ltga.train.metrics import classification_metrics, expected_calibration_error


def predictions(seed: int, num_nodes: int, num_classes: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(num_nodes, num_classes, generator=generator, dtype=torch.float64)
    return logits.log_softmax(-1), torch.randint(num_classes, (num_nodes,), generator=generator)


def loop_macro_f1(predicted: list[int], labels: list[int]) -> float:
    scores = []
    for c in set(predicted) | set(labels):
        hits = sum(p == c == y for p, y in zip(predicted, labels))
        scores.append(2 * hits / (predicted.count(c) + labels.count(c)))
    return sum(scores) / len(scores)


def loop_ece(probs: Tensor, labels: Tensor, num_bins: int = 15) -> float:
    total = 0.0
    confidence, predicted = probs.max(dim=1)
    for b in range(num_bins):
        inside = [i for i, c in enumerate(confidence.tolist()) if b / num_bins < c <= (b + 1) / num_bins + 1e-15]
        if inside:
            accuracy = sum(predicted[i].item() == labels[i].item() for i in inside) / len(inside)
            total += len(inside) * abs(accuracy - confidence[inside].mean().item())
    return total / len(labels)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(2, 7))
def test_equals_other_libraries_and_loops(seed: int, num_nodes: int, num_classes: int) -> None:
    log_probs, labels = predictions(seed, num_nodes, num_classes)
    probs, predicted = log_probs.exp(), log_probs.argmax(1)
    metrics = classification_metrics(log_probs, labels)
    one_hot = np.eye(num_classes)[labels.numpy()]
    expected = {
        "accuracy": tm.multiclass_accuracy(probs, labels, num_classes, average="micro").item(),
        "macro_f1": loop_macro_f1(predicted.tolist(), labels.tolist()),
        "nll": log_loss(labels.numpy(), probs.numpy(), labels=list(range(num_classes))),
        "brier": ((probs.numpy() - one_hot) ** 2).sum(1).mean(),
        "ece": loop_ece(probs, labels),
    }
    for name, value in expected.items():
        assert metrics[name] == pytest.approx(value, rel=1e-6, abs=1e-9), name
    calibration = tm.multiclass_calibration_error(probs, labels, num_classes, n_bins=15, norm="l1")
    assert metrics["ece"] == pytest.approx(calibration.item(), rel=1e-5, abs=1e-6)


def test_macro_f1_equals_torchmetrics_when_every_class_occurs() -> None:
    log_probs, labels = predictions(3, 400, 5)
    expected = tm.multiclass_f1_score(log_probs.exp(), labels, 5, average="macro").item()
    assert classification_metrics(log_probs, labels)["macro_f1"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_roc_auc_equals_torchmetrics_and_pair_counting(seed: int) -> None:
    log_probs, labels = predictions(seed, 80, 2)
    log_probs[:20] = log_probs[0]  # ties
    auc = classification_metrics(log_probs, labels)["roc_auc"]
    score = log_probs[:, 1]
    pairs = score[labels == 1][:, None] - score[labels == 0]
    assert auc == pytest.approx(((pairs > 0).double() + 0.5 * (pairs == 0).double()).mean().item())
    assert auc == pytest.approx(tm.binary_auroc(score.exp(), labels).item(), rel=1e-5)


def test_roc_auc_ranks_saturated_probabilities() -> None:
    logits = torch.tensor([[0.0, 60.0], [0.0, 50.0], [0.0, 40.0]])
    metrics = classification_metrics(logits.log_softmax(-1), torch.tensor([1, 1, 0]))
    assert metrics["roc_auc"] == 1


def test_roc_auc_is_for_two_classes_and_undefined_for_one() -> None:
    log_probs, labels = predictions(0, 10, 3)
    assert "roc_auc" not in classification_metrics(log_probs, labels)
    log_probs, _ = predictions(0, 10, 2)
    assert math.isnan(classification_metrics(log_probs, torch.ones(10, dtype=torch.long))["roc_auc"])


def test_mask_selects_and_hides_unlabelled_nodes() -> None:
    log_probs, labels = predictions(1, 30, 4)
    mask = torch.arange(30) % 3 == 0
    expected = classification_metrics(log_probs[mask], labels[mask])
    log_probs[~mask] = float("nan")
    assert classification_metrics(log_probs, labels.where(mask, -1), mask) == expected


def test_single_precision_is_widened_before_anything_is_summed() -> None:
    log_probs, labels = predictions(2, 50, 4)
    single = log_probs.float()
    assert classification_metrics(single, labels) == classification_metrics(single.double(), labels)


def test_perfect_and_impossible_predictions() -> None:
    certain = torch.eye(3).log()
    assert classification_metrics(certain, torch.arange(3)) == {
        "accuracy": 1.0,
        "balanced_accuracy": 1.0,
        "macro_f1": 1.0,
        "nll": 0.0,
        "brier": 0.0,
        "ece": 0.0,
    }
    wrong = classification_metrics(certain, torch.tensor([1, 2, 0]))
    assert wrong["accuracy"] == 0
    assert wrong["nll"] == math.inf
    assert wrong["brier"] == 2
    assert wrong["ece"] == 1


def test_bins_are_closed_on_the_right() -> None:
    # 0.6 = 9/15 belongs with 0.59 and not with 0.65: the gaps (1 - 0.6) and (0 - 0.59) share a bin.
    probs = torch.tensor([[0.6, 0.4], [0.59, 0.41], [0.65, 0.35]], dtype=torch.float64)
    labels = torch.tensor([0, 1, 0])
    assert expected_calibration_error(probs, labels) == pytest.approx((abs(0.4 - 0.59) + 0.35) / 3)


@pytest.mark.parametrize(
    ("log_probs", "labels", "mask", "message"),
    [
        (torch.zeros(3), torch.zeros(3).long(), None, r"\[N, C\]"),
        (torch.zeros(3, 1), torch.zeros(3).long(), None, "C >= 2"),
        (torch.full((3, 2), 0.5).log(), torch.zeros(2).long(), None, "3 integers"),
        (torch.full((3, 2), 0.5).log(), torch.zeros(3), None, "torch.float32"),
        (torch.full((3, 2), 0.5).log(), torch.tensor([0, 1, 2]), None, r"0\.\.1"),
        (torch.full((3, 2), 0.5).log(), torch.tensor([0, -1, 1]), None, r"-1\.\.1"),
        (torch.full((3, 2), 0.5).log(), torch.zeros(3).long(), torch.tensor([0, 1, 2]), "booleans"),
        (torch.full((3, 2), 0.5).log(), torch.zeros(3).long(), torch.zeros(3).bool(), "empty"),
        (torch.full((3, 2), float("nan")), torch.zeros(3).long(), None, "NaN in 3 of 3"),
        (torch.full((3, 2), float("inf")), torch.zeros(3).long(), None, "log_softmax"),
        (torch.ones(3, 2), torch.zeros(3).long(), None, "log_softmax"),
    ],
)
def test_says_what_is_wrong(log_probs: Tensor, labels: Tensor, mask: Tensor | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        classification_metrics(log_probs, labels, mask)
