"""From tables of many graphs to a collection: decided on one collection, repeated on others.

Nodes and edges of all graphs are prepared as one graph whose parts have no edge in common, so that every option does
there what it does to a single graph.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import torch
from pydantic import BaseModel, ConfigDict
from torch_geometric.data import Data

from ltga.data.collection import GraphCollection
from ltga.data.collection_tables import GRAPH, SMILES, CollectionTables, read_collection
from ltga.data.collection_target import GraphTargets, read_targets
from ltga.data.graph_tables import Tables
from ltga.data.molecules import ATOM_FEATURES, read_molecules
from ltga.data.preparation import Preparation
from ltga.data.prepare import FittedPreparation, PreparedGraph, prepare
from ltga.data.problems import Problem, Problems
from ltga.data.structure import places_nodes
from ltga.data.table_cells import text_of
from ltga.data.target import Kind
from ltga.errors import DataError, InputError, did_you_mean

_BETWEEN = "\x1f"  # stands between the id of a node and that of its graph, where nobody writes it
_OF_GRAPHS = ("label", "split", "predict", "encoding", "drop")  # options about the table of graphs


class FittedCollection(BaseModel):
    """A preparation that has met its collection; `model_dump` is JSON. Molecules have no `graph`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    options: Preparation
    graph: FittedPreparation | None
    columns: tuple[str, ...]
    target: Kind
    names: tuple[str, ...]

    def apply(self, folder: str | Path) -> PreparedCollection:
        """The same done to other graphs, whose targets may be missing."""
        return accepted_collection(read_collection(folder, self.options), self.options, self)


@dataclass(frozen=True, eq=False)
class PreparedCollection:
    """Graphs ready for a network.

    Attributes:
        tables: where they came from.
        graphs: a PyG `Data` each, in the order of the table of graphs.
        graph_names: what people call them.
        targets: what is known of them, if something is.
        fitted: what was done.
        problems: what was found on the way.
        feature_names: of a node.
    """

    tables: CollectionTables
    graphs: list[Data]
    graph_names: tuple[str, ...]
    targets: GraphTargets | None
    fitted: FittedCollection
    problems: Problems
    feature_names: tuple[str, ...]

    def collection(self, name: str | None = None) -> GraphCollection:
        """To train on, with splits."""
        if self.targets is None:
            raise DataError(f"{self.tables.paths['graphs']}: no target; add column {', '.join(self.fitted.columns)}")
        masks = self.targets.masks
        collection = GraphCollection(
            name or self.tables.name,
            self.graphs,
            self.targets.target(self.tables.paths["graphs"]),
            None if masks is None else tuple(torch.from_numpy(mask) for mask in masks),  # type: ignore[arg-type]
            graph_names=self.graph_names,
            provenance={"path": str(self.tables.folder)},
            feature_names=self.feature_names,
            notes=self.problems.notes,
        )
        collection.reading = {
            "format": "collection",
            "name": collection.name,
            "path": str(self.tables.folder.resolve()),
            "preparation": self.fitted.model_dump(mode="json"),
        }
        return collection


def accepted_collection(
    tables: CollectionTables, options: Preparation, fitted: FittedCollection | None = None
) -> PreparedCollection:
    """The prepared graphs, or one line of error about everything that only a person can mend."""
    problems, prepared = prepare_collection(tables, options, fitted)
    problems.refuse(str(tables.folder))
    assert prepared is not None
    return prepared


def molecules_of(folder: str | Path) -> PreparedCollection:
    """The molecules of a folder, whose features are always the same, without their targets."""
    tables = read_collection(folder, Preparation())
    if not tables.of_molecules:
        raise InputError(f"GRAPH: {folder}: its tables would be prepared anew, and the run's graphs were no tables")
    return accepted_collection(
        tables,
        Preparation(),
        FittedCollection(options=Preparation(), graph=None, columns=("",), target="number", names=()),
    )


def prepare_collection(
    tables: CollectionTables, options: Preparation, fitted: FittedCollection | None = None
) -> tuple[Problems, PreparedCollection | None]:
    """Everything that is wrong with the tables, and the graphs if they can be made; `fitted` repeats what was done."""
    problems = Problems(list(tables.problems.found))
    if not _sound(tables, options, fitted is None, problems):
        return problems, None
    graphs, where = tables.frames["graphs"], tables.paths["graphs"]
    ids = text_of(graphs[GRAPH])
    _check_ids(ids, where, problems)
    before = None if fitted is None else _known_columns(fitted, graphs)
    targets = read_targets(graphs, options, where, problems, before) if fitted is None or before else None
    if tables.of_molecules:
        made, joined, names = _molecules(tables, ids, problems), None, ATOM_FEATURES
    else:
        joined = _joined(tables, ids, options, None if fitted is None else fitted.graph, problems)
        made = None if joined is None or problems.errors else _cut(joined, tables, ids)
        names = () if joined is None else joined.arrays.feature_names or ()
    if made is None or problems.errors or (targets is None and fitted is None):
        return problems, None
    if fitted is None:
        assert targets is not None
        fitted = FittedCollection(
            options=options,
            graph=None if joined is None else joined.fitted,
            columns=targets.columns,
            target=targets.kind,
            names=targets.names,
        )
    return problems, PreparedCollection(
        tables, made, tuple(ids.to_pylist()), targets, fitted, problems, tuple(names)
    )  # fmt: skip


def _known_columns(fitted: FittedCollection, graphs: pd.DataFrame) -> GraphTargets | None:
    """What was predicted before, if these graphs say it, too."""
    if not all(column in graphs for column in fitted.columns):
        return None
    return GraphTargets(fitted.columns, fitted.target, fitted.names, np.zeros(0), None)


def _sound(tables: CollectionTables, options: Preparation, fresh: bool, problems: Problems) -> bool:
    """Whether every table has rows and the columns that it needs, and the options name columns that there are."""
    wanted = {
        "graphs": (GRAPH,),
        "nodes": (GRAPH, options.id),
        "edges": (GRAPH, options.source, options.target),
    }
    before = len(problems.errors)
    for stem, frame in tables.frames.items():
        listed = ", ".join(frame.columns) or "none"
        for name in wanted[stem]:
            if name not in frame:
                instead = "add it" if name == GRAPH else f"say which it is with {name}=COLUMN"
                action = f"rename one, or {instead}"
                problems.add(tables.paths[stem], f"column {name!r} is missing; found {listed}", 1, action, "error")
        if frame.columns.has_duplicates:
            problems.add(tables.paths[stem], f"column names repeat: {listed}", 1, "rename them", "error")
        if len(frame) == 0:
            problems.add(tables.paths[stem], "there are no rows below the header", 1, "give some", "error")
    if fresh:
        _check_options(tables, options, problems)
    return len(problems.errors) == before


def _check_options(tables: CollectionTables, options: Preparation, problems: Problems) -> None:
    where = str(tables.folder)
    every = [str(column) for frame in tables.frames.values() for column in frame]
    for option in ("drop", "categorical"):
        for name in getattr(options, option):
            if name not in every:
                hint = did_you_mean(name, every, f"found {', '.join(every)}")
                problems.add(where, f"{option}={name}: there is no such column", 1, hint, "error")
    if options.predict == "links":
        raise InputError("prepare: predict=links is for one graph; a collection has a target for each graph")
    strange = [name for name in options.changed if name not in _OF_GRAPHS]
    if tables.of_molecules and strange:
        what = f"{strange[0]}={getattr(options, strange[0])}: molecules have features of their own"
        problems.add(where, what, 1, "leave it out, or give tables of nodes and edges", "error")
    if options.structure not in (("auto",), ("none",)) and places_nodes(options.structure):
        what = "structure: a Laplacian places the nodes of one graph and says nothing of another"
        problems.add(where, what, 1, "choose others", "error")


def _check_ids(ids: pa.Array, where: str, problems: Problems) -> None:
    text = np.array(ids.to_pylist(), dtype=object)
    problems.add(where, f"{GRAPH} is blank", np.flatnonzero(text == ""), "every graph needs an id", "error")
    again = np.flatnonzero(pd.Series(text).duplicated().to_numpy() & (text != ""))
    if again.size:
        what = f"{GRAPH} {text[again[0]][:40]!r} repeats an earlier one"
        problems.add(where, what, again, "keep one of them", "error")


def _molecules(tables: CollectionTables, ids: pa.Array, problems: Problems) -> list[Data] | None:
    graphs = tables.frames["graphs"]
    read = read_molecules(text_of(graphs[SMILES]).to_pylist())
    if not read.unparsable:
        return read.graphs
    named = ", ".join(f"{ids[position].as_py()}: {reason}" for position, reason in read.unparsable[:3])
    rows = np.array([position for position, _ in read.unparsable])
    problems.add(tables.paths["graphs"], f"{SMILES} does not parse ({named})", rows, "mend or leave out", "error")
    return None


def _joined(
    tables: CollectionTables, ids: pa.Array, options: Preparation, fitted: FittedPreparation | None, problems: Problems
) -> PreparedGraph | None:
    """All graphs prepared as one; what is found is added to `problems` in the words of a collection."""
    nodes, edges = tables.frames["nodes"], tables.frames["edges"]
    graph_of = _graph_of(nodes, ids)
    strangers = np.flatnonzero(graph_of < 0)
    if strangers.size:
        shown = text_of(nodes[GRAPH])[int(strangers[0])].as_py()
        what = f"{GRAPH} {shown[:40]!r} is not in {tables.paths['graphs']}"
        problems.add(tables.paths["nodes"], what, strangers, "add it there, or leave these rows out", "error")
    lonely = np.setdiff1d(np.arange(len(ids)), graph_of)
    if lonely.size:
        shown = ", ".join(ids[int(at)].as_py()[:40] for at in lonely[:3])
        what = f"has no nodes in {tables.paths['nodes']} ({shown})"
        problems.add(tables.paths["graphs"], f"graph {what}", lonely, "give it some, or leave it out", "error")
    parts = pd.Series(graph_of + 1)
    union = Tables(
        _keyed(edges, (options.source, options.target)),
        _keyed(nodes, (options.id,)),
        tables.name, str(tables.folder), tables.paths["nodes"], tables.paths["edges"],
        origin={"format": "frames"}, parts=parts,
    )  # fmt: skip
    outcome = prepare(union, _as_one(options, nodes, edges), fitted)
    problems.found += [_in_words(problem) for problem in outcome.problems]
    return outcome.graph


def _graph_of(nodes: pd.DataFrame, ids: pa.Array) -> np.ndarray:
    found = pc.index_in(text_of(nodes[GRAPH]), value_set=ids.unique())
    return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def _keyed(frame: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    """A table without its graph id, which is part of the ids now; a blank id stays blank."""
    graph = text_of(frame[GRAPH])
    keyed = frame.drop(columns=GRAPH)
    for name in columns:
        text = text_of(frame[name])
        if pc.any(pc.match_substring(text, _BETWEEN)).as_py():
            raise DataError(f"{name}: an id has a control character in it; rename it")
        key = pc.if_else(
            pc.equal(text, ""), "", pc.binary_join_element_wise(text, graph, pa.scalar(_BETWEEN, text.type))
        )
        keyed[name] = pd.Series(key.to_numpy(zero_copy_only=False), index=frame.index, dtype=object)
    return keyed


def _as_one(options: Preparation, nodes: pd.DataFrame, edges: pd.DataFrame) -> Preparation:
    """Options for the graph that all graphs make: no labels and splits of nodes."""
    there = {*nodes.columns, *edges.columns} - {GRAPH}
    kept = {
        option: tuple(name for name in getattr(options, option) if name in there) for option in ("drop", "categorical")
    }
    split = Preparation().split
    if split in nodes and split not in kept["drop"]:
        kept["drop"] = (*kept["drop"], split)
    return options.model_copy(update={**kept, "predict": "links", "label": _BETWEEN, "split": split})


def _in_words(problem: Problem) -> Problem:
    told = problem.what.replace(repr(_BETWEEN)[1:-1], " of graph ")
    return replace(problem, what=told)


def _cut(joined: PreparedGraph, tables: CollectionTables, ids: pa.Array) -> list[Data]:
    """One `Data` per graph; nodes keep the order of their rows."""
    whole, count = joined.data(), len(ids)
    named = pa.array([key.rpartition(_BETWEEN)[2] for key in joined.node_ids], ids.type)
    graph_of = pc.index_in(named, value_set=ids).to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.argsort(graph_of, kind="stable")
    first = np.searchsorted(graph_of[order], np.arange(count + 1))
    place = np.empty_like(order)
    place[order] = np.arange(order.size) - first[graph_of[order]]
    ends = whole.edge_index.numpy()
    edge_graph = graph_of[ends[0]]
    edge_order = np.argsort(edge_graph, kind="stable")
    first_edge = np.searchsorted(edge_graph[edge_order], np.arange(count + 1))
    x, attributes = whole.x.numpy(), whole.get("edge_attr")
    made = []
    for graph in range(count):
        mine = edge_order[first_edge[graph] : first_edge[graph + 1]]
        data = Data(
            x=torch.from_numpy(x[order[first[graph] : first[graph + 1]]]),
            edge_index=torch.from_numpy(place[ends[:, mine]]),
        )
        if attributes is not None:
            data.edge_attr = attributes[torch.from_numpy(mine)]
        made.append(data)
    return made
