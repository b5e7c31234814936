"""Many graphs prepared as one whose parts have no edge in common: every option does there what it does to one graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import torch
from torch_geometric.data import Data

from ltga.data.collection_tables import GRAPH, CollectionTables
from ltga.data.graph_tables import Tables
from ltga.data.preparation import Preparation
from ltga.data.prepare import FittedPreparation, PreparedGraph, prepare
from ltga.data.problems import Problem, Problems
from ltga.data.table_cells import text_of
from ltga.errors import DataError

_BETWEEN = "\x1f"  # stands between the id of a node and that of its graph, where nobody writes it


def joined(
    tables: CollectionTables, ids: pa.Array, options: Preparation, fitted: FittedPreparation | None,
    problems: Problems, rows: Mapping[str, np.ndarray],
) -> PreparedGraph | None:  # fmt: skip
    """All graphs prepared as one; what is found is added to `problems` in the words of a collection.

    `rows` says for each table which rows of the file it has.
    """
    nodes, edges = tables.frames["nodes"], tables.frames["edges"]
    graph_of = _graph_of(nodes, ids)
    strangers = np.flatnonzero(graph_of < 0)
    if strangers.size:
        shown = text_of(nodes[GRAPH])[int(strangers[0])].as_py()
        what = f"{GRAPH} {shown[:40]!r} is not in {tables.paths['graphs']}"
        problems.of_rows(rows["nodes"]).add(
            tables.paths["nodes"], what, strangers, "add it there, or leave these rows out", "error"
        )
    lonely = np.setdiff1d(np.arange(len(ids)), graph_of)
    if lonely.size:
        shown = ", ".join(ids[int(at)].as_py()[:40] for at in lonely[:3])
        what = f"has no nodes in {tables.paths['nodes']} ({shown})"
        action = "give it some, or leave it out"
        problems.of_rows(rows["graphs"]).add(tables.paths["graphs"], f"graph {what}", lonely, action, "error")
    parts = pd.Series(graph_of + 1)
    union = Tables(
        _keyed(edges, (options.source, options.target)),
        _keyed(nodes, (options.id,)),
        tables.name, str(tables.folder), tables.paths["nodes"], tables.paths["edges"],
        origin={"format": "frames"}, parts=parts,
    )  # fmt: skip
    outcome = prepare(union, _as_one(options, nodes, edges), fitted)
    in_file = {tables.paths[stem]: rows[stem] for stem in ("nodes", "edges")}
    problems.found += [_in_words(problem, in_file) for problem in outcome.problems]
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


def _in_words(problem: Problem, in_file: Mapping[str, np.ndarray]) -> Problem:
    told = problem.what.replace(repr(_BETWEEN)[1:-1], " of graph ")
    rows = problem.rows
    if rows and problem.where in in_file:
        rows = tuple(int(in_file[problem.where][row - 1]) + 1 for row in rows)
    return replace(problem, what=told, rows=rows)


def cut(whole_graph: PreparedGraph, ids: pa.Array) -> tuple[list[Data], list[list[str]]]:
    """One `Data` per graph, and the ids of its nodes, which keep the order of their rows."""
    whole, count = whole_graph.data(), len(ids)
    keys = [key.rpartition(_BETWEEN) for key in whole_graph.node_ids]
    named = pa.array([graph for *_, graph in keys], ids.type)
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
    made, names = [], []
    for graph in range(count):
        mine = edge_order[first_edge[graph] : first_edge[graph + 1]]
        nodes = order[first[graph] : first[graph + 1]]
        data = Data(
            x=torch.from_numpy(x[nodes]),
            edge_index=torch.from_numpy(place[ends[:, mine]]),
        )
        if attributes is not None:
            data.edge_attr = attributes[torch.from_numpy(mine)]
        made.append(data)
        names.append([keys[node][0] for node in nodes.tolist()])
    return made, names
