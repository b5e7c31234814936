"""Difference between two groups of edges, with an interval that respects neighbourhoods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ltga.errors import InputError

_CELLS = 1 << 22  # bootstrap counts held at once


@dataclass(frozen=True, eq=False)
class GroupDifference:
    """Means of K quantities inside and outside G groups of edges; every array is ``[K, G]``.

    Attributes:
        inside, outside: means over the edges that have a value.
        difference: ``inside - outside``; ``low`` and ``high`` bound it.
        inside_count, outside_count: edges that have a value.
    """

    inside: np.ndarray
    outside: np.ndarray
    difference: np.ndarray
    low: np.ndarray
    high: np.ndarray
    inside_count: np.ndarray
    outside_count: np.ndarray


def group_difference(
    values: np.ndarray,
    group: np.ndarray,
    cluster: np.ndarray,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> GroupDifference:
    """Compare edges inside and outside a group; percentile interval by a bootstrap over clusters.

    Edges of one neighbourhood are not independent, so whole neighbourhoods are drawn, with
    replacement. Resamples in which one side is empty are left out.

    Args:
        values: ``[E, K]``; NaN where a quantity is not known.
        group: ``[E, G]`` boolean.
        cluster: ``[E]`` integers: the neighbourhood of each edge.
        resamples: number of bootstrap draws.
        seed: of the draws.

    A side without values has mean NaN; the bounds are NaN unless both sides have values in at least
    two clusters.

    >>> values, pruned = np.array([[1.0], [0.0], [1.0], [1.0]]), np.array([[True], [True], [False], [False]])
    >>> compared = group_difference(values, pruned, np.array([0, 1, 0, 1]))
    >>> compared.difference.item(), compared.low.item(), compared.high.item()
    (-0.5, -1.0, 0.0)
    """
    if values.ndim != 2 or group.ndim != 2 or not len(values) == len(group) == len(cluster):
        raise InputError(
            "values, group, cluster: expected [E, K], [E, G] and [E], "
            f"got {list(values.shape)}, {list(group.shape)} and {list(cluster.shape)}"
        )
    if resamples < 1 or not 0 < confidence < 1:
        raise InputError(f"resamples, confidence: expected >= 1 and in (0, 1), got {resamples} and {confidence}")
    sums = _cluster_sums(values, group, cluster)  # [4, clusters, K * G]
    totals = sums.sum(axis=1)
    difference = _mean_difference(*totals)
    low, high = np.full_like(difference, np.nan), np.full_like(difference, np.nan)
    sound = ((sums[[1, 3]] > 0).sum(axis=1) >= 2).all(axis=0)
    if sound.any():
        drawn = _resampled(sums[:, :, sound], resamples, np.random.default_rng(seed))
        tail = (1 - confidence) / 2
        low[sound], high[sound] = np.nanquantile(drawn, (tail, 1 - tail), axis=0)
    shape = (values.shape[1], group.shape[1])
    inside, outside = _ratio(totals[0], totals[1]), _ratio(totals[2], totals[3])
    parts = (inside, outside, difference, low, high, totals[1].astype(int), totals[3].astype(int))
    return GroupDifference(*(part.reshape(shape) for part in parts))


def _cluster_sums(values: np.ndarray, group: np.ndarray, cluster: np.ndarray) -> np.ndarray:
    """Per cluster the sum and count inside, and the sum and count outside: ``[4, clusters, K * G]``."""
    _, number = np.unique(cluster, return_inverse=True)
    clusters = int(number.max()) + 1 if len(number) else 0
    adder = sparse.csr_array((np.ones(len(number)), (number, np.arange(len(number)))), (clusters, len(number)))
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)

    def summed(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        both = [part[:, :, None] * mask[:, None, :] for part in (filled, known)]
        inner, count = (adder @ part.reshape(len(number), values.shape[1] * group.shape[1]) for part in both)
        return inner, count

    return np.stack([*summed(group), *summed(~group)]).astype(np.float64)


def _resampled(sums: np.ndarray, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Differences ``[resamples, columns]`` over clusters drawn with replacement."""
    clusters = sums.shape[1]
    batch = max(1, _CELLS // clusters)
    parts = []
    for start in range(0, resamples, batch):
        size = min(batch, resamples - start)
        drawn = rng.integers(clusters, size=(size, clusters))
        counts = np.stack([np.bincount(draw, minlength=clusters) for draw in drawn]).astype(np.float64)
        parts.append(_mean_difference(*(counts @ part for part in sums)))
    return np.concatenate(parts)


def _mean_difference(
    inside: np.ndarray, n_inside: np.ndarray, outside: np.ndarray, n_outside: np.ndarray
) -> np.ndarray:
    return _ratio(inside, n_inside) - _ratio(outside, n_outside)


def _ratio(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.divide(total, count, out=np.full(np.shape(total), np.nan), where=count > 0)
