"""Folds against scikit-learn's: the same counts, every item tested once."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from ltga.data.folds import fold_masks
from ltga.errors import DataError, InputError


@pytest.mark.parametrize("counts", [(63, 125), (100,) * 6, (400, 1600), (37, 5, 21)])
def test_as_even_as_scikit_learn(counts: tuple[int, ...]) -> None:
    strata = np.random.default_rng(1).permutation(np.repeat(np.arange(len(counts)), counts))
    train, val, test = fold_masks(strata, seed=3)
    assert (test.sum(axis=0) == 1).all()
    assert ((train.astype(int) + val + test) == 1).all()
    if min(counts) >= 10:
        theirs = StratifiedKFold(10, shuffle=True, random_state=0).split(strata, strata)
        expected = sorted(np.bincount(strata[chosen], minlength=len(counts)).tolist() for _, chosen in theirs)
        ours = sorted(np.bincount(strata[mask], minlength=len(counts)).tolist() for mask in test)
        assert np.abs(np.array(ours) - np.array(expected)).max() <= 1
    for label, count in enumerate(counts):
        of_class = strata == label
        assert np.ptp((test & of_class).sum(axis=1)) <= 1
        left = (train & of_class).sum(axis=1) + (val & of_class).sum(axis=1)
        assert (np.abs((val & of_class).sum(axis=1) - left / 10) < 1).all()
        assert left.sum() == 9 * count


def test_the_same_seed_gives_the_same_folds() -> None:
    strata = np.arange(60) % 3
    for ours, again in zip(fold_masks(strata), fold_masks(strata)):
        assert np.array_equal(ours, again)
    assert not np.array_equal(fold_masks(strata)[2], fold_masks(strata, seed=1)[2])


def test_unknown_items_stay_out_and_groups_together() -> None:
    rng = np.random.default_rng(0)
    strata = np.where(rng.random(90) < 0.2, -1, 0)
    groups = rng.integers(0, 70, 90).astype(str)
    train, val, test = fold_masks(strata, groups=groups.tolist())
    for part in (train, val, test):
        assert not part[:, strata < 0].any()
    for fold in range(10):
        seen = [set(groups[part[fold]]) for part in (train, val, test)]
        assert not (seen[0] & seen[1]) and not (seen[0] & seen[2]) and not (seen[1] & seen[2])


def test_a_group_is_used_if_any_of_it_is_known() -> None:
    strata = np.array([-1, 0] * 30)
    test = fold_masks(strata, groups=[str(at // 2) for at in range(60)])[2]
    assert test.sum(axis=0).tolist() == [0, 1] * 30


def test_too_few_items_or_folds() -> None:
    with pytest.raises(DataError, match="7 items for 10 folds"):
        fold_masks(np.zeros(7, dtype=int))
    with pytest.raises(InputError, match="folds: got 1"):
        fold_masks(np.zeros(70, dtype=int), folds=1)
