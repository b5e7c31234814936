"""The `GraphCollection` value: many graphs with a target each, and the folds to assess a model by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data.dataset import check_graph
from ltga.data.facts import Facts, Task
from ltga.data.folds import fold_masks
from ltga.data.split_masks import HasSplits, check_masks, fingerprint_of, stacked
from ltga.data.target import Kind, Target, make_target, metric_of_classes
from ltga.errors import DataError, InputError

_TASKS: dict[Kind, Task] = {
    "classes": "graph classification",
    "labels": "multi-label graphs",
    "number": "graph regression",
}
_METRICS: dict[Kind, str] = {"classes": "accuracy", "labels": "roc_auc", "number": "rmse"}


class GraphCollection(HasSplits):
    """Graphs, list-like, with a target each.

    Args:
        name: what the collection is called in records and tables.
        graphs: PyG `Data` each, with `x` `[nodes, F]` and `edge_index`, optionally `edge_attr` `[edges, D]`; F and D
            are the same in all. Kept as shallow copies with `y` set, so that PyG's `DataLoader` batches them.
        target: of the graphs, see `ltga.data.target`.
        masks: train, validation and test masks `[S, G]`. If left out, ten folds of which each is the test part once,
            with a tenth of the rest for validation (`ltga.data.folds`), stratified where the target is classes.
        groups: something per graph; graphs with the same are kept in one fold, for example two entries of a molecule.
        graph_names: a name per graph, if there is one.
        left_out: what was in the files but could not be made a graph, each by its name and the reason.
        facts: the catalogue entry, for a known dataset.
        provenance: where it came from and how it was made.
        feature_names: of a node's features, if they have some.
        notes: what was done to tables on the way, a line each.
        node_names: what people call the nodes of every graph, if it is not their numbers.

    >>> ring = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]))
    >>> rings = GraphCollection("rings", [ring] * 40, make_target([0, 1] * 20, "rings"))
    >>> rings
    GraphCollection('rings', 40 graphs, 2 features, graph classification of 2, 10 splits)
    >>> rings[3].y.tolist(), [int(mask.sum()) for mask in rings.split(0)]
    ([1], [32, 4, 4])
    """

    reading: Mapping[str, Any] | None = None  # how to read it again, see `ltga.data.readings`

    def __init__(
        self,
        name: str,
        graphs: Sequence[Data],
        target: Target,
        masks: tuple[Tensor, Tensor, Tensor] | None = None,
        *,
        groups: Sequence[str] | None = None,
        graph_names: Sequence[str] | None = None,
        left_out: Sequence[str] = (),
        facts: Facts | None = None,
        provenance: Mapping[str, Any] | None = None,
        feature_names: Sequence[str] | None = None,
        notes: Sequence[str] = (),
        node_names: Sequence[Sequence[str]] | None = None,
    ) -> None:
        if len(graphs) != target.y.shape[0]:
            raise DataError(f"{name}: {len(graphs)} graphs but {target.y.shape[0]} targets; give one each")
        for what, given in (("names", graph_names), ("groups", groups)):
            if given is not None and len(given) != len(graphs):
                raise DataError(f"{name}: {len(graphs)} graphs but {len(given)} {what}; give one each")
        if node_names is not None and [len(names) for names in node_names] != [graph.x.shape[0] for graph in graphs]:
            raise DataError(f"{name}: node_names: expected a name for each node of each graph")
        _refuse_lone_classes(target, name)
        _check_alike(graphs, name)
        self.name = name
        self.target = target
        self.graph_names = None if graph_names is None else tuple(graph_names)
        self.left_out = tuple(left_out)
        self.facts = facts
        self.feature_names = None if feature_names is None else tuple(feature_names)
        self.notes = tuple(notes)
        self.node_names = None if node_names is None else tuple(map(tuple, node_names))
        self.provenance = {"splits": "as given" if masks is not None else "ten folds, seed 0", **(provenance or {})}
        if masks is None:
            strata = target.y.numpy() if target.kind == "classes" else np.where(target.known.numpy(), 0, -1)
            try:
                train, val, test = (torch.from_numpy(mask) for mask in fold_masks(strata, groups=groups))
            except DataError as error:
                raise DataError(f"{name}: {error}") from None
            masks = train, val, test
        self._masks = stacked(*masks)
        check_masks(self._masks, target.known, name, item="graph")
        self.graphs = [_with_target(graph, y) for graph, y in zip(graphs, target.y)]

    @property
    def y(self) -> Tensor:
        """The target of every graph: `[G]`, or `[G, L]` for several labels."""
        return self.target.y

    @property
    def task(self) -> Task:
        """What there is to learn, by the kind of the target."""
        return _TASKS[self.target.kind]

    @property
    def metric(self) -> str:
        """The headline number: "rmse", "roc_auc" (mean over labels), "accuracy" or what uneven classes call for."""
        if self.target.kind == "classes" and self.facts is None:
            return metric_of_classes(self.target.y, self.target.outputs)
        return _METRICS[self.target.kind]

    @property
    def num_features(self) -> int:
        """Features of a node."""
        return int(self.graphs[0].x.shape[1])

    @property
    def edge_dim(self) -> int | None:
        """Attributes of an edge; None if edges have none."""
        attributes = self.graphs[0].get("edge_attr")
        return None if attributes is None else int(attributes.shape[1])

    @property
    def fingerprint(self) -> str:
        """A sha256 of all graphs, targets and splits as they are now."""
        keys = ("x", "edge_index", "edge_attr")
        parts = (graph.get(key) for graph in self.graphs for key in keys)
        return fingerprint_of((*parts, self.target.y, *self._masks))

    def __len__(self) -> int:
        return len(self.graphs)

    @overload
    def __getitem__(self, at: int) -> Data: ...

    @overload
    def __getitem__(self, at: slice | Tensor) -> list[Data]: ...

    def __getitem__(self, at: int | slice | Tensor) -> Data | list[Data]:
        """A graph by its number; several by a slice, a boolean mask `[G]` (as `split` gives) or numbers."""
        if isinstance(at, Tensor) and at.dim() == 1:
            if at.dtype == torch.bool and at.shape[0] != len(self):
                raise InputError(f"mask: {at.shape[0]} flags for {len(self)} graphs")
            chosen = at.nonzero().flatten() if at.dtype == torch.bool else at
            return [self.graphs[number] for number in chosen.tolist()]
        return self.graphs[at]  # type: ignore[index]

    def __iter__(self) -> Iterator[Data]:
        return iter(self.graphs)

    def __repr__(self) -> str:
        several = "" if self.target.kind == "number" else f" of {self.target.outputs}"
        return (
            f"GraphCollection({self.name!r}, {len(self)} graphs, {self.num_features} features, "
            f"{self.task}{several}, {self.num_splits} splits)"
        )


def collection_from_data(graphs: Sequence[Data], name: str = "graphs", kind: Kind | None = None) -> GraphCollection:
    """A collection from PyG graphs that carry their target in `y`: a class, a number, or a row of labels.

    Args:
        graphs: each with `x`, `edge_index` and `y`.
        name: what it is called in records and tables.
        kind: what `y` is; if left out, whole numbers are classes, fractions a number, several values labels.
    """
    if not isinstance(graphs, Sequence) or not graphs or not all(isinstance(graph, Data) for graph in graphs):
        raise InputError("graphs: expected a list of PyG Data, one for each graph")
    targets = []
    for number, graph in enumerate(graphs):
        y = graph.get("y")
        if not isinstance(y, Tensor | int | float):
            raise InputError(f"graphs: graph {number} has no y; give every graph its target (NaN or -1 if unknown)")
        values = torch.as_tensor(y).reshape(-1)
        targets.append(values if values.shape[0] == 1 else values.to(torch.float32))  # labels: some rows may have NaN
    shapes = {(y.shape[0], y.is_floating_point()) for y in targets}
    if len(shapes) != 1 or 0 in {width for width, _ in shapes}:
        found = ", ".join(sorted({f"{y.dtype} [{y.shape[0]}]" for y in targets}))
        raise InputError(f"graphs: y differs from graph to graph ({found}); give every graph one kind of target")
    return GraphCollection(name, graphs, make_target(torch.stack(targets), name, kind, item="graph"))


def _with_target(graph: Data, y: Tensor) -> Data:
    """A shallow copy with `y` of shape `[1]` or `[1, L]`, and edge attributes `[edges, D]`."""
    changed = graph.__copy__()
    changed.y = y.unsqueeze(0)
    edge_attr = graph.get("edge_attr")
    if edge_attr is not None:
        changed.edge_attr = (edge_attr if edge_attr.dim() == 2 else edge_attr.unsqueeze(-1)).to(torch.float32)
    return changed


def _check_alike(graphs: Sequence[Data], name: str) -> None:
    first = graphs[0]
    for number, graph in enumerate(graphs):
        check_graph(graph, f"{name}: graph {number}", needs=("x", "edge_index"))
        if graph.x.shape[1] != first.x.shape[1]:
            raise DataError(
                f"{name}: graph {number} has {graph.x.shape[1]} features, but graph 0 has {first.x.shape[1]}; "
                "all graphs need the same"
            )
        widths = [None if g.get("edge_attr") is None else g.edge_attr.shape[1:] for g in (first, graph)]
        if widths[0] != widths[1]:
            raise DataError(f"{name}: the edge attributes of graph {number} are not like those of graph 0")


def _refuse_lone_classes(target: Target, name: str) -> None:
    """A class of a single graph cannot be both learned and tested."""
    if target.kind != "classes":
        return
    found, counts = torch.unique(target.y[target.y >= 0], return_counts=True)
    lone = [target.names[label] for label in found[counts == 1].tolist()]
    if lone:
        raise DataError(
            f"{name}: class {', '.join(lone[:5])} appears once, so it cannot be both learned and tested; "
            "merge it with another class or leave it out"
        )
