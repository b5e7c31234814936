"""A network for whole graphs: nodes are encoded, a graph is the mean and the maximum of its nodes."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import global_max_pool, global_mean_pool

from ltga.nn.composed import Composed
from ltga.nn.interface import Network


class GraphNetwork(Composed):
    """An encoder of nodes, mean and maximum over each graph side by side, and a perceptron of two layers.

    Args:
        encoder: gives every node ``width`` numbers.
        width: see above.
        outputs: how many numbers a graph gets.
        dropout: probability of dropping what the perceptron reads.

    Shapes:
        ``x`` ``[N, F]``, ``edge_index`` ``[2, E]``, ``edge_attr`` ``[E, D]`` or ``None``, ``batch`` ``[N]``: which
        graph a node is of -> ``[graphs, outputs]``.

    >>> from ltga.nn import LTGA
    >>> model = GraphNetwork(LTGA(4, 8, hidden_channels=2, heads=2), 8, outputs=3)
    >>> x, batch = torch.randn(5, 4), torch.tensor([0, 0, 1, 1, 1])
    >>> model(x, torch.tensor([[0, 2], [1, 3]]), None, batch, 2).shape
    torch.Size([2, 3])
    """

    def __init__(self, encoder: Network, width: int, outputs: int, dropout: float = 0.0) -> None:
        super().__init__(encoder, dropout)
        self.first = nn.Linear(2 * width, width)
        self.last = nn.Linear(width, outputs)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, batch: Tensor, graphs: int | None = None
    ) -> Tensor:
        nodes = F.elu(self.encode(x, edge_index, edge_attr))
        read = torch.cat([global_mean_pool(nodes, batch, graphs), global_max_pool(nodes, batch, graphs)], dim=1)
        out: Tensor = self.last(self.drop(F.elu(self.first(self.drop(read))), 1))
        return out
