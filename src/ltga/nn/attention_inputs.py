"""What a layer feeds its attention, and what attention did."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ltga.kernels import Neighbourhoods
from ltga.kernels.runtime.neighbourhoods import Edges


@dataclass(frozen=True)
class Attention:
    """What a layer did on every edge, in the order of ``edge_index`` (self-loops last).

    Attributes:
        edge_index: ``[2, E]``.
        logits, q, weights: ``[E, H]``; a weight of exactly 0 means that the head ignores the edge.
    """

    edge_index: Tensor
    logits: Tensor
    q: Tensor
    weights: Tensor

    @property
    def zeros(self) -> Tensor:
        """Weights that are exactly zero, ``[E, H]`` boolean; where q is at most 1 a zero is an underflow, not one."""
        return (self.weights == 0) & (self.q > 1)

    @property
    def ignored(self) -> Tensor:
        """Edges that every head ignores, ``[E]`` boolean."""
        return self.zeros.all(dim=1)


@dataclass(frozen=True, eq=False)
class Scores:
    """How logits are made and normalised."""

    scoring: str
    normalizer: str
    att: Tensor | None  # [1, H, C]
    att_target: Tensor | None  # [1, H, C]
    edge_weight: Tensor | None  # [H * C, D]
    slope: float
    joint: bool = False  # whether GAT's products with both ends may be made at once, which rounds differently


@dataclass(frozen=True, eq=False)
class AttentionInputs:
    """Per-edge values are in the order of ``edges.edge_index`` unless said otherwise."""

    source: Tensor  # [S, H, C]
    target: Tensor  # [T, H, C]
    key: Tensor | None  # [S, H, C] if it is not the source
    residual: Tensor | None  # [T, H * C] or [T, C]
    edges: Edges  # Neighbourhoods if attention is to be fused
    attributes: Tensor | None  # [E, D]
    q: Tensor  # [1, H] or [E, H]
    q_in_csr_order: bool
    scale: Tensor | None  # [1, H] or [E, H]
    shift: Tensor | None  # [E, H]
    backend: str = ""  # "triton", or the device's own

    @property
    def graph(self) -> Neighbourhoods:
        assert isinstance(self.edges, Neighbourhoods)
        return self.edges

    def weights_type(self, scores: Scores) -> torch.dtype:
        """The type of the weights by the definition: under autocast embeddings are half, but the parameters are not."""
        dtype = self.source.dtype
        for part in (scores.att, self.scale, self.shift):
            dtype = dtype if part is None else torch.promote_types(dtype, part.dtype)
        return dtype
