"""The yardsticks against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.preprocessing import StandardScaler
from torch_geometric.data import Data

from ltga import fit
from ltga.data import Dataset, csbm
from ltga.train.protocol import Protocol
from ltga.train.targets import Classes, balanced_weights, metric_of
from ltga.train.yardsticks import yardsticks


def uneven(share: float = 0.1, classes: int = 2) -> Dataset:
    rng = np.random.default_rng(0)
    y = (rng.random(300) < share).astype(np.int64) if classes == 2 else rng.choice(3, 300, p=[0.8, 0.15, 0.05])
    x = rng.normal(size=(300, 4)) + y[:, None] * 0.8
    data = Data(x=torch.tensor(x).float(), y=torch.tensor(y), edge_index=torch.randint(0, 300, (2, 900)))
    masks = torch.zeros(3, 300, dtype=torch.bool)
    masks[0, :150] = masks[1, 150:200] = masks[2, 200:] = True
    return Dataset("uneven", data, *masks)


@pytest.mark.parametrize("dataset", [uneven(), uneven(classes=3), csbm(num_nodes=120)], ids=["two", "three", "even"])
def test_they_are_scikit_learns(dataset: Dataset) -> None:
    train, _, test = (mask.numpy() for mask in dataset.split(0))
    x, y = dataset.data.x.numpy(), dataset.data.y.numpy()
    constant, linear = yardsticks(dataset, 0)
    assert constant.metrics["accuracy"] == pytest.approx(
        DummyClassifier(strategy="most_frequent").fit(x[train], y[train]).score(x[test], y[test])
    )
    assert constant.metrics["balanced_accuracy"] == pytest.approx(1 / len(np.unique(y[test])))
    scaler = StandardScaler().fit(x[train])
    model = LogisticRegression(max_iter=100).fit(scaler.transform(x[train]), y[train])
    assert linear.metrics["accuracy"] == pytest.approx(model.score(scaler.transform(x[test]), y[test]))
    if dataset.num_classes == 2:
        assert constant.metrics["roc_auc"] == 0.5
        ranked = roc_auc_score(y[test], model.predict_proba(scaler.transform(x[test]))[:, 1])
        assert linear.metrics["roc_auc"] == pytest.approx(ranked)


def test_a_class_that_training_does_not_have_is_never_predicted() -> None:
    dataset = uneven(classes=3)
    dataset.data.y[:150] = dataset.data.y[:150].clamp(max=1)
    for one in yardsticks(dataset, 0):
        assert 0 <= one.metrics["accuracy"] <= 1


def test_the_metric_follows_the_labels() -> None:
    assert metric_of(uneven(0.5)) == "accuracy"
    assert metric_of(uneven(0.1)) == "roc_auc"
    assert metric_of(uneven(classes=3)) == "macro_f1"
    assert Classes.of(uneven(0.1), 0, Protocol.recommended()).metric == "roc_auc"
    assert Classes.of(uneven(0.1), 0, Protocol.paper()).metric == "loss"
    assert Classes.of(uneven(0.1), 0, Protocol(metric="average_precision")).metric == "average_precision"


@pytest.mark.parametrize("flipped", [False, True])
def test_average_precision_is_that_of_the_rarer_class(flipped: bool) -> None:
    """However the classes are called: that of the other one is near 1 for any model."""
    dataset = uneven(0.1)
    if flipped:
        dataset.data.y = 1 - dataset.data.y
    rare, test = int(flipped is False), dataset.split(0)[2]
    run = fit(dataset, "gatv2", protocol={"epochs": 3, "hidden_channels": 4, "heads": 2, "metric": "average_precision"})
    truth, probability = (dataset.data.y[test] == rare).int(), run.predict_proba(dataset)[test, rare]
    assert run.metrics["average_precision"] == pytest.approx(average_precision_score(truth, probability), abs=1e-6)
    assert run.record["metrics"]["val"]["average_precision"] < 0.9
    constant = yardsticks(dataset, 0)[0]
    assert constant.metrics["average_precision"] == pytest.approx(float(truth.double().mean()))


def test_class_weights_are_scikit_learns() -> None:
    from sklearn.utils.class_weight import compute_class_weight

    labels = np.array([0] * 50 + [1] * 7 + [2] * 3)
    expected = compute_class_weight("balanced", classes=np.arange(3), y=labels)
    np.testing.assert_allclose(balanced_weights(torch.from_numpy(labels), 3), expected, rtol=1e-6)
