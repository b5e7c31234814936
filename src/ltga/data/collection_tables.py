"""Your own collection of graphs as tables: nodes and edges with a graph id, and a table of the graphs' targets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data.bounds import in_a_line
from ltga.data.collection import GraphCollection
from ltga.data.molecules import read_molecules
from ltga.data.table_files import SUFFIXES, read_frame
from ltga.data.target import Kind, Target, make_target
from ltga.errors import DataError

_SPLITS = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}


def is_collection(folder: str | Path) -> bool:
    """Whether a path is a folder with a table of graphs."""
    return any((Path(folder).expanduser() / f"graphs{suffix}").exists() for suffix in SUFFIXES)


def load_collection(folder: str | Path, kind: Kind | None = None) -> GraphCollection:
    """A collection from a folder of CSV or Parquet tables.

    - `graphs`: column `graph_id`; one column `label` (text or whole numbers: classes), one other column (a number), or
      several columns of 0, 1 and blank (labels); optionally `split` (train, val, test or blank) and `smiles`.
    - `nodes`: columns `graph_id` and `id` (unique within a graph); all others are numeric features.
    - `edges`: columns `graph_id`, `source`, `target`; all others are numeric attributes. A row is an edge from source
      to target; give both rows for an undirected graph.

    With `smiles` the tables of nodes and edges are not needed: `ltga.data.molecules` makes them. Every problem that the
    tables have is named in one message.

    Args:
        folder: where the tables are.
        kind: "classes", "labels" or "number", if the columns of `graphs` leave it open.
    """
    folder = Path(folder).expanduser()
    problems: list[str] = []
    graphs = _Table(folder, "graphs", ("graph_id",))
    ids = graphs.ids("graph_id", problems)
    target = _target(graphs, kind, problems)
    masks = _masks(graphs, problems)
    if "smiles" in graphs.frame.columns:
        data = _from_smiles(graphs, ids, problems)
    else:
        data = _from_tables(folder, ids, problems)
    if problems or target is None or data is None:
        raise DataError(f"{folder}: {'; '.join(problems)}")
    return GraphCollection(
        folder.resolve().name, data, target, masks, graph_names=ids.tolist(), provenance={"path": str(folder)}
    )


class _Table:
    """A table of a folder, read as text."""

    def __init__(self, folder: Path, stem: str, required: tuple[str, ...]) -> None:
        found = [folder / f"{stem}{suffix}" for suffix in SUFFIXES if (folder / f"{stem}{suffix}").exists()]
        if len(found) != 1:
            state = "both are there" if found else "neither is there"
            raise DataError(f"{folder}: expected {stem}.csv or {stem}.parquet, but {state}")
        self.name = found[0].name
        self.frame = read_frame(found[0])
        self.frame.columns = pd.Index([str(column) for column in self.frame.columns])
        missing = [column for column in required if column not in self.frame.columns]
        if missing or len(self.frame) == 0:
            state = f"column {missing[0]!r} is missing" if missing else "there are no rows below the header"
            raise DataError(f"{found[0]}: {state}")
        if self.frame.columns.has_duplicates:
            raise DataError(f"{found[0]}: column names repeat: {in_a_line(', '.join(self.frame.columns))}")

    def text(self, column: str) -> np.ndarray:
        """A column as text `[R]`; whole numbers without a decimal point, blanks as ''."""
        values = ["" if pd.isna(value) else value for value in self.frame[column].tolist()]
        shown = [str(int(v)) if isinstance(v, float) and v.is_integer() else str(v).strip() for v in values]
        return np.array(shown, dtype=object)

    def ids(self, column: str, problems: list[str]) -> np.ndarray:
        ids = self.text(column)
        self.note(ids == "", f"{column} is blank", problems)
        self.note(pd.Series(ids).duplicated().to_numpy() & (ids != ""), f"{column} repeats an earlier one", problems)
        return ids

    def numbers(self, columns: Sequence[str], problems: list[str], blank: bool = False) -> np.ndarray:
        """Columns as float32 `[R, C]`; blank cells are NaN where they may be."""
        values = np.empty((len(self.frame), len(columns)), dtype=np.float32)
        for at, column in enumerate(columns):
            text = self.text(column)
            with np.errstate(over="ignore"):  # too large becomes inf and is noted
                values[:, at] = pd.to_numeric(pd.Series(text), errors="coerce").to_numpy(dtype=np.float64)
            bad = ~np.isfinite(values[:, at]) & ~(np.isin(text, ["", "nan", "NaN"]) & blank)
            first = text[bad][0][:40] if bad.any() else ""
            self.note(bad, f"{column} is not a finite number ({first!r})", problems)
        return values

    def note(self, bad: np.ndarray, what: str, problems: list[str]) -> None:
        """Add a problem with how many rows have it and the first of them."""
        rows = np.flatnonzero(bad)
        if rows.size:
            shown = ", ".join(str(row + 1) for row in rows[:3]) + (", ..." if rows.size > 3 else "")
            problems.append(in_a_line(f"{self.name}: {rows.size} row{'s' * (rows.size > 1)} ({shown}): {what}"))


def _target(graphs: _Table, kind: Kind | None, problems: list[str]) -> Target | None:
    columns = [name for name in graphs.frame.columns if name not in ("graph_id", "split", "smiles")]
    if not columns:
        problems.append(f"{graphs.name}: no target; give a column label, or target, or one for each of several labels")
        return None
    before = len(problems)
    if kind is None:
        kind = "labels" if len(columns) > 1 else "number" if columns[0] != "label" else "classes"
    if kind != "labels" and len(columns) > 1:
        problems.append(f"{graphs.name}: {len(columns)} columns beside graph_id, but one {kind} is wanted; keep one")
        return None
    try:
        if kind == "classes":
            words = graphs.text(columns[0])
            words[words == "-1"] = ""
            names = _in_order(set(words.tolist()) - {""})
            position = {name: at for at, name in enumerate(names)}
            y = np.array([position.get(word, -1) for word in words.tolist()])
            return make_target(y, graphs.name, kind, names, item="graph")
        values = graphs.numbers(columns, problems, blank=True)
        if len(problems) > before:
            return None
        return make_target(values if kind == "labels" else values[:, 0], graphs.name, kind, columns, item="graph")
    except DataError as error:
        problems.append(str(error))
        return None


def _in_order(names: set[str]) -> list[str]:
    """Class names sorted as numbers if all of them are, else as text."""
    if all(re.fullmatch("-?[0-9]{1,18}", name) for name in names):
        return sorted(names, key=int)
    return sorted(names)


def _masks(graphs: _Table, problems: list[str]) -> tuple[Tensor, Tensor, Tensor] | None:
    if "split" not in graphs.frame.columns:
        return None
    words = np.array([word.lower() for word in graphs.text("split").tolist()], dtype=object)
    graphs.note(~np.isin(words, [*_SPLITS, ""]), "split must be train, val or test, or blank for none", problems)
    masks = np.zeros((3, words.size), dtype=bool)
    for word, part in _SPLITS.items():
        masks[part] |= words == word
    train, val, test = torch.from_numpy(masks)
    return train, val, test


def _from_smiles(graphs: _Table, ids: np.ndarray, problems: list[str]) -> list[Data] | None:
    read = read_molecules(graphs.text("smiles").tolist())
    if not read.unparsable:
        return read.graphs
    bad = np.isin(np.arange(ids.size), [position for position, _ in read.unparsable])
    named = ", ".join(f"{ids[position]}: {reason}" for position, reason in read.unparsable[:3])
    graphs.note(bad, f"smiles does not parse ({named})", problems)
    return None


def _from_tables(folder: Path, ids: np.ndarray, problems: list[str]) -> list[Data] | None:
    nodes = _Table(folder, "nodes", ("graph_id", "id"))
    edges = _Table(folder, "edges", ("graph_id", "source", "target"))
    before = len(problems)
    order = pd.Index(ids) if not pd.Index(ids).has_duplicates else pd.Index(pd.unique(ids))
    graph_of = order.get_indexer(pd.Index(nodes.text("graph_id")))
    nodes.note(graph_of < 0, "graph_id is not in graphs", problems)
    lonely = ids[~np.isin(np.arange(ids.size), graph_of)]
    if lonely.size:
        problems.append(in_a_line(f"{nodes.name}: {lonely.size} graphs have no nodes ({', '.join(lonely[:3])})"))
    features = [column for column in nodes.frame.columns if column not in ("graph_id", "id")]
    if not features:
        problems.append(f"{nodes.name}: no feature columns; give at least one beside graph_id and id")
    x = nodes.numbers(features, problems)
    names = pd.MultiIndex.from_arrays([nodes.text("graph_id"), nodes.text("id")])
    nodes.note(nodes.text("id") == "", "id is blank", problems)
    nodes.note(np.asarray(names.duplicated()), "id repeats an earlier one of its graph", problems)
    attributes = [column for column in edges.frame.columns if column not in ("graph_id", "source", "target")]
    values = edges.numbers(attributes, problems)
    ends = np.full((2, len(edges.frame)), -1)
    if not names.has_duplicates:
        graph_id = edges.text("graph_id")
        for row, column in enumerate(("source", "target")):
            ends[row] = names.get_indexer(pd.MultiIndex.from_arrays([graph_id, edges.text(column)]))
            edges.note(ends[row] < 0, f"{column} is not a node of its graph", problems)
        repeated = pd.DataFrame(ends.T).duplicated().to_numpy() & (ends >= 0).all(axis=0)
        edges.note(repeated, "repeats an earlier edge; keep one of them", problems)
    if len(problems) > before:
        return None
    return _cut(x, ends, values if attributes else None, graph_of, ids.size)


def _cut(x: np.ndarray, ends: np.ndarray, values: np.ndarray | None, graph_of: np.ndarray, count: int) -> list[Data]:
    """One `Data` per graph; nodes and edges keep the order of their rows."""
    order = np.argsort(graph_of, kind="stable")
    first = np.searchsorted(graph_of[order], np.arange(count + 1))
    place = np.empty_like(order)
    place[order] = np.arange(order.size) - first[graph_of[order]]
    edge_graph = graph_of[ends[0]]
    edge_order = np.argsort(edge_graph, kind="stable")
    first_edge = np.searchsorted(edge_graph[edge_order], np.arange(count + 1))
    made = []
    for graph in range(count):
        mine = edge_order[first_edge[graph] : first_edge[graph + 1]]
        data = Data(
            x=torch.from_numpy(x[order[first[graph] : first[graph + 1]]]),
            edge_index=torch.from_numpy(place[ends[:, mine]]),
        )
        if values is not None:
            data.edge_attr = torch.from_numpy(values[mine])
        made.append(data)
    return made
