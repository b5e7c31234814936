"""Reliability diagrams against torchmetrics, scikit-learn and loops."""

import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss
from torchmetrics.functional.classification import multiclass_calibration_error

from ltga.data import csbm
from ltga.errors import InputError
from ltga.explanation.reliability import pool_reliability, reliability
from ltga.study.analyses.calibration import calibration


@pytest.fixture
def predictions():
    generator = torch.Generator().manual_seed(4)
    log_probs = (3 * torch.randn(200, 4, generator=generator)).log_softmax(-1)
    return log_probs, torch.randint(0, 4, (200,), generator=generator)


def ece(bins):
    return float((bins["count"] * bins["gap"].abs()).sum() / bins["count"].sum())


@pytest.mark.parametrize("num_bins", [1, 7, 15])
def test_bins_give_torchmetrics_ece(predictions, num_bins):
    log_probs, labels = predictions
    bins = reliability(log_probs, labels, num_bins)
    expected = multiclass_calibration_error(log_probs.exp(), labels, num_classes=4, n_bins=num_bins)
    assert ece(bins) == pytest.approx(float(expected), abs=1e-6)
    assert len(bins) == num_bins and bins["count"].sum() == 200


def test_bins_against_a_loop(predictions):
    log_probs, labels = predictions
    bins = reliability(log_probs, labels)
    probs = log_probs.double().exp().numpy()
    for row in bins.itertuples():
        inside = [i for i in range(200) if row.low < probs[i].max() <= row.high]
        assert row.count == len(inside)
        if inside:
            assert row.accuracy == pytest.approx(np.mean([probs[i].argmax() == labels[i].item() for i in inside]))
            assert row.confidence == pytest.approx(np.mean([probs[i].max() for i in inside]))
        else:
            assert np.isnan(row.accuracy) and np.isnan(row.gap)


def test_pooling_is_one_diagram_of_all_predictions(predictions):
    log_probs, labels = predictions
    parts = [reliability(log_probs[nodes], labels[nodes]) for nodes in torch.arange(200).split(37)]
    pooled, whole = pool_reliability(parts), reliability(log_probs, labels)
    assert np.allclose(pooled, whole, equal_nan=True)


def test_pooling_refuses_different_bins(predictions):
    with pytest.raises(InputError, match="bins differ"):
        pool_reliability([reliability(*predictions, 3), reliability(*predictions, 4)])
    with pytest.raises(InputError, match="at least one"):
        pool_reliability([])


@pytest.mark.parametrize("part", ["train", "val", "test"])
def test_a_run(run_of, graph, part):
    run = run_of("ltga-head")
    found = calibration(run, graph, part)
    mask = graph.split(run.record["config"]["split"])[("train", "val", "test").index(part)].numpy()
    probs, y = np.exp(run.arrays["log_probs"].astype(float))[mask], graph.data.y.numpy()[mask]
    probs /= probs.sum(axis=1, keepdims=True)
    assert found.nll == pytest.approx(log_loss(y, probs, labels=range(probs.shape[1])), rel=1e-5)
    assert found.brier == pytest.approx(np.mean(np.sum((probs - np.eye(probs.shape[1])[y]) ** 2, axis=1)), rel=1e-6)
    assert found.ece == pytest.approx(ece(found.bins), abs=1e-12)
    assert found.accuracy == pytest.approx(np.mean(probs.argmax(1) == y))


def test_bad_input(run_of, graph):
    with pytest.raises(InputError, match="part: expected one of"):
        calibration(run_of("ltga-head"), graph, "tests")
    with pytest.raises(InputError, match="not the graph of this run"):
        calibration(run_of("ltga-head"), csbm(num_nodes=30))
    with pytest.raises(InputError, match="num_bins"):
        reliability(torch.zeros(1, 2), torch.zeros(1, dtype=torch.long), 0)
