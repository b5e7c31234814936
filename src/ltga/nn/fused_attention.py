"""Attention over what a layer feeds it, by the fused kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ltga.kernels import NORMALIZERS, SCORINGS, Neighbourhoods, attend, edge_dot, joint_scores
from ltga.kernels.operators.dispatch import is_observed
from ltga.kernels.operators.operands import Operands
from ltga.kernels.operators.trust import agrees
from ltga.kernels.runtime.fingerprint import mix_key
from ltga.nn.attention_inputs import AttentionInputs, Scores
from ltga.nn.masks import Draws


class Drop(NamedTuple):
    """Dropout of attention weights: a mask ``keep`` ``[E, H]``, or ``p`` and the key of one that kernels make."""

    keep: Tensor | None = None
    p: float = 0.0
    key: int = 0

    @classmethod
    def of(cls, draws: Draws | None, p: float, inputs: AttentionInputs, scores: Scores, whole: bool) -> Drop:
        """``whole`` if the mask itself is wanted."""
        if draws is None:
            return cls()
        if inputs.backend == "triton" and draws.key is not None and draws.part is None and not whole:
            return cls(None, p, mix_key(draws.key))
        kind = inputs.weights_type(scores), inputs.source.device
        return cls(draws.mask(inputs.graph.num_edges, inputs.source.size(1), p, *kind))


def kernels_agree(layer: Any, source: Tensor) -> bool:
    """Whether the GPU's programs give what the definition gives, for a layer like this one."""
    scoring = "given" if layer.scoring in ("gat", "qkv") else layer.scoring
    features = 0 if scoring == "given" else layer.edge_dim or 0
    sizes = layer.heads, layer.out_channels, features
    return agrees(scoring, layer.normalizer, *sizes, source.dtype, source.device)


def fused_attention(
    inputs: AttentionInputs, scores: Scores, drop: Drop, bias: Tensor | None, average: bool
) -> tuple[Tensor, Tensor]:
    """(output with bias ``[T, H * C]`` or ``[T, C]``, weights in CSR order) by the compiled kernels."""
    out, weights, _, _ = _attend(inputs, scores, drop, bias, average)
    dtype = inputs.weights_type(scores)
    weights = weights.to(dtype)
    dtype = dtype if bias is None else torch.promote_types(dtype, bias.dtype)
    # Not a view, so that whoever gets the output may do with it what he could with a tensor of his own.
    flat: Tensor = torch.ops.aten._unsafe_view(out, (out.size(0), out.size(1) * out.size(2)))
    return flat.to(dtype), weights


def fused_logits_and_weights(inputs: AttentionInputs, scores: Scores) -> tuple[Tensor, Tensor]:
    """(logits, weights) by the compiled kernels."""
    _, weights, logits, _ = _attend(inputs, scores, Drop(), None, False)
    return in_callers_order(inputs.graph, logits), in_callers_order(inputs.graph, weights)


def in_callers_order(graph: Neighbourhoods, values: Tensor) -> Tensor:
    """Per-edge values from CSR order to that of ``edge_index``."""
    return values[graph.perm.long().argsort()]


def _attend(
    inputs: AttentionInputs, scores: Scores, drop: Drop, bias: Tensor | None, average: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    heads, channels = inputs.source.shape[1:]
    wide = torch.promote_types(inputs.source.dtype, torch.float32)
    given = edge_weight = att = target = attributes = None
    if scores.scoring == "gat":
        given = _gat_logits(inputs, scores)
    elif inputs.key is not None:
        given = _key_logits(inputs, scores, wide)
    else:
        target, attributes = inputs.target, inputs.attributes
        att = inputs.source.new_zeros(heads, channels) if scores.att is None else scores.att.reshape(heads, channels)
        if attributes is not None:
            assert scores.edge_weight is not None
            # A copy, since the backward pass scores the edges again: the parameter may change until then.
            weight = scores.edge_weight.t().clone(memory_format=torch.contiguous_format)
            edge_weight = weight.view(-1, heads, channels)
    bias = None if bias is None else bias.view(-1, channels)
    operands = Operands(
        inputs.source,
        target,
        att,
        attributes,
        edge_weight,
        given,
        inputs.scale,
        inputs.shift,
        inputs.q,
        drop.keep,
        bias,
    )
    # Triton's programs read half precision as it is and add up in single.
    narrow = ("x", "target") if inputs.backend == "triton" and inputs.source.dtype == inputs.target.dtype else ()
    return attend(  # type: ignore[no-any-return]
        *(value if value is None or name in narrow else value.to(wide) for name, value in operands._asdict().items()),
        *inputs.graph.structure,
        SCORINGS["given" if given is not None else scores.scoring], NORMALIZERS[scores.normalizer],
        scores.slope, channels**-0.5, average, inputs.q_in_csr_order, inputs.backend, drop.p, drop.key,
    )  # fmt: skip


def _key_logits(inputs: AttentionInputs, scores: Scores, wide: torch.dtype) -> Tensor:
    """Dot products with keys of their own; an edge's features join its key."""
    assert inputs.key is not None
    heads, channels = inputs.key.shape[1:]
    target = inputs.target.to(wide)
    logits: Tensor = edge_dot(inputs.key.to(wide), target, *inputs.graph.structure, channels**-0.5, inputs.backend)
    if inputs.attributes is not None:
        assert scores.edge_weight is not None
        weight = scores.edge_weight.view(heads, channels, -1).to(wide)
        towards = torch.einsum("thc,hcd->thd", target, weight)  # what a target makes of every edge feature
        joined = towards.index_select(0, inputs.graph.edge_index[1]) * inputs.attributes.to(wide).unsqueeze(1)
        logits = logits + channels**-0.5 * joined.sum(-1)
    return logits


def _gat_logits(inputs: AttentionInputs, scores: Scores) -> Tensor:
    """GAT's additive logits need only one number per node and head."""
    assert scores.att is not None and scores.att_target is not None
    if scores.joint and _has_one_embedding(inputs, scores):
        vectors = scores.att.squeeze(0), scores.att_target.squeeze(0)
        return joint_scores(inputs.source, *vectors, inputs.graph.structure, scores.slope)
    j, i = inputs.graph.edge_index
    logits = (inputs.source * scores.att).sum(-1).index_select(0, j)
    logits = logits + (inputs.target * scores.att_target).sum(-1).index_select(0, i)
    if inputs.attributes is not None:
        assert scores.edge_weight is not None
        weight = scores.edge_weight.view(*inputs.source.shape[1:], -1)
        logits = logits + inputs.attributes @ torch.einsum("hcd,hc->dh", weight, scores.att[0])
    return F.leaky_relu(logits, scores.slope)


def _has_one_embedding(inputs: AttentionInputs, scores: Scores) -> bool:
    """Whether the same numbers stand at both ends, and nobody but compiled code on the CPU wants to see them."""
    source, target, att = inputs.source, inputs.target, scores.att
    if is_observed() or inputs.backend or inputs.attributes is not None or not source.is_cpu:
        return False
    same = source.data_ptr() == target.data_ptr() and source.shape == target.shape
    return same and att is not None and source.dtype == att.dtype and source.dtype in (torch.float32, torch.float64)
