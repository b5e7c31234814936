"""Differences between groups of edges against pandas, and their interval against scipy's bootstrap."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ltga.errors import InputError
from ltga.study.analyses.clusters import group_difference


@pytest.fixture
def edges():
    rng = np.random.default_rng(0)
    values = rng.random((300, 2))
    values[rng.random((300, 2)) < 0.2] = np.nan
    return values, rng.random((300, 3)) < [0.5, 0.1, 0.8], rng.integers(0, 40, 300)


def test_means_against_pandas(edges):
    values, group, cluster = edges
    found = group_difference(values, group, cluster, resamples=2)
    for k in range(2):
        for g in range(3):
            inside, outside = (pd.Series(values[side, k]) for side in (group[:, g], ~group[:, g]))
            assert found.inside[k, g] == pytest.approx(inside.mean())
            assert found.outside[k, g] == pytest.approx(outside.mean())
            assert found.difference[k, g] == pytest.approx(inside.mean() - outside.mean())
            assert (found.inside_count[k, g], found.outside_count[k, g]) == (inside.count(), outside.count())


def test_interval_against_scipys_bootstrap_over_neighbourhoods(edges, monkeypatch):
    monkeypatch.setattr("ltga.study.analyses.clusters._CELLS", 40 * 1000)  # several batches
    values, group, cluster = edges
    found = group_difference(values, group, cluster, resamples=4000, confidence=0.9)
    for k in range(2):
        for g in range(2):
            frame = pd.DataFrame({"cluster": cluster, "value": values[:, k], "inside": group[:, g]})
            sides = [frame[frame["inside"]], frame[~frame["inside"]]]
            sums = [side.groupby("cluster")["value"].agg(["sum", "count"]) for side in sides]
            sums = [part.reindex(np.unique(cluster), fill_value=0) for part in sums]
            data = tuple(column.to_numpy() for part in sums for column in (part["sum"], part["count"]))
            expected = stats.bootstrap(
                data, lambda a, n, b, m, axis: a.sum(axis) / n.sum(axis) - b.sum(axis) / m.sum(axis),
                paired=True, method="percentile", n_resamples=4000, confidence_level=0.9, rng=np.random.default_rng(9),
            ).confidence_interval  # fmt: skip
            width = expected.high - expected.low
            assert found.low[k, g] == pytest.approx(expected.low, abs=0.08 * width)
            assert found.high[k, g] == pytest.approx(expected.high, abs=0.08 * width)


def test_edges_that_repeat_within_a_neighbourhood_do_not_narrow_the_interval():
    rng = np.random.default_rng(1)
    values, group, cluster = rng.random((60, 1)), rng.random((60, 1)) < 0.5, np.arange(60)
    once = group_difference(values, group, cluster)
    copies = group_difference(values.repeat(20, 0), group.repeat(20, 0), cluster.repeat(20))
    assert copies.low.item() == pytest.approx(once.low.item()) and copies.high.item() == pytest.approx(once.high.item())
    independent = group_difference(values.repeat(20, 0), group.repeat(20, 0), np.arange(1200))
    assert independent.high - independent.low < 0.4 * (once.high - once.low)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(200):
        level = rng.standard_normal((40, 1)).repeat(5, 0)  # neighbourhoods differ
        group = rng.random((200, 1)) < 0.5
        values = level + rng.standard_normal((200, 1)) + 0.7 * group
        found = group_difference(values, group, np.arange(40).repeat(5), resamples=300, confidence=0.9)
        covered += found.low.item() <= 0.7 <= found.high.item()
    assert 165 <= covered <= 195  # 180 expected; the binomial s.d. is 4.2 and a percentile interval runs short


def test_the_seed_decides(edges):
    first, again, other = (group_difference(*edges, resamples=50, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.low, again.low) and not np.array_equal(first.low, other.low)


def test_an_empty_side_is_nan():
    values, cluster = np.ones((4, 1)), np.arange(4)
    nothing = group_difference(values, np.zeros((4, 1), bool), cluster)
    assert np.isnan(nothing.inside).all() and nothing.outside.item() == 1 and nothing.inside_count.item() == 0
    assert np.isnan([nothing.difference, nothing.low, nothing.high]).all()
    everything = group_difference(values, np.ones((4, 1), bool), cluster)
    assert np.isnan(everything.outside).all() and np.isnan(everything.low).all()


def test_one_neighbourhood_gives_a_difference_but_no_interval():
    found = group_difference(np.array([[1.0], [0.0], [0.5]]), np.array([[True], [False], [False]]), np.array([0, 0, 1]))
    assert found.difference.item() == 0.75 and np.isnan(found.low).all()


def test_no_edges_and_unknown_values():
    empty = group_difference(np.zeros((0, 1)), np.zeros((0, 2), bool), np.zeros(0, int))
    assert empty.difference.shape == (1, 2) and np.isnan(empty.difference).all()
    unknown = group_difference(np.full((2, 1), np.nan), np.array([[True], [False]]), np.arange(2))
    assert np.isnan(unknown.difference).all() and unknown.inside_count.item() == 0


def test_bad_input():
    with pytest.raises(InputError, match="expected \\[E, K\\]"):
        group_difference(np.zeros((3, 1)), np.zeros((2, 1), bool), np.zeros(3))
    with pytest.raises(InputError, match="resamples"):
        group_difference(np.zeros((3, 1)), np.zeros((3, 1), bool), np.zeros(3), resamples=0)
