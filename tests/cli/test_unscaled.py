"""Whoever trains on features of very different sizes is told, whatever the task."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

from ltga.cli.unscaled import warnings_about
from ltga.data import Dataset, NodeDataset, collection_from_data, csbm, make_target, split_links


def graph(size: float) -> Data:
    x = torch.randn(30, 3, generator=torch.Generator().manual_seed(0))
    x[:, 1] *= size
    return Data(x=x, edge_index=torch.stack([torch.arange(30), (torch.arange(30) + 1) % 30]), y=0)


@pytest.mark.parametrize(("size", "told"), [(1.0, False), (300.0, True)])
def test_every_task(size: float, told: bool) -> None:
    many = [graph(size) for _ in range(20)]
    for number, one in enumerate(many):
        one.y = number % 2
    nodes = NodeDataset("nodes", graph(size), make_target(torch.randn(30), "nodes"))
    for data in (collection_from_data(many, "many"), nodes, split_links(graph(size), "links", seed=0)):
        found = warnings_about(data)
        assert len(found) == told, data
        assert all("feature number 1 has a standard deviation of" in line and "scale" in line for line in found)


def test_a_class_for_each_node() -> None:
    clean: Dataset = csbm(num_nodes=60)
    assert warnings_about(clean) == []
