"""Held-out links and their negatives against networkx."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from ltga.data import load_dataset, split_links
from ltga.data.links import LinkSplit
from ltga.errors import DataError, InputError


def as_data(graph: nx.Graph) -> Data:
    edges = torch.tensor(list(graph.edges)).t()
    return Data(x=torch.eye(graph.number_of_nodes()), edge_index=edges.contiguous())


@pytest.fixture(scope="module")
def graph() -> nx.Graph:
    return nx.barabasi_albert_graph(120, 3, seed=4)


@pytest.fixture(scope="module")
def links(graph: nx.Graph) -> LinkSplit:
    return split_links(as_data(graph), "small", val=0.1, test=0.2, seed=5)


def pairs(edges: torch.Tensor) -> set[frozenset[int]]:
    return {frozenset(pair) for pair in edges.reshape(2, -1).t().tolist()}


def test_every_edge_is_in_one_part(graph: nx.Graph, links: LinkSplit) -> None:
    parts = [pairs(links.positives(part)) for part in ("train", "val", "test")]  # type: ignore[arg-type]
    assert set.union(*parts) == {frozenset(edge) for edge in graph.edges}
    assert sum(map(len, parts)) == graph.number_of_edges()
    assert [len(part) for part in parts[1:]] == [round(0.1 * 351), round(0.2 * 351)]
    assert pairs(links.data.edge_index) == parts[0]
    assert links.data.is_undirected()
    assert links.data.edge_index.shape[1] == 2 * len(parts[0])
    assert links.data.get("y") is None
    assert links.task == "link prediction"


@pytest.mark.parametrize("kind", ["random", "two-hop", "degree"])
@pytest.mark.parametrize("part", ["train", "val", "test"])
def test_negatives_are_what_they_are_called(kind: Any, part: Any, graph: nx.Graph, links: LinkSplit) -> None:
    seen = nx.Graph(links.train.t().tolist())
    seen.add_nodes_from(graph)
    negatives = links.negatives(part, kind, each=4)
    positives = links.positives(part)
    assert negatives.shape == (2, positives.shape[1], 4)
    hard = 0
    for at in range(positives.shape[1]):
        ends = set(positives[:, at].tolist())
        (asked,) = set(negatives[0, at].tolist())
        assert asked in ends
        others = negatives[1, at].tolist()
        assert all(asked != other and not graph.has_edge(asked, other) for other in others)
        if kind == "two-hop":
            near = {far for mid in seen[asked] for far in seen[mid]} - {asked} - set(graph[asked])
            if set(others) <= near and near:
                hard += 1
                assert len(set(others)) == min(4, len(near))
        elif kind == "degree":
            (model,) = ends - {asked}
            free = sorted(abs(seen.degree[n] - seen.degree[model]) for n in set(graph) - {asked} - set(graph[asked]))
            assert sorted(abs(seen.degree[n] - seen.degree[model]) for n in others) == free[:4]
            hard += 1
        else:
            hard += 1
    assert links.hard_enough(part, kind, each=4) == pytest.approx(hard / positives.shape[1])
    assert hard > 0.9 * positives.shape[1]


def test_the_same_seed_gives_the_same_links(graph: nx.Graph, links: LinkSplit) -> None:
    again = split_links(as_data(graph), "small", val=0.1, test=0.2, seed=5)
    assert torch.equal(again.test, links.test)
    assert torch.equal(again.negatives("test", "two-hop", 3), links.negatives("test", "two-hop", 3))
    assert torch.equal(links.negatives("test", "two-hop", 3), links.negatives("test", "two-hop", 3))
    other = split_links(as_data(graph), "small", val=0.1, test=0.2, seed=6)
    assert not torch.equal(other.test, links.test)


def test_loops_repeats_and_direction_do_not_count(graph: nx.Graph, links: LinkSplit) -> None:
    data = as_data(graph)
    loops = torch.arange(120).repeat(2, 1)
    data.edge_index = torch.cat([data.edge_index.flip(0), loops, data.edge_index, data.edge_index], dim=1)
    again = split_links(data, "small", val=0.1, test=0.2, seed=5)
    assert torch.equal(again.train, links.train)
    assert torch.equal(again.data.edge_index, links.data.edge_index)


@pytest.mark.data
def test_hard_negatives_defeat_common_neighbours(data_root: Path) -> None:
    """On Cora common neighbours tell edges from random pairs, and much less from pairs two steps apart."""
    links = split_links(load_dataset("cora", root=data_root).data, "cora")
    assert links.test.shape[1] == round(0.1 * 5278)
    seen = nx.Graph(links.train.t().tolist())
    seen.add_nodes_from(range(2708))

    def common(edges: torch.Tensor) -> np.ndarray:
        return np.array([len(set(seen[a]) & set(seen[b])) for a, b in edges.reshape(2, -1).t().tolist()])

    def auc(kind: Any) -> float:
        positive, negative = common(links.test), common(links.negatives("test", kind))
        return float(np.mean((positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)))

    assert auc("random") > 0.65
    assert auc("two-hop") < 0.5


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"val": 0.0}, InputError, "val: got 0.0"),
        ({"test": 1.2}, InputError, "got 1.2|val: got 0.05"),
        ({"val": 0.001}, DataError, "351 edges are too few"),
    ],
)
def test_shares_that_make_no_sense(settings: Any, error: Any, message: str, graph: nx.Graph) -> None:
    with pytest.raises(error, match=message):
        split_links(as_data(graph), "small", **settings)


def test_other_input_that_makes_no_sense(links: LinkSplit) -> None:
    with pytest.raises(DataError, match="every pair of nodes has an edge"):
        split_links(as_data(nx.complete_graph(12)))
    with pytest.raises(InputError, match="kind: got 'hard'"):
        links.negatives("test", "hard")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="part: got 'dev'"):
        links.negatives("dev")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="each: got 0"):
        links.negatives("test", each=0)


def test_a_node_that_knows_everybody() -> None:
    """A wheel's hub has no pair without an edge; the rim is asked instead."""
    wheel = split_links(as_data(nx.wheel_graph(30)), "wheel", val=0.1, test=0.3)
    for kind in ("random", "two-hop", "degree"):
        assert not bool((wheel.negatives("test", kind, each=2) == 0).any())  # type: ignore[arg-type]
