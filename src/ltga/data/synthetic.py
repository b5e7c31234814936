"""Contextual stochastic block model: classes drive both who links to whom and what the features say."""

from __future__ import annotations

import numpy as np

from ltga.data.assemble import GraphArrays, assemble
from ltga.data.dataset import Dataset
from ltga.data.knobs import knob_name
from ltga.data.splits import stratified_masks
from ltga.errors import InputError


def csbm(
    num_nodes: int = 1000,
    degree: float = 5.0,
    homophily: float = 0.5,
    snr: float = 1.0,
    num_classes: int = 2,
    num_features: int = 16,
    num_splits: int = 10,
    seed: int = 0,
) -> Dataset:
    """A contextual SBM with classes of equal size and stratified 60/20/20 splits.

    Every pair of nodes is linked independently, with the two probabilities (same class, other class)
    that give the expected `degree` and the expected share `homophily` of links within a class. Node i
    has features `snr * m[y_i] + noise` with standard normal noise in each of `num_features` directions
    and class means m on a regular simplex of radius 1 (two classes: +m and -m), so that `snr` is the
    distance of a class mean from the centre in noise standard deviations.

    The paper's study: degree 5 and 20, snr from 0.1 to 2, homophily 0.5.

    >>> dataset = csbm(num_nodes=200, degree=20, snr=0.5, seed=1)
    >>> dataset.data.x.shape, dataset.num_classes, dataset.num_splits
    (torch.Size([200, 16]), 2, 10)
    >>> dataset.name
    'csbm:degree=20,num_nodes=200,seed=1,snr=0.5'
    """
    _check(num_nodes, degree, homophily, snr, num_classes, num_features)
    rng = np.random.default_rng(seed)
    sizes = np.full(num_classes, num_nodes // num_classes)
    sizes[: num_nodes % num_classes] += 1
    y = np.repeat(np.arange(num_classes), sizes)
    within, between = _link_probabilities(sizes, degree, homophily)
    edges = _links(rng, sizes, within, between)
    means = _simplex(num_classes) @ _orthonormal(rng, num_classes - 1, num_features)
    x = snr * means[y] + rng.standard_normal((num_nodes, num_features))
    # Node numbers should tell nothing about classes.
    order = rng.permutation(num_nodes)
    y, x, edges = y[order], x[order], np.argsort(order)[edges]
    knobs = {
        "num_nodes": num_nodes,
        "degree": degree,
        "homophily": homophily,
        "snr": snr,
        "num_classes": num_classes,
        "num_features": num_features,
        "num_splits": num_splits,
        "seed": seed,
    }
    name = knob_name("csbm", csbm, knobs)
    arrays = GraphArrays(x, y, edges, stratified_masks(y, (0.6, 0.2), num_splits, seed))
    return assemble(arrays, name, "undirected, once", "csbm", provenance=knobs)


def _link_probabilities(sizes: np.ndarray, degree: float, homophily: float) -> tuple[float, float]:
    """Probabilities of a link within and between classes that give the expected degree and homophily."""
    total = sizes.sum()
    same_pairs = float((sizes * (sizes - 1) // 2).sum())
    other_pairs = total * (total - 1) / 2 - same_pairs
    links = degree * total / 2
    within, between = homophily * links / same_pairs, (1 - homophily) * links / other_pairs
    if max(within, between) > 1:
        raise InputError(
            f"degree: {degree} with homophily {homophily} needs more links than {total} nodes have pairs; "
            "lower degree or raise num_nodes"
        )
    return within, between


def _links(rng: np.random.Generator, sizes: np.ndarray, within: float, between: float) -> np.ndarray:
    """Independent links `[E, 2]`, drawn block by block so that the cost is that of the links, not pairs."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    blocks = []
    for a in range(sizes.size):
        pairs = int(sizes[a] * (sizes[a] - 1) // 2)
        chosen = rng.choice(pairs, rng.binomial(pairs, within), replace=False)
        blocks.append(_unrank(chosen) + starts[a])
        for b in range(a + 1, sizes.size):
            pairs = int(sizes[a] * sizes[b])
            chosen = rng.choice(pairs, rng.binomial(pairs, between), replace=False)
            blocks.append(np.stack([chosen // sizes[b] + starts[a], chosen % sizes[b] + starts[b]], axis=1))
    return np.concatenate(blocks).astype(np.int64)


def _unrank(ranks: np.ndarray) -> np.ndarray:
    """Pairs (i < j) `[K, 2]` by their rank in (0,1), (0,2), (1,2), (0,3), ...

    >>> _unrank(np.arange(6)).tolist()
    [[0, 1], [0, 2], [1, 2], [0, 3], [1, 3], [2, 3]]
    """
    j = np.floor((1 + np.sqrt(1 + 8 * ranks.astype(np.float64))) / 2).astype(np.int64)
    # The square root may be off by one unit in the last place, hence j by one.
    j -= j * (j - 1) // 2 > ranks
    j += j * (j + 1) // 2 <= ranks
    return np.stack([ranks - j * (j - 1) // 2, j], axis=1)


def _simplex(corners: int) -> np.ndarray:
    """Corners `[C, C - 1]` of a regular simplex of radius 1 around the origin."""
    centred = np.eye(corners) - 1.0 / corners
    basis = np.linalg.svd(centred)[2][: corners - 1]
    points = centred @ basis.T
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def _orthonormal(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Random orthonormal rows `[rows, columns]`."""
    return np.linalg.qr(rng.standard_normal((columns, rows)))[0].T


def _check(num_nodes: int, degree: float, homophily: float, snr: float, num_classes: int, num_features: int) -> None:
    if num_classes < 2:
        raise InputError(f"num_classes: got {num_classes}; give at least 2")
    if num_nodes < 5 * num_classes:
        raise InputError(f"num_nodes: got {num_nodes}; give at least 5 for each of {num_classes} classes")
    if not degree > 0:
        raise InputError(f"degree: got {degree}; give a positive number")
    if not 0 <= homophily <= 1:
        raise InputError(f"homophily: got {homophily}; give a share between 0 and 1")
    if not 0 <= snr < float("inf"):
        raise InputError(f"snr: got {snr}; give a finite number, at least 0")
    if num_features < num_classes - 1:
        raise InputError(f"num_features: got {num_features}; {num_classes} classes need at least {num_classes - 1}")
