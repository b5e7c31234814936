"""A small perceptron on the endpoints of every edge: the gate of per-edge indices and of their controls."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ltga.errors import InputError
from ltga.nn.entitlement import is_plain_linear, know

GATE_WIDTH = 8


class EdgeMLP(nn.Module):
    """A two-layer perceptron on the endpoints of every edge, zero at the start; ``[E, H]``.

    The endpoints' embeddings are averaged over heads and enter as (attending node, neighbour). The
    first layer is applied to nodes and only its few outputs are gathered, so nothing of size
    edges x features exists.

    Args:
        channels: channels C of one head.
        heads: outputs per edge.

    >>> mlp = EdgeMLP(channels=4, heads=2)
    >>> mlp(torch.randn(3, 2, 4), torch.randn(3, 2, 4), torch.tensor([[0, 1], [2, 2]])).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """

    def __init__(self, channels: int, heads: int, width: int = GATE_WIDTH) -> None:
        super().__init__()
        self.channels = channels
        self.hidden = nn.Linear(2 * channels, width)
        self.out = nn.Linear(width, heads)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.hidden.reset_parameters()
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, source: Tensor, target: Tensor, edge_index: Tensor) -> Tensor:
        self.check(source.size(1), source.size(2))
        i, j = edge_index[1], edge_index[0]
        attending, neighbour = target.mean(1), source.mean(1)
        if not is_plain_linear(self.hidden):  # somebody hooked or replaced it: it must be called
            hidden = self.hidden(torch.cat([attending.index_select(0, i), neighbour.index_select(0, j)], dim=1))
        else:
            left, right = self.hidden.weight.split(self.channels, dim=1)
            per_target, per_source = nn.functional.linear(attending, left, self.hidden.bias), neighbour @ right.t()
            hidden = per_target.index_select(0, i) + per_source.index_select(0, j)
        out: Tensor = self.out(torch.relu(hidden))
        return out

    def check(self, heads: int, channels: int) -> None:
        """Raise unless the layer has the heads and channels that this was built for."""
        own = getattr(self.out, "out_features", heads)
        if channels != self.channels or own != heads:
            raise InputError(
                f"index: the gate was built for {own} heads of {self.channels} channels, "
                f"the layer has {heads} of {channels}"
            )


know(EdgeMLP)
