"""Cross-validation: outer folds to test on, and an inner part of the rest to choose by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ltga.data.splits import Masks
from ltga.errors import DataError, InputError


def fold_masks(
    strata: np.ndarray, folds: int = 10, inner: int = 10, seed: int = 0, groups: Sequence[str] | None = None
) -> Masks:
    """Train, validation and test masks `[folds, N]`: every item is tested once.

    As Errica et al. (ICLR 2020) assess graph classifiers: stratified outer folds, and of what a fold leaves one part in
    `inner`, stratified too, to select and stop by. Items of stratum -1 stay out; one stratum gives plain random folds.
    The same numbers give the same folds. Items of one of the `groups` are never in two parts of a split.

    >>> train, val, test = fold_masks(np.array([0] * 60 + [1] * 40))
    >>> [int(mask[0].sum()) for mask in (train, val, test)], test.sum(axis=0).tolist() == [1] * 100
    ([81, 9, 10], True)
    """
    if folds < 2 or inner < 2:
        raise InputError(f"folds: got {folds} outer and {inner} inner ones; give at least 2")
    if groups is not None:
        named, group = np.unique(np.asarray(groups), return_inverse=True)
        together = np.full(named.size, -1)
        np.maximum.at(together, group, strata)  # a group counts as its last stratum, and as known if any of it is
        train, val, test = fold_masks(together, folds, inner, seed)
        known = strata >= 0
        return train[:, group] & known, val[:, group] & known, test[:, group] & known
    used = np.flatnonzero(strata >= 0)
    if used.size < 2 * folds:
        raise DataError(f"folds: {used.size} items for {folds} folds; give at least {2 * folds}, or fewer folds")
    rng = np.random.default_rng(seed)
    masks = np.zeros((3, folds, strata.shape[0]), dtype=bool)
    outer = _deal(strata[used], folds, rng)
    for fold in range(folds):
        rest = used[outer != fold]
        chosen = _deal(strata[rest], inner, rng) == 0
        masks[0, fold, rest[~chosen]] = True
        masks[1, fold, rest[chosen]] = True
        masks[2, fold, used[outer == fold]] = True
    return masks[0], masks[1], masks[2]


def _deal(strata: np.ndarray, hands: int, rng: np.random.Generator) -> np.ndarray:
    """The hand `[N]` that each item goes to: shuffled, sorted by stratum, and dealt out in turn.

    So both the hands and each stratum within them differ by one item at most.
    """
    shuffled = rng.permutation(strata.size)
    order = shuffled[np.argsort(strata[shuffled], kind="stable")]
    hand = np.empty(strata.size, dtype=np.int64)
    hand[order] = np.arange(strata.size) % hands
    return hand
