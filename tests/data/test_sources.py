"""Graphs of other libraries and files: the same graph by every way in, and faults named."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse

import ltga
from ltga.data import Preparation, as_graph, as_tables, from_sql, load_dataset
from ltga.data.graph_summary import summarise
from ltga.errors import DataError, InputError


def club() -> nx.Graph:
    """The karate club with ids that are text."""
    return nx.relabel_nodes(nx.karate_club_graph(), str)


def frames(graph: nx.Graph) -> tuple[pd.DataFrame, pd.DataFrame]:
    nodes = pd.DataFrame([{"id": node, **about} for node, about in graph.nodes(data=True)])
    return nodes, nx.to_pandas_edgelist(graph)


def database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    nodes, edges = frames(club())
    connection.execute("create table people (id text, club text)")
    connection.executemany("insert into people values (?, ?)", nodes[["id", "club"]].to_numpy().tolist())
    connection.execute("create table ties (a text, b text, weight real)")
    connection.executemany(
        "insert into ties values (?, ?, ?)", edges[["source", "target", "weight"]].to_numpy().tolist()
    )
    return connection


def igraph_club() -> Any:
    return pytest.importorskip("igraph").Graph.from_networkx(club(), vertex_attr_hashable="name")


def written(suffix: str) -> Callable[[Path], Any]:
    writers = {"graphml": nx.write_graphml, "gexf": nx.write_gexf, "gml": nx.write_gml}

    def make(folder: Path) -> Any:
        writers[suffix](club(), folder / f"club.{suffix}")
        return folder / f"club.{suffix}"

    return make


WAYS: dict[str, Callable[[Path], Any]] = {
    "networkx": lambda _: club(),
    "igraph": lambda _: igraph_club(),
    "frames": lambda _: frames(club()),
    "sql": lambda _: from_sql(
        database(), "select * from people", "select a as source, b as target, weight from ties", "club"),
    "graphml": written("graphml"),
    "gexf": written("gexf"),
    "gml": written("gml"),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_every_way_leads_to_the_same_graph(way: str, tmp_path: Path) -> None:
    graph = as_graph(WAYS[way](tmp_path), label="club", convention="undirected, once", name="club")
    original = club()
    assert graph.node_ids == tuple(original)
    assert graph.class_names == ("Mr. Hi", "Officer")
    assert [graph.class_names[label] for label in graph.data.y] == [about["club"] for _, about in original.nodes.data()]
    expected = nx.to_numpy_array(original, weight=None)
    found = np.zeros_like(expected)
    found[tuple(graph.data.edge_index.numpy())] = 1
    np.testing.assert_array_equal(found, expected)
    weights = nx.to_numpy_array(original)[tuple(graph.data.edge_index.numpy())]
    merged = np.array([weight for *_, weight in original.edges.data("weight")], dtype=float)
    np.testing.assert_allclose(graph.data.edge_attr[:, 0], (weights - merged.mean()) / merged.std(), atol=1e-5)


def test_a_sparse_matrix_beside_a_table_of_nodes() -> None:
    nodes, _ = frames(club())
    matrix = scipy.sparse.csr_array(nx.to_scipy_sparse_array(club()))
    graph = as_graph(matrix, nodes=nodes.assign(id=range(34)), label="club")
    assert graph.data.is_undirected() and graph.data.num_edges == 156
    lopsided = scipy.sparse.csr_array(([2.0, 0.0], ([0, 1], [1, 2])), shape=(34, 34))
    directed = as_graph(lopsided, nodes=nodes.assign(id=range(34)), label="club")
    assert directed.data.edge_index.tolist() == [[0], [1]]
    with pytest.raises(InputError, match=r"adjacency is square, got \[2, 3\]"):
        as_tables(scipy.sparse.csr_array(np.ones((2, 3))))


def test_directions_follow_the_source(tmp_path: Path) -> None:
    path = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "b")])
    nx.set_node_attributes(path, {"a": "x", "b": "y", "c": "x"}, "label")
    assert as_graph(path).data.edge_index.T.tolist() == [[0, 1], [1, 2], [2, 1]]
    nx.write_graphml(path, tmp_path / "path.graphml")
    assert load_dataset(tmp_path / "path.graphml").data.num_edges == 3
    nx.write_graphml(path.to_undirected(), tmp_path / "path.graphml")
    assert load_dataset(str(tmp_path / "path.graphml")).data.num_edges == 4


def test_parallel_edges_are_repeated_edges() -> None:
    twice = nx.MultiGraph()
    twice.add_node(1, label="a", f=1)
    twice.add_node(2, label="b", f=2)
    twice.add_edge(1, 2, weight=2)
    twice.add_edge(2, 1, weight=5)
    graph = as_graph(twice, scale="none")
    assert graph.data.edge_attr.tolist() == [[7.0], [7.0]]


LISTS = {
    "spaces.edges": "# made by hand\n0 1 2.5\n1 2 1\n\n2 0 4\n",
    "tabs.tsv": "source\ttarget\tweight\n0\t1\t2.5\n1\t2\t1\n2\t0\t4\n",
    "commas.csv": "from,to,weight\n0,1,2.5\n1,2,1\n2,0,4\n",
    "plain.txt": "% a comment\n0;1;2.5\n1;2;1\n2;0;4\n",
    "told.csv": "sep=;\nfrom;to;weight\n0;1;2.5\n1;2;1\n2;0;4\n",
    "pipes.csv": '"sep=|"\r\nfrom|to|weight\r\n0|1|2.5\r\n1|2|1\r\n2|0|4\r\n',
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_edges(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(LISTS[name])
    nodes = pd.DataFrame({"id": ["0", "1", "2"], "label": ["a", "b", "a"], "f": [1, 2, 4]})
    graph = as_graph(tmp_path / name, nodes=nodes, scale="none")
    pairs = dict(zip(map(tuple, graph.data.edge_index.T.tolist()), graph.data.edge_attr[:, 0].tolist()))
    assert pairs == {(0, 1): 2.5, (1, 2): 1.0, (2, 0): 4.0}
    headless = any("has no header" in note for note in graph.notes)
    assert headless == (name in ("spaces.edges", "plain.txt"))


EDGES = [["#python", "bob"], ["%x", "//y"], ["a", "b"]]
LEFT_OUT = "lines that begin with #, % or //: 1 without edges; left out as comments"
TAKEN = "lines that begin with #, % or //: 2; taken as edges, having as many fields as others; if they are comments"


@pytest.mark.parametrize(
    ("name", "content", "rows", "said"),
    [
        ("head.csv", "source,target\n#python,bob\n%x,//y\na,b\n", EDGES, TAKEN),
        ("none.csv", "#python,bob\na,b\n%x,//y\n", [EDGES[0], EDGES[2], EDGES[1]], TAKEN),
        ("above.txt", "#from,to\n#python bob\na b\n", EDGES[2:], LEFT_OUT),
        ("all.csv", "#python,bob\n%x,//y\n", EDGES[:2], TAKEN),
        ("head.txt", "source target\n#python bob\n%x //y\na b\n", EDGES, TAKEN),
        ("below.edges", "a b\n#python bob\n# more\n%x //y\n", [EDGES[2], *EDGES[:2]], LEFT_OUT),
        ("top.csv", "# made by me, today\n#source,target\na,b\n", EDGES[2:], None),
        ("above.csv", '//made,today\n"source",target\na,b\n', EDGES[2:], None),
        ("snap.txt", "# Nodes: 3 Edges: 2\n# FromNodeId\tToNodeId\na\tb\n", EDGES[2:], None),
        ("konect.edges", "% sym unweighted\n% 2 3\na b\n", EDGES[2:], None),
        ("near.edges", "#from to\na b\n", EDGES[2:], None),
    ],
)
def test_a_sign_begins_a_comment_or_a_name(
    name: str, content: str, rows: list[list[str]], said: str | None, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    tables = as_tables(tmp_path / name)
    assert tables.edges.to_numpy().tolist() == rows
    notes = [note for note in tables.problems.notes if "that begin" in note]
    assert len(notes) == bool(said) + (name == "below.edges") and (said or "") in " ".join(notes)


def test_networkx_comments_below_are_counted(tmp_path: Path) -> None:
    (tmp_path / "g.edgelist").write_text("#edgelist.py\na b {'weight': 2}\n# half way\nb c {'weight': 1}\n")
    tables = as_tables(tmp_path / "g.edgelist")
    assert len(tables.edges) == 2 and LEFT_OUT in str(tables.problems)


@pytest.mark.parametrize(
    ("content", "first"),
    [
        ("a;b;1,5\nb;c;2,5\n", ["a", "b", "1,5"]),
        ("a;b;3\nb;c;2,5\n", ["a", "b", "3"]),
        ("a,b,x;y;z\nb,c,x;y;w\n", ["a", "b", "x;y;z"]),
        ("x;y;z,b\nx;y,c\n", ["x;y;z", "b"]),
    ],
)
def test_a_decimal_comma_separates_nothing(content: str, first: list[str], tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text(content)
    assert as_tables(tmp_path / "g.csv").edges.iloc[0].tolist() == first


def test_a_list_whose_columns_are_named(tmp_path: Path) -> None:
    (tmp_path / "calls.csv").write_text("minutes,caller,called\n3,x,y\n5,y,z\n")
    tables = as_tables(tmp_path / "calls.csv", Preparation(source="caller", target="called", weight="minutes"))
    assert tables.edges["caller"].tolist() == ["x", "y"] and tables.nodes is None


def test_matrix_market(tmp_path: Path) -> None:
    scipy.io.mmwrite(tmp_path / "club.mtx", scipy.sparse.coo_matrix(nx.to_numpy_array(club())))
    tables = as_tables(tmp_path / "club.mtx")
    assert (len(tables.edges), tables.nodes is not None and len(tables.nodes)) == (78, 34)
    assert tables.convention == "undirected, once"
    scipy.io.mmwrite(tmp_path / "dense.mtx", np.ones((3, 3)))
    with pytest.raises(DataError, match="array form; give a sparse adjacency"):
        as_tables(tmp_path / "dense.mtx")


LAUGHS = """<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph
edgedefault="directed"><node id="&b;"/></graph></graphml>"""
OUTSIDE = """<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a SYSTEM "file:///etc/passwd">]>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph
edgedefault="directed"><node id="&a;"/></graph></graphml>"""


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("laughs.graphml", LAUGHS, "defines XML entities"),
        ("outside.gexf", OUTSIDE, "defines XML entities"),
        ("half.graphml", "<graphml><graph>", "damaged, or not XML"),
        ("other.graphml", "<html></html>", "cannot be read as graphml"),
        ("half.gml", "graph [ node [ id", "cannot be read as gml"),
        ("half.mtx", "%%MatrixMarket matrix", "cannot be read as a Matrix Market file"),
        ("empty.edges", "# nothing\n", "has no edges"),
        ("words.edges", "hello\n", "row 1: 1 field"),
        ("latin.edges", b"a \xf6\n", r"is not utf-8 text \(byte 0xf6 at 2\)"),
        ("quotes.csv", 'a,"b\n', "cannot be read as a list of edges"),
        ("short.csv", "source,target,weight\na,b,1\nc,d\n", "row 2: 2 fields instead of 3"),
    ],
)
def test_damaged_and_hostile_files(name: str, content: str | bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataError, match=message) as caught:
        as_graph(tmp_path / name)
    assert "\n" not in str(caught.value) and name in str(caught.value)


def test_what_is_no_graph_is_refused() -> None:
    with pytest.raises(InputError, match="source: got int"):
        as_graph(7)
    with pytest.raises(InputError, match="preparation: given beside label"):
        as_graph(club(), Preparation(), label="club")
    with pytest.raises(InputError, match="nodes: the graph has a table of nodes already"):
        as_tables(club(), nodes=pd.DataFrame())
    with pytest.raises(DataError, match=r"edges: the query failed \(no such table: nowhere\)"):
        from_sql(sqlite3.connect(":memory:"), None, "select * from nowhere")
    with pytest.raises(InputError, match="edges: expected a query as text"):
        from_sql(sqlite3.connect(":memory:"), None, None)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"there are no labels \(column .label.\); for them make a folder"):
        as_graph(pd.DataFrame({"source": ["a"], "target": ["b"]}))


def test_attributes_called_like_keys_keep_their_values() -> None:
    graph = nx.Graph([("a", "b", {"source": 3, "target": 4})])
    nx.set_node_attributes(graph, {"a": 7, "b": 8}, "id")
    tables = as_tables(graph)
    assert tables.nodes is not None
    assert tables.nodes.to_dict("list") == {"id": ["a", "b"], "id (attribute)": [7, 8]}
    assert tables.edges.iloc[0].tolist() == ["a", "b", 3, 4]


def test_a_node_is_found_by_its_id() -> None:
    graph = as_graph(nx.relabel_nodes(club(), {"3": "thirty three", "4": "0x"}), label="club")
    assert [graph.position(node) for node in ("thirty three", "33", 33)] == [3, 33, 33]
    with pytest.raises(InputError, match="no node 'thirty thre'; did you mean 'thirty three'"):
        graph.position("thirty thre")
    with pytest.raises(InputError, match="no node '-1'"):
        graph.position(-1)


def test_a_summary_is_that_of_networkx() -> None:
    original = club()
    original.add_node("alone", club="Officer")
    summary = summarise(as_graph(original, label="club"))
    classes = nx.get_node_attributes(original, "club")
    assert (summary.nodes, summary.edges, summary.isolated, summary.labelled) == (35, 156, 1, 35)
    assert summary.median_degree == np.median([degree for _, degree in original.degree])
    assert summary.homophily == pytest.approx(np.mean([classes[a] == classes[b] for a, b in original.edges]))
    counts = pd.Series(classes).value_counts(normalize=True)
    assert summary.classes == pytest.approx(counts.to_dict())
    assert summary.train + summary.val + summary.test == 35
    assert summary.unreached == 0 and summary.untested == ()


def test_a_summary_counts_nodes_without_messages_and_names_untested_classes() -> None:
    star = nx.DiGraph((f"leaf {number}", "hub") for number in range(30))
    star.add_node("alone")
    for number, node in enumerate(star):
        star.nodes[node].update(
            label=("a", "b", "c")[number % 3], age=number, split=("train", "val", "test")[number % 2]
        )
    star.nodes["leaf 9"]["split"] = "test"
    summary = summarise(as_graph(star))
    assert (summary.isolated, summary.unreached) == (1, 30)
    classes = nx.get_node_attributes(star, "label")
    assert summary.untested == tuple(sorted({"a", "b", "c"} - {classes["leaf 9"]}))


def test_fit_takes_graphs_of_other_libraries() -> None:
    karate = nx.karate_club_graph()
    nx.set_node_attributes(karate, dict(karate.nodes(data="club")), "label")
    quick = {"epochs": 1, "hidden_channels": 2, "heads": 1}
    run = ltga.fit(karate, "gatv2", protocol=quick)
    assert run.record["reading"]["format"] == "networkx" and run.record["config"].get("task") is None
    assert ltga.fit(karate, "gatv2", task="link", protocol=quick).task == "link prediction"
    nodes = pd.DataFrame({"id": range(20), "label": ["a", "b"] * 10, "size": range(20)})
    edges = pd.DataFrame({"source": range(19), "target": range(1, 20)})
    assert ltga.fit((nodes, edges), "gatv2", protocol=quick).record["model"]["num_classes"] == 2
    with pytest.raises(InputError, match=r"or what ltga\.data\.as_graph takes"):
        ltga.fit(3.5, "gatv2", protocol=quick)  # type: ignore[arg-type]


def test_two_tables_that_are_no_pair_are_explained() -> None:
    nodes = pd.DataFrame({"id": [0, 1], "label": ["a", "b"]})
    edges = pd.DataFrame({"source": [0], "target": [1]})
    with pytest.raises(InputError, match=r"two tables go in as one pair: as_graph\(\(nodes, edges\)"):
        as_graph(nodes, edges)
