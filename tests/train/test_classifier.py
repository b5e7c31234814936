"""LTGAClassifier beside scikit-learn's own tools: splits, searches, clones, labels, files."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_predict, cross_val_score
from torch_geometric.data import Data

from ltga import LTGAClassifier, Nodes, fit
from ltga.data import Dataset, digits_noise
from ltga.errors import InputError, LTGAError, RecordError
from ltga.train import Protocol


@pytest.fixture(scope="module")
def digits() -> Data:
    return digits_noise(planted_per_edge=0.5).data.subgraph(torch.arange(400))


@pytest.fixture(scope="module")
def nodes(digits: Data) -> Nodes:
    return Nodes(digits.x.numpy(), digits.edge_index.numpy())


def small_classifier(**changes: Any) -> LTGAClassifier:
    settings = {"method": "ltga-head", "hidden_channels": 8, "heads": 2, "epochs": 15, "lr": 0.05, **changes}
    return LTGAClassifier(**settings)


def test_its_settings_are_the_protocols() -> None:
    params = LTGAClassifier().get_params()
    assert {name: params[name] for name in Protocol.model_fields} == Protocol.recommended().model_dump()
    assert is_classifier(LTGAClassifier())
    copy = clone(LTGAClassifier(lr=0.5, fanout=(3, 2)))
    assert (copy.lr, copy.fanout) == (0.5, (3, 2)) and copy.set_params(heads=3).heads == 3


def test_cross_validation_over_nodes(nodes: Nodes, digits: Data) -> None:
    y = digits.y.numpy()
    classifier = small_classifier()
    scores = cross_val_score(classifier, nodes, y, cv=2)
    by_hand = []
    for train, test in StratifiedKFold(2).split(np.zeros((400, 1)), y):
        fitted = clone(classifier).fit(nodes[train], y[train])
        by_hand.append(accuracy_score(y[test], fitted.predict(nodes[test])))
    assert scores.tolist() == by_hand and min(scores) > 0.7
    predicted = cross_val_predict(small_classifier(epochs=3), nodes, y, cv=KFold(2))
    assert predicted.shape == (400,)


def test_grid_search_with_numpy_settings(nodes: Nodes, digits: Data, tmp_path: Path) -> None:
    grid = {"epochs": np.array([1, 12]), "lr": np.array([0.05])}
    search = GridSearchCV(small_classifier(), grid, cv=2).fit(nodes, digits.y.numpy())
    assert search.best_params_["epochs"] == 12
    assert isinstance(search.best_estimator_.save(tmp_path / "best.safetensors"), Path)


def test_it_is_fit_underneath(digits: Data) -> None:
    """The same graph, split and seed through ``ltga.fit`` give the same run, digit for digit."""
    y, val = digits.y.numpy(), np.arange(400) % 4 == 0
    y = np.where(np.arange(400) < 300, y, -1)
    val &= y != -1
    classifier = small_classifier(epochs=5, random_state=7).fit(digits.x, y, digits.edge_index, val_mask=val)
    data = Data(x=digits.x, y=torch.from_numpy(y), edge_index=digits.edge_index)
    masks = [torch.from_numpy(mask) for mask in ((y != -1) & ~val, val, np.zeros(400, dtype=bool))]
    run = fit(
        Dataset("same", data, *masks), "ltga-head", 7,
        protocol=Protocol.recommended(epochs=5, lr=0.05, hidden_channels=8, heads=2),
    )  # fmt: skip
    assert classifier.run_.record["trajectory"] == run.record["trajectory"]
    np.testing.assert_array_equal(classifier.run_.arrays["log_probs"], run.arrays["log_probs"])


def test_hidden_labels_do_not_leak(nodes: Nodes, digits: Data) -> None:
    y = digits.y.numpy()
    seen = np.arange(400) < 250
    shuffled = np.where(seen, y, np.roll(y, 5))
    first = small_classifier(epochs=3).fit(nodes[seen], y[seen])
    second = small_classifier(epochs=3).fit(nodes, np.where(seen, shuffled, -1))
    np.testing.assert_array_equal(first.predict_proba(nodes), second.predict_proba(nodes))


@pytest.mark.parametrize(
    "names", [np.array([f"digit {i}" for i in range(10)]), np.arange(10) * 5 + 3, np.arange(10) / 1.0]
)
def test_labels_of_any_kind(nodes: Nodes, digits: Data, names: np.ndarray) -> None:
    y = names[digits.y.numpy()]
    classifier = small_classifier().fit(nodes, y)
    assert classifier.classes_.tolist() == names.tolist()
    predicted = classifier.predict(nodes)
    assert predicted.dtype == names.dtype and (predicted == classifier.transduction_).all()
    assert classifier.score(nodes, y) == np.mean(predicted == y) > 0.8
    probabilities = classifier.predict_proba(nodes)
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-5)
    assert (classifier.classes_[probabilities.argmax(1)] == predicted).all()


def test_gaps_in_the_labels(nodes: Nodes, digits: Data) -> None:
    text = pd.Series(digits.y.numpy()).map(lambda label: f"d{label}").where(np.arange(400) < 300)
    numbers = pd.Series(digits.y.numpy()).where(np.arange(400) < 300)  # floats with NaN
    by_text, by_number = (small_classifier(epochs=4).fit(nodes, y) for y in (text, numbers))
    np.testing.assert_array_equal(by_text.predict_proba(nodes), by_number.predict_proba(nodes))
    assert by_text.score(nodes, text) == by_text.score(nodes[:300], text[:300])
    assert len(by_text.transduction_) == 400


def test_features_and_edges_in_many_forms(digits: Data) -> None:
    x, edges = digits.x.numpy(), digits.edge_index.numpy()
    ones = np.ones(edges.shape[1])
    adjacency = scipy.sparse.coo_matrix((ones, (edges[0], edges[1])), shape=(400, 400)).tocsr()
    columns = [f"pixel {i}" for i in range(x.shape[1])]
    forms = [
        (digits.x, digits.edge_index),
        (scipy.sparse.csr_matrix(x), edges),
        (pd.DataFrame(x, columns=columns), edges.tolist()),
        (x.tolist(), adjacency),
    ]
    reference = small_classifier(epochs=3).fit(x, digits.y, edges).predict_proba(x, edges)
    for features, edge_index in forms:
        classifier = small_classifier(epochs=3).fit(features, digits.y.tolist(), edge_index)
        np.testing.assert_allclose(classifier.predict_proba(features, edge_index), reference, atol=1e-4)
        assert classifier.n_features_in_ == 64


def test_predicting_on_another_graph(digits: Data) -> None:
    whole = digits_noise(planted_per_edge=0.5).data
    new = whole.subgraph(torch.arange(400, 800))
    classifier = small_classifier(epochs=60).fit(digits.x, digits.y, digits.edge_index)
    assert classifier.score(new.x, new.y, new.edge_index) > 0.7
    expected = classifier.run_.predict(new).numpy()
    assert (classifier.predict(Nodes(new.x, new.edge_index)[::2]) == expected[::2]).all()
    narrow = small_classifier(method="linkx", epochs=1).fit(digits.x, digits.y, digits.edge_index)
    assert narrow.predict(digits.x, digits.edge_index).shape == (400,)
    with pytest.raises(InputError, match="linkx has a weight for every node"):
        narrow.predict(new.x, new.edge_index)


def test_edge_attributes_and_mini_batches(digits: Data) -> None:
    attributes = torch.rand(digits.edge_index.size(1), 2, generator=torch.Generator().manual_seed(0))
    classifier = small_classifier(epochs=6, batch_size=64, fanout=(5, 3))
    classifier.fit(digits.x, digits.y, digits.edge_index, edge_attr=attributes)
    assert classifier.run_.record["config"]["minibatch"]["fanout"] == [5, 3]
    with pytest.raises(InputError, match="has no edge attributes"):
        classifier.predict(digits.x, digits.edge_index)
    half = Nodes(digits.x, digits.edge_index[:, ::2], attributes[::2])
    assert classifier.predict(half).shape == (400,)


def test_batches_are_chosen_where_memory_demands_it(
    nodes: Nodes, digits: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ltga.train import batches

    y = digits.y.numpy()
    assert small_classifier(epochs=1).fit(nodes, y).run_.typed.config.minibatch is None
    monkeypatch.setattr(batches, "free_memory", lambda: 1000)
    assert small_classifier(epochs=1, batch_size=None).fit(nodes, y).run_.typed.config.minibatch is None
    with pytest.warns(batches.BatchesWarning, match="training on sampled neighbourhoods"):
        chosen = small_classifier(epochs=1).fit(nodes, y)
    assert chosen.run_.typed.config.minibatch["batch_size"] == 512
    grown = Nodes(np.concatenate([digits.x.numpy(), digits.x.numpy()[:1]]), digits.edge_index.numpy())
    np.testing.assert_allclose(chosen.predict_proba(grown)[:-1], chosen.predict_proba(nodes), atol=1e-5)


@pytest.mark.parametrize("method", ["ltga-edge", "linkx"])
def test_files_hold_everything_and_no_pickle(nodes: Nodes, digits: Data, tmp_path: Path, method: str) -> None:
    names = np.array([f"<b>{i}</b>" for i in range(10)])
    classifier = small_classifier(method=method, epochs=3, fanout=(2, 2)).fit(nodes, names[digits.y.numpy()])
    path = classifier.save(tmp_path / "deep" / "model.safetensors")
    assert [file.name for file in path.parent.iterdir()] == ["model.safetensors"]
    assert b"\x80\x04\x95" not in path.read_bytes()  # how pickles begin
    again = LTGAClassifier.load(path)
    assert again.get_params() == classifier.get_params()
    assert again.run_.record == classifier.run_.record and again.n_features_in_ == 64
    np.testing.assert_array_equal(again.predict(nodes), classifier.predict(nodes))
    if method != "linkx":
        other = Nodes(digits.x, digits.edge_index[:, ::3])
        np.testing.assert_allclose(again.predict_proba(other), classifier.predict_proba(other))
    copied = pickle.loads(pickle.dumps(classifier))  # for joblib's workers
    np.testing.assert_array_equal(copied.predict(nodes), classifier.predict(nodes))
    whole = path.read_bytes()
    for broken in (whole[: len(whole) // 2], b"", b"{}"):
        path.write_bytes(broken)
        with pytest.raises(RecordError, match=r"model\.safetensors: damaged"):
            LTGAClassifier.load(path)


def test_random_states(nodes: Nodes, digits: Data) -> None:
    y = digits.y.numpy()
    seeds = [1, np.int64(1), 2, None, np.random.RandomState(5)]
    used = [small_classifier(epochs=1, random_state=seed).fit(nodes, y).run_.record["config"]["seed"] for seed in seeds]
    assert used[:3] == [1, 1, 2] and used[4] == np.random.RandomState(5).randint(2**31 - 1)


def test_before_fitting(nodes: Nodes, tmp_path: Path) -> None:
    for ask in (lambda c: c.predict(nodes), lambda c: c.save(tmp_path / "x.safetensors"), lambda c: c.transduction_):
        with pytest.raises(NotFittedError, match="not fitted yet") as caught:
            ask(LTGAClassifier())
        assert isinstance(caught.value, LTGAError)
    assert list(tmp_path.iterdir()) == []


def test_choosing_nodes(nodes: Nodes) -> None:
    assert len(nodes[3]) == 1 and len(nodes[[1, 2]][[0]]) == 1 and nodes[[1, 2]][[1]].index.tolist() == [2]
    assert nodes[np.arange(400) < 7].shape == (7, 64) and nodes[:5, ...].shape == (5, 64)
    assert nodes[:5].fingerprint == nodes.fingerprint
    for rows in ([400], "a", [[1, 2]], np.ones(3, dtype=bool)):
        with pytest.raises(InputError, match="nodes: "):
            nodes[rows]
