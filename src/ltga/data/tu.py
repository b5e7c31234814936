"""Reader for the text format of the TU collection: one file per property, one line per node, edge or graph."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import coalesce

from ltga.data.bounds import check_dense_size
from ltga.data.text_files import read_text
from ltga.errors import DataError

# No nan, inf or 1_0, which float() would take.
_NUMBERS = re.compile(r"[0-9eE,.+\-\s]*")
_WHOLE = 2**53


@dataclass(frozen=True)
class TUGraphs:
    """The graphs of a collection, and their class (numbered in the order of the files' labels) or number."""

    graphs: list[Data]
    y: np.ndarray
    class_names: tuple[str, ...] | None
    stored_edges: int


def read_tu(files: Mapping[str, Path], attributes: bool = False, scale: bool = False) -> TUGraphs:
    """The graphs in the files of one dataset, keyed by part ("A", "graph_indicator", "graph_labels", ...).

    Features are the one-hot node labels, with `attributes` behind the node attributes, which `scale` brings to mean 0
    and standard deviation 1 over all nodes; edge attributes and labels likewise, never scaled. Self-loops and repeated
    edges are dropped and edges sorted, as PyG's `TUDataset` does. Graphs without node labels or attributes are refused.
    """
    for part in ("A", "graph_indicator"):
        if part not in files:
            raise DataError(f"TU: the file *_{part}.txt is missing")
    graph_of = _graph_of_nodes(files["graph_indicator"])
    nodes, graphs = graph_of.size, int(graph_of[-1]) + 1
    edges = _edges(files["A"], graph_of)
    x = _features(files, "node", nodes, attributes, scale)
    if x is None:
        folder = files["A"].parent
        raise DataError(f"{folder}: nodes have neither labels nor attributes; give *_node_labels.txt")
    edge_attr = _features(files, "edge", edges.shape[0], attributes=True)
    y, class_names = _targets(files, graphs)
    return TUGraphs(_cut(x, edges, edge_attr, graph_of, graphs), y, class_names, edges.shape[0])


def _cut(
    x: np.ndarray, edges: np.ndarray, edge_attr: np.ndarray | None, graph_of: np.ndarray, graphs: int
) -> list[Data]:
    """One `Data` per graph, from nodes that stand in the order of their graphs."""
    apart = edges[:, 0] != edges[:, 1]
    edge_index = torch.from_numpy(edges[apart].T.copy())
    values = None if edge_attr is None else torch.from_numpy(edge_attr[apart])
    if values is None:
        edge_index = coalesce(edge_index, num_nodes=graph_of.size)
    else:
        edge_index, values = coalesce(edge_index, values, num_nodes=graph_of.size)
    first_node = np.searchsorted(graph_of, np.arange(graphs + 1))
    first_edge = np.searchsorted(graph_of[edge_index[0].numpy()], np.arange(graphs + 1))
    features, cut = torch.from_numpy(x), []
    for number in range(graphs):
        from_node, to_node = first_node[number : number + 2].tolist()
        mine = slice(*first_edge[number : number + 2].tolist())
        graph = Data(x=features[from_node:to_node].clone(), edge_index=edge_index[:, mine] - from_node)
        if values is not None:
            graph.edge_attr = values[mine].clone()
        cut.append(graph)
    return cut


def _graph_of_nodes(path: Path) -> np.ndarray:
    """The graph of every node `[N]`, from 0; each graph has nodes and they stand together."""
    numbers = _whole(path)[:, 0] - 1
    steps = np.diff(numbers, prepend=0 if numbers.size and numbers[0] == 0 else -1)
    bad = np.flatnonzero((steps < 0) | (steps > 1))
    if numbers.size == 0 or numbers[0] != 0 or bad.size:
        at = int(bad[0]) if bad.size else 0
        if bad.size and steps[at] > 1:
            raise DataError(f"{path}: line {at + 1}: graph {numbers[at]} has no nodes; number the graphs 1, 2, 3, ...")
        raise DataError(f"{path}: line {at + 1}: expected the nodes of graph 1, then those of graph 2, and so on")
    return numbers


def _edges(path: Path, graph_of: np.ndarray) -> np.ndarray:
    """Node pairs `[E, 2]` from 0."""
    edges = _whole(path, columns=2) - 1
    bad = np.flatnonzero(((edges < 0) | (edges >= graph_of.size)).any(axis=1))
    if bad.size:
        ends = (edges[bad[0]] + 1).tolist()
        raise DataError(f"{path}: line {bad[0] + 1} joins {ends}, but nodes are numbered 1 to {graph_of.size}")
    crossing = np.flatnonzero(graph_of[edges[:, 0]] != graph_of[edges[:, 1]])
    if crossing.size:
        raise DataError(f"{path}: line {crossing[0] + 1} joins nodes of two graphs")
    return edges


def _features(
    files: Mapping[str, Path], owner: str, count: int, attributes: bool, scale: bool = False
) -> np.ndarray | None:
    """Attributes and one-hot labels of nodes or edges `[count, F]`, None if there are none."""
    parts = []
    if attributes and f"{owner}_attributes" in files:
        numbers = _numbers(files[f"{owner}_attributes"], count)
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large becomes inf, which is refused later
            parts.append((_scaled(numbers) if scale else numbers).astype(np.float32))
    if f"{owner}_labels" in files:
        labels = _whole(files[f"{owner}_labels"], count)
        for column in labels.T - labels.min(axis=0)[:, None]:
            parts.append(_one_hot(column, files[f"{owner}_labels"]))
    return np.concatenate(parts, axis=1) if parts else None


def _scaled(numbers: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and standard deviation 1; a column of one value becomes 0."""
    away = numbers - numbers.mean(axis=0)
    spread = numbers.std(axis=0)
    return away / np.where(spread > 0, spread, 1.0)


def _one_hot(labels: np.ndarray, path: Path) -> np.ndarray:
    width = int(labels.max()) + 1
    check_dense_size(labels.size, width, path.stat().st_size, path)
    columns = np.zeros((labels.size, width), dtype=np.float32)
    columns[np.arange(labels.size), labels] = 1.0
    return columns


def _targets(files: Mapping[str, Path], graphs: int) -> tuple[np.ndarray, tuple[str, ...] | None]:
    if "graph_attributes" in files:
        return _numbers(files["graph_attributes"], graphs), None
    if "graph_labels" not in files:
        raise DataError(f"{files['A'].parent}: graphs have neither labels nor attributes; give *_graph_labels.txt")
    labels = _whole(files["graph_labels"], graphs)[:, 0]
    names, y = np.unique(labels, return_inverse=True)
    return y, tuple(map(str, names.tolist()))


def _whole(path: Path, lines: int | None = None, columns: int | None = None) -> np.ndarray:
    values = _numbers(path, lines, columns)
    bad = np.flatnonzero(((values != np.floor(values)) | (np.abs(values) > _WHOLE)).any(axis=1))
    if bad.size:
        raise DataError(f"{path}: line {bad[0] + 1}: expected whole numbers, got {values[bad[0]].tolist()}")
    return values.astype(np.int64)


def _numbers(path: Path, lines: int | None = None, columns: int | None = None) -> np.ndarray:
    """The comma-separated numbers of a file `[lines, columns]`."""
    text = read_text(path, "ascii").rstrip()
    rows = text.splitlines()
    if lines is not None and len(rows) != lines:
        raise DataError(f"{path}: {len(rows):,} lines instead of {lines:,}; the files do not belong together")
    if not rows:
        raise DataError(f"{path}: the file is empty")
    width = rows[0].count(",") + 1 if columns is None else columns
    uneven = next((at for at, row in enumerate(rows) if row.count(",") != width - 1), None)
    if uneven is not None:
        raise DataError(f"{path}: line {uneven + 1}: expected {width} comma-separated numbers")
    try:
        if not _NUMBERS.fullmatch(text):
            raise ValueError
        with np.errstate(over="raise"):
            return np.array(text.replace("\n", ",").split(","), dtype=np.float64).reshape(len(rows), width)
    except (ValueError, FloatingPointError):
        bad = next((at for at, row in enumerate(rows) if not all(map(_is_number, row.split(",")))), 0)
        raise DataError(f"{path}: line {bad + 1}: expected numbers, got {rows[bad][:40]!r}") from None


def _is_number(text: str) -> bool:
    try:
        return bool(_NUMBERS.fullmatch(text)) and bool(np.isfinite(float(text)))
    except ValueError:
        return False
