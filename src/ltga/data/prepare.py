"""From tables to a graph: decided on one graph (`prepare`), repeated on others (`FittedPreparation.apply`)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict

from ltga.data.assemble import GraphArrays, assemble
from ltga.data.conventions import Convention
from ltga.data.edges import arrange_edges, message_rows
from ltga.data.graph_tables import Tables
from ltga.data.preparation import Preparation
from ltga.data.problems import Problems
from ltga.data.structure import places_nodes
from ltga.data.table_cells import text_of
from ltga.data.table_edges import Edges, note_strangers, positions, without_repeats
from ltga.data.table_features import FittedTable, edge_attributes, node_features
from ltga.data.table_labels import read_labels, read_splits
from ltga.data.table_leftovers import blank_rows, note_blank_rows
from ltga.data.table_nodes import check_names, has_columns, named_once
from ltga.data.table_numbers import Writing
from ltga.data.table_targets import kind_of_target, label_columns, read_target
from ltga.data.target import Kind, make_target
from ltga.data.telltale import note_telltales

if TYPE_CHECKING:  # what is wrong with tables is told without torch
    from torch_geometric.data import Data

    from ltga.data.dataset import Dataset
    from ltga.data.node_dataset import NodeDataset


class FittedPreparation(BaseModel):
    """A preparation that has met its graph: categories, fillings, means, scales, classes; `model_dump` is JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    options: Preparation
    convention: Convention
    nodes: FittedTable
    edges: FittedTable
    classes: tuple[str, ...]
    placed: str | None = None
    target: Kind = "classes"
    written: Writing | None = None  # the numbers that are predicted
    told: Convention | Literal["nothing"] | None = None  # what the source said of its edges; None: not looked at

    def apply(self, source: Any, *, nodes: pd.DataFrame | None = None) -> PreparedGraph:
        """The same done to another graph, or to a grown one, whose labels may be missing.

        `source` and `nodes` are those of `ltga.data.as_tables`.
        """
        from ltga.data.sources import as_tables  # it stands on this module

        meant = self.options.with_convention(self.convention)
        return accepted(as_tables(source, meant, nodes=nodes), self.options, self)


@dataclass(frozen=True, eq=False)
class PreparedGraph:
    """A graph ready for a network.

    Attributes:
        arrays: features, labels (-1: not known), edges, masks, names.
        edge_names: what the columns of edge attributes are.
        tables: where it came from.
        fitted: what was done.
        problems: what was found on the way.
        values: numbers `[N]` or labels `[N, L]` to predict, NaN where not known; `None` where they are classes.
    """

    arrays: GraphArrays
    edge_names: tuple[str, ...]
    tables: Tables
    fitted: FittedPreparation
    problems: Problems
    values: np.ndarray | None = None

    @property
    def node_ids(self) -> tuple[str, ...]:
        assert self.arrays.node_ids is not None
        return self.arrays.node_ids

    @property
    def reading(self) -> dict[str, Any]:
        """How to read the graph again (`ltga.data.read_again`), as JSON can say it."""
        return {**self.tables.origin, "name": self.tables.name, "preparation": self.fitted.model_dump(mode="json")}

    def dataset(self) -> Dataset | NodeDataset:
        """To train on, with splits: a `Dataset` of classes, a `NodeDataset` of numbers or several labels."""
        if self.values is not None:
            return self._of_values(self.values)
        return assemble(
            self.arrays, self.tables.name, self.fitted.convention, self.tables.where,
            provenance={"path": self.tables.where} if "path" in self.tables.origin else {},
            reading=self.reading, notes=self.problems.notes,
        )  # fmt: skip

    def _of_values(self, values: np.ndarray) -> NodeDataset:
        import torch

        from ltga.data.node_dataset import NodeDataset

        where, kind, masks = self.tables.where, self.fitted.target, self.arrays.masks
        return NodeDataset(
            self.tables.name,
            self.data(),
            make_target(values, where, kind, self.fitted.classes),
            None if masks is None else tuple(torch.from_numpy(np.ascontiguousarray(mask)) for mask in masks),  # type: ignore[arg-type]
            node_names=self.node_ids,
            provenance={"path": where} if "path" in self.tables.origin else {},
            feature_names=self.arrays.feature_names,
            reading=self.reading,
            notes=self.problems.notes,
        )

    def data(self) -> Data:
        """To predict on: a PyG `Data`, labelled or not."""
        import torch
        from torch_geometric.data import Data

        nodes = len(self.arrays.x)
        edge_index, edge_attr = arrange_edges(
            self.arrays.edges, self.fitted.convention, nodes, self.arrays.edge_attr, self.tables.where
        )
        y = self.arrays.y if self.values is None else self.values.astype(np.float32)
        data = Data(x=torch.from_numpy(self.arrays.x), edge_index=edge_index, y=torch.from_numpy(y))
        if edge_attr is not None:
            data.edge_attr = edge_attr
        return data


@dataclass(frozen=True)
class Outcome:
    """All that was found, and the graph unless something in it is for a person to mend."""

    problems: Problems
    graph: PreparedGraph | None


def accepted(tables: Tables, options: Preparation, fitted: FittedPreparation | None = None) -> PreparedGraph:
    """The prepared graph, or one line of error about everything that only a person can mend."""
    outcome = prepare(tables, options, fitted)
    outcome.problems.refuse(tables.where)
    assert outcome.graph is not None
    return outcome.graph


def prepared_dataset(tables: Tables, options: Preparation) -> Dataset | NodeDataset:
    """The prepared graph to train on, with a warning if data had to be changed for it."""
    graph = accepted(tables, options)
    dataset = graph.dataset()
    graph.problems.warn(tables.where)
    return dataset


def prepare(tables: Tables, options: Preparation, fitted: FittedPreparation | None = None) -> Outcome:
    """Everything that is wrong with tables, and the graph if it can be made; `fitted` repeats what was done before."""
    problems = Problems(list(tables.problems.found))
    labels = () if tables.nodes is None else label_columns(options, tables.nodes.columns)
    bare = fitted is not None or tables.nodes is None or options.predict == "links"
    node_columns = (options.id,) if bare else (options.id, *labels)
    sound = has_columns(tables.edges, (options.source, options.target), tables.edge_table, "edge", problems)
    if tables.nodes is not None:
        sound &= has_columns(tables.nodes, node_columns, tables.node_table, "node", problems)
    if fitted is None:
        check_names(tables, options, problems)
    if not sound:
        return Outcome(problems, None)
    nodes, kept = named_once(tables, options, problems)
    about_nodes = problems.of_rows(kept)
    convention: Convention = fitted.convention if fitted else options.convention or tables.convention or "directed"
    if fitted is not None:
        _refuse_other_edges(tables, fitted, problems)
    ids = text_of(nodes[options.id])
    edges = _edges(tables, nodes[options.id], ids, convention, options, problems)
    kind = fitted.target if fitted else kind_of_target(nodes, options, tables.node_table, about_nodes)
    y, classes, values, written = _labels(nodes, options, kind, tables.node_table, about_nodes, fitted)
    # Splits matter where a model is trained; elsewhere odd ones are passed over.
    about_splits = about_nodes if fitted is None else Problems()
    masks = read_splits(nodes, y, options, tables.node_table, about_splits)
    if fitted is not None and about_splits.errors:
        masks = None
    messages = message_rows(edges.rows, convention)
    parts = None if tables.parts is None else tables.parts.to_numpy()[kept]
    features = node_features(
        nodes, messages, options, tables.node_table, about_nodes, fitted.nodes if fitted else None, parts
    )
    attributes = edge_attributes(tables, edges, options, problems, fitted.edges if fitted else None)
    placed = _placed(edges.rows, len(nodes)) if places_nodes(features.fitted.structure) else None
    if fitted is not None and fitted.placed != placed:
        problems.add(
            tables.edge_table, "is another graph than the one whose Laplacian places the nodes", 1,
            "choose other features with structure=...", "error",
        )  # fmt: skip
    if problems.errors or features.values is None:
        return Outcome(problems, None)
    if fitted is None and options.predict != "links":
        columns, known = [str(each) for each in nodes.columns], (y, values, classes)
        note_telltales(features.values, features.names, columns, known, tables.node_table, problems)
    fitted = fitted or FittedPreparation(
        options=options,
        convention=convention,
        nodes=features.fitted,
        edges=attributes.fitted,
        classes=classes,
        placed=placed,
        target=kind,
        written=written,
        told=tables.convention or "nothing",
    )
    node_ids = tuple(ids.to_pylist())
    arrays = GraphArrays(
        x=features.values, y=y, edges=edges.rows, masks=masks, edge_attr=attributes.values, class_names=classes,
        node_names=node_ids, node_ids=node_ids, feature_names=features.names,
    )  # fmt: skip
    return Outcome(problems, PreparedGraph(arrays, attributes.names, tables, fitted, problems, values))


def _refuse_other_edges(tables: Tables, fitted: FittedPreparation, problems: Problems) -> None:
    """Add an error if a source says that its edges are stored otherwise than those that were learned from."""
    if tables.convention is None or (fitted.told is None and fitted.options.convention is not None):
        return
    learned = fitted.convention if fitted.told in (None, "nothing") else fitted.told
    if tables.convention != learned:
        what = f"its edges are {tables.convention!r}, and those that the run learned from were {learned!r}"
        problems.add(tables.edge_table, what, 1, "give a graph whose edges are stored as those were", "error")


def _labels(
    nodes: pd.DataFrame,
    options: Preparation,
    kind: Kind,
    where: str,
    problems: Problems,
    fitted: FittedPreparation | None,
) -> tuple[np.ndarray, tuple[str, ...], np.ndarray | None, Writing | None]:
    """Classes `[N]`, their names, what is predicted instead of them (then the first only say what is known), and how
    it is written."""
    if options.predict == "links":
        return np.arange(len(nodes)) % 2, ("0", "1"), None, None  # of no use to links, but a dataset has some
    before = fitted.classes if fitted else None
    if kind == "classes":
        return *read_labels(nodes, options, where, problems, before), None, None
    written = fitted.written if fitted else None
    values, names, written = read_target(nodes, options, kind, where, problems, before, written=written)
    known = ~np.isnan(values) if values.ndim == 1 else (~np.isnan(values)).any(axis=1)
    return np.where(known, 0, -1), names, values, written


def _edges(
    tables: Tables, ids: pd.Series, id_text: pa.Array, convention: str, options: Preparation, problems: Problems
) -> Edges:
    frame, where = tables.edges, tables.edge_table
    rows = np.empty((len(frame), 2), dtype=np.int64)
    blank = blank_rows(frame, options.source) if tables.parts is None else np.empty(0, dtype=np.int64)
    note_blank_rows(blank, where, problems)
    for at, name in enumerate((options.source, options.target)):
        rows[:, at] = positions(frame[name], ids, id_text)
        strange = np.setdiff1d(np.flatnonzero(rows[:, at] < 0), blank)
        note_strangers(frame[name], strange, id_text, (where, tables.node_table), options, problems)
    kept = np.flatnonzero((rows >= 0).all(axis=1))
    if not kept.size and not problems.errors:
        problems.add(where, "no edge joins two nodes of the node table", len(rows), "check the ids", "error")
    loops = kept[rows[kept, 0] == rows[kept, 1]]
    problems.add(where, "joins a node with itself", loops, "kept", "note")
    weights = frame[options.weight] if options.weight in frame and options.weight not in options.drop else None
    return without_repeats(Edges(rows[kept], kept, kept), id_text, convention, options, where, problems, weights)


def _placed(rows: np.ndarray, num_nodes: int) -> str:
    ordered = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    return hashlib.sha256(f"{num_nodes} ".encode() + ordered.tobytes()).hexdigest()
