"""GPR-GNN (Chien et al., 2021): an MLP followed by propagation with learned weights of each step."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from ltga.errors import InputError
from ltga.kernels import relu, torch_dropout
from ltga.nn.arguments import check_network
from ltga.nn.baselines.propagation import OncePerGraph, gcn_operator
from ltga.nn.baselines.stand_in import embed_features
from ltga.nn.interface import Network


class GPRGNN(Network):
    r"""Generalised PageRank on the logits of an MLP.

    .. math::
        H = \mathrm{MLP}(X), \qquad \mathrm{logits} = \sum_{k=0}^{K} \gamma_k \hat A^k H

    with :math:`\hat A` GCN's normalised adjacency (self-loops included) and learned :math:`\gamma`,
    free to turn negative where neighbours differ. They start at personalised PageRank,
    :math:`\gamma_k = \alpha (1-\alpha)^k` and :math:`\gamma_K = (1-\alpha)^K`.

    Args:
        in_channels: width F of the node features.
        num_classes: number of classes C.
        hidden_channels, heads: the hidden width is their product (the authors use 64).
        num_layers: linear layers of the MLP, at least 1.
        dropout: probability of dropping a feature before each linear layer.
        propagation_dropout: the same before propagation (the authors use 0.5; the LTGA paper none).
        num_steps: steps K of propagation.
        teleport: the initial restart probability :math:`\alpha`.

    Shapes:
        ``x`` ``[N, F]``, ``edge_index`` ``[2, E]`` -> logits ``[N, C]``. ``edge_attr`` is part of the
        call that all networks share; this model has no use for it.

    >>> model = GPRGNN(5, 3, num_steps=2)
    >>> model(torch.randn(4, 5), torch.tensor([[0, 1], [1, 2]])).shape
    torch.Size([4, 3])
    >>> model.gamma.detach()
    tensor([0.1000, 0.0900, 0.8100])
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
        propagation_dropout: float = 0.0,
        num_steps: int = 10,
        teleport: float = 0.1,
    ) -> None:
        super().__init__()
        check_network(num_classes, hidden_channels, heads, num_layers, dropout)
        if num_steps < 0:
            raise InputError(f"num_steps: expected at least 0, got {num_steps}")
        if not 0 <= teleport <= 1:
            raise InputError(f"teleport: expected a probability, got {teleport}")
        widths = [in_channels] + [hidden_channels * heads] * (num_layers - 1) + [num_classes]
        self.dropout = dropout
        self.propagation_dropout = propagation_dropout
        self.num_steps = num_steps
        self.teleport = teleport
        self.linears = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        self.gamma = nn.Parameter(torch.empty(num_steps + 1))
        self._reset_gamma()
        self._propagate = OncePerGraph(gcn_operator)

    def reset_parameters(self) -> None:
        """Draw all weights anew, in the order of construction, and return to personalised PageRank."""
        for linear in self.linears:
            linear.reset_parameters()  # type: ignore[operator]
        self._reset_gamma()

    def _reset_gamma(self) -> None:
        with torch.no_grad():
            self.gamma.copy_(self.teleport * (1 - self.teleport) ** torch.arange(self.num_steps + 1))
            self.gamma[-1] = (1 - self.teleport) ** self.num_steps

    def hidden(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """What the MLP's last linear layer reads (before dropout), ``[N, width]``.

        In this model all propagation comes after that layer, so it does not depend on the edges.
        """
        for layer, linear in enumerate(list(self.linears)[:-1]):
            if layer == 0:
                x = relu(embed_features(linear, x, self.dropout, self.training))
            else:
                x = relu(linear(torch_dropout(x, self.dropout, self.training)))
        return x

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        step = self.linears[-1](torch_dropout(self.hidden(x, edge_index), self.dropout, self.training))
        step = torch_dropout(step, self.propagation_dropout, self.training)
        propagate = self._propagate(edge_index, x.size(0), x.dtype)
        out = self.gamma[0] * step
        for weight in self.gamma[1:]:
            step = propagate(step)
            out = out + weight * step
        return out
