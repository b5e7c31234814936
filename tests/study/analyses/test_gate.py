"""Gate analysis on gates whose rule is known, and against numpy and scipy."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ltga.errors import InputError
from ltga.study.analyses.gate import (
    COVARIATES,
    binned_means,
    gate_bins,
    gate_samples,
    gate_summary,
    linear_probe,
    q_histogram,
)


def made_up(rule, edges: int = 600, heads: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Covariates drawn at random, q by a rule on them; every tenth edge a self-loop with an absurd q."""
    rng = np.random.default_rng(seed)
    source, target = rng.integers(0, 50, edges), rng.integers(50, 100, edges)
    source[::10] = target[::10]
    arrays = {"edge_index": np.stack([source, target])}
    for name in ("source_degree", "target_degree"):
        arrays[name] = rng.integers(1, 9, edges).astype(np.float32)
    for name in ("feature_cosine", "embedding_cosine"):
        arrays[name] = rng.random(edges, dtype=np.float32)
    for name in ("logit_magnitude", "score_gap"):
        arrays[f"layer1_{name}"] = rng.random((edges, heads), dtype=np.float32)
    q = np.stack([rule({**arrays, "score_gap": arrays["layer1_score_gap"][:, head]}) for head in range(heads)], 1)
    q[::10] = 100.0
    arrays["layer1_q"] = q.astype(np.float32)
    return arrays


def test_samples_leave_self_loops_aside_and_average_heads():
    arrays = made_up(lambda c: 1 + c["score_gap"])
    samples, second = gate_samples(arrays, 1), gate_samples(arrays, 1, head=2)
    assert len(samples) == 540 and samples["q"].max() <= 2
    assert np.allclose(second["q"], 1 + second["score_gap"])
    kept = arrays["edge_index"][0] != arrays["edge_index"][1]
    assert np.allclose(samples["score_gap"], arrays["layer1_score_gap"][kept].mean(1))
    assert np.array_equal(samples["target"], arrays["edge_index"][1][kept])


def test_a_linear_gate_is_explained_by_what_it_reads():
    arrays = made_up(lambda c: 1 + 0.3 * c["score_gap"] - 0.1 * c["embedding_cosine"])
    summary = gate_summary(arrays).set_index(["head", "covariate"])
    assert summary["r2"].min() > 0.999
    for head in ("1", "2", "all"):
        ranked = summary.loc[head]["importance"].sort_values()
        assert list(ranked.index[-2:]) == ["embedding_cosine", "score_gap"]
        assert ranked.iloc[:-2].abs().max() < 0.01
        assert summary.loc[head, "embedding_cosine"]["r2_paper"] < 0.5  # the score gap is not among the paper's
    # Shuffling one of independent covariates loses twice its share of the variance.
    share = 0.09 / (0.09 + 0.01)
    assert summary.loc["1", "score_gap"]["importance"] == pytest.approx(2 * share, rel=0.15)


def test_spearman_sees_monotone_gates_that_are_not_linear():
    arrays = made_up(lambda c: 1 + np.exp(-9 * c["score_gap"]))
    row = gate_summary(arrays).set_index(["head", "covariate"]).loc["1", "score_gap"]
    assert row["spearman"] == pytest.approx(-1, abs=1e-6)
    assert row["r2"] < 0.9


def test_spearman_against_scipy():
    arrays = made_up(lambda c: 1 + 0.1 * c["score_gap"] + 0.05 * c["source_degree"])
    summary = gate_summary(arrays).set_index(["head", "covariate"])
    samples = gate_samples(arrays, 1)
    for name in COVARIATES:
        expected = np.corrcoef(stats.rankdata(samples[name]), stats.rankdata(samples["q"]))[0, 1]
        assert summary.loc["all", name]["spearman"] == pytest.approx(expected, abs=1e-9)


def test_noise_is_not_explained():
    rng = np.random.default_rng(3)
    summary = gate_summary(made_up(lambda c: 1 + 0.1 * rng.standard_normal(600)))
    assert summary["r2"].abs().max() < 0.1
    assert summary["spearman"].abs().max() < 0.2


def test_r2_is_judged_on_other_neighbourhoods():
    """Covariates that name the neighbourhood explain a gate that is random per neighbourhood only where it was seen."""
    rng = np.random.default_rng(1)
    target = rng.integers(0, 6, 400)
    named = {name: (target == number).astype(float) for number, name in enumerate(COVARIATES)}
    samples = pd.DataFrame({"target": target, "q": rng.random(6)[target], **named})
    assert linear_probe(samples).r2 < 0.2
    assert linear_probe(samples.assign(target=np.arange(400))).r2 > 0.99  # every edge its own neighbourhood


def test_probe_does_not_depend_on_units():
    samples = gate_samples(made_up(lambda c: 1 + 0.3 * c["score_gap"] ** 2), 1)
    rescaled = samples.assign(score_gap=samples["score_gap"] * 1e6 + 5, source_degree=samples["source_degree"] * 1e-9)
    first, second = linear_probe(samples), linear_probe(rescaled)
    assert second.r2 == pytest.approx(first.r2, abs=1e-6)
    assert second.importance["score_gap"] == pytest.approx(first.importance["score_gap"], abs=1e-6)


@pytest.mark.parametrize("q", [1.0, 1.0 + 1e-8])
def test_a_flat_gate_gives_nan_not_a_number_made_of_rounding(q):
    arrays = made_up(lambda c: np.full(600, 1.0))
    arrays["layer1_q"] = np.where(np.arange(600) % 2, 1.0, q)[:, None].repeat(2, 1)
    summary = gate_summary(arrays)
    assert summary[["spearman", "importance", "r2", "r2_paper"]].isna().all(axis=None)
    assert summary["q_mean"].tolist() == pytest.approx([1.0] * len(summary))


def test_a_constant_covariate_has_no_correlation_and_no_importance():
    arrays = made_up(lambda c: 1 + c["score_gap"])
    arrays["feature_cosine"][:] = 0.5
    row = gate_summary(arrays).set_index(["head", "covariate"]).loc["1", "feature_cosine"]
    assert np.isnan(row["spearman"]) and row["importance"] == pytest.approx(0, abs=1e-9)


def test_one_neighbourhood_is_too_few():
    samples = gate_samples(made_up(lambda c: 1 + c["score_gap"]), 1).assign(target=3)
    assert np.isnan(linear_probe(samples).r2)


def test_bins_against_a_loop():
    rng = np.random.default_rng(5)
    covariate, q = rng.random(1000), rng.random(1000)
    bins = binned_means(covariate, q, bins=8)
    assert bins["count"].tolist() == [125] * 8
    for row in bins.itertuples():
        inside = (covariate >= row.low) & (covariate <= row.high)
        assert inside.sum() == row.count
        assert row.q == pytest.approx(q[inside].mean()) and row.centre == pytest.approx(covariate[inside].mean())
        assert row.sem == pytest.approx(stats.sem(q[inside]))


def test_bins_keep_ties_together():
    covariate = np.array([1.0] * 70 + [2.0] * 20 + [3.0] * 10)
    bins = binned_means(covariate, covariate * 2, bins=10)
    assert (bins["low"] == bins["high"]).all() and bins["q"].tolist() == [2, 4, 6]
    assert binned_means(np.ones(4), np.arange(4.0)).to_dict("records")[0]["q"] == 1.5
    assert binned_means(np.zeros(0), np.zeros(0)).empty


def test_histogram_counts_every_edge_and_head_once():
    arrays = made_up(lambda c: 1 + 0.7 * np.sign(c["score_gap"] - 0.5))
    histogram = q_histogram(arrays, delta=0.7, bins=4)
    kept = arrays["edge_index"][0] != arrays["edge_index"][1]
    high = int((arrays["layer1_q"][kept] > 1).sum())
    assert histogram["count"].tolist() == [1080 - high, 0, 0, high]


def test_a_real_run(run_of):
    arrays = run_of("ltga-edge").arrays
    summary, bins = gate_summary(arrays), gate_bins(arrays, bins=4)
    assert len(summary) == 2 * 3 * 6 and summary["r2"].notna().all()
    counts = bins.groupby(["layer", "covariate"])["count"].sum()
    assert (counts == (arrays["edge_index"][0] != arrays["edge_index"][1]).sum()).all() and len(counts) == 12


def test_bad_input(run_of):
    with pytest.raises(InputError, match="take the arrays of an ltga-edge run"):
        gate_summary(run_of("ltga-head").arrays)
    with pytest.raises(InputError, match="take the arrays of an ltga-edge run"):
        q_histogram(run_of("ltga-head").arrays, 1.0)
    with pytest.raises(InputError, match="no q of layer 3"):
        gate_samples(run_of("ltga-edge").arrays, 3)
    with pytest.raises(InputError, match="head: expected 1 to 2"):
        gate_samples(run_of("ltga-edge").arrays, 1, 3)
    with pytest.raises(InputError, match="bins"):
        binned_means(np.ones(2), np.ones(3))
