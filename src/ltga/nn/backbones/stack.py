"""What both backbones share: a list of attention layers inside blocks, dropout by key, and a look inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ltga.errors import InputError
from ltga.nn.arguments import check_choice, check_network
from ltga.nn.attention_inputs import Attention
from ltga.nn.conv import LTGAConv
from ltga.nn.index import EntropicIndex, make_index
from ltga.nn.interface import LayerWeights, Network
from ltga.nn.masks import Draws

NORMS: dict[str, Callable[[int], nn.Module]] = {
    "batch": nn.BatchNorm1d, "layer": nn.LayerNorm, "none": lambda _: nn.Identity(),
}  # fmt: skip


SLOT = ("index", "normalizer", "modifier", "delta", "index_form", "index_start", "backend", "edge_dim")


class AttentionStack(Network):
    """Blocks around attention layers ``convs``; a backbone says what a block does and how the stack ends.

    ``slot`` holds what may differ between methods: ``index``, ``normalizer``, ``modifier`` and where the index starts.
    Nothing in the slot draws random numbers unless q is per edge, so all methods of a seed have the same weights.
    """

    attends = True

    def __init__(
        self, num_classes: int, hidden_channels: int, heads: int, num_layers: int, dropout: float, norm: str,
        slot: dict[str, Any],
    ) -> None:  # fmt: skip
        super().__init__()
        check_network(num_classes, hidden_channels, heads, num_layers, dropout)
        check_choice("norm", norm, tuple(NORMS))
        self.dropout = dropout
        self.normalizer = slot.get("normalizer", "q_softmax")
        for name in slot:
            if name not in (*SLOT, "add_self_loops"):
                raise InputError(f"{name}: a backbone has no such setting; its slot takes {', '.join(SLOT)}")
        self.convs = nn.ModuleList()
        self._slot = dict(slot)
        if slot.get("index") == "global":
            start = slot.get("index_form", "tanh"), slot.get("index_start", 1.0)
            self._slot["index"] = make_index("global", 1, heads, slot.get("delta", 1.0), *start)

    def attention(self, in_channels: int, channels: int, heads: int) -> LTGAConv:
        """A layer of the published kind, GAT's scores without a bias, with this network's slot."""
        conv = LTGAConv(in_channels, channels, heads, bias=False, scoring="gat", share_weights=True, **self._slot)
        conv.joint_scores = True
        return conv

    def start(self, x: Tensor) -> Tensor:
        """What the first block reads."""
        raise NotImplementedError

    def block(self, layer: int, x: Tensor, edge_index: Any, edge_attr: Tensor | None) -> Tensor:
        raise NotImplementedError

    def attention_input(self, layer: int, x: Tensor) -> Tensor:
        """What the attention of a block reads, given what the block reads."""
        raise NotImplementedError

    def end(self, x: Tensor) -> Tensor:
        """Logits from what the last block gives."""
        raise NotImplementedError

    def drop(self, x: Tensor, place: int) -> Tensor:
        """Dropout whose mask depends on the key and on ``place`` in the network."""
        if not self.training or self.dropout == 0:
            return x
        key = None if self.dropout_key is None else (*self.dropout_key, place, 0)
        return Draws(key).drop(x, self.dropout)

    def hidden(self, x: Tensor, edge_index: Any, edge_attr: Tensor | None = None) -> Tensor:
        """The representation ``[N, hidden_channels]`` that the last linear map reads."""
        x = self.start(x)
        for layer in range(len(self.convs)):
            x = self.block(layer, x, edge_index, edge_attr)
        return x

    def forward(self, x: Tensor, edge_index: Any, edge_attr: Tensor | None = None) -> Tensor:
        return self.end(self.hidden(x, edge_index, edge_attr))

    @torch.no_grad()
    def attend(self, x: Any, edge_index: Any, edge_attr: Tensor | None = None) -> list[Attention]:
        training = self.training
        self.eval()
        try:
            inside, x = [], self.start(x)
            for layer, conv in enumerate(self.convs):
                inside.append(conv.attend(self.attention_input(layer, x), edge_index, edge_attr))  # type: ignore[operator]
                x = self.block(layer, x, edge_index, edge_attr)
            return inside
        finally:
            self.train(training)

    def attention_weights(self, x: Any, edge_index: Any, edge_attr: Tensor | None = None) -> LayerWeights:
        return [(layer.edge_index, layer.weights) for layer in self.attend(x, edge_index, edge_attr)]

    def layer_indices(self) -> list[EntropicIndex]:
        return [conv.index for conv in self.convs]  # type: ignore[misc]
