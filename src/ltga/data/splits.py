"""Seeded splits: plain random ones and stratified ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ltga.errors import InputError

Masks = tuple[np.ndarray, np.ndarray, np.ndarray]


def random_masks(
    num_nodes: int, fractions: tuple[float, float] = (0.5, 0.25), num_splits: int = 10, seed: int = 0
) -> Masks:
    """Train, validation and test masks, each `[num_splits, num_nodes]`; test takes what is left.

    >>> [int(mask.sum()) for mask in random_masks(10, num_splits=1)]
    [5, 2, 3]
    """
    _check(fractions, num_splits)
    rng = np.random.default_rng(seed)
    train_size = int(num_nodes * fractions[0])
    val_size = int(num_nodes * fractions[1])
    masks = np.zeros((3, num_splits, num_nodes), dtype=bool)
    for i in range(num_splits):
        order = rng.permutation(num_nodes)
        for part, nodes in enumerate(np.split(order, [train_size, train_size + val_size])):
            masks[part, i, nodes] = True
    return masks[0], masks[1], masks[2]


def stratified_masks(
    labels: np.ndarray, fractions: tuple[float, float] = (0.6, 0.2), num_splits: int = 10, seed: int = 0
) -> Masks:
    """Masks `[num_splits, N]` with every class divided in proportion; nodes labelled -1 stay out.

    A class always has a training node, so a class with a single node is only ever seen in training.

    >>> train, val, test = stratified_masks(np.array([0] * 10 + [1] * 5 + [-1]), num_splits=1)
    >>> int(train.sum()), int(val.sum()), int(test.sum())
    (9, 3, 3)
    """
    _check(fractions, num_splits)
    rng = np.random.default_rng(seed)
    masks = np.zeros((3, num_splits, labels.shape[0]), dtype=bool)
    members = _members(labels)
    for i in range(num_splits):
        for nodes in members:
            bounds = np.cumsum(_shares(nodes.size, fractions))[:2]
            for part, chosen in enumerate(np.split(rng.permutation(nodes), bounds)):
                masks[part, i, chosen] = True
    return masks[0], masks[1], masks[2]


def _members(labels: np.ndarray) -> list[np.ndarray]:
    """The nodes of every label from 0 in ascending order, found by one sort however many labels there are."""
    order = np.argsort(labels, kind="stable")
    found, start = np.unique(labels[order], return_index=True)
    return [nodes for label, nodes in zip(found, np.split(order, start[1:])) if label >= 0]


def _shares(count: int, fractions: Sequence[float]) -> np.ndarray:
    """Whole numbers that add up to `count`, nearest to the fractions by largest remainder."""
    wanted = np.array([*fractions, 1.0 - sum(fractions)]) * count
    shares = np.floor(wanted + 1e-9).astype(int)
    for part in np.argsort(shares - wanted, kind="stable")[: count - shares.sum()]:
        shares[part] += 1
    if shares[0] == 0:
        shares[int(np.argmax(shares))] -= 1
        shares[0] = 1
    return shares


def _check(fractions: tuple[float, float], num_splits: int) -> None:
    if len(fractions) != 2 or min(fractions) <= 0 or sum(fractions) >= 1:
        raise InputError(
            f"fractions: got {fractions}; give two positive numbers (train, validation) that leave some test"
        )
    if num_splits < 1:
        raise InputError(f"num_splits: got {num_splits}; give at least 1")
