"""Many small graphs end to end in a few tensors, from which a batch of some of them is gathered in a few steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data


class GraphBatch(NamedTuple):
    """Some graphs as one graph of several components, as PyG's ``Batch`` puts them together."""

    x: Tensor  # [N, F]
    edge_index: Tensor  # [2, E]
    edge_attr: Tensor | None  # [E, D]
    batch: Tensor  # [N], which graph a node is of
    num_graphs: int


@dataclass(frozen=True, eq=False)
class PackedGraphs:
    """Features and edges of all graphs, one graph after another; the nodes of each are counted from 0.

    Putting a batch together from objects, one by one, takes longer than a layer takes to read it.

    >>> ring = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]))
    >>> pair = Data(x=torch.ones(2, 3), edge_index=torch.tensor([[0], [1]]))
    >>> PackedGraphs.of([ring, pair]).chosen(torch.tensor([1, 0])).edge_index
    tensor([[0, 2, 3, 4],
            [1, 3, 4, 2]])
    """

    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor | None
    first_node: Tensor  # [G + 1]
    first_edge: Tensor  # [G + 1]

    @classmethod
    def of(cls, graphs: Sequence[Data]) -> PackedGraphs:
        attributes = [graph.edge_attr for graph in graphs if graph.get("edge_attr") is not None]
        return cls(
            torch.cat([graph.x for graph in graphs]),
            torch.cat([graph.edge_index for graph in graphs], dim=1),
            torch.cat(attributes) if attributes else None,
            _starts([graph.x.size(0) for graph in graphs]),
            _starts([graph.edge_index.size(1) for graph in graphs]),
        )

    def __len__(self) -> int:
        return len(self.first_node) - 1

    def chosen(self, graphs: Tensor) -> GraphBatch:
        """The graphs of these numbers, in this order, where the packed ones are."""
        graphs = graphs.to(self.first_node.device)
        owner, rows, sizes = _rows_of(self.first_node, graphs)
        owner_of_edge, edges, _ = _rows_of(self.first_edge, graphs)
        offset = (sizes.cumsum(0) - sizes)[owner_of_edge]
        edge_attr = None if self.edge_attr is None else self.edge_attr[edges]
        return GraphBatch(self.x[rows], self.edge_index[:, edges] + offset, edge_attr, owner, len(graphs))


def _starts(sizes: list[int]) -> Tensor:
    return torch.tensor([0, *sizes]).cumsum(0)


def _rows_of(first: Tensor, graphs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For all rows of some graphs: which of them a row is of, and where it is; and how many rows each graph has."""
    start = first[graphs]
    sizes = first[graphs + 1] - start
    owner = torch.arange(len(graphs)).repeat_interleave(sizes)
    within = torch.arange(len(owner)) - (sizes.cumsum(0) - sizes)[owner]
    return owner, start[owner] + within, sizes
