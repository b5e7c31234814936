"""Explanations as files and graphs: Parquet, CSV, GraphML, and a ``Data`` without the ignored edges."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
import torch
from torch_geometric.data import Data

from ltga.data.atomic import write_atomic
from ltga.errors import InputError

if TYPE_CHECKING:
    from ltga.explanation.result import Explanation

# XML has no way to write these, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_parquet(explanation: Explanation, path: str | Path) -> Path:
    """The coefficients, one row per edge, layer and head."""
    path, frame = Path(path), explanation.coefficients()
    write_atomic(path, lambda stream: frame.to_parquet(stream, index=False, engine="pyarrow"))
    return path


def write_csv(explanation: Explanation, path: str | Path) -> Path:
    """A row per edge: for a spreadsheet rather than for every coefficient."""
    path, text = Path(path), explanation.edges().to_csv(index=False)
    write_atomic(path, lambda stream: stream.write(text.encode("utf-8", "backslashreplace")))
    return path


def write_graphml(explanation: Explanation, path: str | Path) -> Path:
    """The graph of :func:`to_networkx`, for Gephi and the like."""
    path, graph = Path(path), to_networkx(explanation)
    write_atomic(path, lambda stream: nx.write_graphml(graph, stream))
    return path


def to_networkx(explanation: Explanation) -> nx.MultiDiGraph:
    """A directed graph, messages from source to target, self-loops included.

    Edges carry ``weight_layer<k>_head<h>`` and what :meth:`Explanation.edges` says; ``q_layer<k>_head<h>`` is on
    them where every edge has its own, and on the graph otherwise. Logits are in the Parquet file only: GraphML
    is text, and thrice the attributes would be thrice the megabytes.
    """
    graph = nx.MultiDiGraph(name=_xml(explanation.dataset.name), method=explanation.typed.config.method)
    for node, row in enumerate(explanation.nodes().to_dict("records")):
        graph.add_node(
            node, **{str(key): _plain(value) for key, value in row.items() if key != "node" and _known(value)}
        )
    known_of_nodes = [f"{end}_{name}" for end in ("source", "target") for name in ("id", *explanation.about_nodes())]
    edges = explanation.edges().drop(columns=["source", "target", *known_of_nodes], errors="ignore")
    for layer in range(explanation.num_layers):
        for head in range(explanation.num_heads):
            where = f"layer{layer + 1}_head{head + 1}"
            edges[f"weight_{where}"] = explanation.weights[layer, :, head]
            q = explanation.q[layer, :, head]
            if (q == q[0]).all():
                graph.graph[f"q_{where}"] = float(q[0])
            else:
                edges[f"q_{where}"] = q
    for source, target, row in zip(*explanation.edge_index.tolist(), edges.to_dict("records")):
        graph.add_edge(source, target, **{str(key): _plain(value) for key, value in row.items() if _known(value)})
    return graph


def pruned(explanation: Explanation, share: float = 1.0) -> Data:
    """The graph without its ignored edges.

    An edge goes if at least ``share`` of its coefficients (layers x heads) are exactly zero. At 1, the
    default, only edges that nobody looks at go, and the model predicts the same without them. Each direction of
    an undirected edge is judged by itself. Whatever ``Data`` holds per edge is cut alike.
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise InputError(f"share: expected a number above 0 and up to 1, got {share!r}")
    data = explanation.graph
    heads = explanation.num_layers * explanation.num_heads
    goes = explanation.ignored_by.sum(axis=0) >= share * heads - 1e-9
    target = data.edge_index[1].cpu().numpy()
    # A self-loop of the graph's own is judged by the one that stands for it, the node's entry at the end.
    row = np.full(data.edge_index.size(1), -1)
    inside = explanation.position >= 0
    row[explanation.position[inside]] = np.flatnonzero(inside)
    loops = row < 0
    first = len(goes) - explanation.num_nodes
    row[loops] = first + target[loops]
    keep = torch.from_numpy(~goes[row])
    cut = data.clone()
    for key, value in data.to_dict().items():
        if data.is_edge_attr(key):
            cut[key] = value[:, keep] if key == "edge_index" else value[keep]
    return cut


def _known(value: object) -> bool:
    return value == value  # NaN is not


def _plain(value: object) -> object:
    """A value GraphML knows."""
    if isinstance(value, np.generic):
        value = value.item()
    return _xml(value) if isinstance(value, str) else value


def _xml(text: str) -> str:
    return _NOT_XML.sub("�", text)
