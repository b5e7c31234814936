"""Edge conventions against networkx and PyG."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.utils import coalesce, to_undirected

from ltga.data.edges import arrange_edges, first_repeat
from ltga.errors import DataError, InputError

EDGES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=0, max_size=20)


@given(EDGES)
@settings(max_examples=40, deadline=None)
def test_undirected_rows_give_the_networkx_graph(pairs: list[tuple[int, int]]) -> None:
    rows = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    edge_index, _ = arrange_edges(rows, "undirected, once", 7)
    graph = nx.Graph(pairs)
    expected = sorted({(a, b) for a, b in graph.edges} | {(b, a) for a, b in graph.edges})
    assert [tuple(pair) for pair in edge_index.T.tolist()] == expected


@given(EDGES)
@settings(max_examples=40, deadline=None)
def test_orders_are_those_of_pyg(pairs: list[tuple[int, int]]) -> None:
    rows = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    stored = torch.from_numpy(rows).t().contiguous()
    assert torch.equal(arrange_edges(rows, "directed", 7)[0], coalesce(stored, num_nodes=7))
    assert torch.equal(arrange_edges(rows, "undirected, once", 7)[0], to_undirected(stored, num_nodes=7))


def test_attributes_follow_their_edges_in_both_directions() -> None:
    rows, values = np.array([[2, 0], [0, 1], [3, 3]]), np.array([[20.0], [1.0], [33.0]])
    edge_index, edge_attr = arrange_edges(rows, "undirected, once", 4, values)
    assert edge_attr is not None
    found = {tuple(pair): value for pair, value in zip(edge_index.T.tolist(), edge_attr[:, 0].tolist())}
    assert found == {(0, 2): 20.0, (2, 0): 20.0, (0, 1): 1.0, (1, 0): 1.0, (3, 3): 33.0}
    edge_index, edge_attr = arrange_edges(rows, "directed", 4, values)
    assert edge_attr is not None
    assert edge_index.T.tolist() == [[0, 1], [2, 0], [3, 3]]
    assert edge_attr[:, 0].tolist() == [1.0, 20.0, 33.0]


def test_both_directions_keep_the_stored_order() -> None:
    rows = np.array([[2, 0], [0, 1], [1, 0], [0, 2]])
    assert arrange_edges(rows, "both directions", 3)[0].T.tolist() == rows.tolist()
    with pytest.raises(DataError, match=r"row 1 \(2, 0\) has no row \(0, 2\)"):
        arrange_edges(rows[:3], "both directions", 3)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.array([[0, 1], [1, 9]]), r"edge row 2 joins \[1, 9\].*0 to 2"),
        (np.array([[0, -1]]), "edge row 1"),
        (np.array([0, 1]), r"shape \[E, 2\]"),
        (np.array([[0.0, 1.0]]), "whole numbers"),
    ],
)
def test_bad_rows_are_named(rows: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        arrange_edges(rows, "directed", 3)


def test_repeats_with_attributes_and_unknown_conventions_are_refused() -> None:
    rows = np.array([[0, 1], [1, 0]])
    with pytest.raises(DataError, match="row 2 repeats row 1"):
        arrange_edges(rows, "undirected, once", 3, np.ones(2))
    with pytest.raises(DataError, match="one each"):
        arrange_edges(rows, "directed", 3, np.ones(5))
    with pytest.raises(InputError, match="convention"):
        arrange_edges(rows, "undirected", 3)


@given(st.lists(st.integers(0, 5), max_size=12))
@settings(max_examples=60, deadline=None)
def test_first_repeat_against_a_plain_scan(values: list[int]) -> None:
    expected = next(((values.index(v), i) for i, v in enumerate(values) if v in values[:i]), None)
    assert first_repeat(np.array(values, dtype=np.int64)) == expected
