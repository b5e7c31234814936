"""LTGAConv on batches from PyG's own loaders."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader, NeighborLoader, RandomNodeLoader
from torch_geometric.nn import global_mean_pool
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE

from ltga.nn import LTGAConv


def graphs(count: int = 5) -> list[Data]:
    generator = torch.Generator().manual_seed(0)
    made = []
    for nodes in range(3, 3 + count):
        edge_index = torch.randint(0, nodes, (2, 3 * nodes), generator=generator)
        made.append(Data(x=torch.randn(nodes, 4, generator=generator), edge_index=edge_index))
    return made


@pytest.mark.parametrize("index", ["head", "edge"])
def test_a_batch_of_graphs_is_each_graph_alone(index: str) -> None:
    conv = LTGAConv(4, 3, heads=2, index=index)
    with torch.no_grad():
        for parameter in conv.index.parameters():
            parameter.add_(0.5)
    alone = [conv(graph.x, graph.edge_index) for graph in graphs()]
    seen = 0
    for batch in DataLoader(graphs(), batch_size=2):
        out = conv(batch.x, batch.edge_index)
        expected = alone[seen : seen + batch.num_graphs]
        torch.testing.assert_close(out, torch.cat(expected))
        pooled = global_mean_pool(out, batch.batch)
        torch.testing.assert_close(pooled, torch.stack([rows.mean(0) for rows in expected]))
        seen += batch.num_graphs
    assert seen == 5


def test_a_random_part_of_a_graph_can_be_trained_on() -> None:
    graph = Data(x=torch.randn(40, 4), edge_index=torch.randint(0, 40, (2, 160)))
    conv = LTGAConv(4, 3, heads=2, index="edge")
    for part in RandomNodeLoader(graph, num_parts=4):
        out = conv(part.x, part.edge_index)
        assert out.shape == (part.num_nodes, 6)
        out.sum().backward()
    assert all(parameter.grad is not None for parameter in conv.parameters())


@pytest.mark.skipif(not (WITH_PYG_LIB or WITH_TORCH_SPARSE), reason="PyG's sampler needs pyg-lib or torch-sparse")
def test_pygs_neighbour_loader_gives_the_whole_graphs_numbers() -> None:
    graph = Data(x=torch.randn(40, 4), edge_index=torch.randint(0, 40, (2, 160)))
    conv = LTGAConv(4, 3, heads=2)
    whole = conv(graph.x, graph.edge_index)
    for batch in NeighborLoader(graph, num_neighbors=[-1], batch_size=8):
        torch.testing.assert_close(
            conv(batch.x, batch.edge_index)[: batch.batch_size], whole[batch.n_id[: batch.batch_size]]
        )
