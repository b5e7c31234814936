"""FAGCN (Bo et al., 2021): signed, frequency-adaptive propagation of an embedding."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.nn import FAConv

from ltga.kernels import relu, torch_dropout
from ltga.kernels.operators.weighted_sum import sums_compiled
from ltga.nn.arguments import check_network
from ltga.nn.baselines.propagation import OncePerGraph, gcn_edges
from ltga.nn.baselines.stand_in import adapt, embed_features, may_stand_in
from ltga.nn.interface import Network
from ltga.nn.projections import projected


class FAGCN(Network):
    r"""Propagation whose coefficients between -1 and 1 pass low or high frequencies, edge by edge.

    .. math::
        H^{(0)} = \mathrm{relu}(X W_1), \quad
        h_i^{(l)} = \varepsilon h_i^{(0)}
            + \sum_j \frac{\tanh(g^\top [h_i^{(l-1)} \Vert h_j^{(l-1)}])}{\sqrt{d_i d_j}} h_j^{(l-1)}, \quad
        \mathrm{logits} = H^{(L)} W_2

    PyG's ``FAConv`` on GCN's normalised edges (self-loops included, PyG's default; computed once
    per graph).

    Args:
        in_channels: width F of the node features.
        num_classes: number of classes C.
        hidden_channels, heads: the embedding width is their product.
        num_layers: rounds L of propagation, at least 1.
        dropout: probability of dropping an input, an embedded feature or a coefficient.
        eps: weight of the embedding in every round; 0.3 is the default of the authors' code.

    Shapes:
        ``x`` ``[N, F]``, ``edge_index`` ``[2, E]`` -> logits ``[N, C]``. ``edge_attr`` is part of the
        call that all networks share; this model has no use for it.

    >>> import torch
    >>> model = FAGCN(5, 3)
    >>> model(torch.randn(4, 5), torch.tensor([[0, 1], [1, 2]])).shape
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
        eps: float = 0.3,
    ) -> None:
        super().__init__()
        check_network(num_classes, hidden_channels, heads, num_layers, dropout)
        width = hidden_channels * heads
        self.dropout = dropout
        self.embed = nn.Linear(in_channels, width)
        self.convs = nn.ModuleList(FAConv(width, eps=eps, dropout=dropout, normalize=False) for _ in range(num_layers))
        self.classify = nn.Linear(width, num_classes)
        self._edges = OncePerGraph(gcn_edges)

    def reset_parameters(self) -> None:
        """Draw all weights anew, in the order of construction."""
        for module in (self.embed, *self.convs, self.classify):
            module.reset_parameters()  # type: ignore[operator]

    def hidden(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The propagated representation ``[N, width]`` that the classifier reads."""
        edges = self._edges(edge_index, x.size(0), x.dtype)
        x = relu(embed_features(self.embed, x, self.dropout, self.training))
        embedded = x = torch_dropout(x, self.dropout, self.training)
        for conv in self.convs:
            if may_stand_in(conv, x):
                x = adapt(conv, x, embedded, edges)
            else:
                x = conv(x, embedded, edges.edge_index, edges.weight)
        return x

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        hidden = self.hidden(x, edge_index)
        return projected(self.classify, hidden, sums_compiled(hidden))
