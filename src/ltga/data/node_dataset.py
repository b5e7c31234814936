"""The `NodeDataset` value: a graph whose nodes have a number or several labels to predict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data.dataset import Dataset, OneGraph, check_graph
from ltga.data.facts import Facts, Task
from ltga.data.split_masks import check_masks, fingerprint_of, stacked
from ltga.data.splits import stratified_masks
from ltga.data.target import Target, make_target
from ltga.errors import DataError, InputError


class NodeDataset(OneGraph):
    """A graph for node regression or multi-label classification; for classes there is `Dataset`.

    Args:
        name: what the graph is called in records and tables.
        data: PyG `Data` with `x` `[N, F]`, `edge_index` `[2, E]` and optionally `edge_attr` `[E, D]`. Kept as a shallow
            copy whose `y` is the target's.
        target: of the nodes, see `ltga.data.target`.
        masks: train, validation and test masks `[S, N]`, without nodes whose target is unknown. If left out, ten
            seeded random splits, 60/20/20.
        node_names, facts, provenance, feature_names, reading, notes: as for `Dataset`.

    >>> data = Data(x=torch.eye(20), edge_index=torch.tensor([[0], [1]]))
    >>> NodeDataset("line", data, make_target(torch.linspace(0, 1, 20), "line"))
    NodeDataset('line', 20 nodes, 1 edges, 20 features, node regression, 10 splits)
    """

    def __init__(
        self,
        name: str,
        data: Data,
        target: Target,
        masks: tuple[Tensor, Tensor, Tensor] | None = None,
        *,
        node_names: Sequence[str] | None = None,
        facts: Facts | None = None,
        provenance: Mapping[str, Any] | None = None,
        feature_names: Sequence[str] | None = None,
        reading: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        if target.kind == "classes":
            raise InputError("target: for one class per node use ltga.data.Dataset")
        check_graph(data, name, needs=("x", "edge_index"))
        if target.y.shape[0] != data.x.shape[0]:
            raise DataError(f"{name}: {data.x.shape[0]} nodes but {target.y.shape[0]} targets; give one each")
        if node_names is not None and len(node_names) != data.x.shape[0]:
            raise DataError(f"{name}: {data.x.shape[0]} nodes but {len(node_names)} node names")
        self.name = name
        self.data = data.__copy__()
        self.data.y = target.y
        self.target = target
        self.node_names = None if node_names is None else tuple(node_names)
        self.feature_names = None if feature_names is None else tuple(feature_names)
        self.reading = None if reading is None else dict(reading)
        self.notes = tuple(notes)
        self.facts = facts
        given = "as given" if masks is not None else "random 60/20/20, seed 0"
        self.provenance = {"splits": given, **(provenance or {})}
        if masks is None:
            strata = np.where(target.known.numpy(), 0, -1)
            train, val, test = (torch.from_numpy(mask) for mask in stratified_masks(strata))
            masks = train, val, test
        self._masks = stacked(*masks)
        check_masks(self._masks, target.known, name)

    @property
    def node_ids(self) -> tuple[str, ...] | None:
        """What people call the nodes."""
        return self.node_names

    @property
    def task(self) -> Task:
        """What there is to learn, by the kind of the target."""
        return "node regression" if self.target.kind == "number" else "multi-label nodes"

    @property
    def metric(self) -> str:
        """The headline number: "mae" for a number, "micro_f1" for several labels."""
        return "mae" if self.target.kind == "number" else "micro_f1"

    @property
    def fingerprint(self) -> str:
        """A sha256 of features, target, edges and splits as they are now."""
        edge_attr = self.data.get("edge_attr")
        return fingerprint_of((self.data.x, self.data.y, self.data.edge_index, edge_attr, *self._masks))

    def __repr__(self) -> str:
        nodes, features = self.data.x.shape
        several = "" if self.target.kind == "number" else f" of {self.target.outputs}"
        return (
            f"NodeDataset({self.name!r}, {nodes} nodes, {self.data.edge_index.shape[1]} edges, "
            f"{features} features, {self.task}{several}, {self.num_splits} splits)"
        )


def neighbour_classes(dataset: Dataset) -> NodeDataset:
    """A multi-label task made from a graph with classes: which classes a node's neighbours have.

    A node keeps its features and its place in the splits; its labels are the classes that occur among the nodes with an
    edge to it, unlabelled ones aside. A node without such neighbours has no label, and classes that all or no nodes
    have among their neighbours are left out.
    """
    y = dataset.data.y
    source, target = dataset.data.edge_index
    apart = (source != target) & (y[source] >= 0)
    labels = torch.zeros(y.shape[0], dataset.num_classes)
    labels[target[apart], y[source[apart]]] = 1.0
    varied = [column for column in range(dataset.num_classes) if 0 < int(labels[:, column].sum()) < y.shape[0]]
    name = f"{dataset.name}:neighbour-classes"
    return NodeDataset(
        name,
        dataset.data,
        make_target(labels[:, varied], name, "labels", [dataset.class_names[column] for column in varied]),
        tuple(torch.stack(masks) for masks in zip(*map(dataset.split, range(dataset.num_splits)))),  # type: ignore[arg-type]
        node_names=dataset.node_names,
        facts=dataset.facts,
        provenance={**dataset.provenance, "target": "classes among the neighbours"},
    )
