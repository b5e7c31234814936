"""Graphs from other libraries, as tables: networkx, igraph, scipy, pandas, a database."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

from ltga.data.bounds import in_a_line
from ltga.data.conventions import Convention
from ltga.data.graph_files import read_graph_file
from ltga.data.graph_tables import Tables
from ltga.data.preparation import Preparation
from ltga.data.prepare import prepared_dataset
from ltga.errors import DataError, InputError


def as_graph(
    source: Any, preparation: Preparation | None = None, *, nodes: pd.DataFrame | None = None, name: str | None = None,
    **options: Any,
) -> Any:  # fmt: skip
    """A graph to train on, from nearly anything: see `as_tables` for what, and `Preparation` for `options`.

    A `Dataset`, or a `NodeDataset` if what is predicted is a number or several labels.

    >>> import networkx
    >>> as_graph(networkx.karate_club_graph(), label="club", name="karate")
    Dataset('karate', 34 nodes, 156 edges, 4 features, 2 classes, 10 splits)
    """
    if isinstance(preparation, pd.DataFrame):
        raise InputError("preparation: got a data frame; two tables go in as one pair: as_graph((nodes, edges), ...)")
    if preparation is not None and options:
        raise InputError(f"preparation: given beside {', '.join(options)}; put these into the Preparation")
    chosen = preparation or Preparation(**options)
    tables = as_tables(source, chosen, nodes=nodes)
    return prepared_dataset(tables if name is None else replace(tables, name=name), chosen)


def as_tables(source: Any, preparation: Preparation | None = None, *, nodes: pd.DataFrame | None = None) -> Tables:
    """The tables of a graph.

    Args:
        source: a networkx or igraph graph; a scipy sparse adjacency, whose entry (i, j) is an edge from node i to node
            j and whose nodes are 0, 1, ...; a data frame of edges, or a pair (nodes, edges) of them; the path of a
            folder of two tables, or of a GraphML, GEXF, GML, Matrix Market or edge-list file; or `Tables`.
        preparation: names the columns, and the encoding of files.
        nodes: a table about the nodes, where `source` is edges only.
    """
    options = preparation or Preparation()
    networkx, igraph = sys.modules.get("networkx"), sys.modules.get("igraph")
    if isinstance(source, Tables):
        tables = source
    elif isinstance(source, str | Path):
        tables = read_graph_file(source, options)
    elif networkx is not None and isinstance(source, networkx.Graph):
        tables = from_networkx(source, options)
    elif igraph is not None and isinstance(source, igraph.Graph):
        tables = _from_igraph(source, options)
    elif scipy.sparse.issparse(source):
        tables = _from_sparse(source, options)
    elif isinstance(source, pd.DataFrame):
        tables = Tables(source)
    elif isinstance(source, tuple) and len(source) == 2 and all(isinstance(part, pd.DataFrame) for part in source):
        tables = Tables(source[1], source[0])
    else:
        raise InputError(
            f"source: got {type(source).__name__}; give a networkx or igraph graph, a scipy sparse matrix, a data "
            "frame of edges, a pair (nodes, edges), or a path"
        )
    if nodes is None:
        return tables
    if not isinstance(nodes, pd.DataFrame):
        raise InputError(f"nodes: expected a data frame, got {type(nodes).__name__}")
    if tables.nodes is not None and list(tables.nodes) != [options.id]:
        raise InputError("nodes: the graph has a table of nodes already; join the two")
    return replace(tables, nodes=nodes)


def is_graph_object(source: Any) -> bool:
    """Whether something in memory is a graph of another library, or tables: what `as_tables` takes beside paths."""
    networkx, igraph = sys.modules.get("networkx"), sys.modules.get("igraph")
    kinds = (Tables, pd.DataFrame, *(library.Graph for library in (networkx, igraph) if library is not None))
    pair = isinstance(source, tuple) and len(source) == 2 and all(isinstance(part, pd.DataFrame) for part in source)
    return isinstance(source, kinds) or pair or bool(scipy.sparse.issparse(source))


def from_networkx(graph: Any, options: Preparation | None = None, **about: Any) -> Tables:
    """A networkx graph: node and edge attributes become columns. A multigraph's parallel edges are repeated edges."""
    options = options or Preparation()
    ends = np.empty((graph.number_of_edges(), 2), dtype=object)
    details = []
    for at, (source, target, attributes) in enumerate(graph.edges(data=True)):
        ends[at, 0], ends[at, 1] = source, target
        details.append(attributes)
    keys = np.empty(graph.number_of_nodes(), dtype=object)
    keys[:] = list(graph.nodes)
    nodes = _frame({options.id: keys}, [attributes for _, attributes in graph.nodes(data=True)])
    edges = _frame({options.source: ends[:, 0], options.target: ends[:, 1]}, details)
    convention = _meaning(bool(graph.is_directed()))
    known = {"name": str(graph.name or "graph"), "origin": {"format": "networkx"}, **about}
    return Tables(edges, nodes, convention=convention, **known)


def from_sql(connection: Any, nodes: str | None, edges: str, name: str = "graph") -> Tables:
    """The results of two queries of a DB-API connection (sqlite3, psycopg, ...), one row per node and per edge.

    >>> import sqlite3
    >>> database = sqlite3.connect(":memory:")
    >>> _ = database.executescript("create table calls (a, b); insert into calls values ('x', 'y'), ('y', 'z')")
    >>> from_sql(database, None, "select a as source, b as target from calls")
    Tables('graph', no node table, 2 rows of edges)
    """
    frames: list[Any] = []
    for argument, query in (("edges", edges), ("nodes", nodes)):
        if query is None and argument == "nodes":
            frames.append(None)
            continue
        if not isinstance(query, str):
            raise InputError(f"{argument}: expected a query as text, got {type(query).__name__}")
        try:
            cursor = connection.cursor()
            cursor.execute(query)
            columns = [column[0] for column in cursor.description or ()]
            frames.append(pd.DataFrame(cursor.fetchall(), columns=pd.Index(columns, dtype=object)))
        except Exception as error:  # every driver has errors of its own
            raise DataError(f"{argument}: the query failed ({in_a_line(error)})") from None
    return Tables(frames[0], frames[1], name, origin={"format": "sql", "nodes": nodes, "edges": edges})


def _from_igraph(graph: Any, options: Preparation) -> Tables:
    # The latter is where Graph.from_networkx keeps what nodes are called.
    called = next((name for name in ("name", "_nx_name") if name in graph.vs.attributes()), None)
    keys = graph.vs[called] if called else list(range(graph.vcount()))
    nodes = _frame({options.id: keys}, [v.attributes() for v in graph.vs])
    ends = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    names = np.empty(len(keys), dtype=object)
    names[:] = list(keys)
    edges = _frame({options.source: names[ends[:, 0]], options.target: names[ends[:, 1]]},
                   [e.attributes() for e in graph.es])  # fmt: skip
    convention = _meaning(bool(graph.is_directed()))
    return Tables(
        edges,
        nodes.drop(columns=["name", "_nx_name"], errors="ignore"),
        convention=convention,
        origin={"format": "igraph"},
    )


def _from_sparse(matrix: Any, options: Preparation) -> Tables:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"source: an adjacency is square, got {list(matrix.shape)}")
    entries = matrix.tocoo()
    # Entry (i, j) is a message from i to j; only where nobody says more is a symmetric matrix one of undirected edges.
    told = options.convention if options.convention != "undirected, once" else None
    symmetric = told is None and (matrix != matrix.T).nnz == 0
    kept = (entries.data != 0) & ((entries.row <= entries.col) if symmetric else True)
    edges = pd.DataFrame({
        options.source: entries.row[kept].astype(np.int64), options.target: entries.col[kept].astype(np.int64),
        options.weight: entries.data[kept],
    })  # fmt: skip
    nodes = pd.DataFrame({options.id: np.arange(matrix.shape[0], dtype=np.int64)})
    return Tables(edges, nodes, convention=told or _meaning(not symmetric), origin={"format": "scipy"})


def _meaning(directed: bool) -> Convention:
    return "directed" if directed else "undirected, once"


def _frame(keys: dict[str, Any], details: Iterable[dict[Any, Any]]) -> pd.DataFrame:
    """Keys and attributes as columns; an attribute that is called as a key is gets a name of its own."""
    rows = [{str(name): value for name, value in row.items()} for row in details]
    names = dict.fromkeys(name for row in rows for name in row)
    columns: dict[str, list[Any]] = {name: list(values) for name, values in keys.items()}
    for name in names:
        columns[f"{name} (attribute)" if name in keys else name] = [row.get(name) for row in rows]
    return pd.DataFrame({name: pd.Series(cells, dtype=object).infer_objects() for name, cells in columns.items()})
