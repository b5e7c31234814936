"""Batches gathered from packed graphs are PyG's."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch, Data

from ltga.train.tasks.packed_graphs import PackedGraphs


def graphs(attributes: bool) -> list[Data]:
    """Of 1 to 6 nodes, some without edges."""
    generator = torch.Generator().manual_seed(4)
    found = []
    for number in range(12):
        nodes, edges = 1 + number % 6, 0 if number % 4 == 0 else 3 * number
        graph = Data(
            x=torch.randn(nodes, 3, generator=generator),
            edge_index=torch.randint(nodes, (2, edges), generator=generator),
        )
        if attributes:
            graph.edge_attr = torch.randn(edges, 2, generator=generator)
        found.append(graph)
    return found


@pytest.mark.parametrize("attributes", [False, True])
@pytest.mark.parametrize("chosen", [[0], [4, 8], [11, 3, 0, 7], [5, 5, 1], list(range(12))])
def test_a_batch_is_pygs(attributes: bool, chosen: list[int]) -> None:
    every = graphs(attributes)
    found = PackedGraphs.of(every).chosen(torch.tensor(chosen))
    expected = Batch.from_data_list([every[number] for number in chosen])
    assert found.x.equal(expected.x) and found.edge_index.equal(expected.edge_index)
    assert found.batch.equal(expected.batch) and found.num_graphs == expected.num_graphs
    assert found.edge_attr.equal(expected.edge_attr) if attributes else found.edge_attr is None
