"""Seeded splits against the published ones and against counting."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ltga.data.splits import random_masks, stratified_masks
from ltga.errors import InputError


@pytest.mark.data
def test_random_masks_are_those_of_the_gum_file(data_root: Path) -> None:
    with np.load(data_root / "gum_syntax.npz") as stored:
        for mask, key in zip(random_masks(22881), ("train_masks", "val_masks", "test_masks")):
            assert np.array_equal(mask, stored[key])


@given(st.lists(st.integers(-1, 3), min_size=1, max_size=80), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_stratified_masks_divide_every_class(labels: list[int], seed: int) -> None:
    y = np.array(labels)
    train, val, test = stratified_masks(y, (0.6, 0.2), num_splits=2, seed=seed)
    assert np.array_equal(train.astype(int) + val + test, np.tile(y >= 0, (2, 1)).astype(int))
    for label in set(labels) - {-1}:
        size = labels.count(label)
        for split in range(2):
            counts = [int(mask[split, y == label].sum()) for mask in (train, val, test)]
            assert counts[0] >= 1
            assert all(abs(c - f * size) <= 1 for c, f in zip(counts, (0.6, 0.2, 0.2)))


def test_seeds_decide_and_global_state_does_not() -> None:
    y = np.arange(50) % 2
    np.random.seed(1)  # noqa: NPY002
    first = stratified_masks(y, seed=3)
    np.random.seed(2)  # noqa: NPY002
    assert all(np.array_equal(a, b) for a, b in zip(first, stratified_masks(y, seed=3)))
    assert not np.array_equal(first[0], stratified_masks(y, seed=4)[0])
    assert not np.array_equal(first[0][0], first[0][1])


@pytest.mark.parametrize("fractions", [(0.6, 0.4), (0.0, 0.2), (0.9, 0.2)])
def test_impossible_fractions_are_refused(fractions: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="fractions"):
        stratified_masks(np.arange(4), fractions)
    with pytest.raises(InputError, match="num_splits"):
        random_masks(10, num_splits=0)
