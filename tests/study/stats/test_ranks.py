"""Ranks, Friedman and Nemenyi against formulas, permutations, a textbook example and a graph library."""

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scikit_posthocs
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from ltga.errors import InputError
from ltga.study.stats import average_ranks, critical_difference, critical_difference_diagram, friedman
from ltga.study.stats.ranks import cliques

# Demsar (2006), Table 6: AUC of four variants of C4.5 on fourteen datasets. The paper gives average ranks 3.143,
# 2.000, 2.893, 1.964, chi2 = 9.28 and, at .05, CD = 1.25. (.9751: two .975 that he ranks 2 and 3.)
DEMSAR = pd.DataFrame(
    {
        "c4.5": [.763, .599, .954, .628, .882, .936, .661, .583, .775, 1.0, .940, .619, .972, .957],
        "m": [.768, .591, .971, .661, .888, .931, .668, .583, .838, 1.0, .962, .666, .981, .978],
        "cf": [.771, .590, .968, .654, .886, .916, .609, .563, .866, 1.0, .965, .614, .9751, .946],
        "m+cf": [.798, .569, .967, .657, .898, .931, .685, .625, .875, 1.0, .962, .669, .975, .970],
    }
)  # fmt: skip

tables = hnp.arrays(float, (5, 4), elements=st.sampled_from([0.1, 0.2, 0.3, 0.4, 0.5])).map(
    lambda values: pd.DataFrame(values, columns=list("abcd"))
)


def test_a_textbook_example():
    ranks = average_ranks(DEMSAR)
    np.testing.assert_allclose(ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    k, n = 4, 14
    uncorrected = 12 * n / (k * (k + 1)) * ((ranks**2).sum() - k * (k + 1) ** 2 / 4)
    assert uncorrected == pytest.approx(9.28, abs=5e-3)
    assert friedman(DEMSAR).chi2 > uncorrected  # his formula does not correct for ties
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=5e-3)
    assert critical_difference(4, 14, alpha=0.10) == pytest.approx(1.12, abs=5e-3)


@pytest.mark.parametrize(
    ("k", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (7, 2.949), (8, 3.031), (10, 3.164)]
)
def test_critical_values_of_demsars_table(k, q):
    assert critical_difference(k, 6) / np.sqrt(k * (k + 1) / 36) == pytest.approx(q, abs=1.1e-3)


@settings(max_examples=50, deadline=None)
@given(tables)
def test_friedman_against_the_formula_with_ties(table):
    ranks = np.array([stats.rankdata(-row) for row in table.to_numpy()])
    n, k = ranks.shape
    spread = ((ranks - (k + 1) / 2) ** 2).sum() / (k - 1)
    expected = ((ranks.sum(axis=0) - n * (k + 1) / 2) ** 2).sum() / spread if spread else 0.0
    result = friedman(table)
    assert result.chi2 == pytest.approx(expected, abs=1e-9)
    assert result.p == pytest.approx(stats.chi2.sf(expected, k - 1), abs=1e-9)
    np.testing.assert_allclose(average_ranks(table), ranks.mean(axis=0))


def test_friedman_p_against_permutations():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(8, 4)) + np.array([0, 0.3, 0.6, 1.2]), columns=list("abcd"))
    observed = friedman(table).chi2
    orders = np.array(list(itertools.permutations(range(1, 5))))
    sums = orders[rng.integers(len(orders), size=(20_000, 8))].sum(axis=1)  # [draws, methods]
    chi2 = 12 / (8 * 4 * 5) * (sums**2).sum(axis=1) - 3 * 8 * 5
    assert friedman(table).p == pytest.approx(np.mean(chi2 >= observed - 1e-9), abs=0.01)


@settings(max_examples=25, deadline=None)
@given(tables)
def test_the_critical_difference_agrees_with_another_package(table):
    """scikit-posthocs gives p-values of all pairs; ours is the distance from which they fall below alpha."""
    ranks, difference = average_ranks(table), critical_difference(4, 5)
    p = scikit_posthocs.posthoc_nemenyi_friedman(table.rank(axis=1, ascending=False).to_numpy())
    for (i, a), (j, b) in itertools.combinations(enumerate("abcd"), 2):
        assert (p.loc[i, j] < 0.05) == (abs(ranks[a] - ranks[b]) > difference)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(2, 20), min_size=2, max_size=8), st.integers(1, 8))
def test_bars_are_the_maximal_cliques(quarters, width):
    ranks = pd.Series({f"m{i}": value / 4 for i, value in enumerate(quarters)})
    graph = nx.Graph()
    graph.add_nodes_from(ranks.index)
    near = (
        pair for pair in itertools.combinations(ranks.index, 2) if abs(ranks[pair[0]] - ranks[pair[1]]) <= width / 4
    )
    graph.add_edges_from(near)
    expected = {frozenset(clique) for clique in nx.find_cliques(graph) if len(clique) > 1}
    assert {frozenset(bar) for bar in cliques(ranks, width / 4)} == expected


def test_the_diagram_is_ordered_best_first():
    diagram = critical_difference_diagram(DEMSAR)
    assert list(diagram.ranks.index) == ["m+cf", "m", "cf", "c4.5"]
    # His reading: at .05 nothing can be told apart; at .10 plain C4.5 is worse than m and m+cf, and cf is in between.
    assert diagram.cliques == (("m+cf", "m", "cf", "c4.5"),)
    assert critical_difference_diagram(DEMSAR, alpha=0.10).cliques == (("m+cf", "m", "cf"), ("cf", "c4.5"))


def test_all_ties():
    table = pd.DataFrame(0.5, index=range(4), columns=list("abc"))
    assert friedman(table).p == 1.0
    assert friedman(table).chi2 == 0.0
    assert average_ranks(table).tolist() == [2.0, 2.0, 2.0]
    assert critical_difference_diagram(table).cliques == (("a", "b", "c"),)


def test_means_of_the_same_runs_tie_whatever_the_order_of_summing():
    scores = [0.1, 0.2, 0.3]
    table = pd.DataFrame({"a": [sum(scores)], "b": [sum(scores[::-1])], "c": [0.0]})
    assert table["a"][0] != table["b"][0]
    assert average_ranks(table).to_dict() == {"a": 1.5, "b": 1.5, "c": 3.0}


def test_bad_tables_are_refused():
    with pytest.raises(InputError, match="no finite score for b on 1"):
        average_ranks(pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, np.nan]}))
    with pytest.raises(InputError, match="paired_test"):
        friedman(pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 1.0]}))
    with pytest.raises(InputError, match="1 datasets"):
        friedman(pd.DataFrame({"a": [1.0], "b": [2.0], "c": [3.0]}))
    with pytest.raises(InputError, match="no scores"):
        average_ranks(pd.DataFrame())
    with pytest.raises(InputError, match="two columns"):
        average_ranks(pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]))
    with pytest.raises(InputError, match="need >= 2"):
        critical_difference(1, 8)
