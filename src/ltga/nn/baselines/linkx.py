"""LINKX (Lim et al., 2021): one MLP on the adjacency, one on the features, and one on their sum."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.nn import LINKX as PyGLINKX

from ltga.errors import InputError
from ltga.nn.arguments import check_network, check_size
from ltga.nn.baselines.propagation import sound_edges
from ltga.nn.interface import Network


class LINKX(Network):
    r"""PyG's LINKX behind the call that all networks share.

    .. math::
        H_A = \mathrm{MLP}_A(A), \quad H_X = \mathrm{MLP}_X(X), \quad
        \mathrm{logits} = \mathrm{MLP}_f(\mathrm{relu}(W [H_A \Vert H_X] + H_A + H_X))

    The first layer of :math:`\mathrm{MLP}_A` has one row of weights per node, so the model is
    transductive: it fits one set of nodes, in one order.

    Args:
        in_channels: width F of the node features.
        num_classes: number of classes C.
        num_nodes: number of nodes N.
        hidden_channels, heads: the width of all three MLPs is their product.
        num_layers: linear layers of :math:`\mathrm{MLP}_f`, at least 1; the other two have one each.
        dropout: probability of dropping a hidden feature of :math:`\mathrm{MLP}_f`.

    Shapes:
        ``x`` ``[N, F]``, ``edge_index`` ``[2, E]`` -> logits ``[N, C]``. ``edge_attr`` is part of the
        call that all networks share; this model has no use for it.

    >>> import torch
    >>> model = LINKX(5, 3, num_nodes=4)
    >>> model(torch.randn(4, 5), torch.tensor([[0, 1], [1, 2]])).shape
    torch.Size([4, 3])
    """

    transductive = True

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        *,
        num_nodes: int,
        hidden_channels: int = 64,
        heads: int = 8,
        num_layers: int = 2,
        dropout: float = 0.4,
    ) -> None:
        super().__init__()
        check_network(num_classes, hidden_channels, heads, num_layers, dropout)
        check_size("num_nodes", num_nodes)  # there is a weight for every node, scaled by their number
        self.network = PyGLINKX(
            num_nodes, in_channels, hidden_channels * heads, num_classes, num_layers, dropout=dropout
        )

    def reset_parameters(self) -> None:
        """Draw all weights anew, in the order of construction."""
        self.network.reset_parameters()

    def hidden(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """What the last linear layer reads, ``[N, width]``."""
        inputs: list[Tensor] = []
        last = self.network.final_mlp.lins[-1]
        handle = last.register_forward_pre_hook(lambda _, arguments: inputs.append(arguments[0]))
        try:
            self(x, edge_index)
        finally:
            handle.remove()
        return inputs[0]

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        if x.size(0) != self.network.num_nodes:
            raise InputError(
                f"x: LINKX was built for {self.network.num_nodes} nodes, got {x.size(0)}; "
                f"build it with num_nodes={x.size(0)}"
            )
        logits: Tensor = self.network(x, sound_edges(edge_index, x.size(0)))
        return logits
