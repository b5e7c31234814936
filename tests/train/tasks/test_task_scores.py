"""Metrics of numbers, labels and ranks against scikit-learn, scipy and brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.stats import rankdata
from sklearn import metrics as sk

from ltga.errors import InputError
from ltga.train.tasks.task_scores import label_scores, link_scores, number_scores, rank_scores, ranks_of

NAN = float("nan")


def drawn(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_numbers_are_scored_as_scikit_learn_scores_them_and_unknown_ones_are_left_out() -> None:
    y, predicted = drawn(0, 50) * 7, drawn(1, 50) * 7
    y[[3, 10]] = NAN
    known = ~y.isnan()
    truth, guess = y[known].double().numpy(), predicted[known].double().numpy()
    found = number_scores(predicted, y)
    assert found["mae"] == pytest.approx(sk.mean_absolute_error(truth, guess))
    assert found["rmse"] == pytest.approx(sk.root_mean_squared_error(truth, guess))
    assert found["r2"] == pytest.approx(sk.r2_score(truth, guess))
    assert math.isnan(number_scores(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 3.0]))["r2"])


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_labels_are_scored_as_scikit_learn_scores_what_is_known(missing: float) -> None:
    logits, y = drawn(2, 60, 4), (drawn(3, 60, 4) > 0.4).float()
    y[torch.rand(60, 4, generator=torch.Generator().manual_seed(4)) < missing] = NAN
    known = ~y.isnan()
    found = label_scores(logits, y)
    columns = [(y[known[:, c], c].numpy(), logits[known[:, c], c].numpy()) for c in range(4)]
    assert found["micro_f1"] == pytest.approx(sk.f1_score(y[known].numpy(), logits[known].numpy() > 0))
    assert found["macro_f1"] == pytest.approx(np.mean([sk.f1_score(t, p > 0) for t, p in columns]))
    assert found["average_precision"] == pytest.approx(np.mean([sk.average_precision_score(t, p) for t, p in columns]))
    pairs = [[(a > b) + (a == b) / 2 for a, b in itertools.product(p[t == 1], p[t == 0])] for t, p in columns]
    assert found["roc_auc"] == pytest.approx(np.mean([np.mean(wins) for wins in pairs]))


def test_a_label_of_one_value_has_no_ranking_and_a_label_nobody_has_or_predicts_no_f1() -> None:
    y, logits = torch.tensor([[1.0, 0], [0, 0]]), torch.tensor([[1.0, -1], [-1, -1]])
    assert label_scores(logits, y) == {"micro_f1": 1.0, "macro_f1": 1.0, "average_precision": 1.0, "roc_auc": 1.0}
    nothing = label_scores(torch.tensor([[-1.0]]), torch.tensor([[NAN]]))
    assert all(math.isnan(value) for value in nothing.values())


def test_ranks_share_ties_and_leave_out_what_is_filtered() -> None:
    scores = drawn(5, 30, 9).round(decimals=1)
    truth = torch.arange(30) % 9
    scores[torch.rand(30, 9, generator=torch.Generator().manual_seed(6)) < 0.3] = -math.inf
    scores.scatter_(1, truth.unsqueeze(1), drawn(7, 30, 1).round(decimals=1))
    expected = []
    for row, right in zip(scores.numpy(), truth.tolist()):
        taking_part = np.isfinite(row)
        expected.append(rankdata(-row[taking_part])[np.flatnonzero(taking_part).tolist().index(right)])
    ranks = ranks_of(scores, truth)
    assert ranks.tolist() == expected
    found = rank_scores(ranks)
    assert found["mrr"] == pytest.approx(np.mean([1 / rank for rank in expected]))
    assert found["hits_at_3"] == pytest.approx(np.mean([rank <= 3 for rank in expected]))


def test_links_are_compared_with_their_own_negatives_and_with_all() -> None:
    scores = drawn(8, 20, 6)
    found = link_scores(scores)
    edges, others = scores[:, 0].numpy(), scores[:, 1:].numpy().ravel()
    wins = [(a > b) + (a == b) / 2 for a, b in itertools.product(edges, others)]
    assert found["roc_auc"] == pytest.approx(np.mean(wins))
    labels = np.r_[np.ones(100), np.zeros(100)]
    assert found["average_precision"] == pytest.approx(
        sk.average_precision_score(labels, np.r_[np.repeat(edges, 5), others])
    )
    assert found["mrr"] == pytest.approx(np.mean([1 / rankdata(-row)[0] for row in scores.numpy()]))
    assert link_scores(torch.zeros(4, 3))["roc_auc"] == 0.5 and link_scores(torch.zeros(4, 3))["hits_at_1"] == 0


def test_a_model_that_gives_nan_gets_no_score() -> None:
    scores = torch.tensor([[NAN, 1.0], [2.0, 1.0]])
    with pytest.raises(InputError, match="NaN in 1 of 2 rows; the model has diverged"):
        ranks_of(scores, torch.tensor([0, 0]))
    with pytest.raises(InputError, match="NaN in 1 of 2 rows"):
        label_scores(scores, torch.tensor([[0.0, 1], [1, 0]]))
