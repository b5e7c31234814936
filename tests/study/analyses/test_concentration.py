"""Gini and Lorenz curves against their definitions, and against attention whose concentration is known."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ltga.errors import InputError
from ltga.study.analyses.concentration import concentration, describe_concentration, gini, lorenz_curve, lorenz_curves
from ltga.study.analyses.inputs import attention_of, task_of

some_weights = st.lists(st.floats(0, 1), min_size=1, max_size=30).filter(lambda w: sum(w) > 1e-6)


def brute_gini(weights) -> float:
    weights = np.asarray(weights, dtype=float).reshape(-1)
    return np.abs(weights[:, None] - weights[None, :]).sum() / (2 * weights.size * weights.sum())


@given(some_weights)
def test_gini_is_the_mean_absolute_difference(weights):
    assert gini(np.array(weights)) == pytest.approx(brute_gini(weights), abs=1e-9)


@given(some_weights)
def test_gini_is_twice_the_area_above_the_lorenz_curve(weights):
    curve = lorenz_curve(np.array(weights), points=len(weights) + 1)
    area = np.trapezoid(curve.share, curve.population)
    assert curve.gini == pytest.approx(1 - 2 * area, abs=1e-9)
    assert curve.share[0] == 0 and curve.share[-1] == pytest.approx(1)


def test_known_values():
    assert gini(np.full(7, 0.3)) == pytest.approx(0)
    assert gini(np.eye(10)[0]) == pytest.approx(0.9)
    n = 100_001
    assert gini(np.linspace(0, 1, n)) == pytest.approx(1 / 3, abs=1e-4)  # uniform distribution
    quantiles = -np.log1p(-(np.arange(n) + 0.5) / n)
    assert gini(quantiles) == pytest.approx(1 / 2, abs=1e-4)  # exponential distribution


def test_lorenz_curve_on_a_grid_lies_on_the_exact_one():
    weights = np.random.default_rng(0).random(1000)
    exact, coarse = lorenz_curve(weights, points=1001), lorenz_curve(weights, points=11)
    assert np.allclose(coarse.share, exact.share[::100])


def test_nothing_to_share_is_nan():
    assert math.isnan(gini(np.zeros(0))) and math.isnan(gini(np.zeros(3)))
    assert np.isnan(lorenz_curve(np.zeros(3)).share).all()
    with pytest.raises(InputError, match="non-negative"):
        gini(np.array([0.5, -0.1]))
    with pytest.raises(InputError, match="non-negative"):
        gini(np.array([0.5, np.nan]))


def test_even_attention_has_no_concentration_within_but_one_over_the_graph():
    # A star: the centre attends to 5 nodes and itself, every leaf to itself alone.
    edges = torch.tensor([[1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5]])
    weights = torch.tensor([1 / 6] * 6 + [1.0] * 5).unsqueeze(1)
    head = describe_concentration(edges, weights, 6).iloc[0]
    assert head["gini_within"] == pytest.approx(0, abs=1e-7)
    assert head["gini"] == pytest.approx(head["gini_even"], abs=1e-6)
    assert head["gini"] == pytest.approx(brute_gini(weights), abs=1e-6) and head["gini"] > 0.3
    assert head["gini_neighbours"] == pytest.approx(0, abs=1e-6)
    assert head["loop_weight"] == pytest.approx((1 / 6 + 5) / 6, abs=1e-6)


@pytest.mark.parametrize("method", ["gat", "gatv2", "frozen-q2.0", "ltga-edge"])
def test_a_run_against_loops(run_of, graph, method):
    run = run_of(method)
    frame = concentration(run, graph).set_index(["layer", "head"])
    curves = lorenz_curves(run, graph)
    for layer, (edges, weights) in enumerate(attention_of(run, task_of(run, graph)), start=1):
        edges, weights = edges.numpy(), weights.double().numpy()
        loop = edges[0] == edges[1]
        within = []
        for head in range(weights.shape[1]):
            row = frame.loc[layer, str(head + 1)]
            per_node = [weights[edges[1] == node, head] for node in range(80)]
            within.append(np.mean([brute_gini(own) for own in per_node if len(own) > 1]))
            assert row["gini_within"] == pytest.approx(within[-1], abs=1e-6)
            assert row["gini"] == pytest.approx(brute_gini(weights[:, head]), abs=1e-6)
            assert row["gini"] == pytest.approx(curves[layer, str(head + 1)].gini)
            assert row["gini_neighbours"] == pytest.approx(brute_gini(weights[~loop, head]), abs=1e-6)
            assert row["loop_weight"] == pytest.approx(weights[loop, head].mean(), abs=1e-6)
            assert row["effective_neighbors"] == pytest.approx(
                np.mean([1 / np.square(own).sum() for own in per_node]), rel=1e-5
            )
        pooled = frame.loc[layer, "all"]
        assert pooled["gini"] == pytest.approx(brute_gini(weights), abs=1e-6) == curves[layer, "all"].gini
        assert pooled["gini_within"] == pytest.approx(np.mean(within), abs=1e-6)
        even = np.array([1 / (edges[1] == node).sum() for node in edges[1]])
        assert pooled["gini_even"] == pytest.approx(brute_gini(even), abs=1e-9)
    without = lorenz_curves(run, graph, self_loops=False)
    assert without[1, "1"].gini == pytest.approx(frame.loc[1, "1"]["gini_neighbours"])


def test_only_self_loops():
    frame = describe_concentration(torch.tensor([[0, 1], [0, 1]]), torch.ones(2, 2), 2)
    assert frame["gini"].tolist() == pytest.approx([0, 0, 0])
    assert frame[["gini_neighbours", "gini_within"]].isna().all(axis=None)


def test_a_method_without_attention_is_refused(run_of, graph):
    with pytest.raises(InputError, match="gcn has no attention"):
        concentration(run_of("gcn"), graph)
