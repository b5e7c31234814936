"""The pre-norm stack with separate ego features of Platonov et al., "A critical look" (ICLR 2023): GAT-sep."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ltga.nn.backbones.stack import NORMS, AttentionStack


class SeparatedStack(AttentionStack):
    r"""Blocks :math:`x' = x + \mathrm{FFN}([z \,\|\, \mathrm{attention}(z)])` with z a linear map of norm(x).

    A node's own features and its neighbourhood's enter the feed-forward part side by side, and attention sees no
    self-loops, so that the two are not mixed. A linear map comes before the blocks, a norm and a linear map after.

    Args:
        in_channels: width F of the node features.
        num_classes: number of classes C.
        hidden_channels: width of a block, all heads together.
        heads, num_layers: the authors use 8 heads and 1 to 5 blocks.
        dropout: twice in the feed-forward part, and on the input.
        norm: ``"layer"`` (the authors'), ``"batch"`` or ``"none"``.
        slot: as in :class:`~ltga.nn.backbones.ClassicStack`.

    >>> model = SeparatedStack(5, 3, hidden_channels=8, heads=2, num_layers=2, index="head")
    >>> model(torch.randn(6, 5), torch.tensor([[0, 1], [1, 2]])).shape
    torch.Size([6, 3])
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        *,
        hidden_channels: int = 128,
        heads: int = 8,
        num_layers: int = 3,
        dropout: float = 0.2,
        norm: str = "layer",
        **slot: Any,
    ) -> None:
        slot = {**slot, "add_self_loops": False}
        super().__init__(num_classes, hidden_channels, heads, num_layers, dropout, norm, slot)
        channels = max(hidden_channels // heads, 1)
        width = channels * heads
        self.into = nn.Linear(in_channels, width)
        self.norms, self.mix, self.narrow = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for _ in range(num_layers):
            self.norms.append(NORMS[norm](width))
            self.convs.append(self.attention(width, channels, heads))
            self.mix.append(nn.Linear(2 * width, width))
            self.narrow.append(nn.Linear(width, width))
        self.last_norm = NORMS[norm](width)
        self.out = nn.Linear(width, num_classes)

    def start(self, x: Tensor) -> Tensor:
        return F.gelu(self.drop(self.into(x), 0))

    def attention_input(self, layer: int, x: Tensor) -> Tensor:
        normed: Tensor = self.norms[layer](x)
        return normed

    def block(self, layer: int, x: Tensor, edge_index: Any, edge_attr: Tensor | None) -> Tensor:
        normed, conv = self.attention_input(layer, x), self.convs[layer]
        both = torch.cat([conv.lin_l(normed), conv(normed, edge_index, edge_attr)], dim=1)  # type: ignore[operator]
        hidden = F.gelu(self.drop(self.mix[layer](both), 2 * layer + 1))
        return x + self.drop(self.narrow[layer](hidden), 2 * layer + 2)

    def end(self, x: Tensor) -> Tensor:
        logits: Tensor = self.out(self.last_norm(x))
        return logits
