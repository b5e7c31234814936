"""H2GCN (Zhu et al., 2020): ego and neighbours kept apart, two hops, every round remembered."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ltga.kernels import relu, torch_dropout
from ltga.kernels.operators.rounds import rounds
from ltga.kernels.operators.weighted_sum import sums_compiled
from ltga.nn.arguments import check_network
from ltga.nn.baselines.propagation import OncePerGraph, SparseOperator, hop_matrices, symmetric_normalized
from ltga.nn.baselines.stand_in import embed_features
from ltga.nn.interface import Network
from ltga.nn.projections import projected


def hop_operators(edge_index: Tensor, num_nodes: int, dtype: torch.dtype) -> tuple[SparseOperator, SparseOperator]:
    """Normalised propagation from exactly one hop and from exactly two hops away.

    >>> one, two = hop_operators(torch.tensor([[0, 1], [1, 2]]), 3, torch.float32)
    >>> two(torch.tensor([[5.0], [0.0], [0.0]])).ravel()
    tensor([0., 0., 5.])
    """
    one, two = (
        SparseOperator(symmetric_normalized(hops), dtype, edge_index.device)
        for hops in hop_matrices(edge_index, num_nodes)
    )
    return one, two


class H2GCN(Network):
    r"""Node classification from the concatenation of every round of two-hop propagation.

    .. math::
        R^{(0)} = \mathrm{relu}(X W_e), \quad
        R^{(k)} = [\bar A_1 R^{(k-1)} \,\Vert\, \bar A_2 R^{(k-1)}], \quad
        \mathrm{logits} = [R^{(0)} \Vert \dots \Vert R^{(K)}]\, W_c

    :math:`\bar A_1` and :math:`\bar A_2` are the symmetrically normalised adjacencies of exactly one
    and exactly two hops, both without self-loops, so a node's own features never mix with its
    neighbours' before the classifier. They are built once per graph. The rounds carry no weights;
    dropout acts on the concatenation only, as in the authors' code.

    Args:
        in_channels: width F of the node features.
        num_classes: number of classes C.
        hidden_channels, heads: the embedding width is their product (the authors use 64).
        num_layers: rounds K of propagation, at least 1. The classifier reads :math:`2^{K+1} - 1`
            times the embedding width, so large K is costly.
        dropout: probability of dropping a feature before the classifier.

    Shapes:
        ``x`` ``[N, F]``, ``edge_index`` ``[2, E]`` -> logits ``[N, C]``. ``edge_attr`` is part of the
        call that all networks share; this model has no use for it.

    >>> model = H2GCN(5, 3)
    >>> model(torch.randn(4, 5), torch.tensor([[0, 1], [1, 2]])).shape
    torch.Size([4, 3])
    >>> model.hidden(torch.randn(4, 5), torch.tensor([[0, 1], [1, 2]])).shape  # (1 + 2 + 4) * 512
    torch.Size([4, 3584])
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
        width = hidden_channels * heads
        self.num_layers = num_layers
        self.dropout = dropout
        self.embed = nn.Linear(in_channels, width)
        self.classify = nn.Linear((2 ** (num_layers + 1) - 1) * width, num_classes)
        self._hops = OncePerGraph(hop_operators)

    def reset_parameters(self) -> None:
        """Draw all weights anew, in the order of construction."""
        self.embed.reset_parameters()
        self.classify.reset_parameters()

    def hidden(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """All rounds side by side, ``[N, (2^(K+1) - 1) * width]``: the classifier's input before dropout."""
        one_hop, two_hops = self._hops(edge_index, x.size(0), x.dtype)
        ego = relu(embed_features(self.embed, x))
        if sums_compiled(ego):
            one, two = ((hop.edges.incidence, hop.edges.weight) for hop in (one_hop, two_hops))
            return rounds(ego, one, two, self.num_layers)
        made = [ego]
        for _ in range(self.num_layers):
            made.append(torch.cat([one_hop(made[-1]), two_hops(made[-1])], dim=1))
        return torch.cat(made, dim=1)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        hidden = torch_dropout(self.hidden(x, edge_index), self.dropout, self.training)
        return projected(self.classify, hidden, sums_compiled(hidden))
