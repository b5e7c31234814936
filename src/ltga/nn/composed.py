"""A network around an encoder: nodes are encoded by any method's network, and something smaller reads the result."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ltga.errors import InputError
from ltga.nn.index import EntropicIndex
from ltga.nn.initialize import initialize, stream
from ltga.nn.interface import LayerWeights, Network
from ltga.nn.masks import Draws

READER = 1 << 16  # the place of a reader's dropout among those of layers


class Composed(Network):
    """What all networks around an encoder share: its index, its attention and its random numbers are the encoder's.

    Args:
        encoder: called as ``encoder(x, edge_index, edge_attr)``; any network that is not bound to the nodes of a graph.
        dropout: probability of dropping what the reader reads.
    """

    def __init__(self, encoder: Network, dropout: float) -> None:
        super().__init__()
        if encoder.transductive:
            raise InputError(f"method: {type(encoder).__name__} has a weight for every node of one graph; take another")
        self.encoder = encoder
        self.dropout = dropout
        self.normalizer = encoder.normalizer

    def encode(self, x: Any, edge_index: Any, edge_attr: Tensor | None = None) -> Tensor:
        """What the encoder makes of the nodes ``[N, width]``."""
        self.encoder.dropout_key = self.dropout_key
        encoded: Tensor = self.encoder(x, edge_index, edge_attr)
        return encoded

    def drop(self, x: Tensor, place: int = 0) -> Tensor:
        """Dropout of the reader, by the same key as the encoder's."""
        if not self.training or self.dropout == 0:
            return x
        key = None if self.dropout_key is None else (*self.dropout_key, READER + place)
        return Draws(key).drop(x, self.dropout)

    def hidden(self, x: Any, edge_index: Any, edge_attr: Tensor | None = None) -> Tensor:
        return self.encoder.hidden(x, edge_index, edge_attr)

    def attention_weights(self, x: Any, edge_index: Any, edge_attr: Tensor | None = None) -> LayerWeights | None:
        return self.encoder.attention_weights(x, edge_index, edge_attr)

    def layer_indices(self) -> list[EntropicIndex]:
        return self.encoder.layer_indices()


def initialize_composed(model: Network, seed: int, init: str) -> Network:
    """:func:`~ltga.nn.initialize.initialize` for a network that may have an encoder; returns the network.

    With ``"paired"`` the reader draws each of its parameters from a stream of its own too, so that it is the same
    around every encoder.
    """
    if not isinstance(model, Composed):
        return initialize(model, seed, init)
    initialize(model.encoder, seed, init)
    if init == "paired":
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name.startswith("encoder."):
                    continue
                generator = stream(f"{seed}/reader/{name}")
                if parameter.dim() < 2:
                    nn.init.zeros_(parameter)
                else:
                    nn.init.xavier_uniform_(parameter, generator=generator)
    return model
