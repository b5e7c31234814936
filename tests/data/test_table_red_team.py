"""Cells that were read as something else, found by attacking the readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ltga.data import Preparation
from ltga.errors import DataError

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
