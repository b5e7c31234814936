"""`OnFeatures`: a scaler or any other scikit-learn transformer in front of a classifier of nodes."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError

from ltga.data.labels import known_labels
from ltga.data.nodes import Nodes
from ltga.errors import InputError


class _NotFitted(InputError, NotFittedError):
    """Features were to be changed by a step that has not learned how."""


class OnFeatures(TransformerMixin, BaseEstimator):
    """Applies a transformer to the features of :class:`~ltga.Nodes` and keeps their edges.

    A transformer by itself gives back a plain table, and the edges would be lost. This one learns from the chosen
    nodes, then changes the features of the whole graph: what a node hears from its neighbours is on the same scale.

    Args:
        transformer: for example ``StandardScaler()`` or ``PCA(50)``; a copy of it is fitted, as ``transformer_``.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from ltga import LTGAClassifier
    >>> pipeline = make_pipeline(OnFeatures(StandardScaler()), LTGAClassifier("gcn"))
    >>> scaled = OnFeatures(StandardScaler()).fit_transform(Nodes([[0.0], [2.0], [4.0]], [[0, 1], [1, 2]])[:2])
    >>> scaled, scaled.data.x.flatten()
    (Nodes(2 of 3 nodes, 2 edges, 1 features), tensor([-1.,  1.,  3.]))
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Nodes, y: Any = None) -> OnFeatures:
        """Learn from the features of the chosen nodes (and their labels, if all are known)."""
        nodes = _checked(X)
        features = nodes.data.x[nodes.index].numpy()
        self.transformer_ = clone(self.transformer)
        if y is not None:
            labels, known = known_labels(y, len(nodes))
            if known.all():
                self.transformer_.fit(features, labels)
                return self
        try:
            self.transformer_.fit(features)
        except (TypeError, ValueError) as error:
            if y is None:
                raise
            # Unlabelled must not become a class of its own.
            raise InputError(
                f"y: {type(self.transformer).__name__} wants a label for every node ({str(error).splitlines()[0]}); "
                "choose the labelled nodes, nodes[known]"
            ) from None
        return self

    def transform(self, X: Nodes) -> Nodes:
        """The same nodes of the same graph with new features."""
        if not hasattr(self, "transformer_"):
            raise _NotFitted("OnFeatures: is not fitted yet; call fit first")
        nodes = _checked(X)
        return nodes.with_features(self.transformer_.transform(nodes.data.x.numpy()))


def _checked(X: Any) -> Nodes:
    if not isinstance(X, Nodes):
        raise InputError(f"X: expected Nodes, features and edges together, got {type(X).__name__}; use ltga.Nodes")
    return X
