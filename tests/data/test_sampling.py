"""The neighbour sampler against brute force and PyG: which nodes, which edges, how many, how likely."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import k_hop_subgraph

from ltga.data import NeighborSampler
from ltga.errors import GraphError, InputError


def random_graph(nodes: int = 60, edges: int = 400, seed: int = 0) -> Data:
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(0, nodes, (2, edges), generator=generator)
    return Data(
        x=torch.arange(nodes).float().view(-1, 1),
        y=torch.arange(nodes) % 3,
        edge_index=edge_index,
        edge_attr=torch.arange(edges).float().view(-1, 1),
        note="kept",
    )


def real_edges(data: Data, sample: Any) -> list[tuple[int, int]]:
    """The sample's edges in the numbers of the whole graph, by way of the nodes."""
    return [tuple(pair) for pair in sample.nodes[sample.edge_index].T.tolist()]


@pytest.mark.parametrize("fanout", [[-1], [-1, -1], [3, 2], [1, 1, 1], [1000, 2]])
def test_a_sample_is_a_subgraph_with_bounded_in_degrees(fanout: list[int]) -> None:
    data = random_graph()
    sampler = NeighborSampler(data, fanout, seed=4)
    seeds = torch.tensor([7, 3, 59])
    sample = sampler.sample(seeds)
    assert sample.nodes[: sample.num_seeds].equal(seeds)
    assert len(sample.nodes.unique()) == len(sample.nodes)
    assert len(sample.edges.unique()) == len(sample.edges)  # without replacement
    assert real_edges(data, sample) == [tuple(pair) for pair in data.edge_index[:, sample.edges].T.tolist()]
    incoming = data.edge_index[1].bincount(minlength=60)
    drawn = sample.edge_index[1].bincount(minlength=len(sample.nodes))
    hop = {int(node): 0 for node in seeds}  # distance at which a node was reached, by brute force
    for source, target in sorted(real_edges(data, sample), key=lambda pair: hop.get(pair[1], 99)):
        hop.setdefault(source, hop.get(target, 99) + 1)
    for position, node in enumerate(sample.nodes.tolist()):
        if hop[node] < len(fanout):
            limit = fanout[hop[node]]
            expected = int(incoming[node]) if limit == -1 else min(limit, int(incoming[node]))
            assert drawn[position] == expected
        else:
            assert drawn[position] == 0


def test_full_fan_out_is_pygs_k_hop_subgraph() -> None:
    data = random_graph(nodes=200, edges=300)
    for hops in (1, 2, 3):
        sample = NeighborSampler(data, [-1] * hops).sample(torch.tensor([5, 17]))
        nodes, _, _, _ = k_hop_subgraph([5, 17], hops, data.edge_index, num_nodes=200)
        assert sorted(sample.nodes.tolist()) == nodes.tolist()


def test_repeated_edges_self_loops_and_lonely_nodes() -> None:
    data = Data(edge_index=torch.tensor([[1, 1, 0, 2], [0, 0, 0, 2]]), num_nodes=4)
    sample = NeighborSampler(data, [-1, -1]).sample([0, 3])
    assert sorted(real_edges(data, sample)) == [(0, 0), (1, 0), (1, 0)]
    assert sample.nodes.tolist() == [0, 3, 1]
    alone = NeighborSampler(data, [2]).sample([3])
    assert alone.nodes.tolist() == [3] and alone.edge_index.shape == (2, 0)
    empty = Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=2)
    assert NeighborSampler(empty, [5]).sample([1]).nodes.tolist() == [1]


def test_repeated_seeds_are_one_node_but_keep_their_places() -> None:
    sample = NeighborSampler(random_graph(), [2]).sample([9, 4, 9, 9])
    assert sample.num_seeds == 2 and sample.nodes[:2].tolist() == [9, 4]
    assert sample.nodes[sample.seeds].tolist() == [9, 4, 9, 9]


def test_every_subset_of_neighbours_is_equally_likely() -> None:
    star = Data(edge_index=torch.tensor([[1, 2, 3, 4, 5], [0] * 5]), num_nodes=6)
    sampler = NeighborSampler(star, [2])
    generator = torch.Generator().manual_seed(0)
    draws = 4000
    counts = Counter(tuple(sampler.sample([0], generator).edges.tolist()) for _ in range(draws))
    assert len(counts) == 10
    expected = draws / 10
    chi_square = sum((count - expected) ** 2 / expected for count in counts.values())
    assert chi_square < 27.9  # the 99.9 % point for 9 degrees of freedom


def test_passes_cover_the_seeds_once_and_depend_on_the_seed_alone() -> None:
    data = random_graph()
    mask = torch.arange(60) < 25
    passes = []
    for seed in (1, 1, 2):
        torch.rand(3)
        sampler = NeighborSampler(data, [2, 2], nodes=mask, batch_size=10, seed=seed)
        assert len(sampler) == 3
        first, second = list(sampler), list(sampler)
        for batches in (first, second):
            assert [batch.batch_size for batch in batches] == [10, 10, 5]
            seeds = torch.cat([batch.n_id[: batch.batch_size] for batch in batches])
            assert sorted(seeds.tolist()) == list(range(25))
        passes.append([torch.cat([batch.e_id for batch in batches]).tolist() for batches in (first, second)])
    assert passes[0] == passes[1]
    assert passes[0] != passes[2] and passes[0][0] != passes[0][1]
    still = NeighborSampler(data, [1], nodes=torch.tensor([5, 2, 8]), batch_size=2, shuffle=False)
    assert [batch.n_id[: batch.batch_size].tolist() for batch in still] == [[5, 2], [8]]


def test_a_batch_carries_its_attributes() -> None:
    data = random_graph()
    for batch in NeighborSampler(data, [3, 3], batch_size=16):
        assert batch.x.flatten().long().equal(batch.n_id) and batch.y.equal(data.y[batch.n_id])
        assert batch.edge_attr.flatten().long().equal(batch.e_id)
        assert batch.n_id[batch.edge_index].equal(data.edge_index[:, batch.e_id])
        assert batch.note == "kept" and batch.num_nodes == len(batch.n_id)
        batch.validate(raise_on_error=True)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"fanout": []}, "fanout: expected one number per layer"),
    ({"fanout": 5}, "fanout: expected one number per layer"),
    ({"fanout": [0]}, "fanout: expected whole numbers from 1, or -1"),
    ({"fanout": [2.0]}, "fanout: expected whole numbers"),
    ({"batch_size": 0}, "batch_size: expected a whole number from 1, got 0"),
    ({"seed": -1}, "seed: expected"),
    ({"nodes": torch.tensor([3, 60])}, r"nodes: node 60 is not in 0\.\.59"),
    ({"nodes": torch.tensor([-1])}, "nodes: node -1"),
    ({"nodes": torch.tensor([0.5])}, "nodes: expected node numbers"),
    ({"nodes": torch.ones(3, dtype=torch.bool)}, r"nodes: a mask needs shape \[60\]"),
    ({"nodes": torch.zeros(60, dtype=torch.bool)}, "nodes: there are none"),
    ({"data": Data(x=torch.ones(3, 1))}, "data: has no edge_index"),
]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_bad_arguments_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        NeighborSampler(**{"data": random_graph(), "fanout": [2], **changes})


@pytest.mark.parametrize("edge", [[0, 60], [-1, 0]])
def test_edges_out_of_range_are_named(edge: list[int]) -> None:
    data = random_graph()
    data.edge_index[:, 7] = torch.tensor(edge)
    with pytest.raises(GraphError, match=r"edge 7 joins \[.*\], but nodes are numbered 0 to 59"):
        NeighborSampler(data, [2])
    with pytest.raises(GraphError, match="expected integers"):
        NeighborSampler(Data(edge_index=torch.rand(2, 3), num_nodes=3), [2])
