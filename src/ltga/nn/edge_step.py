"""One attention step over prepared inputs, in its plain and its fused form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from ltga.functional.graph import normalise_edges, score_edges
from ltga.kernels import NORMALIZERS, SCORINGS, Neighbourhoods, attend, edge_dot

if TYPE_CHECKING:
    from ltga.nn.conv import LTGAConv


@dataclass(frozen=True, eq=False)
class EdgeStep:
    """What a layer feeds its attention; logits and weights are ``[E, H]`` in the order of ``graph.edge_index``."""

    conv: LTGAConv
    source: Tensor  # [S, H, C]
    target: Tensor  # [T, H, C]
    key: Tensor | None  # [S, H, C] if it is not the source
    graph: Neighbourhoods
    attributes: Tensor | None  # [E, D]
    q: Tensor  # [1, H] or [E, H]
    q_in_csr_order: bool
    scale: Tensor | None  # [1, H] or [E, H]
    shift: Tensor | None  # [E, H]

    def plain(self) -> tuple[Tensor, Tensor]:
        """(logits, weights) by the definitions in :mod:`ltga.functional`."""
        conv, edge = self.conv, None
        if self.attributes is not None:
            edge = conv.lin_edge(self.attributes).view(-1, conv.heads, conv.out_channels)
        logits = score_edges(
            self.source if self.key is None else self.key, self.target, self.graph.edge_index,
            "dot" if self.key is not None else conv.scoring, conv.att, conv.negative_slope, edge, conv.att_target,
        )  # fmt: skip
        logits = logits if self.scale is None else logits * self.scale
        logits = logits if self.shift is None else logits + self.shift
        target = self.graph.edge_index[1]
        return logits, normalise_edges(
            logits, self.q_in_callers_order(), target, self.graph.num_targets, conv.normalizer
        )

    def fused(self, keep: Tensor | None) -> tuple[Tensor, Tensor]:
        """(output with bias ``[T, H * C]`` or ``[T, C]``, weights in CSR order) by the compiled kernels."""
        out, weights, _, _ = self._kernel(keep)
        # Under autocast embeddings are half but the parameters are not: the result is as wide as in PyG.
        dtype = torch.promote_types(self.source.dtype, self.conv.lin_l.weight.dtype)
        return out.flatten(1).to(dtype), weights.to(dtype)

    def fused_logits_and_weights(self) -> tuple[Tensor, Tensor]:
        """(logits, weights) by the compiled kernels."""
        _, weights, logits, _ = self._kernel(None)
        return self.in_callers_order(logits), self.in_callers_order(weights)

    def in_callers_order(self, values: Tensor) -> Tensor:
        """Per-edge values from CSR order to that of ``edge_index``."""
        return values[self.graph.perm.long().argsort()]

    def q_in_callers_order(self) -> Tensor:
        return self.in_callers_order(self.q) if self.q_in_csr_order else self.q

    def _kernel(self, keep: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        conv, wide = self.conv, torch.promote_types(self.source.dtype, torch.float32)

        def cast(value: Tensor | None) -> Tensor | None:
            return None if value is None else value.to(wide)

        given = edge_weight = att = target = attributes = None
        if conv.scoring == "gat":
            given = self._gat_logits()
        elif self.key is not None:
            given = self._key_logits(wide)
        else:
            target, attributes = self.target, self.attributes
            att = conv.att[0] if conv.att is not None else self.source.new_zeros(conv.heads, conv.out_channels)
            if attributes is not None:
                edge_weight = conv.lin_edge.weight.t().reshape(-1, conv.heads, conv.out_channels)
        bias = None if conv.bias is None else conv.bias.view(-1, conv.out_channels)
        return attend(
            self.source.to(wide), cast(target), cast(att), cast(attributes), cast(edge_weight), cast(given),
            cast(self.scale), cast(self.shift), self.q.to(wide), cast(keep), cast(bias), *self.graph.structure,
            SCORINGS["given" if given is not None else conv.scoring], NORMALIZERS[conv.normalizer],
            conv.negative_slope, conv.out_channels**-0.5, not conv.concat, self.q_in_csr_order,
        )  # fmt: skip

    def _key_logits(self, wide: torch.dtype) -> Tensor:
        """Dot products with keys of their own; an edge's features join its key."""
        assert self.key is not None
        conv, scale = self.conv, self.conv.out_channels**-0.5
        logits: Tensor = edge_dot(self.key.to(wide), self.target.to(wide), *self.graph.structure, scale)
        if self.attributes is not None:
            weight = conv.lin_edge.weight.view(conv.heads, conv.out_channels, -1)
            towards = torch.einsum("thc,hcd->thd", self.target, weight)  # what a target makes of every edge feature
            joined = towards.index_select(0, self.graph.edge_index[1]) * self.attributes.unsqueeze(1)
            logits = logits + scale * joined.sum(-1)
        return logits

    def _gat_logits(self) -> Tensor:
        """GAT's additive logits need only one number per node and head."""
        conv, (j, i) = self.conv, self.graph.edge_index
        assert conv.att is not None
        logits = (self.source * conv.att).sum(-1).index_select(0, j)
        logits = logits + (self.target * conv.att_target).sum(-1).index_select(0, i)
        if self.attributes is not None:
            weight = conv.lin_edge.weight.view(conv.heads, conv.out_channels, -1)
            logits = logits + self.attributes @ torch.einsum("hcd,hc->dh", weight, conv.att[0])
        return F.leaky_relu(logits, conv.negative_slope)
