"""The paper's statistics from its printed cells: where they follow, and where not."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import optimize, stats

from ltga.study.paper import HEADLINE, PRINTED_MEANS, checks, discrepancies, headline_with_printed_ranks
from ltga.study.paper.cells import PAPER_CELLS
from ltga.study.paper.check import judge
from ltga.study.paper.printed import PAIRWISE, RANKS
from ltga.study.paper.rounding import effect_range, resolved_ties, t_test_range, wilcoxon_range
from ltga.study.stats import WinsLossesTies, average_ranks, critical_difference, friedman, paired_test

CHECKS = checks()
BY_PLACE = {check.where: check for check in CHECKS}


def test_the_headline_table_has_its_seven_rows_and_eight_columns():
    assert PRINTED_MEANS[list(HEADLINE)].shape == (8, 7)
    assert PRINTED_MEANS.loc["roman-empire", "ltga-head"] == 72.5
    assert len(PAPER_CELLS) == 25 * 8


def test_printed_ranks_and_friedman_follow_from_exactly_one_order_of_equal_cells():
    """Seven ranks, fitted by nothing: one of 27 orders gives them all, and then chi2 and p come out as printed."""
    (table,) = headline_with_printed_ranks()
    np.testing.assert_allclose(average_ranks(table), [float(RANKS[m]) for m in HEADLINE], atol=0.005)
    result = friedman(table)
    assert (round(result.chi2, 2), round(result.p, 3)) == (8.58, 0.199)
    # In words: GAT ahead of the scalar LTGAs on PubMed, Layer ahead of Edge on Roman-Empire, GAT = GATv2 on Texas.
    assert table.loc["pubmed", "gat"] > table.loc["pubmed", "ltga-head"]
    assert table.loc["roman-empire", "ltga-layer"] > table.loc["roman-empire", "ltga-edge"]
    assert table.loc["texas", "gat"] == table.loc["texas", "gatv2"]


def test_as_printed_the_ranks_are_others():
    ranks = average_ranks(PRINTED_MEANS[list(HEADLINE)])
    assert ranks.to_dict() == {
        "gcn": 5.5, "gat": 3.375, "gatv2": 4.0625, "ltga-global": 4.4375, "ltga-layer": 4.0, "ltga-head": 3.9375,
        "ltga-edge": 2.6875,
    }  # fmt: skip
    result = friedman(PRINTED_MEANS[list(HEADLINE)])
    assert (result.chi2, result.p) == (pytest.approx(8.423, abs=1e-3), pytest.approx(0.2087, abs=1e-4))


def test_every_dagger_stands():
    ranks = [float(rank) for rank in RANKS.values()]
    assert max(ranks) - min(ranks) < critical_difference(7, 8)
    assert BY_PLACE["daggers of the headline table"].verdict == "follows"


def test_what_follows_and_what_does_not():
    """Averages, differences, d, counts, choice of test and uncorrected p: no contradiction anywhere."""
    for check in CHECKS:
        numeric = check.where.startswith(("average", "Friedman", "pairwise, ltga-edge", "per dataset, ltga-edge"))
        assert check.verdict in ("follows", "rounding") or not numeric, check
        if check.where.endswith(": test"):
            assert check.verdict == "follows", check
    assert BY_PLACE["average accuracy of ltga-edge"].verdict == "follows"
    assert BY_PLACE["pairwise, ltga-edge against h2gcn: wins/losses/ties"].verdict == "follows"
    assert BY_PLACE["learned q with dot-product scores: Wilcoxon p"].verdict == "follows"


def test_the_holm_column_is_not_corrected():
    check = BY_PLACE['pairwise, column "p (Holm)"']
    assert check.verdict == "contradiction"
    # By hand for the smallest: 7 wins and 1 loss on 8 datasets is at best p = 4/256, and 15 p-values are corrected.
    row = next(row for row in PAIRWISE if row.control == "ltga-global")
    assert row.p == min(other.p for other in PAIRWISE)
    assert 15 * stats.wilcoxon([-1, 2, 3, 4, 5, 6, 7, 8]).pvalue == pytest.approx(15 * 4 / 256)
    assert float(row.p) < 15 * 4 / 256
    # And the printed p is what the printed d gives without correction.
    for row in PAIRWISE:
        if row.test == "t":
            low, high = (2 * stats.t.sf((abs(float(row.d)) + e) * np.sqrt(8), 7) for e in (0.005, -0.005))
            assert low - 0.0005 <= float(row.p) <= high + 0.0005


@pytest.mark.parametrize(
    ("where", "recomputed"),
    [
        ("granularity table, caption: cells taken by ltga-edge", "6 of 8"),
        ("frozen q chosen on validation accuracy", "cora: the tuned cell is that of frozen-q0.5 or frozen-q0.8"),
        ("accuracy against frozen q on pubmed", "77.6 77.7 77.7 77.6 77.5 77.4"),
        ('"Where LTGA does not win": WebKB', "texas gat and gatv2, wisconsin ltga-edge, cornell gat"),
        ("Roman-Empire, T_w=0: accuracy in the text", "72.70"),
        ("Roman-Empire, delta=2.0: loss in the text", "0.50"),
        ("share of exact zeros on Roman-Empire in the caption", "41.5-43.6%"),
    ],
)
def test_contradictions_worth_knowing(where, recomputed):
    assert BY_PLACE[where].verdict == "contradiction"
    assert BY_PLACE[where].recomputed == recomputed


def test_discrepancies_are_the_checks_that_do_not_follow():
    assert len({check.where for check in CHECKS}) == len(CHECKS)
    assert set(discrepancies()) == {check for check in CHECKS if check.verdict != "follows"}


def test_verdicts():
    assert judge("", "61.4", 61.36, (61.31, 61.41)).verdict == "follows"
    assert judge("", "61.4", 61.34, (61.29, 61.39)).verdict == "rounding"
    assert judge("", "61.4", 61.20, (61.15, 61.25)).verdict == "contradiction"


@settings(max_examples=20, deadline=None)
@given(hnp.arrays(float, 5, elements=st.integers(-20, 40).map(lambda tenths: tenths / 10)))
def test_the_range_of_d_against_an_optimiser(difference):
    slack = 0.1
    if np.ptp(difference) <= 4 * slack or abs(difference.mean()) <= 2 * slack:
        return
    low, high = effect_range(difference, slack)

    def effect(sample):
        return sample.mean() / sample.std(ddof=1)

    rng = np.random.default_rng(0)
    samples = difference + rng.uniform(-slack, slack, size=(500, 5))
    found = [effect(sample) for sample in samples]
    bounds = list(zip(difference - slack, difference + slack, strict=True))
    for sign in (1, -1):  # one end of the range lies in a corner, so that a search may stop at another corner
        for start in (difference, *sorted(samples, key=lambda sample, sign=sign: sign * effect(sample))[:5]):
            best = optimize.minimize(lambda sample, sign=sign: sign * effect(sample), start, bounds=bounds)
            found.append(effect(best.x))
    assert low - 1e-6 <= min(found)
    assert max(found) <= high + 1e-5
    assert max(found) == pytest.approx(high, abs=1e-3)


def test_the_range_of_p_of_a_t_test():
    sample = np.array([0.3, 1.2, -0.4, 0.9, 0.1, 0.7])
    d = sample.mean() / sample.std(ddof=1)
    p = stats.ttest_1samp(sample, 0).pvalue
    assert t_test_range((d, d), 6) == pytest.approx((p, p))
    assert t_test_range((-0.1, d), 6) == pytest.approx((p, 1.0))


def test_the_range_of_wilcoxons_p_against_sampling():
    rng = np.random.default_rng(0)
    difference, slack = np.array([0.1, 0.3, -0.2, 0.5, 0.5, -0.4]), 0.1
    found = {}
    for _ in range(4000):
        sample = difference + rng.uniform(-slack, slack, 6)
        counts = WinsLossesTies(int((sample > 0).sum()), int((sample < 0).sum()), 0)
        ranks = stats.rankdata(np.abs(sample))
        found.setdefault(counts, set()).add((ranks * (sample > 0)).sum())
    for counts, sums in found.items():
        p = [paired_p(rank_sum, 6) for rank_sum in sums]
        assert wilcoxon_range(difference, slack, counts) == pytest.approx((min(p), max(p)))
    assert wilcoxon_range(difference, slack, WinsLossesTies(0, 6, 0)) is None


def paired_p(rank_sum, n):
    """Exact two-sided p of a sum of positive ranks, by listing all sets of ranks."""
    sums = [sum(chosen) for size in range(n + 1) for chosen in itertools.combinations(range(1, n + 1), size)]
    middle = n * (n + 1) / 4
    return np.mean([abs(s - middle) >= abs(rank_sum - middle) - 1e-9 for s in sums])


def test_equal_cells_are_the_same_runs_and_equal_means_may_be_ordered():
    cells = {("a", "x"): "1.0±0.1", ("b", "x"): "1.0±0.1", ("c", "x"): "1.0±0.2", ("d", "x"): "1.1±0.1"}
    ranks = {tuple(average_ranks(table)) for table in resolved_ties(cells, list("abcd"), ["x"])}
    assert ranks == {(3.0, 3.0, 3.0, 1.0), (2.5, 2.5, 4.0, 1.0), (3.5, 3.5, 2.0, 1.0)}


def test_the_gate_chooses_the_papers_tests():
    for row in PAIRWISE:
        outcome = paired_test(PRINTED_MEANS["ltga-edge"].to_numpy(), PRINTED_MEANS[row.control].to_numpy())
        assert outcome.test.endswith(row.test)


def test_printed_means_are_the_cells():
    frame = pd.Series({key: float(cell.split("±")[0]) for key, cell in PAPER_CELLS.items()}).unstack(0)
    pd.testing.assert_frame_equal(
        frame.sort_index(), PRINTED_MEANS[list(frame)].sort_index(), check_names=False, check_like=True
    )
