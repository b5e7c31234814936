"""`LTGAClassifier`: the library in the manner of scikit-learn, for people who have X, edges and y."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from ltga.data import Dataset, Nodes
from ltga.data.labels import known_labels
from ltga.errors import InputError, RecordError
from ltga.train.classifier_file import read_classifier, write_classifier
from ltga.train.devices import Device
from ltga.train.fitting import fit
from ltga.train.loop import Callback
from ltga.train.minibatch import MiniBatch
from ltga.train.predict import predict_log_probs
from ltga.train.protocol import Protocol


class NotTrainedError(InputError, NotFittedError):
    """A prediction was asked of a classifier that has not been fitted."""


class LTGAClassifier(ClassifierMixin, BaseEstimator):
    """Node classification with learned sparse attention.

    Two ways to hand over a graph, the same in all methods:

    - features and edges: ``fit(X, y, edge_index)``, ``predict(X, edge_index)``. Nodes whose label is -1,
      ``None``, NaN, ``pandas.NA`` or masked are unlabelled: seen, but not learned from.
    - :class:`~ltga.Nodes`, features with the edges attached: ``fit(nodes[train], y[train])``,
      ``predict(nodes[test])``. The whole graph is seen, the chosen nodes are learned from or predicted.
      That is what ``cross_val_score(LTGAClassifier(), nodes, y, cv=5)``, ``GridSearchCV`` and their kin do.
      In a pipeline other steps work on the features through :class:`~ltga.data.OnFeatures`:
      ``make_pipeline(OnFeatures(StandardScaler()), LTGAClassifier())``.

    Predicting on a graph other than the one fitted works if it has the same features (not for ``linkx``).

    Args:
        method: a name of ``ltga.nn.methods.METHODS``.
        lr, weight_decay, kappa, warmup, prior, delta, dropout, epochs, patience, hidden_channels, heads,
            num_layers, residual, init, backend, metric, class_weights, index_form, index_start, norm: as in
            :class:`~ltga.Protocol`; the defaults are those of ``Protocol.recommended()``.
        validation_fraction: share of every class's labelled nodes that is set aside to choose the best
            epoch, unless ``fit`` is told which.
        batch_size, fanout: train on sampled neighbourhoods, see :class:`~ltga.train.MiniBatch`; the whole
            graph at once if ``batch_size`` is ``None``. ``"auto"`` is that too, except where it would not fit into
            memory; a warning says so.
        random_state: decides weights, dropout and the validation nodes.
        progress: show a line with loss, validation and q.
        device: where to compute, as in :func:`ltga.fit`. A stored classifier is loaded where :meth:`load` is told.

    Attributes:
        classes_: the labels, ``[C]``.
        run_: the :class:`~ltga.Run` behind it: record, model, attention statistics.
        transduction_: a label for every node of the fitted graph, ``[N]``.
        n_features_in_: number of features F.

    >>> from ltga.data import csbm
    >>> data = csbm(num_nodes=80, seed=1).data
    >>> classifier = LTGAClassifier("ltga-head", epochs=3, hidden_channels=4, heads=2)
    >>> classifier.fit(data.x, data.y, data.edge_index).predict_proba(data.x, data.edge_index).shape
    (80, 2)
    """

    def __init__(
        self,
        method: str = "ltga-edge",
        *,
        lr: float = 1e-2,
        weight_decay: float = 5e-4,
        kappa: float = 1.0,
        warmup: int = 0,
        prior: float = 0.0,
        delta: float = 1.0,
        dropout: float = 0.4,
        epochs: int = 500,
        patience: int = 100,
        hidden_channels: int | Literal["auto"] = "auto",
        heads: int | Literal["auto"] = "auto",
        num_layers: int = 2,
        residual: bool = False,
        init: str = "paired",
        backend: str = "auto",
        metric: str = "auto",
        class_weights: bool = False,
        index_form: str = "log",
        index_start: float | str = "auto",
        norm: str = "batch",
        validation_fraction: float = 0.2,
        batch_size: int | Literal["auto"] | None = "auto",
        fanout: int | tuple[int, ...] = 10,
        random_state: int | np.random.RandomState | None = 1,
        progress: bool = False,
        device: Device = "auto",
    ) -> None:
        self.method = method
        self.lr = lr
        self.weight_decay = weight_decay
        self.kappa = kappa
        self.warmup = warmup
        self.prior = prior
        self.delta = delta
        self.dropout = dropout
        self.epochs = epochs
        self.patience = patience
        self.hidden_channels = hidden_channels
        self.heads = heads
        self.num_layers = num_layers
        self.residual = residual
        self.init = init
        self.backend = backend
        self.metric = metric
        self.class_weights = class_weights
        self.index_form = index_form
        self.index_start = index_start
        self.norm = norm
        self.validation_fraction = validation_fraction
        self.batch_size = batch_size
        self.fanout = fanout
        self.random_state = random_state
        self.progress = progress
        self.device = device

    def fit(
        self,
        X: Any,
        y: Any,
        edge_index: Any = None,
        *,
        edge_attr: Any = None,
        val_mask: Any = None,
        callbacks: Iterable[Callback] = (),
    ) -> LTGAClassifier:
        """Train on the labelled nodes of ``X``.

        Args:
            X: features ``[N, F]`` (array, data frame, scipy sparse) together with ``edge_index``, or ``Nodes``.
            y: a label per row of ``X``: numbers or text; -1, ``None``, NaN, ``pandas.NA`` or masked where not known.
            edge_index, edge_attr: as in :class:`~ltga.Nodes`.
            val_mask: boolean, per row of ``X``: the nodes that choose the best epoch instead of teaching.
            callbacks: called with :class:`~ltga.train.EpochInfo` after every epoch.
        """
        nodes = _as_nodes(X, edge_index, edge_attr)
        labels, labelled = _known_labels(y, len(nodes))
        params = self._plain_params()
        protocol = Protocol(**{name: params[name] for name in Protocol.model_fields})
        minibatch = params["batch_size"]
        if minibatch is not None and minibatch != "auto":
            minibatch = MiniBatch(minibatch, params["fanout"])
        seed = _seed(self.random_state)
        classes, codes = np.unique(labels[labelled], return_inverse=True)
        if len(classes) < 2:
            raise InputError(
                f"y: {len(classes)} classes found, two are needed; -1 means unlabelled, so name a class otherwise"
            )
        chosen, count = np.unique(nodes.index, return_counts=True)
        if len(chosen) < len(nodes):
            raise InputError(f"X: node {chosen[count.argmax()]} is chosen {count.max()} times; choose every node once")
        teaching = ~self._validation(codes, val_mask, labelled, seed)
        known = nodes.index[labelled]  # numbers in the whole graph
        data = nodes.data.clone()
        data.y = torch.full((data.num_nodes,), -1)
        data.y[torch.from_numpy(known)] = torch.from_numpy(codes)
        train, val, test = torch.zeros(3, data.num_nodes, dtype=torch.bool)
        train[torch.from_numpy(known[teaching])] = True
        val[torch.from_numpy(known[~teaching])] = True
        dataset = Dataset("nodes", data, train, val, test, class_names=[str(name) for name in classes])
        self.run_ = fit(
            dataset, self.method, seed, protocol=protocol, callbacks=callbacks, progress=self.progress,
            minibatch=minibatch, device=self.device,
        )  # fmt: skip
        self.classes_ = classes
        self.n_features_in_ = nodes.shape[1]
        self._fitted_graph = nodes.fingerprint
        return self

    def predict_proba(self, X: Any, edge_index: Any = None, *, edge_attr: Any = None) -> np.ndarray:
        """Probabilities ``[n, C]``, columns as in ``classes_``, for every row of ``X``."""
        if not hasattr(self, "run_"):
            raise NotTrainedError("classifier: is not fitted yet; call fit first")
        nodes = _as_nodes(X, edge_index, edge_attr)
        if nodes.fingerprint == self._fitted_graph:
            log_probs = self.run_.arrays["log_probs"]
        else:
            block = None if self.run_.typed.config.minibatch is None else MiniBatch().block
            log_probs = predict_log_probs(self.run_.model, self.run_.typed, nodes.data, block).numpy()
        return np.exp(log_probs[nodes.index])

    def predict(self, X: Any, edge_index: Any = None, *, edge_attr: Any = None) -> np.ndarray:
        """The most probable label ``[n]`` for every row of ``X``."""
        chosen = self.predict_proba(X, edge_index, edge_attr=edge_attr).argmax(axis=1)
        return self.classes_[chosen]  # type: ignore[no-any-return]

    def score(
        self, X: Any, y: Any, edge_index: Any = None, *, edge_attr: Any = None, sample_weight: Any = None
    ) -> float:
        """Accuracy on the rows of ``X`` that have a label."""
        predicted = self.predict(X, edge_index, edge_attr=edge_attr)
        labels, labelled = _known_labels(y, len(predicted))
        if not labelled.any():
            raise InputError("y: no row has a label; there is nothing to score")
        weights = None if sample_weight is None else np.asarray(sample_weight)
        if weights is not None:
            if weights.shape != labelled.shape:
                raise InputError(f"sample_weight: expected {len(labelled)} numbers, got shape {list(weights.shape)}")
            weights = weights[labelled]
        return float(accuracy_score(labels[labelled], predicted[labelled], sample_weight=weights))

    @property
    def transduction_(self) -> np.ndarray:
        """A label for every node of the fitted graph."""
        if not hasattr(self, "run_"):
            raise NotTrainedError("classifier: is not fitted yet; call fit first")
        return self.classes_[self.run_.arrays["log_probs"].argmax(axis=1)]  # type: ignore[no-any-return]

    def save(self, path: str | Path) -> Path:
        """Store the fitted classifier in one ``.safetensors`` file: tensors and JSON, no pickle."""
        if not hasattr(self, "run_"):
            raise NotTrainedError("classifier: is not fitted yet; call fit first")
        params = {name: value for name, value in self._plain_params().items() if name != "device"}
        return write_classifier(path, params, self.classes_, self._fitted_graph, self.run_)

    @classmethod
    def load(cls, path: str | Path, device: Device = "auto") -> LTGAClassifier:
        """The classifier that :meth:`save` stored, to compute on ``device``, wherever it was fitted."""
        stored = read_classifier(path)
        try:
            classifier = cls(**{**stored.params, "device": device})
        except TypeError as error:
            raise RecordError(f"{path}: was stored by another version ({error}); fit it again") from None
        classifier.run_, classifier.classes_ = stored.run.to(device), stored.classes
        classifier.n_features_in_ = stored.run.typed.model["in_channels"]  # type: ignore[assignment]
        classifier._fitted_graph = stored.graph
        return classifier

    def _plain_params(self) -> dict[str, Any]:
        """The settings, with the numpy numbers that a grid search puts in as Python's own."""
        return {
            name: value.item() if isinstance(value, np.generic) else value for name, value in self.get_params().items()
        }

    def _validation(self, codes: np.ndarray, val_mask: Any, labelled: np.ndarray, seed: int) -> np.ndarray:
        """Which of the labelled nodes validate: those asked for, or a share of every class."""
        if val_mask is not None:
            mask = np.asarray(val_mask)
            if mask.dtype != bool or mask.shape != labelled.shape:
                raise InputError(
                    f"val_mask: expected {len(labelled)} booleans, got {mask.dtype} of shape {list(mask.shape)}"
                )
            if (mask & ~labelled).any():
                raise InputError(f"val_mask: node {int((mask & ~labelled).argmax())} has no label to validate with")
            return mask[labelled]
        share = self.validation_fraction
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
            raise InputError(f"validation_fraction: must lie between 0 and 1, got {share!r}")
        rng = np.random.default_rng(seed)
        chosen = np.zeros(len(codes), dtype=bool)
        for nodes in np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1]):
            members = rng.permutation(nodes)
            chosen[members[: min(max(round(share * len(members)), 1), len(members) - 1)]] = True
        if not chosen.any():
            raise InputError(f"y: {len(codes)} labelled nodes leave none to validate with; label more, or set val_mask")
        return chosen


def _as_nodes(X: Any, edge_index: Any, edge_attr: Any) -> Nodes:
    if not isinstance(X, Nodes):
        if edge_index is None:
            raise InputError(
                "edge_index: is missing; give the edges, or features and edges together as Nodes (which in a pipeline "
                "keep them through ltga.data.OnFeatures(...) alone)"
            )
        return Nodes(X, edge_index, edge_attr)
    if edge_index is not None or edge_attr is not None:
        raise InputError("edge_index: X is Nodes and has its own edges; leave edge_index and edge_attr out")
    return X


def _known_labels(y: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels ``[n]`` that are fit for classification, and which of them are known."""
    labels, known = known_labels(y, count)
    if known.any():
        try:
            check_classification_targets(labels[known])
        except (ValueError, TypeError) as error:
            raise InputError(f"y: {str(error).splitlines()[0]}") from None
    return labels, known


def _seed(random_state: Any) -> int:
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        if random_state < 0:
            raise InputError(f"random_state: expected a whole number from 0, got {random_state}")
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError:
        raise InputError(f"random_state: expected a whole number, a generator or None, got {random_state!r}") from None
