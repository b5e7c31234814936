"""What programs leave in tables: an index, blank rows, nameless columns, a line for Excel, dictionaries of networkx."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pandas as pd
import pytest

from ltga.data import Preparation, PreparedGraph, as_graph, as_tables
from ltga.data.prepare import prepare
from ltga.data.problems import Problems
from ltga.data.table_files import read_frame
from ltga.errors import DataError

COUNT = 12
NODES = pd.DataFrame({"id": range(COUNT), "label": list("ab") * 6, "x": [at / 2 for at in range(COUNT)]})
EDGES = pd.DataFrame({"source": range(COUNT - 1), "target": range(1, COUNT), "weight": range(1, COUNT)})


def folder(path: Path, nodes: str | None = None, edges: str | None = None) -> Path:
    path.mkdir(exist_ok=True)
    (path / "nodes.csv").write_text(NODES.to_csv(index=False) if nodes is None else nodes)
    (path / "edges.csv").write_text(EDGES.to_csv(index=False) if edges is None else edges)
    return path


def fitted(path: Path, **options: str) -> PreparedGraph:
    return Preparation(scale="none", **options).fit(path)


# An index of pandas


def test_the_index_that_pandas_writes_is_no_feature(tmp_path: Path) -> None:
    graph = fitted(folder(tmp_path, NODES.to_csv(), EDGES.sample(frac=1, random_state=0).to_csv()))
    assert graph.arrays.feature_names == ("x",) and graph.edge_names == ("weight",)
    assert sum("as the index does that pandas writes; left out" in note for note in graph.problems.notes) == 2
    read_back = pd.read_csv(tmp_path / "nodes.csv")  # "Unnamed: 0"
    assert Preparation().fit((read_back, EDGES)).arrays.feature_names == ("x",)
    unnamed = NODES.assign(**{"Unnamed: 0": [3, 3, *range(10)]})
    assert Preparation().fit((unnamed, EDGES)).arrays.feature_names == ("x", "Unnamed: 0")


def test_a_column_without_a_name_is_no_feature(tmp_path: Path) -> None:
    text = NODES.assign(**{"": ["k", "l"] * 6}).to_csv(index=False)
    with pytest.raises(DataError, match="a column without a name has cells, 'k' for example; give it a name"):
        fitted(folder(tmp_path, text))


def test_a_table_of_graphs_with_an_index(tmp_path: Path) -> None:
    graphs = pd.DataFrame({"graph_id": range(20), "kind": ["a", "b"] * 10})
    graphs.to_csv(tmp_path / "graphs.csv")
    ends = pd.DataFrame({"graph_id": list(range(20)) * 2, "id": [0] * 20 + [1] * 20, "x": range(40)})
    ends.to_csv(tmp_path / "nodes.csv")
    blank = "," * 3 + "\n"
    rows = pd.DataFrame({"graph_id": range(20), "source": 0, "target": [1] * 19 + [7]}).to_csv().splitlines(True)
    (tmp_path / "edges.csv").write_text("".join([*rows[:5], blank, *rows[5:], blank]))
    from ltga.data.collection_tables import read_collection
    from ltga.data.prepare_collection import prepare_collection

    problems, _ = prepare_collection(read_collection(tmp_path, Preparation()), Preparation())
    told = {problem.what: problem.rows for problem in problems}
    assert told["is a row without any cell"] == (5, 22)
    assert next(rows for what, rows in told.items() if "is not an id" in what) == (21,)  # as in the file
    options = Preparation(unknown_ids="drop")
    _, prepared = prepare_collection(read_collection(tmp_path, options), options)
    assert prepared is not None and prepared.feature_names == ("x",) and prepared.fitted.columns == ("kind",)


# Blank rows


@pytest.mark.parametrize("blank", [",,\n", " , ,\n"])
def test_blank_rows_are_passed_over(tmp_path: Path, blank: str) -> None:
    """They once took unknown_ids=drop, which hides real strangers, and made an attribute 'weight is missing'."""
    nodes, edges = NODES.to_csv(index=False).splitlines(True), EDGES.to_csv(index=False).splitlines(True)
    path = folder(tmp_path, "".join([*nodes[:4], blank, *nodes[4:]]), "".join([*edges, blank, blank]))
    graph = fitted(path)
    assert len(graph.arrays.x) == COUNT and graph.edge_names == ("weight",)
    assert graph.data().edge_attr.tolist() == [[at] for at in range(1, COUNT)]
    told = {(problem.where, problem.rows) for problem in graph.problems if "without any cell" in problem.what}
    assert told == {(str(path / "nodes.csv"), (4,)), (str(path / "edges.csv"), (12, 13))}
    assert len(graph.fitted.apply(path).arrays.x) == COUNT


def test_row_numbers_stay_those_of_the_file(tmp_path: Path) -> None:
    nodes = NODES.assign(x=[*NODES.x[:-1], "tall"]).to_csv(index=False).splitlines(True)
    with pytest.raises(DataError, match="row 13: x is 'tall'"):
        fitted(folder(tmp_path, "".join([nodes[0], ",,\n", *nodes[1:]])))
    with pytest.raises(DataError, match="row 14: id '0' repeats row 2"):
        fitted(folder(tmp_path, "".join([nodes[0], ",,\n", *nodes[1:], nodes[1]])))


def test_edges_that_are_left_out_say_nothing_about_the_others(tmp_path: Path) -> None:
    edges = EDGES.to_csv(index=False) + "0,stranger,\n1,,huge\n"
    graph = fitted(folder(tmp_path, edges=edges), unknown_ids="drop")
    assert graph.edge_names == ("weight",) and graph.data().edge_attr.flatten().tolist() == list(range(1, COUNT))


# What spreadsheets write


@pytest.mark.parametrize("first", ["sep=;\n", '"sep=;"\n', "SEP=;\r\n", "sep=;;;\n"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_first_line_for_excel(tmp_path: Path, first: str, quote: str) -> None:
    (tmp_path / "nodes.csv").write_text(f"{first}id;a,b\n{quote}x{quote};1,5\n")
    assert read_frame(tmp_path / "nodes.csv").to_dict("list") == {"id": ["x"], "a,b": ["1,5"]}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
@pytest.mark.parametrize("first", ["", "sep=;\r\n", '"sep=;"\n'])
def test_a_first_line_for_excel_in_its_own_encoding(tmp_path: Path, first: str, encoding: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-le" else ""  # as Windows writes it
    (tmp_path / "nodes.csv").write_bytes(f"{mark}{first}id;ä\nx;1,5\n".encode(encoding))
    assert read_frame(tmp_path / "nodes.csv", encoding).to_dict("list") == {"id": ["x"], "ä": ["1,5"]}


@pytest.mark.parametrize(
    "text", ["id;x;;\na;1;;\nb;2;;\n", 'id;x;;\n"a";1;;\nb;2;;\n', "id;x\na;1;;\nb;2\n", "id;x;\na;1;;\nb;2\n"]
)
def test_separators_at_the_end_of_lines(tmp_path: Path, text: str) -> None:
    (tmp_path / "nodes.csv").write_text(text)
    found = Problems()
    try:
        frame = read_frame(tmp_path / "nodes.csv", problems=found)
    except DataError as error:
        pytest.fail(str(error))
    assert frame.to_dict("list") == {"id": ["a", "b"], "x": ["1", "2"]}
    assert not found.errors and found.notes


def test_a_surplus_field_that_is_not_blank_stays_an_error(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,x\na,1,7\nb,2\n")
    with pytest.raises(DataError, match="3 fields, but the header names 2 columns"):
        read_frame(tmp_path / "nodes.csv")


def test_the_column_that_is_there_twice_is_named() -> None:
    twice = pd.concat([NODES, NODES[["x"]]], axis=1)
    with pytest.raises(DataError, match="column names repeat: 'x', among id, label, x, x"):
        Preparation().fit((twice, EDGES))


# Other libraries


def test_names_of_nodes_survive_igraph() -> None:
    igraph = pytest.importorskip("igraph")
    named = nx.relabel_nodes(nx.karate_club_graph(), lambda node: f"member {node}")
    graph = as_graph(igraph.Graph.from_networkx(named), label="club")
    assert graph.node_ids[3] == "member 3" and not any("_nx_name" in name for name in graph.feature_names)


@pytest.mark.parametrize("delimiter", [" ", ",", "\t"])
def test_a_list_as_networkx_writes_it(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "calls.edgelist"
    graph = nx.Graph([(0, 1, {"weight": 4, "kind": "a, b"}), (1, 2, {"weight": 2.5}), (2, 3, {})])
    nx.write_edgelist(graph, path, delimiter=delimiter)
    path = path.rename(tmp_path / "calls.edges")
    tables = as_tables(path)
    assert list(tables.edges) == ["source", "target", "weight", "kind"]
    assert tables.edges.weight.tolist()[:2] == [4, 2.5] and tables.edges.kind[0] == "a, b"
    path.write_text("a {b}\nb {c}\n")  # odd names, no dictionaries
    assert as_tables(path).edges.target.tolist() == ["{b}", "{c}"]


@pytest.mark.parametrize(
    "said", ["{'weight': [1, 2]}", "{'weight': __import__('os')}", "{'weight': 4", "{1, 2}", "{" * 500]
)
def test_dictionaries_that_are_none(tmp_path: Path, said: str) -> None:
    (tmp_path / "calls.edges").write_text(f"0 1 {{'weight': 4}}\n1 2 {said}\n")
    problems = prepare(as_tables(tmp_path / "calls.edges"), Preparation(predict="links")).problems
    (problem,) = problems.errors
    assert problem.rows == (2,) and "networkx.write_weighted_edgelist" in problem.action


def test_categories_that_differ_in_capitals_are_told() -> None:
    notes = Preparation().fit((NODES.assign(smokes=["yes", "No", "YES"] * 4), EDGES)).problems.notes
    assert any("smokes: 'YES' and 'yes' differ in capitals only; taken as 2 categories" in note for note in notes)
