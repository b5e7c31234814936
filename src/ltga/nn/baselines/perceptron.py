"""A perceptron on each node's features: what can be done without looking at an edge."""

from __future__ import annotations

from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn

from ltga.kernels import torch_dropout
from ltga.nn.arguments import check_network
from ltga.nn.baselines.stand_in import embed_features
from ltga.nn.interface import Network


class Perceptron(Network):
    """Linear layers with dropout before and ELU between them; edges are taken and not looked at.

    Args:
        in_channels: width F of the node features.
        num_classes: number of outputs C.
        hidden_channels, heads: the hidden width is their product, as in the attention networks.
        num_layers: number of linear layers, at least 1.
        dropout: probability of dropping a feature before each layer.

    >>> import torch
    >>> Perceptron(5, 3)(torch.randn(4, 5), torch.tensor([[0, 1], [1, 2]])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        *,
        hidden_channels: int = 64,
        heads: int = 8,
        num_layers: int = 2,
        dropout: float = 0.4,
    ) -> None:
        super().__init__()
        check_network(num_classes, hidden_channels, heads, num_layers, dropout)
        widths = [in_channels] + [hidden_channels * heads] * (num_layers - 1) + [num_classes]
        self.dropout = dropout
        self.linears = nn.ModuleList(nn.Linear(before, after) for before, after in pairwise(widths))

    def hidden(self, x: Tensor, edge_index: Tensor | None = None, edge_attr: Tensor | None = None) -> Tensor:
        """The representation ``[N, hidden_channels * heads]`` that the last layer reads (before dropout)."""
        for layer in range(len(self.linears) - 1):
            x = F.elu(self._apply_layer(layer, x))
        return x

    def forward(self, x: Tensor, edge_index: Tensor | None = None, edge_attr: Tensor | None = None) -> Tensor:
        return self._apply_layer(len(self.linears) - 1, self.hidden(x))

    def _apply_layer(self, layer: int, x: Tensor) -> Tensor:
        if layer == 0:
            return embed_features(self.linears[0], x, self.dropout, self.training)
        out: Tensor = self.linears[layer](torch_dropout(x, self.dropout, self.training))
        return out
