"""The other tasks in the manner of scikit-learn: numbers and labels of nodes, whole graphs, links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, f1_score, r2_score, roc_auc_score
from torch import Tensor
from torch_geometric.data import Data

from ltga.data import GraphCollection, NodeDataset, split_links
from ltga.errors import InputError
from ltga.train.classifier import _as_nodes, _known_labels
from ltga.train.estimator_base import TaskEstimator, numbers_of, target_of
from ltga.train.loop import Callback


class _OfNodes(TaskEstimator):
    """A number or several labels for each node; the graph is handed over as to :class:`~ltga.LTGAClassifier`."""

    _kind: ClassVar[Literal["number", "labels"]]

    def fit(
        self,
        X: Any,
        y: Any,
        edge_index: Any = None,
        *,
        edge_attr: Any = None,
        val_mask: Any = None,
        callbacks: Iterable[Callback] = (),
    ) -> Self:
        """Train on the nodes of ``X`` whose target is known (not NaN); arguments as of ``LTGAClassifier.fit``."""
        nodes = _as_nodes(X, edge_index, edge_attr)
        values = numbers_of(y, len(nodes), self._kind)
        known = ~np.isnan(values) if values.ndim == 1 else ~np.isnan(values).all(axis=1)
        if len(np.unique(nodes.index)) < len(nodes):
            raise InputError("X: a node is chosen more than once; choose every node once")
        if not known.any():
            raise InputError("y: the target of every node is missing; there is nothing to learn from")
        validates = self._validation(np.zeros(int(known.sum()), dtype=int), val_mask, known)
        chosen = nodes.index[known]
        count = nodes.data.num_nodes
        target = np.full((count, *values.shape[1:]), np.nan)
        target[nodes.index] = values
        train, val, test = torch.zeros(3, count, dtype=torch.bool)
        train[torch.from_numpy(chosen[~validates])] = True
        val[torch.from_numpy(chosen[validates])] = True
        dataset = NodeDataset("nodes", nodes.data, target_of(target, self._kind, "node"), (train, val, test))
        return self._train(dataset, self._seed, callbacks)

    def _outputs(self, X: Any, edge_index: Any, edge_attr: Any) -> np.ndarray:
        self._check_fitted()
        nodes = _as_nodes(X, edge_index, edge_attr)
        return self.run_.predict_proba(nodes.data).numpy()[nodes.index]  # type: ignore[no-any-return]


class LTGARegressor(RegressorMixin, _OfNodes):
    """A number for each node.

    >>> from ltga.data import csbm
    >>> data = csbm(num_nodes=80, seed=1).data
    >>> regressor = LTGARegressor(epochs=3, hidden_channels=4, heads=2)
    >>> regressor.fit(data.x, data.x[:, 0], data.edge_index).predict(data.x, data.edge_index).shape
    (80,)
    """

    _kind = "number"

    def predict(self, X: Any, edge_index: Any = None, *, edge_attr: Any = None) -> np.ndarray:
        """The number of every row of ``X``, in the units of ``y``."""
        return self._outputs(X, edge_index, edge_attr)

    def score(self, X: Any, y: Any, edge_index: Any = None, *, edge_attr: Any = None) -> float:  # type: ignore[override]
        """R2 on the rows of ``X`` that have a target."""
        predicted = self.predict(X, edge_index, edge_attr=edge_attr)
        return _r2(numbers_of(y, len(predicted), "number"), predicted)


class LTGAMultiLabelClassifier(ClassifierMixin, _OfNodes):
    """Any of several labels for each node; ``y`` is ``[n, L]`` of 0, 1 and NaN (unknown).

    >>> from ltga.data import csbm
    >>> data = csbm(num_nodes=80, seed=1).data
    >>> several = LTGAMultiLabelClassifier(epochs=3, hidden_channels=4, heads=2)
    >>> several.fit(data.x, (data.x[:, :3] > 0).float(), data.edge_index).predict_proba(data.x, data.edge_index).shape
    (80, 3)
    """

    _kind = "labels"

    def predict_proba(self, X: Any, edge_index: Any = None, *, edge_attr: Any = None) -> np.ndarray:
        """How probable each label is ``[n, L]``."""
        return self._outputs(X, edge_index, edge_attr)

    def predict(self, X: Any, edge_index: Any = None, *, edge_attr: Any = None) -> np.ndarray:
        """0 or 1 for each label ``[n, L]``."""
        return (self.predict_proba(X, edge_index, edge_attr=edge_attr) > 0.5).astype(int)  # type: ignore[no-any-return]

    def score(self, X: Any, y: Any, edge_index: Any = None, *, edge_attr: Any = None) -> float:  # type: ignore[override]
        """F1 over all labels that are known (micro)."""
        predicted = self.predict(X, edge_index, edge_attr=edge_attr)
        truth = numbers_of(y, len(predicted), "labels")
        known = ~np.isnan(truth)
        if not known.any():
            raise InputError("y: no label is known; there is nothing to score")
        return float(f1_score(truth[known], predicted[known], zero_division=0))


class _OfGraphs(TaskEstimator):
    """A target for each graph; ``X`` is a list of PyG ``Data`` with the same features."""

    def _outputs(self, X: Any) -> np.ndarray:
        self._check_fitted()
        return self.run_.predict_proba(X).numpy()  # type: ignore[no-any-return]

    def _collection(self, X: Any, target: np.ndarray, kind: Any, known: np.ndarray, validates: np.ndarray) -> Any:
        graphs = _graphs(X)
        train, val, test = torch.zeros(3, len(graphs), dtype=torch.bool)
        train[torch.from_numpy(np.flatnonzero(known)[~validates])] = True
        val[torch.from_numpy(np.flatnonzero(known)[validates])] = True
        return GraphCollection("graphs", graphs, target_of(target, kind, "graph"), (train, val, test))


class LTGAGraphClassifier(ClassifierMixin, _OfGraphs):
    """A class for each graph of a list, labels as :class:`~ltga.LTGAClassifier` takes them."""

    def fit(self, X: Any, y: Any, *, val_mask: Any = None, callbacks: Iterable[Callback] = ()) -> Self:
        """Train on the graphs that have a label; ``val_mask`` names those that choose the best epoch."""
        labels, known = _known_labels(y, len(_graphs(X)))
        classes, codes = np.unique(labels[known], return_inverse=True)
        if len(classes) < 2:
            raise InputError(f"y: {len(classes)} classes found, two are needed; -1 means unlabelled")
        target = np.full(len(labels), -1)
        target[known] = codes
        validates = self._validation(codes, val_mask, known)
        self._train(self._collection(X, target, "classes", known, validates), self._seed, callbacks)
        self.classes_ = classes
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities ``[G, C]``, columns as in ``classes_``."""
        return self._outputs(X)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable label of each graph."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]  # type: ignore[no-any-return]

    def score(self, X: Any, y: Any) -> float:  # type: ignore[override]
        """Accuracy on the graphs that have a label."""
        predicted = self.predict(X)
        labels, known = _known_labels(y, len(predicted))
        if not known.any():
            raise InputError("y: no graph has a label; there is nothing to score")
        return float(accuracy_score(labels[known], predicted[known]))


class LTGAGraphRegressor(RegressorMixin, _OfGraphs):
    """A number for each graph of a list; NaN where it is not known."""

    def fit(self, X: Any, y: Any, *, val_mask: Any = None, callbacks: Iterable[Callback] = ()) -> Self:
        """Train on the graphs whose number is known; ``val_mask`` names those that choose the best epoch."""
        values = numbers_of(y, len(_graphs(X)), "number")
        known = ~np.isnan(values)
        if not known.any():
            raise InputError("y: the target of every graph is missing; there is nothing to learn from")
        validates = self._validation(np.zeros(int(known.sum()), dtype=int), val_mask, known)
        return self._train(self._collection(X, values, "number", known, validates), self._seed, callbacks)

    def predict(self, X: Any) -> np.ndarray:
        """The number of each graph, in the units of ``y``."""
        return self._outputs(X)

    def score(self, X: Any, y: Any) -> float:  # type: ignore[override]
        """R2 on the graphs whose number is known."""
        predicted = self.predict(X)
        return _r2(numbers_of(y, len(predicted), "number"), predicted)


class LTGALinkPredictor(TaskEstimator):
    """Whether two nodes have an edge. Learned from a graph, of whose edges some are held out to choose by and to test.

    A split over nodes is none over edges, so this one is not for ``cross_val_score``; ``run_.metrics`` are of the
    edges that were held out for testing.

    >>> from ltga.data import csbm
    >>> data = csbm(num_nodes=80, seed=1).data
    >>> links = LTGALinkPredictor(epochs=2, hidden_channels=4, heads=2).fit(data.x, edge_index=data.edge_index)
    >>> links.predict_proba(data.x, [[0, 1], [5, 9]], data.edge_index).shape
    (2,)
    """

    _usual_share = 0.05

    def fit(self, X: Any, y: None = None, edge_index: Any = None, *, callbacks: Iterable[Callback] = ()) -> Self:
        """Train on the edges of a graph: features and ``edge_index``, or :class:`~ltga.Nodes`; ``y`` is not read."""
        share = self._share
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 0.5:
            raise InputError(f"validation_fraction: must lie between 0 and 0.5 for links, got {share!r}")
        data = _as_nodes(X, edge_index, None).data
        links = split_links(data, "nodes", val=share, test=share, seed=self._seed)
        return self._train(links, self._seed, callbacks, "link")

    def predict_proba(self, X: Any, pairs: Any, edge_index: Any = None) -> np.ndarray:
        """How probable an edge is for each of ``pairs`` ``[P, 2]`` of nodes, given the edges known so far."""
        self._check_fitted()
        wanted = np.asarray(pairs.numpy(force=True) if isinstance(pairs, Tensor) else pairs)
        if wanted.ndim != 2 or wanted.shape[1] != 2 or wanted.dtype.kind not in "iu":
            raise InputError(f"pairs: expected whole numbers of shape [P, 2], got {wanted.dtype} {list(wanted.shape)}")
        data = _as_nodes(X, edge_index, None).data
        return self.run_.predict_proba(data, torch.from_numpy(wanted.T.astype(np.int64))).numpy()  # type: ignore[no-any-return]

    def predict(self, X: Any, pairs: Any, edge_index: Any = None) -> np.ndarray:
        """1 for each of ``pairs`` that is more probably an edge than not."""
        return (self.predict_proba(X, pairs, edge_index) > 0.5).astype(int)  # type: ignore[no-any-return]

    def score(self, X: Any, pairs: Any, y: Any, edge_index: Any = None) -> float:
        """The area under the ROC curve of ``pairs`` whose truth is ``y``, 1 for an edge and 0 for none."""
        return float(roc_auc_score(np.asarray(y), self.predict_proba(X, pairs, edge_index)))


def _graphs(X: Any) -> Sequence[Data]:
    graphs = list(X) if isinstance(X, GraphCollection | list | tuple | np.ndarray) else []
    if not graphs or not all(isinstance(graph, Data) for graph in graphs):
        raise InputError("X: expected a list of PyG Data, one for each graph")
    return graphs


def _r2(truth: np.ndarray, predicted: np.ndarray) -> float:
    known = ~np.isnan(truth)
    if known.sum() < 2:
        raise InputError("y: fewer than two numbers are known; there is nothing to score")
    return float(r2_score(truth[known], predicted[known]))
