"""The scikit-learn style estimators of other tasks: its conventions, independent scores, one file without pickle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import f1_score, r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from torch_geometric.data import Data

from ltga import Nodes
from ltga.data import csbm
from ltga.errors import LTGAError
from ltga.train import (
    LTGAGraphClassifier,
    LTGAGraphRegressor,
    LTGALinkPredictor,
    LTGAMultiLabelClassifier,
    LTGARegressor,
)
from ltga.train.protocol import Protocol

QUICK: dict[str, Any] = {"epochs": 25, "hidden_channels": 4, "heads": 2, "backend": "torch", "lr": 0.03}
ALL = [LTGARegressor, LTGAMultiLabelClassifier, LTGAGraphClassifier, LTGAGraphRegressor, LTGALinkPredictor]


@pytest.fixture(scope="module")
def data() -> Data:
    return csbm(num_nodes=90, seed=1).data


@pytest.fixture(scope="module")
def graphs() -> list[Data]:
    generator = torch.Generator().manual_seed(0)
    rows = [torch.randn(5, 2, generator=generator) + torch.tensor([float(at % 2), 0]) for at in range(40)]
    ring = torch.stack([torch.arange(5), (torch.arange(5) + 1) % 5])
    return [Data(x=x, edge_index=torch.cat([ring, ring.flip(0)], dim=1)) for x in rows]


@pytest.mark.parametrize("kind", ALL)
def test_settings_are_those_of_the_protocol_and_can_be_cloned(kind: Any) -> None:
    estimator = kind("gatv2", lr=0.1, options={"a": 1}, random_state=3)
    assert set(Protocol.model_fields) <= set(estimator.get_params())
    assert clone(estimator).get_params() == estimator.get_params()
    assert estimator.set_params(heads=2).heads == 2 and "lr=0.1" in repr(estimator)


def test_a_number_of_each_node(data: Data, tmp_path: Path) -> None:
    y = data.x[:, 0].numpy() * 50 + 300
    y[5] = np.nan
    nodes, rows = Nodes(data.x, data.edge_index), np.arange(90) % 3 > 0
    regressor = LTGARegressor(**QUICK).fit(nodes[rows], y[rows])
    predicted = regressor.predict(nodes[~rows])
    truth = y[~rows]
    known = ~np.isnan(truth)
    assert regressor.score(nodes[~rows], truth) == pytest.approx(r2_score(truth[known], predicted[known]))
    assert r2_score(truth[known], predicted[known]) > 0.3  # in the units of y, else it would be far below zero
    assert is_regressor(regressor) and regressor.n_features_in_ == data.x.shape[1]
    again = LTGARegressor.load(regressor.save(tmp_path / "r.safetensors"))
    assert (
        np.array_equal(again.predict(nodes), regressor.predict(nodes)) and again.get_params() == regressor.get_params()
    )
    with pytest.raises(LTGAError, match=r"load it with LTGARegressor\.load"):
        LTGAMultiLabelClassifier.load(tmp_path / "r.safetensors")
    assert cross_val_score(LTGARegressor(**QUICK), nodes, np.nan_to_num(y, nan=300.0), cv=2).shape == (2,)


def test_only_known_nodes_teach_and_the_same_seed_gives_the_same(data: Data) -> None:
    y = pd.Series([float(at) if at % 4 else None for at in range(90)], dtype="Float64")
    first, second = (LTGARegressor(**QUICK).fit(data.x, y, data.edge_index) for _ in range(2))
    assert first.run_.record["id"] == second.run_.record["id"]
    hidden = y.copy()
    hidden[1::4] = pd.NA
    assert LTGARegressor(**QUICK).fit(data.x, hidden, data.edge_index).run_.record["id"] != first.run_.record["id"]


def test_several_labels_of_each_node(data: Data, tmp_path: Path) -> None:
    y = (data.x[:, :3] > 0).double().numpy()
    y[::7, 1] = np.nan
    nodes = Nodes(data.x, data.edge_index)
    several = LTGAMultiLabelClassifier(**QUICK).fit(nodes, y)
    found, known = several.predict(nodes), ~np.isnan(y)
    assert found.shape == (90, 3) and set(np.unique(found)) <= {0, 1} and is_classifier(several)
    assert np.array_equal(found, several.predict_proba(nodes) > 0.5)
    assert several.score(nodes, y) == pytest.approx(f1_score(y[known], found[known])) and several.score(nodes, y) > 0.6
    again = LTGAMultiLabelClassifier.load(several.save(tmp_path / "m.safetensors"))
    assert np.array_equal(again.predict_proba(nodes), several.predict_proba(nodes))


def test_a_class_of_each_graph(graphs: list[Data], tmp_path: Path) -> None:
    y = np.array(["odd" if at % 2 else "even" for at in range(40)])
    classifier = LTGAGraphClassifier(**QUICK)
    assert cross_val_score(classifier, graphs, y, cv=2).mean() > 0.6
    classifier.fit(graphs, y)
    assert list(classifier.classes_) == ["even", "odd"] and classifier.predict_proba(graphs).shape == (40, 2)
    assert classifier.score(graphs, y) == pytest.approx(np.mean(classifier.predict(graphs) == y))
    again = LTGAGraphClassifier.load(classifier.save(tmp_path / "g.safetensors"))
    assert list(again.predict(graphs[:3])) == list(classifier.predict(graphs[:3]))


def test_a_number_of_each_graph_in_a_grid_search(graphs: list[Data]) -> None:
    y = np.array([10 + 5 * float(graph.x[:, 0].mean()) for graph in graphs])
    search = GridSearchCV(LTGAGraphRegressor(**QUICK), {"heads": [1, 2]}, cv=2).fit(graphs, y)
    predicted = search.predict(graphs)
    assert search.best_estimator_.score(graphs, y) == pytest.approx(r2_score(y, predicted), rel=1e-4)
    assert r2_score(y, predicted) > 0.3


def test_links(data: Data, tmp_path: Path) -> None:
    links = LTGALinkPredictor(**QUICK, options={"each": 3}).fit(data.x, edge_index=data.edge_index)
    generator = np.random.default_rng(0)
    pairs = np.concatenate([data.edge_index.T.numpy()[:50], generator.integers(0, 90, (50, 2))])
    y = np.array(50 * [1] + 50 * [0])
    found = links.predict_proba(data.x, pairs, data.edge_index)
    assert links.score(data.x, pairs, y, data.edge_index) == pytest.approx(roc_auc_score(y, found))
    assert np.array_equal(links.predict(data.x, pairs, data.edge_index), found > 0.5)
    assert "mrr" in links.run_.metrics
    again = LTGALinkPredictor.load(links.save(tmp_path / "l.safetensors"))
    assert np.array_equal(again.predict_proba(data.x, pairs, data.edge_index), found)


NUMBERS = np.arange(90.0)
BAD: list[tuple[str, Callable[[Data, list[Data], Path], Any], str]] = [
    ("not fitted", lambda d, g, f: LTGARegressor().predict(d.x, d.edge_index), "LTGARegressor: is not fitted yet"),
    ("save what is not fitted", lambda d, g, f: LTGALinkPredictor().save(f / "a.safetensors"), "is not fitted yet"),
    ("no edges", lambda d, g, f: LTGARegressor().fit(d.x, NUMBERS), "edge_index: is missing"),
    ("text", lambda d, g, f: LTGARegressor().fit(d.x, ["a"] * 90, d.edge_index), "y: expected numbers"),
    ("too few", lambda d, g, f: LTGARegressor().fit(d.x, [1.0], d.edge_index), r"shape \[90\], got \[1\]"),
    ("a constant", lambda d, g, f: LTGARegressor().fit(d.x, np.ones(90), d.edge_index), "y: the target is 1 for every"),
    (
        "nothing",
        lambda d, g, f: LTGARegressor().fit(d.x, NUMBERS * np.nan, d.edge_index),
        "y: the target of every node",
    ),
    ("infinity", lambda d, g, f: LTGARegressor().fit(d.x, NUMBERS / 0.0, d.edge_index), "y: the target of node .* inf"),
    ("labels in a row", lambda d, g, f: LTGAMultiLabelClassifier().fit(d.x, NUMBERS, d.edge_index), r"\[90, labels\]"),
    (
        "a label of 2",
        lambda d, g, f: LTGAMultiLabelClassifier().fit(d.x, np.full((90, 2), 2.0), d.edge_index),
        "label '0' of node 0 is 2",
    ),
    ("no graphs", lambda d, g, f: LTGAGraphClassifier().fit([], []), "X: expected a list of PyG Data"),
    ("one class", lambda d, g, f: LTGAGraphClassifier().fit(g, ["a"] * 40), "y: 1 classes found, two are needed"),
    (
        "a lone class",
        lambda d, g, f: LTGAGraphClassifier().fit(g, ["b", *["a", "c"] * 19, "a"]),
        "appears once",
    ),
    ("graphs all unknown", lambda d, g, f: LTGAGraphRegressor().fit(g, [None] * 40), "y: the target of every graph"),
    (
        "half the edges",
        lambda d, g, f: LTGALinkPredictor(validation_fraction=0.5).fit(d.x, edge_index=d.edge_index),
        "validation_fraction: must lie between 0 and 0.5",
    ),
    (
        "a share of two",
        lambda d, g, f: LTGARegressor(validation_fraction=2).fit(d.x, NUMBERS, d.edge_index),
        "validation_fraction: must lie between 0 and 1",
    ),
    (
        "an option of another task",
        lambda d, g, f: LTGARegressor(options={"each": 3}).fit(d.x, NUMBERS, d.edge_index),
        "node regression has no setting 'each'",
    ),
    ("another file", lambda d, g, f: LTGARegressor.load(f / "none.safetensors"), "no such file"),
]


@pytest.mark.parametrize(("act", "culprit"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_bad_input(data: Data, graphs: list[Data], tmp_path: Path, act: Any, culprit: str) -> None:
    with pytest.raises(LTGAError, match=culprit) as caught:
        act(data, graphs, tmp_path)
    assert len(str(caught.value).splitlines()) == 1 and not list(tmp_path.iterdir())


def test_pairs_are_checked(data: Data) -> None:
    links = LTGALinkPredictor(**{**QUICK, "epochs": 1}).fit(data.x, edge_index=data.edge_index)
    for pairs, culprit in (([[0.5, 1]], "pairs: expected whole numbers"), ([0, 1], "shape"), ([[0, 90]], "0 to 89")):
        with pytest.raises(LTGAError, match=culprit):
            links.predict(data.x, pairs, data.edge_index)
