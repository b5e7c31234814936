"""PyG's layers by our kernels: the same parameters and random numbers, without a message per edge.

Only where nobody could tell (:func:`may_stand_in`). GCN's and FAGCN's sums have the bits of PyG's; attention rounds
its weights otherwise.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import FAConv, GATConv, GATv2Conv, GCNConv, MessagePassing

from ltga.kernels import SparseFeatures, neighbourhoods, torch_dropout
from ltga.kernels.operators.weighted_sum import sums_compiled, weighted_sum
from ltga.nn.attention_inputs import AttentionInputs, Scores
from ltga.nn.baselines.propagation import WeightedEdges
from ltga.nn.entitlement import MESSAGE_METHODS, is_plain_linear, is_untouched, know, sums_plain_messages
from ltga.nn.fused_attention import Drop, fused_attention
from ltga.nn.masks import Draws, drop_input
from ltga.nn.projections import embed, feature_pair, projected

_KINDS = (GCNConv, FAConv, GATConv, GATv2Conv)
# As they are now: a user may change a class later, and then its messages are no longer PyG's.
_MESSAGES = {kind: {name: getattr(kind, name) for name in MESSAGE_METHODS} for kind in _KINDS}
know(*_KINDS)


def may_stand_in(conv: MessagePassing, x: Tensor) -> bool:
    """Whether compiled code gives what a call of PyG's layer ``conv`` on one graph would, with nobody looking on."""
    if not sums_compiled(x, *conv.parameters()) or torch.is_autocast_enabled("cpu"):
        return False
    if not is_untouched(conv, *_KINDS) or not sums_plain_messages(conv, _MESSAGES[type(conv)]):
        return False
    edge_features = getattr(conv, "lin_edge", None) is not None
    if conv.flow != "source_to_target" or getattr(conv, "normalize", False) or edge_features:
        return False
    if isinstance(conv, FAConv) and not isinstance(conv.eps, float | int):  # learned by somebody
        return False
    if isinstance(conv, GATConv) and conv.lin is None:  # built for two sorts of nodes
        return False
    return all(is_plain_linear(part) for part in conv.children() if part is not conv.aggr_module)


def embed_features(linear: nn.Module, x: Tensor, dropout: float = 0.0, training: bool = False) -> Tensor:
    """``linear(torch_dropout(x, dropout, training))``, where sparse or repeated features cost less."""
    if not is_plain_linear(linear) or not sums_compiled(x, *linear.parameters()) or torch.is_autocast_enabled("cpu"):
        out: Tensor = linear(torch_dropout(x, dropout, training))
        return out
    return projected(linear, feature_pair(drop_input(x, dropout, training), None, compact=True).source, True)


def convolve(conv: GCNConv, x: Tensor | SparseFeatures, edges: WeightedEdges) -> Tensor:
    """``conv(x, edges.edge_index, edges.weight)``."""
    features = feature_pair(x, None, compact=True).source
    return weighted_sum(projected(conv.lin, features, True), edges.weight, edges.incidence, conv.bias)


def adapt(conv: FAConv, x: Tensor, start: Tensor, edges: WeightedEdges) -> Tensor:
    """``conv(x, start, edges.edge_index, edges.weight)``."""
    source, target = edges.edge_index
    scores = conv.att_l(x).squeeze(1).index_select(0, source) + conv.att_r(x).squeeze(1).index_select(0, target)
    signs = torch_dropout(scores.tanh(), conv.dropout, conv.training)
    return weighted_sum(x, signs * edges.weight, edges.incidence, start, conv.eps)


def attend_as(conv: GATConv | GATv2Conv, x: Tensor | SparseFeatures, edge_index: Tensor) -> Tensor:
    """``conv(x, edge_index)``, dropout's random numbers included."""
    pair, heads = feature_pair(x, None, compact=True), conv.heads
    if isinstance(conv, GATConv):
        left = right = conv.lin
        scores = Scores("gat", "softmax", conv.att_src, conv.att_dst, None, conv.negative_slope, joint=True)
    else:
        left, right = conv.lin_l, conv.lin_r
        scores = Scores("gatv2", "softmax", conv.att, None, None, conv.negative_slope)
    own = embed(pair, left, right, None, conv.res, (heads, conv.out_channels), left is right, True)
    graph = neighbourhoods(edge_index, len(own.source), len(own.target), conv.add_self_loops)
    q = own.source.new_ones(1, heads)
    inputs = AttentionInputs(own.source, own.target, None, None, graph, None, q, False, None, None)
    draws = Draws() if conv.training and conv.dropout > 0 else None
    drop = Drop.of(draws, conv.dropout, inputs, scores, whole=False)
    out, _ = fused_attention(inputs, scores, drop, conv.bias, not conv.concat)
    return out if own.residual is None else out + own.residual
