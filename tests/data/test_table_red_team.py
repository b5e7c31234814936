"""Cells that were read as something else, found by attacking the readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from ltga.data import FittedPreparation, Preparation
from ltga.data.find_node import position_of
from ltga.data.graph_files import read_graph_file
from ltga.errors import DataError, InputError

IDS = [f"n{number}" for number in range(8)]
NODES = pd.DataFrame({"id": IDS, "label": list("ab") * 4})
EDGES = pd.DataFrame({"source": IDS, "target": IDS[1:] + IDS[:1]})
NUMBERS = [1.234, 2.512, 1.125, 3.001, 4.501, 5.0, 6.0, 7.0]


def fitted(column: Any, **options: Any) -> Any:
    return Preparation(scale="none", **options).fit((NODES.assign(x=column), EDGES))


@pytest.mark.parametrize("first", ["node1 node2", "from to", "u v", "source target"])
def test_an_edge_with_a_dictionary_is_no_header(first: str, tmp_path: Path) -> None:
    path = tmp_path / "some.edgelist"
    other = first.split()[1]
    path.write_text(f"{first} {{'weight': 10}}\n{other} c {{'weight': 20}}\nc {first.split()[0]} {{'weight': 30}}\n")
    graph = Preparation(predict="links", scale="none").fit(path)
    assert graph.arrays.edges.shape == (3, 2) and graph.arrays.edge_attr.ravel().tolist() == [10, 20, 30]


def test_half_a_character_in_a_dictionary_is_told(tmp_path: Path) -> None:
    path = tmp_path / "some.edgelist"
    path.write_text("a b {'n': '\\ud800'}\nb c {'n': 'x'}\n")
    with pytest.raises(DataError, match="expected a dictionary of plain numbers and text"):
        Preparation(predict="links").fit(path)


def test_blank_rows_of_edges_are_no_node_where_there_is_no_table_of_nodes(tmp_path: Path) -> None:
    path = tmp_path / "calls.csv"
    path.write_text("source,target,weight\na,b,1\nb,c,2\n,,\nd,a,3\n")
    graph = Preparation(predict="links", scale="none").fit(path)
    assert set(graph.node_ids) == set("abcd")
    assert graph.arrays.edge_attr.ravel().tolist() == [1, 2, 3]
    path.write_text("source,target,weight\na,b,1\nc,,2\n")
    with pytest.raises(DataError, match="row 2"):
        Preparation(predict="links").fit(path)


@pytest.mark.parametrize("dtype", ["float64", "Float64", "double[pyarrow]", "category", object])
def test_numbers_that_were_never_text_have_no_decimal_sign(dtype: Any) -> None:
    graph = fitted(pd.Series(NUMBERS).astype(dtype), decimal=",")
    np.testing.assert_allclose(graph.arrays.x.ravel(), NUMBERS, rtol=1e-6)
    gaps = pd.Series([None, *NUMBERS[1:]], dtype="Float64")
    assert fitted(gaps, decimal=",").arrays.x[1:, 0] == pytest.approx(NUMBERS[1:], rel=1e-6)


def test_prediction_says_that_a_sign_was_taken_for_one_between_thousands() -> None:
    graph = fitted(["1,5", "2,5", "3,25", "4", "5", "6", "7", "8"], decimal=",")
    later = graph.fitted.apply((NODES.assign(x=["1.500", *"2345678"]), EDGES))
    (said,) = [problem for problem in later.problems if problem.weight == "mended"]
    assert "'1.500' is read as 1500" in said.what and "none had a sign between thousands before" in said.action
    again = graph.fitted.apply((NODES.assign(x=list("12345678")), EDGES))
    assert not [problem for problem in again.problems if problem.weight == "mended"]


def test_words_for_what_is_not_known_stay_unknown_in_prediction() -> None:
    labels = ["a;b", "b", "NA", "a;NA", "b", "a", ";", ""]
    nodes = pd.DataFrame({"id": IDS, "label": labels, "x": range(8)})
    graph = Preparation(missing_labels="unknown").fit((nodes, EDGES))
    later = graph.fitted.apply((nodes, EDGES))
    assert np.isnan(later.data().y[2].numpy()).all()


@pytest.mark.parametrize("fraction", [".123456", ".5", ".123456789"])
def test_fractions_of_a_second(fraction: str) -> None:
    cell = f"2020-01-02 10:00:00{fraction}"
    days = fitted([cell, "2021-03-04 01:00:00"] * 4).arrays.x
    assert days[0, 0] == pytest.approx(pd.Timestamp(cell).timestamp() / 86_400, rel=1e-6)


@pytest.mark.parametrize("word", ["now", "Today"])
def test_the_time_at_which_a_table_is_read_is_no_date(word: str) -> None:
    with pytest.raises(DataError, match=rf"x is '{word}'"):
        fitted(["2020-01-02"] * 7 + [word])


def test_edges_that_are_stored_otherwise_than_those_learned_from_are_refused() -> None:
    """An undirected graph under a run on directed edges passed half of its messages."""
    nodes = pd.DataFrame({"id": range(20), "label": ["a", "b"] * 10, "x": range(20)})
    edges = pd.DataFrame({"source": range(19), "target": range(1, 20)})
    ring = nx.cycle_graph(20)
    nx.set_node_attributes(ring, {at: {"label": "ab"[at % 2], "x": float(at)} for at in ring})
    of_tables, of_graph = Preparation().fit((nodes, edges)).fitted, Preparation().fit(ring).fitted
    for fitted, other in ((of_tables, ring), (of_graph, ring.to_directed())):
        with pytest.raises(DataError, match=r"its edges are '.*', and those that the run learned from were '.*'; give"):
            fitted.apply(other)
    of_tables.apply(ring.to_directed())
    of_graph.apply((nodes, edges))  # tables say nothing of it
    for fitted, own, other in (
        (Preparation(convention="directed").fit((nodes, edges)).fitted, ring.to_directed(), ring),
        (Preparation(convention="directed").fit(ring).fitted, ring, ring.to_directed()),
    ):
        again = FittedPreparation.model_validate(fitted.model_dump(mode="json"))
        again.apply(own)
        with pytest.raises(DataError, match="those that the run learned from were"):
            again.apply(other)
    before = Preparation(convention="directed").fit(ring).fitted.model_dump(mode="json", exclude={"told"})
    FittedPreparation.model_validate(before).apply(ring)  # a run that did not look at it yet reads its own graph


def test_a_symmetric_matrix_is_directed_if_somebody_says_so() -> None:
    """Half of its entries, read as directed, passed half of the messages."""
    matrix = sp.coo_array((np.ones(4), ([0, 1, 1, 2], [1, 0, 2, 1])), shape=(3, 3)).tocsr()
    nodes = pd.DataFrame({"id": range(3), "label": ["a", "b", "a"], "x": [1.0, 2.0, 4.0]})
    plain = Preparation().fit(matrix, nodes=nodes).data().edge_index
    told = Preparation(convention="directed").fit(matrix, nodes=nodes)
    assert sorted(plain.T.tolist()) == sorted(told.data().edge_index.T.tolist())
    edges = pd.DataFrame({"source": [0, 1], "target": [1, 2], "weight": [1.0, 1.0]})
    run = Preparation().fit((nodes, edges)).fitted
    assert sorted(run.apply(matrix, nodes=nodes).data().edge_index.T.tolist()) == sorted(plain.T.tolist())


@pytest.mark.parametrize(("column", "meant"), [("train_mask", "split"), ("Split", "split"), ("ID", "id")])
def test_a_feature_that_is_named_like_none_is_pointed_out(column: str, meant: str) -> None:
    nodes = pd.DataFrame({"id": range(20), "label": ["a", "b"] * 10, "x": range(20), column: [0, 1] * 10})
    edges = pd.DataFrame({"source": range(19), "target": range(1, 20)})
    notes = Preparation().fit((nodes, edges)).problems.notes
    assert any(f"column {column!r} is named nearly like {meant!r}; taken as a feature" in note for note in notes)
    dropped = Preparation(drop=(column,)).fit((nodes, edges)).problems.notes
    assert not any("named nearly" in note for note in dropped)


def test_a_number_is_no_position_where_ids_are_numbers() -> None:
    """`--node 05` explained node 6, the one at position 5."""
    ids = [str(number) for number in range(1, 61)]
    assert position_of("5", ids, 60, "mine") == 4 and position_of(5, ["a"] * 60, 60, "mine") == 5
    for wrong in ("05", "0", 61):
        with pytest.raises(InputError, match=f"mine has no node '{wrong}'"):
            position_of(wrong, ids, 60, "mine")


@pytest.mark.parametrize(
    ("name", "text", "edges", "noted"),
    [
        ("a.csv", "#FromNodeId,ToNodeId\n1,2\n2,3\n", ["1>2", "2>3"], "left out as comments"),
        ("a.tsv", "#Source_ID\tTarget_ID\tweight\n1\t2\t5\n2\t3\t6\n", ["1>2", "2>3"], "left out as comments"),
        ("a.csv", "#ann,#bob\n#bob,c\nc,#ann\n#ann,d\n", ["#ann>#bob", "#bob>c", "c>#ann", "#ann>d"], "taken"),
        ("a.csv", "a,b\nb,c\n# total, 2\n", ["a>b", "b>c"], "left out as comments"),
        ("a.txt", "#ai bob\n#ml ann\nann bob\nbob #ai\n", ["ann>bob", "bob>#ai"], "left out as comments"),
        ("a.edgelist", "#ai #ml {'w': 1}\n#ai bob {'w': 2}\na b {'w': 3}\n", ["#ai>#ml", "#ai>bob", "a>b"], "taken"),
        ("a.csv", "p1;p2;p3,topicA\np2;p4;p5,topicB\n", ["p1;p2;p3>topicA", "p2;p4;p5>topicB"], ""),
        ("a.csv", "a;b;1,5\nb;c;2,25\n", ["a>b", "b>c"], ""),
    ],
)  # fmt: skip
def test_signs_in_lists_of_edges(name: str, text: str, edges: list[str], noted: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    tables = read_graph_file(tmp_path / name, Preparation())
    assert (tables.edges["source"] + ">" + tables.edges["target"]).tolist() == edges
    assert any(noted in str(problem) for problem in tables.problems.found)
