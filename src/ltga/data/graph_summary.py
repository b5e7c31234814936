"""What a graph looks like at a glance: sizes, classes, degrees, homophily."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch_geometric.utils import degree, remove_self_loops

from ltga.data.dataset import Dataset


@dataclass(frozen=True)
class GraphSummary:
    """Counts and shares of a graph.

    Attributes:
        nodes, edges, features, edge_attributes: sizes; `edges` are messages, both directions of an undirected edge.
        labelled: nodes with a label.
        classes: the share of the labelled nodes in each class, largest first.
        median_degree: incoming edges of a node, self-loops not counted.
        isolated: nodes without any edge to or from another node.
        unreached: nodes with edges of which none points to them, so that no message arrives.
        homophily: the share of edges between labelled nodes that join two of one class; `None` without such edges.
        by_chance: what it would be if the same ends were joined at random, whatever their class.
        train, val, test: nodes of the first split.
        untested: classes without a test node there.
    """

    nodes: int
    edges: int
    features: int
    edge_attributes: int
    labelled: int
    classes: dict[str, float]
    median_degree: float
    isolated: int
    unreached: int
    homophily: float | None
    by_chance: float | None
    train: int
    val: int
    test: int
    untested: tuple[str, ...]


def summarise(dataset: Dataset) -> GraphSummary:
    """The summary of a dataset.

    >>> from ltga.data import csbm
    >>> told = summarise(csbm(num_nodes=60, homophily=0.9))
    >>> told.nodes, round(told.homophily, 1), round(told.by_chance, 1)
    (60, 0.9, 0.5)
    """
    data = dataset.data
    nodes = int(data.x.size(0))
    between, _ = remove_self_loops(data.edge_index)
    incoming = degree(between[1], nodes)
    touched = torch.zeros(nodes, dtype=torch.bool)
    touched[between.reshape(-1)] = True
    labels = data.y[between]
    known = (labels >= 0).all(dim=0)
    same = (labels[0] == labels[1])[known]
    ends = labels[:, known].reshape(-1).bincount(minlength=dataset.num_classes).double()
    counts = np.bincount(data.y[data.y >= 0].numpy(), minlength=dataset.num_classes)
    shares = {dataset.class_names[at]: float(counts[at] / counts.sum()) for at in np.argsort(-counts, kind="stable")}
    attributes = data.get("edge_attr")
    train, val, test = dataset.split(0)
    tested = set(data.y[test].tolist())
    return GraphSummary(
        nodes=nodes,
        edges=int(data.edge_index.size(1)),
        features=int(data.x.size(1)),
        edge_attributes=0 if attributes is None else int(attributes.reshape(len(attributes), -1).size(1)),
        labelled=int(counts.sum()),
        classes=shares,
        median_degree=float(np.median(incoming.numpy())),
        isolated=int((~touched).sum()),
        unreached=int((touched & (incoming == 0)).sum()),
        homophily=float(same.double().mean()) if same.numel() else None,
        by_chance=float((ends / ends.sum()).square().sum()) if same.numel() else None,
        train=int(train.sum()),
        val=int(val.sum()),
        test=int(test.sum()),
        untested=tuple(name for at, name in enumerate(dataset.class_names) if at not in tested),
    )
