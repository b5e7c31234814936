"""How sure: bootstrap intervals of a mean difference and intervals of the probability of improvement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from ltga.errors import InputError
from ltga.study.stats.paired import Array, differences, wins_losses_ties

RESAMPLES = 9999


class Interval(NamedTuple):
    """An estimate and the limits of its confidence interval; NaN limits where the data cannot give any."""

    estimate: float
    low: float
    high: float


def mean_difference(
    first: Array, second: Array, confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """Mean paired difference with its bootstrap interval (BCa: corrected for bias and skew).

    Pairs are drawn together. With fewer than two pairs there is no interval; if all differences are equal the
    interval is that one point, which says that the sample has no spread, not that the truth is known.

    >>> mean_difference([3.0, 4.0, 6.0, 5.0], [1.0, 1.0, 1.0, 1.0]).estimate
    3.5
    """
    difference = differences(first, second)
    if not len(difference):
        raise InputError("first, second: no pairs; pass at least one")
    return _bootstrap([difference], float(difference.mean()), confidence, resamples, seed)


def probability_of_improvement(first: Array, second: Array, confidence: float = 0.95) -> Interval:
    """The share of pairs in which the first is greater, ties counted half, with its Wilson interval.

    Wilson's interval stays honest when every pair is won, where a bootstrap would claim certainty.

    >>> [round(x, 3) for x in probability_of_improvement([2.0, 3.0, 4.0, 1.0], [1.0, 1.0, 1.0, 1.0])]
    [0.875, 0.396, 0.987]
    """
    wins, losses, ties = wins_losses_ties(first, second)
    n = wins + losses + ties
    if not n:
        raise InputError("first, second: no pairs; pass at least one")
    _check(confidence)
    count = wins + ties / 2
    low, high = proportion_confint(count, n, alpha=1 - confidence, method="wilson")
    return Interval(count / n, float(low), float(high))


def mean_probability_of_improvement(
    pairs: Sequence[tuple[Array, Array]], confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """The probability of improvement averaged over datasets, each weighing the same.

    The interval is a bootstrap that draws seeds anew within every dataset; the datasets are taken as given, so it
    says nothing about datasets not in the list.

    Args:
        pairs: per dataset the scores of the first and of the second method, paired.

    >>> mean_probability_of_improvement([([2, 3], [1, 1]), ([1, 2], [1, 3])]).estimate
    0.625
    """
    if not pairs or not all(len(first) for first, _ in pairs):
        raise InputError("pairs: a dataset without pairs; leave it out")
    outcomes = [(np.sign(differences(first, second)) + 1) / 2 for first, second in pairs]
    estimate = float(np.mean([outcome.mean() for outcome in outcomes]))
    return _bootstrap(outcomes, estimate, confidence, resamples, seed)


def _bootstrap(samples: list[np.ndarray], estimate: float, confidence: float, resamples: int, seed: int) -> Interval:
    """BCa interval of the mean of the samples' means, every sample resampled by itself."""
    _check(confidence)
    if any(len(sample) < 2 for sample in samples):
        return Interval(estimate, float("nan"), float("nan"))
    if all(np.ptp(sample) == 0 for sample in samples):
        return Interval(estimate, estimate, estimate)

    def statistic(*drawn: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.mean([sample.mean(axis=axis) for sample in drawn], axis=0)

    interval = stats.bootstrap(
        samples,
        statistic,
        n_resamples=resamples,
        confidence_level=confidence,
        method="BCa",
        vectorized=True,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(estimate, float(interval.low), float(interval.high))


def _check(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise InputError(f"confidence: got {confidence}; pass a share between 0 and 1, for example 0.95")
