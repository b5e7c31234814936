"""LTGAClassifier and labels with gaps, pipelines, scikit-learn's tools around both, and damaged files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from torch_geometric.data import Data

from ltga import LTGAClassifier, Nodes
from ltga.data import OnFeatures, csbm
from ltga.errors import InputError, RecordError

KNOWN = np.arange(80) < 60


@pytest.fixture(scope="module")
def graph() -> Data:
    return csbm(num_nodes=80, degree=6, snr=3, seed=1).data


@pytest.fixture(scope="module")
def nodes(graph: Data) -> Nodes:
    return Nodes(graph.x * 3 + 5, graph.edge_index)


def small(**changes: Any) -> LTGAClassifier:
    return LTGAClassifier(
        **{"method": "ltga-head", "hidden_channels": 4, "heads": 2, "epochs": 4, "lr": 0.05, **changes}
    )


def gaps(values: Any, gap: Any) -> list[Any]:
    return [value if known else gap for value, known in zip(values, KNOWN)]


FORMS: dict[str, tuple[Any, list[Any], str]] = {
    "list of ints and None": (lambda y: gaps(y.tolist(), None), [0, 1], "i"),
    "objects, ints and None": (lambda y: np.array(gaps(y.tolist(), None), dtype=object), [0, 1], "i"),
    "objects, numpy ints, ints and NaN": (
        lambda y: np.array([np.int32(y[0]), *gaps(y.tolist(), float("nan"))[1:]], dtype=object), [0, 1], "i"),
    "objects, ints and -1": (lambda y: np.array(gaps(y.tolist(), -1), dtype=object), [0, 1], "i"),
    "Int64": (lambda y: pd.Series(gaps(y.tolist(), pd.NA), dtype="Int64"), [0, 1], "i"),
    "Int64 array": (lambda y: pd.array(gaps(y.tolist(), pd.NA), dtype="Int64"), [0, 1], "i"),
    "int64[pyarrow]": (lambda y: pd.Series(gaps(y.tolist(), None), dtype="int64[pyarrow]"), [0, 1], "i"),
    "large Int64": (lambda y: pd.Series(gaps((y + 2**60).tolist(), pd.NA), dtype="Int64"), [2**60, 2**60 + 1], "i"),
    "floats and NaN": (lambda y: np.where(KNOWN, y, np.nan), [0.0, 1.0], "f"),
    "list of ints and NaN": (lambda y: gaps(y.tolist(), float("nan")), [0, 1], "i"),
    "masked ints": (lambda y: np.ma.masked_array(y, ~KNOWN), [0, 1], "i"),
    "masked text": (lambda y: np.ma.masked_array(np.array(["a", "b"])[y], ~KNOWN), ["a", "b"], "U"),
    "masked floats with NaN": (lambda y: np.ma.masked_invalid(np.where(KNOWN, y, np.nan)), [0.0, 1.0], "f"),
    "objects, text and None": (lambda y: np.array(gaps(["ab"[v] for v in y], None), dtype=object), ["a", "b"], "O"),
    "list of text and NaN": (lambda y: gaps(["ab"[v] for v in y], float("nan")), ["a", "b"], "O"),
    "list of text and -1": (lambda y: gaps(["ab"[v] for v in y], -1), ["a", "b"], "O"),
    "string": (lambda y: pd.Series(gaps(["ab"[v] for v in y], None), dtype="string"), ["a", "b"], "O"),
    "category": (lambda y: pd.Categorical(gaps(["ab"[v] for v in y], None)), ["a", "b"], "O"),
    "boolean": (lambda y: pd.Series(gaps([bool(v) for v in y], pd.NA), dtype="boolean"), [False, True], "b"),
    "objects, bools and None": (lambda y: np.array(gaps([bool(v) for v in y], None), dtype=object), [False, True], "b"),
    "tensor": (lambda y: torch.from_numpy(np.where(KNOWN, y, -1)), [0, 1], "i"),
    "half-precision tensor": (lambda y: torch.from_numpy(np.where(KNOWN, y, np.nan)).bfloat16(), [0.0, 1.0], "f"),
}  # fmt: skip


@pytest.mark.parametrize("form", sorted(FORMS))
def test_gaps_in_any_form_are_gaps(form: str, nodes: Nodes, graph: Data) -> None:
    make, classes, kind = FORMS[form]
    y = make(graph.y.numpy())
    expected = small().fit(nodes, np.where(KNOWN, graph.y.numpy(), -1))
    classifier = small().fit(nodes, y)
    assert classifier.classes_.tolist() == classes and classifier.classes_.dtype.kind == kind
    np.testing.assert_array_equal(classifier.predict_proba(nodes), expected.predict_proba(nodes))
    assert classifier.score(nodes, y) == expected.score(nodes, np.where(KNOWN, graph.y.numpy(), -1))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a"] * 40 + [3] * 40, "mixture of int, str"),
        (["a"] * 40 + [True] * 40, "mixture of bool, str"),
        ([0, 2**70] * 40, "beyond 2.63"),
        ([b"a", b"b"] * 40, "bytes"),
        ([None] * 80, "0 classes found"),
        (np.ma.masked_all(80), "0 classes found"),
        ([[0], [1]] * 40, r"one label for each of 80 rows, got shape \[80, 1\]"),
        ([[0], [1, 2]] * 40, "one label for each row"),
        (7, r"got shape \[\]"),
        (None, r"got shape \[\]"),
        ([0.5, 1.5, None, 2.25] * 20, "continuous"),
        ([0, float("inf")] * 40, "row 1 is infinite"),
        ([{"a"}, {"b"}] * 40, "y: "),
    ],
)
def test_labels_that_are_none(y: Any, message: str, nodes: Nodes) -> None:
    with pytest.raises(InputError, match=message) as caught:
        small().fit(nodes, y)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((80, 2), dtype=complex), "X: expected numbers, got complex128"),
        (torch.ones(80, 2, dtype=torch.complex64), "X: expected numbers, got complex64"),
        (np.zeros((80, 2), dtype="M8[s]"), "X: expected numbers, got datetime64"),
        (np.ma.masked_array(np.ones((80, 2)), np.eye(80, 2) > 0), "X: has masked values"),
        (np.full((80, 2), 1e300), "is inf"),
        ([[10**400, 1]] * 80, "X: expected numbers"),
    ],
)
def test_features_that_numpy_would_bend(X: Any, message: str, graph: Data) -> None:
    with pytest.raises(InputError, match=message):
        small().fit(X, graph.y, graph.edge_index)


def test_features_that_need_no_bending(graph: Data) -> None:
    expected = Nodes(graph.x.bfloat16().float(), graph.edge_index).fingerprint
    for x in (
        graph.x.bfloat16(),
        graph.x.bfloat16().to_sparse(),
        np.ma.masked_array(graph.x.bfloat16().float().numpy()),
    ):
        assert Nodes(x, graph.edge_index).fingerprint == expected
    for edges, message in (
        (np.full((2, 3), 2**64 - 1, dtype=np.uint64), "holds node 18446744073709551615"),
        (torch.eye(80).to_sparse(), "tensor of torch.sparse_coo"),
        (graph.edge_index.bfloat16(), "tensor of torch.bfloat16"),
    ):
        with pytest.raises(InputError, match=message):
            Nodes(graph.x, edges)


# Pipelines


def pipeline(**changes: Any) -> Pipeline:
    return make_pipeline(OnFeatures(StandardScaler()), small(**changes))


def test_a_scaler_in_front_keeps_the_edges(nodes: Nodes, graph: Data) -> None:
    y = graph.y.numpy()
    scaler = StandardScaler().fit(nodes.data.x[:40].numpy())
    by_hand = Nodes(scaler.transform(nodes.data.x.numpy()), graph.edge_index)
    expected = small().fit(by_hand[:40], y[:40])
    fitted = pipeline().fit(nodes[:40], y[:40])
    np.testing.assert_array_equal(fitted.predict_proba(nodes[40:]), expected.predict_proba(by_hand[40:]))
    assert fitted.score(nodes[40:], y[40:]) == expected.score(by_hand[40:], y[40:])
    scaled = fitted[0].transform(nodes[3:5])
    assert scaled.index.tolist() == [3, 4] and torch.equal(scaled.data.edge_index, nodes.data.edge_index)
    assert scaled.fingerprint == by_hand.fingerprint != nodes.fingerprint


def test_edge_attributes_survive(graph: Data) -> None:
    attributes = torch.rand(graph.edge_index.size(1), 2)
    scaled = OnFeatures(PCA(3)).fit_transform(Nodes(graph.x, graph.edge_index, attributes))
    assert scaled.shape == (80, 3) and torch.equal(scaled.data.edge_attr, attributes)


def test_searches_and_cross_validation_over_pipelines(nodes: Nodes, graph: Data) -> None:
    y = graph.y.numpy()
    scores = cross_val_score(pipeline(), nodes, y, cv=StratifiedKFold(2), error_score="raise")
    by_hand = [
        clone(pipeline()).fit(nodes[train], y[train]).score(nodes[test], y[test])
        for train, test in StratifiedKFold(2).split(y, y)
    ]
    assert scores.tolist() == by_hand
    assert cross_val_predict(pipeline(epochs=1), nodes, y, cv=2).shape == (80,)
    grid = {"onfeatures__transformer": [StandardScaler(), PCA(2)], "ltgaclassifier__epochs": [1, 3]}
    search = GridSearchCV(pipeline(), grid, cv=2, error_score="raise").fit(nodes, y)
    assert len(search.cv_results_["params"]) == 4 and search.best_estimator_.predict(nodes[:5]).shape == (5,)
    nested = clone(pipeline()).set_params(onfeatures__transformer__with_mean=False)
    assert nested.get_params()["onfeatures__transformer__with_mean"] is False


def test_cross_validation_with_gaps(nodes: Nodes, graph: Data) -> None:
    y = graph.y.numpy()
    for form in (np.where(KNOWN, y, -1), np.array(gaps(y.tolist(), None), dtype=object)):
        scores = cross_val_score(small(), nodes, form, cv=2, error_score="raise")
        assert len(scores) == 2 and np.isfinite(scores).all()


def test_a_step_that_would_lose_the_edges_says_what_to_do(nodes: Nodes, graph: Data) -> None:
    for step in (StandardScaler(), PCA(2), SelectKBest(k=2)):
        with pytest.raises(InputError, match=r"OnFeatures\(StandardScaler\(\)\)") as caught:
            make_pipeline(step, small()).fit(nodes, graph.y.numpy())
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"OnFeatures"):
        np.asarray(nodes)
    with pytest.raises(InputError, match=r"edge_index: is missing.*OnFeatures"):
        make_pipeline(StandardScaler(), small()).fit(graph.x.numpy(), graph.y.numpy())
    passed = make_pipeline(FunctionTransformer(), small()).fit(nodes, graph.y.numpy())  # looks at nothing
    assert passed.predict(nodes).shape == (80,)
    assert [part.index.tolist() for part in nodes[:3]] == [[0], [1], [2]]


def test_edges_through_parameters_of_the_pipeline(graph: Data) -> None:
    x, y = graph.x.numpy(), graph.y.numpy()
    chain = make_pipeline(StandardScaler(), small()).fit(x, y, ltgaclassifier__edge_index=graph.edge_index)
    expected = small().fit(StandardScaler().fit_transform(x), y, graph.edge_index)
    np.testing.assert_array_equal(chain.predict(x, edge_index=graph.edge_index), expected.transduction_)
    with sklearn.config_context(enable_metadata_routing=True):
        asks = small().set_fit_request(edge_index=True).set_predict_request(edge_index=True)
        routed = make_pipeline(StandardScaler(), asks.set_score_request(edge_index=True))
        routed.fit(x, y, edge_index=graph.edge_index)
        assert routed.score(x, y, edge_index=graph.edge_index) == np.mean(expected.transduction_ == y)


def test_supervised_steps_and_unlabelled_nodes(nodes: Nodes, graph: Data) -> None:
    y = graph.y.numpy()
    best = make_pipeline(OnFeatures(SelectKBest(k=2)), small()).fit(nodes, y)
    assert best[0].transform(nodes).shape == (80, 2)
    with pytest.raises(InputError, match=r"y: SelectKBest wants a label for every node"):
        OnFeatures(SelectKBest(k=2)).fit(nodes, np.where(KNOWN, y, -1))
    chosen = OnFeatures(SelectKBest(k=2)).fit(nodes[KNOWN], y[KNOWN])
    assert chosen.transform(nodes).shape == (80, 2)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        OnFeatures(StandardScaler()).transform(nodes)
    with pytest.raises(InputError, match="X: expected Nodes"):
        OnFeatures(StandardScaler()).fit(graph.x.numpy())
    with pytest.raises(InputError, match=r"a row for each of 80 nodes, got \[3, 2\]"):
        nodes.with_features(np.ones((3, 2)))


def test_weights_of_another_length(nodes: Nodes, graph: Data) -> None:
    classifier = small().fit(nodes, graph.y.numpy())
    with pytest.raises(InputError, match=r"sample_weight: expected 80 numbers, got shape \[3\]"):
        classifier.score(nodes, graph.y.numpy(), sample_weight=[1, 2, 3])


# Files


def rewrite(path: Path, change: Any) -> None:
    with safe_open(str(path), framework="pt") as stream:
        metadata = stream.metadata()
        tensors = {key: stream.get_tensor(key).clone() for key in stream.keys()}  # noqa: SIM118
    described = json.loads(metadata["classifier"])
    text = change(described, tensors)
    save_file(
        tensors, path, metadata={**metadata, "classifier": text if isinstance(text, str) else json.dumps(described)}
    )


def set_in(*keys: str, to: Any) -> Any:
    def change(described: Any, tensors: Any) -> None:
        for key in keys[:-1]:
            described = described[key]
        described[keys[-1]] = to

    return change


DAMAGE = {
    "wide labels": set_in("classes_dtype", to="<U1000000000"),
    "object dtype code": set_in("classes_dtype", to="V1000000000"),
    "no dtype": set_in("classes_dtype", to="zzz"),
    "a number for a dtype": set_in("classes_dtype", to="9" * 5000),
    "a list of dtypes": set_in("classes_dtype", to="i4,i4"),
    "labels that are lists": set_in("classes", to=[[0], [1]]),
    "equal labels": set_in("classes", to=["a", "a"]),
    "more labels than classes": set_in("classes", to=["a", "b", "c"]),
    "a network of another size": set_in("record", "config", "protocol", "hidden_channels", to=10**9),
    "a network of many layers": set_in("record", "config", "protocol", "num_layers", to=10**9),
    "a network of many features": set_in("record", "model", "in_channels", to=10**12),
    "a network of many classes": set_in("record", "model", "num_classes", to=10**12),
    "no model": set_in("record", "model", to=None),
    "no record": set_in("record", to=[]),
    "an unknown method": set_in("record", "config", "method", to="nonsense"),
    "settings of another version": set_in("params", "colour", to="red"),
    "settings as a list": set_in("params", to=[1]),
    "not an object": lambda described, tensors: "[]",
    "nested without end": lambda described, tensors: "[" * 100_000,
    "no predictions": lambda described, tensors: tensors.__delitem__("array/log_probs"),
    "other predictions": lambda described, tensors: tensors.update({"array/log_probs": torch.zeros(3, 2)}),
    "predictions of another kind": lambda described, tensors: tensors.update(
        {"array/log_probs": tensors["array/log_probs"].bfloat16()}),
    "missing weights": lambda described, tensors: tensors.__delitem__(max(k for k in tensors if "weight/" in k)),
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(DAMAGE))
def test_a_damaged_file_is_named_and_takes_no_memory(kind: str, nodes: Nodes, graph: Data, tmp_path: Path) -> None:
    names = np.array(["yes", "no"])[graph.y.numpy()]
    path = small(epochs=1).fit(nodes, names).save(tmp_path / "model.safetensors")
    assert LTGAClassifier.load(path).classes_.tolist() == ["no", "yes"]
    rewrite(path, DAMAGE[kind])
    with pytest.raises(RecordError, match=r"model\.safetensors") as caught:
        LTGAClassifier.load(path)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000
