"""Structural features against networkx and dense linear algebra."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from ltga.data.structure import structural_features
from ltga.errors import InputError


def graph(seed: int, nodes: int = 50) -> tuple[np.ndarray, nx.DiGraph, nx.Graph]:
    """Rows of a random graph with a self-loop, a repeated edge and a node without edges; the graph; its neighbours."""
    directed = nx.gnp_random_graph(nodes, 0.07, seed=seed, directed=True)
    directed.remove_node(5)
    directed.add_node(5)
    directed.add_edge(3, 3)
    rows = np.array([*directed.edges, next(iter(directed.edges))])
    neighbours = directed.to_undirected()
    neighbours.remove_edges_from(list(nx.selfloop_edges(neighbours)))
    return rows, directed, neighbours


@pytest.mark.parametrize("seed", range(4))
def test_counts_and_ranks_are_those_of_networkx(seed: int) -> None:
    rows, directed, neighbours = graph(seed)
    names = ["degree", "log-degree", "pagerank", "clustering", "core"]
    values, columns = structural_features(rows, 50, names)
    assert columns == names

    def ordered(found: dict[int, float]) -> np.ndarray:
        return np.array([found[node] for node in range(50)], dtype=float)

    expected = [
        ordered(dict(neighbours.degree)),
        np.log1p(ordered(dict(neighbours.degree))),
        50 * ordered(nx.pagerank(directed, tol=1e-14, max_iter=1000)),
        ordered(nx.clustering(neighbours)),
        ordered(nx.core_number(neighbours)),
    ]
    np.testing.assert_allclose(values, np.stack(expected, axis=1), atol=1e-9)


def test_clustering_in_blocks_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ltga.data.structure._PATHS_AT_ONCE", 50)
    hubs = nx.barabasi_albert_graph(120, 4, seed=1)
    values, _ = structural_features(np.array(list(hubs.edges)), 120, ["clustering"])
    np.testing.assert_allclose(values[:, 0], [nx.clustering(hubs, node) for node in range(120)])


@pytest.mark.parametrize("steps", [1, 4, 5])
def test_random_walks_are_powers_of_the_walk(steps: int) -> None:
    rows, _, neighbours = graph(7)
    values, columns = structural_features(rows, 50, [f"random-walk-{steps}"])
    adjacency = nx.to_numpy_array(neighbours, nodelist=range(50))
    degree = adjacency.sum(axis=1)
    walk = adjacency / np.where(degree > 0, degree, 1)[:, None]
    expected = [np.diag(np.linalg.matrix_power(walk, step)) for step in range(1, steps + 1)]
    np.testing.assert_allclose(values, np.stack(expected, axis=1), atol=1e-12)
    assert len(columns) == steps


@pytest.mark.parametrize("nodes", [60, 1000])  # dense, and by Lanczos
def test_laplacian_positions_are_its_eigenvectors(nodes: int) -> None:
    tree = nx.barabasi_albert_graph(nodes, 3, seed=2)
    values, _ = structural_features(np.array(list(tree.edges)), nodes, ["laplacian-4"])
    laplacian = nx.normalized_laplacian_matrix(tree).toarray()
    eigenvalues = np.linalg.eigvalsh(laplacian)[1:5]
    np.testing.assert_allclose(laplacian @ values, values * eigenvalues, atol=1e-7)
    np.testing.assert_allclose(values.T @ values, np.eye(4), atol=1e-7)
    assert (values[np.abs(values).argmax(axis=0), np.arange(4)] > 0).all()
    again, _ = structural_features(np.array(list(tree.edges)), nodes, ["laplacian-4"])
    assert (again == values).all()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["degre"], "'degre'; did you mean 'degree'"),
        (["random-walk"], "'random-walk'; did you mean 'random-walk-8'"),
        (["degree-3"], "'degree-3'"),
        (["laplacian-65"], "laplacian-65"),
        (["core", "core"], "a name repeats"),
        ([], "names nothing"),
        (["laplacian-9"], "needs more than 10 nodes"),
    ],
)
def test_odd_names_are_refused(names: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        structural_features(np.array([[0, 1]]), 3, names)


def test_work_beyond_patience_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ltga.data.structure._MOST_WORK", 10)
    with pytest.raises(InputError, match="random-walk-8 takes too long for 3 nodes"):
        structural_features(np.array([[0, 1], [1, 2]]), 3, ["random-walk-8"])
