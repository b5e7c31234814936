"""Planted edges: as many as asked for, none of them the graph's own, known by name."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch_geometric.utils import is_undirected

from ltga.data import csbm, load_dataset
from ltga.data.planted import plant_edges
from ltga.errors import InputError


def pairs(edge_index: torch.Tensor) -> set[tuple[int, int]]:
    return {(min(a, b), max(a, b)) for a, b in edge_index.t().tolist()}


@pytest.mark.parametrize("share", [0.5, 1.0, 4.0])
def test_as_many_as_asked_for_and_none_of_them_the_graphs_own(share: float) -> None:
    graph = csbm(num_nodes=150, seed=3)
    noisy = plant_edges(graph, share, seed=5)
    planted = noisy.data.edge_index[:, noisy.data.planted_edge]
    own = noisy.data.edge_index[:, ~noisy.data.planted_edge]
    assert own.equal(graph.data.edge_index)
    assert len(pairs(planted)) == round(share * len(pairs(own))) == planted.size(1) // 2
    assert not pairs(planted) & pairs(own)
    assert (planted[0] != planted[1]).all()
    assert is_undirected(noisy.data.edge_index)
    assert all(torch.equal(a, b) for a, b in zip(noisy.split(2), graph.split(2)))


def test_a_directed_graph_stays_directed() -> None:
    graph = csbm(num_nodes=150, seed=3)
    keep = graph.data.edge_index[0] < graph.data.edge_index[1]
    graph.data.edge_index = graph.data.edge_index[:, keep]
    noisy = plant_edges(graph, 1.0)
    assert noisy.data.edge_index.size(1) == 2 * int(keep.sum())
    assert not is_undirected(noisy.data.edge_index)


@pytest.mark.data
def test_by_name(data_root: Path) -> None:
    noisy = load_dataset("texas:planted_per_edge=2,seed=1", data_root)
    assert noisy.name == "texas:planted_per_edge=2,seed=1"
    assert noisy.data.edge_index.equal(plant_edges(load_dataset("texas", data_root), 2, 1).data.edge_index)


def test_what_cannot_be_planted_is_refused() -> None:
    with pytest.raises(InputError, match="from 0 to 100"):
        plant_edges(csbm(num_nodes=60), -1)
    with pytest.raises(InputError, match="fill the graph"):
        plant_edges(csbm(num_nodes=60), 90)


@pytest.mark.parametrize("share", [0, 0.5, 1, 2])
def test_a_graph_with_planted_edges_is_never_called_as_without(share: float) -> None:
    clean = csbm(num_nodes=100)
    noisy = plant_edges(clean, share)
    assert noisy.name == f"csbm:num_nodes=100,planted_per_edge={share:g}"
    assert plant_edges(clean, share, seed=2).name == f"csbm:num_nodes=100,planted_per_edge={share:g},seed=2"
