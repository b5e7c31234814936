"""The graph convolutional network (Kipf and Welling, 2017) on the paper's backbone."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn
from torch_geometric.nn import GCNConv
from torch_geometric.nn.dense.linear import Linear

from ltga.kernels import elu, torch_dropout
from ltga.nn.arguments import check_network
from ltga.nn.baselines.propagation import OncePerGraph, gcn_edges
from ltga.nn.baselines.stand_in import convolve, may_stand_in
from ltga.nn.interface import Network
from ltga.nn.masks import drop_input
from ltga.nn.projections import projected


class GCN(Network):
    r"""A stack of graph convolutions :math:`H' = \hat D^{-1/2} (A + I) \hat D^{-1/2} H W + b`.

    Dropout before every layer, ELU after every layer but the last. Built as PyG's ``GCNConv`` in
    order with nothing else drawing random numbers, so a seed gives PyG's own weights. The
    normalisation is computed once per graph.

    Args:
        in_channels: width F of the node features.
        num_classes: number of classes C.
        hidden_channels, heads: the hidden width is their product, as in the attention networks.
        num_layers: number of convolutions, at least 1.
        dropout: probability of dropping a feature before each layer.
        residual: add a learned linear map of each layer's input to its output.

    Shapes:
        ``x`` ``[N, F]``, ``edge_index`` ``[2, E]`` -> logits ``[N, C]``. ``edge_attr`` is part of the
        call that all networks share; this model has no use for it.

    >>> import torch
    >>> model = GCN(5, 3)
    >>> model(torch.randn(4, 5), torch.tensor([[0, 1], [1, 2]])).shape
    torch.Size([4, 3])
    >>> model.hidden(torch.randn(4, 5), torch.tensor([[0, 1], [1, 2]])).shape
    torch.Size([4, 512])
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
        residual: bool = False,
    ) -> None:
        super().__init__()
        check_network(num_classes, hidden_channels, heads, num_layers, dropout)
        widths = [in_channels] + [hidden_channels * heads] * (num_layers - 1) + [num_classes]
        self.dropout = dropout
        self.convs = nn.ModuleList(
            GCNConv(width_in, width_out, normalize=False) for width_in, width_out in pairwise(widths)
        )
        self.skips = nn.ModuleList()
        if residual:
            self.skips.extend(
                Linear(width_in, width_out, bias=False, weight_initializer="glorot")
                for width_in, width_out in pairwise(widths)
            )
        self._edges = OncePerGraph(gcn_edges)

    def reset_parameters(self) -> None:
        """Draw all weights anew, in the order of construction."""
        for module in (*self.convs, *self.skips):
            module.reset_parameters()

    def hidden(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The representation ``[N, hidden_channels * heads]`` that the last layer reads (before dropout)."""
        for layer in range(len(self.convs) - 1):
            x = elu(self._apply_layer(layer, x, edge_index))
        return x

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        return self._apply_layer(len(self.convs) - 1, self.hidden(x, edge_index), edge_index)

    def _apply_layer(self, layer: int, x: Tensor, edge_index: Tensor) -> Tensor:
        edges, conv = self._edges(edge_index, x.size(0), x.dtype), self.convs[layer]
        if may_stand_in(conv, x):
            dropped = (torch_dropout if layer else drop_input)(x, self.dropout, self.training)
            out = convolve(conv, dropped, edges)
            return out + projected(self.skips[layer], dropped, True) if self.skips else out
        x = torch_dropout(x, self.dropout, self.training)
        out = conv(x, edges.edge_index, edges.weight)
        return out + self.skips[layer](x) if self.skips else out
