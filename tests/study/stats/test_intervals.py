"""Intervals: coverage by simulation, other libraries, and the samples where a bootstrap would lie."""

import numpy as np
import pytest
from scipy import stats

from ltga.errors import InputError
from ltga.study.stats import mean_difference, mean_probability_of_improvement, probability_of_improvement

RNG = np.random.default_rng(1)


def test_the_bootstrap_is_paired():
    """Two methods that move together over seeds: the spread that counts is that of the differences."""
    together = RNG.normal(50, 10, size=30)
    first, second = together + RNG.normal(1, 0.1, size=30), together
    interval = mean_difference(first, second)
    assert interval.estimate == pytest.approx(np.mean(first - second))
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * stats.sem(first - second), rel=0.15)
    assert interval.low < 1.0 < interval.high


def test_pairs_stay_pairs():
    """The same four numbers for both methods, on other seeds: no mean difference, but spread."""
    interval = mean_difference([1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 4.0, 3.0])
    assert interval.low < interval.estimate == 0 < interval.high


def test_bca_against_its_definition():
    difference = RNG.exponential(size=15)
    interval = mean_difference(difference, np.zeros(15), resamples=20_000)
    draws = RNG.choice(difference, (20_000, 15)).mean(axis=1)
    bias = stats.norm.ppf(np.mean(draws < difference.mean()))
    left_out = (difference.sum() - difference) / 14
    centred = left_out.mean() - left_out
    skew = (centred**3).sum() / (6 * (centred**2).sum() ** 1.5)
    z = bias + stats.norm.ppf([0.025, 0.975])
    expected = np.quantile(draws, stats.norm.cdf(bias + z / (1 - skew * z)))
    np.testing.assert_allclose([interval.low, interval.high], expected, rtol=0.03)
    assert interval.high - difference.mean() > difference.mean() - interval.low  # leans with the skew


def test_coverage():
    truth, covered = 0.3, 0
    for _ in range(150):
        difference = RNG.normal(truth, 1, size=20)
        low, high = mean_difference(difference, np.zeros(20), resamples=499)[1:]
        covered += low <= truth <= high
    assert 0.86 <= covered / 150 <= 0.99  # nominal 0.95; a bootstrap of 20 falls a little short


def test_the_same_seed_gives_the_same_interval():
    first = RNG.normal(size=10)
    assert mean_difference(first, np.zeros(10), seed=3) == mean_difference(first, np.zeros(10), seed=3)
    assert mean_difference(first, np.zeros(10), seed=3) != mean_difference(first, np.zeros(10), seed=4)


def test_wider_confidence_is_wider():
    first = RNG.normal(size=10)
    wide, narrow = (mean_difference(first, np.zeros(10), confidence) for confidence in (0.99, 0.8))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_samples_without_an_interval():
    assert mean_difference([0.5, 0.6], [0.4, 0.5])[1:] == pytest.approx((0.1, 0.1))
    one = mean_difference([0.5], [0.4])
    assert one.estimate == pytest.approx(0.1)
    assert np.isnan([one.low, one.high]).all()
    for function in (mean_difference, probability_of_improvement):
        with pytest.raises(InputError, match="no pairs"):
            function([], [])
    with pytest.raises(InputError, match="confidence: got 95"):
        mean_difference([1.0, 2.0], [0.0, 0.5], confidence=95)
    with pytest.raises(InputError, match="without pairs"):
        mean_probability_of_improvement([([1.0], [2.0]), ([], [])])


@pytest.mark.parametrize("wins", [0, 3, 7, 10])
def test_probability_of_improvement_against_scipys_wilson_interval(wins):
    first = np.array([1.0] * wins + [-1.0] * (10 - wins))
    interval = probability_of_improvement(first, np.zeros(10))
    expected = stats.binomtest(wins, 10).proportion_ci(method="wilson")
    assert interval == pytest.approx((wins / 10, expected.low, expected.high), abs=1e-12)


def test_ties_count_half():
    assert probability_of_improvement([0.5] * 10, [0.5] * 10).estimate == 0.5
    won, lost = probability_of_improvement([2, 1, 1], [1, 1, 2]), probability_of_improvement([1, 1, 2], [2, 1, 1])
    assert won.estimate == lost.estimate == 0.5


def test_ten_wins_are_not_certainty():
    interval = probability_of_improvement(np.ones(10), np.zeros(10))
    assert interval.estimate == 1.0
    assert interval.low == pytest.approx(0.722, abs=1e-3)


def test_the_mean_over_datasets_weighs_datasets_alike():
    pairs = [(np.ones(10), np.zeros(10)), (RNG.normal(size=30), np.zeros(30))]
    shares = [1.0, np.mean(pairs[1][0] > 0)]
    interval = mean_probability_of_improvement(pairs)
    assert interval.estimate == pytest.approx(np.mean(shares))
    # Only the second dataset has spread: half its own binomial standard error.
    error = np.sqrt(shares[1] * (1 - shares[1]) / 30) / 2
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * error, rel=0.2)
