"""The `Dataset` value: one validated graph with its splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data.bounds import most_classes
from ltga.data.facts import Facts, Task
from ltga.data.find_node import position_of
from ltga.data.split_masks import HasSplits, check_masks, fingerprint_of, stacked
from ltga.data.target import Target
from ltga.errors import DataError, InputError

METRICS = ("accuracy", "roc_auc")


class OneGraph(HasSplits):
    """A graph whose nodes are divided."""

    data: Data

    @property
    def num_nodes(self) -> int:
        return int(self.data.x.shape[0])

    @property
    def num_edges(self) -> int:
        return int(self.data.edge_index.shape[1])

    @property
    def num_features(self) -> int:
        return int(self.data.x.shape[1])


class Dataset(OneGraph):
    """A node-classification graph with fixed train/validation/test splits.

    Args:
        name: what the graph is called in records and tables.
        data: PyG `Data` with `x` `[N, F]`, `y` `[N]` (-1 where unlabelled), `edge_index` `[2, E]`
            and optionally `edge_attr` `[E, D]`.
        train, val, test: boolean masks `[S, N]` (or `[N]` for a single split).
        class_names: one name per class; "0", "1", ... if left out.
        metric: "accuracy" or "roc_auc", the headline number its authors report.
        node_names: a name per node (words, identifiers), if there is one.
        facts: the catalogue entry, for a known dataset.
        provenance: where it came from and how it was made.
        node_ids: an id per node, no two alike, by which people know it; see `position`.
        feature_names: a name per column of `x`.
        reading: how to read it again, as JSON can say it; see `ltga.data.read_again`.
        notes: what was mended or is worth knowing, a line each.

    >>> data = Data(x=torch.eye(4), y=torch.tensor([0, 1, 0, 1]), edge_index=torch.tensor([[0], [1]]))
    >>> masks = torch.tensor([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]).bool()
    >>> dataset = Dataset("tiny", data, *masks)
    >>> dataset
    Dataset('tiny', 4 nodes, 1 edges, 4 features, 2 classes, 1 splits)
    >>> [int(mask.sum()) for mask in dataset.split(0)]
    [2, 1, 1]
    """

    task: Task = "node classification"

    def __init__(
        self,
        name: str,
        data: Data,
        train: Tensor,
        val: Tensor,
        test: Tensor,
        *,
        class_names: Sequence[str] | None = None,
        metric: str = "accuracy",
        node_names: Sequence[str] | None = None,
        facts: Facts | None = None,
        provenance: Mapping[str, Any] | None = None,
        node_ids: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
        reading: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        if metric not in METRICS:
            raise InputError(f"metric: got {metric!r}; use one of {', '.join(map(repr, METRICS))}")
        self.name = name
        self.data = data
        self.metric = metric
        self.facts = facts
        self.provenance = dict(provenance or {})
        self.reading = None if reading is None else dict(reading)
        self.notes = tuple(notes)
        self._masks = stacked(train, val, test)
        check_graph(data, name)
        counted = int(data.y.max()) + 1 if class_names is None else len(class_names)
        _check_class_count(data.y, counted, class_names is None, name)
        self.class_names = tuple(map(str, range(counted)) if class_names is None else class_names)
        self.node_names = None if node_names is None else tuple(node_names)
        _check_labels(data.y, self.class_names, name)
        check_masks(self._masks, data.y >= 0, name)
        if self.node_names is not None and len(self.node_names) != data.x.shape[0]:
            raise DataError(f"{name}: {data.x.shape[0]} nodes but {len(self.node_names)} node names")
        self.node_ids = None if node_ids is None else tuple(node_ids)
        if self.node_ids is not None and len(self.node_ids) != data.x.shape[0]:
            raise DataError(f"{name}: {data.x.shape[0]} nodes but {len(self.node_ids)} node ids")
        if self.node_ids is not None and len(set(self.node_ids)) != len(self.node_ids):
            raise DataError(f"{name}: node ids repeat; give every node its own")
        self.feature_names = None if feature_names is None else tuple(feature_names)
        if self.feature_names is not None and len(self.feature_names) != data.x.shape[1]:
            raise DataError(f"{name}: {data.x.shape[1]} features but {len(self.feature_names)} feature names")
        if metric == "roc_auc" and self.num_classes != 2:
            raise InputError(f"metric: 'roc_auc' needs two classes, {name} has {self.num_classes}")

    @property
    def num_classes(self) -> int:
        """The number of classes C; labels are 0 to C - 1."""
        return len(self.class_names)

    @property
    def target(self) -> Target:
        """What is predicted of a node: one of the classes."""
        return Target("classes", self.data.y, self.class_names)

    def position(self, node: str | int) -> int:
        """The number of a node, from its id, or from the number itself where no id is the same.

        >>> from ltga.data import csbm
        >>> csbm(num_nodes=60).position("7")
        7
        """
        return position_of(node, self.node_ids, int(self.data.x.shape[0]), self.name)

    @property
    def fingerprint(self) -> str:
        """A sha256 of features, labels, edges and splits as they are now: two graphs of one name can be told apart."""
        edge_attr = self.data.get("edge_attr")
        return fingerprint_of((self.data.x, self.data.y, self.data.edge_index, edge_attr, *self._masks))

    def __repr__(self) -> str:
        nodes, features = self.data.x.shape
        return (
            f"Dataset({self.name!r}, {nodes} nodes, {self.data.edge_index.shape[1]} edges, "
            f"{features} features, {self.num_classes} classes, {self.num_splits} splits)"
        )


def check_graph(data: Data, name: str, *, needs: Sequence[str] = ("x", "y", "edge_index")) -> None:
    """Raise :class:`DataError` unless `data` is a sound graph; `name` opens the message."""
    for key in needs:
        if not isinstance(data.get(key), Tensor):
            raise DataError(f"{name}: data.{key} is missing; a dataset needs {', '.join(needs)}")
    x, y, edge_index = data.x, data.get("y"), data.edge_index
    if x.dim() != 2 or 0 in x.shape:
        raise DataError(f"{name}: expected features of shape [nodes, features], got {list(x.shape)}")
    if x.dtype != torch.float32:
        raise DataError(f"{name}: expected float32 features, got {x.dtype}; convert them with x.float()")
    if "y" in needs and (y.shape != x.shape[:1] or y.dtype != torch.int64):
        raise DataError(
            f"{name}: expected one int64 label for each of {x.shape[0]} nodes, got {y.dtype} {list(y.shape)}"
        )
    if edge_index.dim() != 2 or edge_index.shape[0] != 2 or edge_index.dtype != torch.int64:
        raise DataError(
            f"{name}: expected int64 edge_index of shape [2, E], got {edge_index.dtype} {list(edge_index.shape)}"
        )
    outside = ((edge_index < 0) | (edge_index >= x.shape[0])).any(dim=0).nonzero()
    if outside.numel():
        at = int(outside[0])
        raise DataError(
            f"{name}: edge {at} joins {edge_index[:, at].tolist()}, but nodes are numbered 0 to {x.shape[0] - 1}"
        )
    _check_finite(x, f"{name}: feature", "node")
    stated = data.get("num_nodes", x.shape[0])
    if not isinstance(stated, Integral) or stated != x.shape[0]:
        raise DataError(f"{name}: data.num_nodes is {str(stated)[:40]!r}, but x has {x.shape[0]} rows; leave it out")
    refuse_edge_weight(data, name)
    if data.get("edge_attr") is not None:
        if not isinstance(data.edge_attr, Tensor) or data.edge_attr.is_complex():
            kind = data.edge_attr.dtype if isinstance(data.edge_attr, Tensor) else type(data.edge_attr).__name__
            raise DataError(f"{name}: expected edge_attr as a tensor of real numbers, got {kind}")
        if data.edge_attr.dim() not in (1, 2) or data.edge_attr.shape[0] != edge_index.shape[1]:
            raise DataError(
                f"{name}: expected edge_attr of shape [{edge_index.shape[1]}, D], got {list(data.edge_attr.shape)}"
            )
        _check_finite(data.edge_attr, f"{name}: edge attribute", "edge")


def refuse_edge_weight(data: Data, name: str) -> None:
    """Raise for weights of edges under PyG's other name for them, which nothing here would look at."""
    if data.get("edge_weight") is not None:
        there = "" if data.get("edge_attr") is None else " beside data.edge_attr"
        raise DataError(
            f"{name}: data.edge_weight{there} would be ignored; attention reads data.edge_attr, so put the weights "
            "there (data.edge_attr = data.edge_weight), and delete data.edge_weight"
        )


def _check_finite(values: Tensor, what: str, owner: str) -> None:
    # Summing first avoids a mask as large as the features; only a doubtful sum is looked at closely.
    if bool(torch.isfinite(values.sum(dtype=torch.float64))):
        return
    bad = (~torch.isfinite(values)).nonzero()
    if bad.numel():
        raise DataError(
            f"{what} {bad[0, 1:].tolist()} of {owner} {int(bad[0, 0])} is {values[tuple(bad[0])].item()}; "
            "features must be finite numbers"
        )


def _check_class_count(y: Tensor, classes: int, from_labels: bool, name: str) -> None:
    """Refuse, before anything of that size is made, far more classes than there are labels to learn them from."""
    if classes <= most_classes(y):
        return
    different = int(y[y >= 0].unique().numel())
    if from_labels:
        raise DataError(
            f"{name}: node {int(y.argmax())} has label {classes - 1}, but there are only {different} different labels; "
            "number the classes 0, 1, 2, ... (numpy.unique(labels, return_inverse=True)[1]), -1 for unlabelled"
        )
    raise DataError(f"{name}: {classes} class names, but only {different} different labels; name those that occur")


def _check_labels(y: Tensor, class_names: tuple[str, ...], name: str) -> None:
    classes = len(class_names)
    if classes < 2:
        raise DataError(
            f"{name}: {classes} classes found, classification needs at least two (label -1 means unlabelled)"
        )
    if len(set(class_names)) != classes:
        repeated = Counter(class_names).most_common(1)[0]
        raise DataError(f"{name}: class names repeat: {repeated[0]!r} occurs {repeated[1]} times")
    bad = ((y < -1) | (y >= classes)).nonzero()
    if bad.numel():
        at = int(bad[0])
        raise DataError(f"{name}: node {at} has label {int(y[at])}; use 0 to {classes - 1}, or -1 for unlabelled")
    if int(torch.unique(y[y >= 0]).numel()) < 2:
        raise DataError(f"{name}: all labelled nodes have one class; classification needs at least two")
