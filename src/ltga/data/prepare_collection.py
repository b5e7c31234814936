"""From tables of many graphs to a collection: decided on one collection, repeated on others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import torch
from pydantic import BaseModel, ConfigDict
from torch_geometric.data import Data

from ltga.data.collection import GraphCollection
from ltga.data.collection_tables import GRAPH, SMILES, CollectionTables, read_collection
from ltga.data.collection_target import GraphTargets, read_targets
from ltga.data.joined_graphs import cut, joined
from ltga.data.molecule_tables import readable_molecules
from ltga.data.molecules import ATOM_FEATURES
from ltga.data.preparation import Preparation
from ltga.data.prepare import FittedPreparation
from ltga.data.problems import Problems
from ltga.data.structure import places_nodes
from ltga.data.table_cells import text_of
from ltga.data.table_leftovers import blank_rows, note_blank_rows
from ltga.data.table_nodes import note_repeated_names
from ltga.data.table_numbers import Writing
from ltga.data.target import Kind
from ltga.data.telltale import note_telltales
from ltga.errors import DataError, InputError, did_you_mean

# Options about the table of graphs, which is all that molecules have.
_OF_GRAPHS = (
    "label", "split", "predict", "missing_labels", "encoding", "drop", "decimal", "thousands", "units", "bad_smiles"
)  # fmt: skip


class FittedCollection(BaseModel):
    """A preparation that has met its collection; `model_dump` is JSON. Molecules have no `graph`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    options: Preparation
    graph: FittedPreparation | None
    columns: tuple[str, ...]
    target: Kind
    names: tuple[str, ...]
    written: Writing | None = None

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
        node_names: what people call the nodes of every graph; None for molecules.
        left_out: molecules that could not be read, each by its name and the reason.
    """

    tables: CollectionTables
    graphs: list[Data]
    graph_names: tuple[str, ...]
    targets: GraphTargets | None
    fitted: FittedCollection
    problems: Problems
    feature_names: tuple[str, ...]
    node_names: list[list[str]] | None = None
    left_out: tuple[str, ...] = ()

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
            left_out=self.left_out,
            provenance={"path": str(self.tables.folder)},
            feature_names=self.feature_names,
            notes=self.problems.notes,
            node_names=self.node_names,
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
    # A known dataset leaves out what rdkit cannot read, so its runs do.
    options = Preparation(bad_smiles="drop")
    fitted = FittedCollection(options=options, graph=None, columns=("",), target="number", names=())
    return accepted_collection(tables, options, fitted)


def prepare_collection(
    tables: CollectionTables, options: Preparation, fitted: FittedCollection | None = None
) -> tuple[Problems, PreparedCollection | None]:
    """Everything that is wrong with the tables, and the graphs if they can be made; `fitted` repeats what was done."""
    problems = Problems(list(tables.problems.found))
    if not _sound(tables, options, fitted is None, problems):
        return problems, None
    tables, kept = _without_blank_rows(tables, problems)
    graphs, where = tables.frames["graphs"], tables.paths["graphs"]
    ids, about = text_of(graphs[GRAPH]), problems.of_rows(kept["graphs"])
    _check_ids(ids, where, about)
    molecules = None
    if tables.of_molecules:
        molecules = readable_molecules(graphs[SMILES], ids, options, where, about)
        graphs, ids = graphs.iloc[molecules.rows], ids.take(pa.array(molecules.rows))
        about = problems.of_rows(kept["graphs"][molecules.rows])
    before = None if fitted is None else _known_columns(fitted, graphs)
    targets = read_targets(graphs, options, where, about, before) if fitted is None or before else None
    made: list[Data] | None
    node_names: list[list[str]] | None
    if molecules is not None:
        made, node_names, whole, names = molecules.graphs, None, None, ATOM_FEATURES
    else:
        whole = joined(tables, ids, options, None if fitted is None else fitted.graph, problems, kept)
        made, node_names = (None, None) if whole is None or problems.errors else cut(whole, ids)
        names = () if whole is None else whole.arrays.feature_names or ()
    if made is None or problems.errors or (targets is None and fitted is None):
        return problems, None
    if fitted is None:
        assert targets is not None
        fitted = FittedCollection(
            options=options,
            graph=None if whole is None else whole.fitted,
            columns=targets.columns,
            target=targets.kind,
            names=targets.names,
            written=targets.written,
        )
        if whole is not None:
            _note_telltales(made, names, tables, targets, problems)
    return problems, PreparedCollection(
        tables, made, tuple(ids.to_pylist()), targets, fitted, problems, tuple(names), node_names,
        () if molecules is None else molecules.left_out,
    )  # fmt: skip


def _without_blank_rows(tables: CollectionTables, problems: Problems) -> tuple[CollectionTables, dict[str, np.ndarray]]:
    """The tables without rows that have no cell at all, and which rows are kept."""
    frames, kept = {}, {}
    for stem, frame in tables.frames.items():
        blank = blank_rows(frame, GRAPH)
        note_blank_rows(blank, tables.paths[stem], problems)
        kept[stem] = np.delete(np.arange(len(frame)), blank)
        frames[stem] = frame.iloc[kept[stem]].reset_index(drop=True) if blank.size else frame
    return replace(tables, frames=frames), kept


def _note_telltales(
    graphs: list[Data], names: Sequence[str], tables: CollectionTables, targets: GraphTargets, problems: Problems
) -> None:
    """Add a note about each column of nodes whose mean over a graph tells the graph's target by itself."""
    means = torch.stack([graph.x.mean(0) for graph in graphs]).double().numpy()
    values = None if targets.kind == "classes" else targets.values
    y = targets.values
    if values is not None:
        known = ~np.isnan(values) if values.ndim == 1 else (~np.isnan(values)).any(axis=1)
        y = np.where(known, 0, -1)
    columns = [str(column) for column in tables.frames["nodes"]]
    whose = ", averaged over a graph's nodes,"
    note_telltales(means, names, columns, (y, values, targets.names), tables.paths["nodes"], problems, whose)


def _known_columns(fitted: FittedCollection, graphs: pd.DataFrame) -> GraphTargets | None:
    """What was predicted before, if these graphs say it, too."""
    if not all(column in graphs for column in fitted.columns):
        return None
    return GraphTargets(fitted.columns, fitted.target, fitted.names, np.zeros(0), None, fitted.written)


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
        note_repeated_names(list(frame.columns), tables.paths[stem], problems)
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
        raise InputError(
            f"prepare: links are predicted in one graph, and {where} holds many, each with a target; leave out "
            "--task link (or predict=links)"
        )
    strange = [name for name in options.changed if name not in _OF_GRAPHS]
    if tables.of_molecules and strange:
        what = f"{strange[0]}={getattr(options, strange[0])}: molecules have features of their own"
        problems.add(where, what, 1, "leave it out, or give tables of nodes and edges", "error")
    if not tables.of_molecules and "bad_smiles" in options.changed:
        what = f"bad_smiles={options.bad_smiles}: {tables.paths['graphs']} has no column {SMILES!r}"
        problems.add(where, what, 1, "leave it out", "error")
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
