"""The graph isomorphism network (Xu et al., 2019): sums over neighbours, and a perceptron after each."""

from __future__ import annotations

from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import MLP, GINConv, GINEConv

from ltga.errors import InputError
from ltga.kernels import torch_dropout
from ltga.nn.arguments import check_network
from ltga.nn.baselines.propagation import sound_edges
from ltga.nn.interface import Network


class GIN(Network):
    r"""A stack of :math:`h_i' = \mathrm{MLP}\big((1 + \epsilon) h_i + \sum_j h_j\big)`.

    Every perceptron has two layers with batch normalisation between them. With edge attributes the sum runs over
    :math:`\mathrm{ReLU}(h_j + W e_{ij})` (Hu et al., 2020). ELU and dropout stand between layers, as elsewhere.

    Args:
        in_channels: width F of the node features.
        num_classes: number of outputs C.
        hidden_channels, heads: the hidden width is their product, as in the attention networks.
        num_layers: number of convolutions, at least 1.
        dropout: probability of dropping a feature before each layer.
        edge_dim: width D of the edge attributes, ``None`` if there are none.

    >>> import torch
    >>> GIN(5, 3)(torch.randn(4, 5), torch.tensor([[0, 1], [1, 2]])).shape
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
        edge_dim: int | None = None,
    ) -> None:
        super().__init__()
        check_network(num_classes, hidden_channels, heads, num_layers, dropout)
        width = hidden_channels * heads
        widths = [in_channels] + [width] * (num_layers - 1) + [num_classes]
        self.dropout = dropout
        self.edge_dim = edge_dim
        self.convs = nn.ModuleList()
        for before, after in pairwise(widths):
            perceptron = MLP([before, width, after], norm="batch_norm")
            with_edges = edge_dim is not None
            conv = GINEConv(perceptron, train_eps=True, edge_dim=edge_dim) if with_edges else None
            self.convs.append(conv or GINConv(perceptron, train_eps=True))

    def hidden(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The representation ``[N, hidden_channels * heads]`` that the last layer reads (before dropout)."""
        edge_index = sound_edges(edge_index, x.size(0))
        for layer in range(len(self.convs) - 1):
            x = F.elu(self._apply_layer(layer, x, edge_index, edge_attr))
        return x

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        edge_index = sound_edges(edge_index, x.size(0))
        x = self.hidden(x, edge_index, edge_attr)
        return self._apply_layer(len(self.convs) - 1, x, edge_index, edge_attr)

    def _apply_layer(self, layer: int, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None) -> Tensor:
        if (edge_attr is None) != (self.edge_dim is None):
            raise InputError(
                f"edge_attr: the model was built with edge_dim={self.edge_dim}; give what it was built for"
            )
        x = torch_dropout(x, self.dropout, self.training)
        out: Tensor = (
            self.convs[layer](x, edge_index) if edge_attr is None else self.convs[layer](x, edge_index, edge_attr)
        )
        return out
