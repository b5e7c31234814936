"""Paired tests against brute force, other libraries and tabulated values."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from statsmodels.stats.weightstats import DescrStatsW

from ltga.errors import InputError
from ltga.study.stats import (
    cohens_d,
    holm,
    paired_test,
    reach_warning,
    resampled_p,
    smallest_possible_holm,
    smallest_possible_p,
    wins_losses_ties,
)

NORMAL = np.array([1.1, 0.4, -0.3, 0.9, 0.2, 1.6, 0.7, -0.1, 0.5, 1.0])
SKEWED = np.array([0.1, 0.2, -0.1, 0.3, 0.15, 0.05, 16.0, -0.2, 0.12, 0.07])


def signed_rank_p_by_all_signs(difference):
    """Two-sided Wilcoxon p by listing every sign pattern of the ranks."""
    difference = difference[difference != 0]
    ranks = stats.rankdata(np.abs(difference))
    observed = abs((ranks * np.sign(difference)).sum())
    sums = np.array([(ranks * signs).sum() for signs in itertools.product((-1, 1), repeat=len(ranks))])
    return np.mean(np.abs(sums) >= observed - 1e-9)


def test_normal_differences_take_the_t_test():
    outcome = paired_test(NORMAL, np.zeros(10))
    assert outcome.test == "paired t"
    assert outcome.p == pytest.approx(DescrStatsW(NORMAL).ttest_mean(0)[1])  # statsmodels
    assert outcome.shapiro_p == pytest.approx(stats.shapiro(NORMAL).pvalue)


def test_skewed_differences_take_wilcoxon():
    outcome = paired_test(SKEWED, np.zeros(10))
    assert outcome.test == "Wilcoxon"
    assert outcome.shapiro_p < 0.05
    assert outcome.p == pytest.approx(signed_rank_p_by_all_signs(SKEWED))


def test_the_gate_sits_at_alpha():
    shapiro_p = stats.shapiro(NORMAL).pvalue
    assert paired_test(NORMAL, np.zeros(10), alpha=shapiro_p * 0.999).test == "paired t"
    assert paired_test(NORMAL, np.zeros(10), alpha=shapiro_p * 1.001).test == "Wilcoxon"


def test_a_textbook_t_test():
    # Student's (1908) own data: extra hours of sleep by two drugs, t = 4.06, p = .0028, ten patients.
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    assert stats.ttest_rel(second, first).pvalue == pytest.approx(0.00283, abs=1e-5)
    outcome = paired_test(second, first, alpha=0.001)  # one large difference: the gate at .05 would reject
    assert (outcome.test, outcome.p) == ("paired t", pytest.approx(0.00283, abs=1e-5))
    assert outcome.mean_difference == pytest.approx(1.58)
    assert outcome.cohens_d == pytest.approx(4.0621 / np.sqrt(10), abs=1e-4)


def test_fractions_that_tie_are_seen_to_tie():
    """Accuracies out of 37: as floats, equal steps differ in the last bit and would be ranked."""
    hits = np.array([(21, 20), (20, 19), (13, 14), (31, 30), (7, 5), (29, 17), (11, 10), (22, 23), (30, 28), (25, 25)])
    first, second = hits.T / 37
    assert len(set(np.abs(first - second)[np.abs(hits[:, 0] - hits[:, 1]) == 1])) > 1  # the trap is real
    exact = signed_rank_p_by_all_signs(hits[:, 0] - hits[:, 1])
    outcome = paired_test(first, second)
    assert outcome.test == "Wilcoxon"
    assert outcome.p == pytest.approx(exact)
    assert outcome.counts == (7, 2, 1)


@settings(max_examples=25, deadline=None)
@given(hnp.arrays(int, 8, elements=st.integers(-4, 4)))
def test_wilcoxon_with_ties_and_zeros_is_exact(difference):
    p = paired_test(difference, np.zeros(8), alpha=1.0).p  # alpha = 1: always Wilcoxon, unless nothing differs
    assert p == pytest.approx(signed_rank_p_by_all_signs(difference) if difference.any() else 1.0)


@settings(max_examples=50, deadline=None)
@given(hnp.arrays(float, (2, 6), elements=st.floats(0, 1)))
def test_swapping_the_methods_changes_signs_only(scores):
    one, other = paired_test(scores[0], scores[1]), paired_test(scores[1], scores[0])
    assert one.test == other.test
    assert one.p == pytest.approx(other.p, nan_ok=True)
    assert one.cohens_d == pytest.approx(-other.cohens_d)
    assert (one.counts.wins, one.counts.losses) == (other.counts.losses, other.counts.wins)


def test_identical_scores_show_nothing():
    outcome = paired_test([0.5] * 10, [0.5] * 10)
    assert (outcome.p, outcome.cohens_d, outcome.counts, outcome.smallest_p) == (1.0, 0.0, (0, 0, 10), 1.0)


def test_constant_difference_is_left_to_wilcoxon():
    outcome = paired_test(np.linspace(0, 1, 10) + 0.25, np.linspace(0, 1, 10))
    assert (outcome.test, outcome.p, outcome.cohens_d) == ("Wilcoxon", 2 / 1024, np.inf)
    assert cohens_d([0.0, 0.0], [1.0, 1.0]) == -np.inf


@pytest.mark.parametrize("n", [0, 1, 2])
def test_too_few_pairs_for_a_test(n):
    outcome = paired_test(np.arange(n), np.arange(n) ** 2 + 1)
    assert (outcome.test, outcome.n) == ("none", n)
    assert np.isnan(outcome.p)
    assert np.isnan(outcome.smallest_p)


def test_cohens_d_is_t_over_root_n():
    assert cohens_d(SKEWED, np.zeros(10)) == pytest.approx(stats.ttest_1samp(SKEWED, 0).statistic / np.sqrt(10))
    assert np.isnan(cohens_d([1.0], [0.0]))


def test_bad_scores_are_refused():
    with pytest.raises(InputError, match="not a finite number"):
        paired_test([0.1, np.nan, 0.3], [0.1, 0.2, 0.3])
    with pytest.raises(InputError, match="shapes"):
        paired_test([0.1, 0.2], [0.1])
    with pytest.raises(InputError, match="shapes"):
        wins_losses_ties(np.zeros((2, 2)), np.zeros((2, 2)))


@pytest.mark.parametrize("size", [1, 2, 5, 16])
def test_holm_against_its_definition(size):
    p = np.random.default_rng(size).random(size).round(1) ** 2  # with ties
    order, adjusted, running = np.argsort(p), np.empty(len(p)), 0.0
    for step, place in enumerate(order):
        running = max(running, min(1.0, (len(p) - step) * p[place]))
        adjusted[place] = running
    np.testing.assert_allclose(holm(p), adjusted, atol=1e-12)


def test_holm_counts_comparisons_that_could_not_be_made():
    np.testing.assert_allclose(holm([0.01, np.nan, 0.02]), [0.03, np.nan, 0.04])
    assert len(holm([])) == 0
    assert np.isnan(holm([np.nan, np.nan])).all()


def test_the_smallest_p_is_attained_and_not_undercut():
    for n in (3, 5, 8, 10):
        assert smallest_possible_p("Wilcoxon", n) == pytest.approx(stats.wilcoxon(np.arange(1, n + 1)).pvalue)
    assert smallest_possible_p("Wilcoxon", 10) == pytest.approx(0.002, abs=1e-4)  # the two numbers
    assert smallest_possible_p("Wilcoxon", 8) == pytest.approx(0.008, abs=2e-4)
    assert smallest_possible_p("Wilcoxon", 0) == 1.0
    with pytest.raises(InputError, match="n: got -1"):
        smallest_possible_p("Wilcoxon", -1)


def test_no_outcome_beats_the_smallest_adjusted_p():
    """Any attainable p-values, Holm-adjusted, lie above the bound; all at their smallest reach it."""
    rng = np.random.default_rng(0)
    smallest = np.array([smallest_possible_p("Wilcoxon", n) for n in (2, 5, 8, 8, 10, 12)])
    bound = smallest_possible_holm(smallest)
    for _ in range(20):
        attainable = smallest + (1 - smallest) * rng.random(len(smallest)) ** 8 * rng.integers(0, 2, len(smallest))
        assert (holm(attainable) >= bound - 1e-12).all()
    # By hand, smallest first: 6 x 2^-11, 5 x 2^-9, 4 x 2^-7 twice, 2 x 2^-4, 1 x 2^-1.
    np.testing.assert_allclose(bound, [1 / 2, 2 / 16, 4 / 128, 4 / 128, 5 / 512, 6 / 2048])


def test_reach_warnings():
    assert reach_warning("Wilcoxon", 10, 25) is None  # 25 x .00195 = .0488
    assert "0.051 after Holm over 26" in reach_warning("Wilcoxon", 10, 26)
    assert "cannot reach 0.05" in reach_warning("Wilcoxon", 5, 1)  # five seeds: .0625
    assert reach_warning("Wilcoxon", 6, 1) is None
    assert reach_warning("paired t", 3, 1000) is None


def test_resampled_p_is_a_t_test_with_fewer_pairs_to_believe_in():
    """The statistic shrinks by sqrt(1 + n r); without overlap (r = 0) it is the plain test."""
    plain = stats.ttest_1samp(NORMAL, 0.0)
    assert resampled_p(NORMAL, np.zeros(10), 0.0) == pytest.approx(plain.pvalue)
    smaller = plain.statistic / np.sqrt(1 + 10 * 0.5)
    assert resampled_p(NORMAL, np.zeros(10), 0.5) == pytest.approx(2 * stats.t.sf(smaller, 9))
    assert resampled_p(np.zeros(10), NORMAL, 0.5) == resampled_p(NORMAL, np.zeros(10), 0.5)


def test_resampled_p_where_splits_overlap():
    """Ten test sets of 20 from the same 60 nodes: without a true difference the plain test finds one too often."""
    rng = np.random.default_rng(0)
    plain, corrected = [], []
    for _ in range(400):
        nodes = rng.normal(size=60)  # by how much one method is better on a node; on average not at all
        scores = np.array([rng.permutation(nodes)[:20].mean() for _ in range(10)])
        plain.append(stats.ttest_1samp(scores, 0.0).pvalue < 0.05)
        corrected.append(resampled_p(scores, np.zeros(10), 20 / 40) < 0.05)
    assert np.mean(plain) > 0.25
    assert np.mean(corrected) == pytest.approx(0.05, abs=0.03)


def test_resampled_p_at_its_ends():
    assert np.isnan(resampled_p([1.0, 2.0], [0.0, 0.0], 0.5))
    assert resampled_p([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], 0.5) == 1.0
    assert resampled_p([1.0, 2.0, 3.0], [0.0, 1.0, 2.0], 0.5) == 0.0
    with pytest.raises(InputError, match="ratio"):
        resampled_p([1.0], [1.0], -1.0)
