"""The deep residual stack of Luo, Shi and Wu, "Classic GNNs are Strong Baselines" (NeurIPS 2024)."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from ltga.kernels import relu
from ltga.nn.backbones.stack import NORMS, AttentionStack


class ClassicStack(AttentionStack):
    """Blocks of attention plus a linear map of the same input, then norm, ReLU and dropout; a linear map at the end.

    Args:
        in_channels: width F of the node features.
        num_classes: number of classes C.
        hidden_channels: width of a block, all heads together.
        heads: attention heads; the authors use one.
        num_layers: number of blocks.
        dropout: after every block.
        norm: ``"batch"``, ``"layer"`` or ``"none"``.
        slot: how attention is normalised: ``index``, ``normalizer``, ``modifier``, ``delta``, ``index_form``,
            ``index_start``, and ``backend``, ``edge_dim``, all as in :class:`~ltga.nn.LTGAConv`.

    >>> import torch
    >>> model = ClassicStack(5, 3, hidden_channels=8, num_layers=4, index="head")
    >>> model(torch.randn(6, 5), torch.tensor([[0, 1], [1, 2]])).shape, len(model.index_values())
    (torch.Size([6, 3]), 4)
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        *,
        hidden_channels: int = 64,
        heads: int = 1,
        num_layers: int = 8,
        dropout: float = 0.2,
        norm: str = "batch",
        **slot: Any,
    ) -> None:
        super().__init__(num_classes, hidden_channels, heads, num_layers, dropout, norm, slot)
        channels = max(hidden_channels // heads, 1)
        self.skips, self.norms = nn.ModuleList(), nn.ModuleList()
        width = in_channels
        for _ in range(num_layers):
            self.convs.append(self.attention(width, channels, heads))
            self.skips.append(nn.Linear(width, channels * heads))
            width = channels * heads
            self.norms.append(NORMS[norm](width))
        self.out = nn.Linear(width, num_classes)

    def start(self, x: Tensor) -> Tensor:
        return x

    def attention_input(self, layer: int, x: Tensor) -> Tensor:
        return x

    def block(self, layer: int, x: Tensor, edge_index: Any, edge_attr: Tensor | None) -> Tensor:
        mixed = self.convs[layer](x, edge_index, edge_attr) + self.skips[layer](x)
        return self.drop(relu(self.norms[layer](mixed)), layer)

    def end(self, x: Tensor) -> Tensor:
        logits: Tensor = self.out(x)
        return logits
