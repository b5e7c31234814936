"""Graph attention in plain torch, one step at a time: score edges, normalise, aggregate.

These are the definitions; :mod:`ltga.kernels` computes the same without edges x heads x channels tensors.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from ltga.errors import InputError
from ltga.functional.entmax import segment_entmax
from ltga.functional.softmax import segment_q_softmax
from ltga.functional.tsallis import Index


def score_edges(
    source: Tensor,
    target: Tensor,
    edge_index: Tensor,
    scoring: str,
    att: Tensor | None,
    negative_slope: float = 0.2,
    edge: Tensor | None = None,
    att_target: Tensor | None = None,
) -> Tensor:
    r"""Attention logits ``[E, H]`` of every edge.

    ``gatv2``: :math:`a^\top\mathrm{LeakyReLU}(s_j+t_i+e_{ij})`; ``gat``:
    :math:`\mathrm{LeakyReLU}(a^\top (s_j + e_{ij}) + b^\top t_i)`; ``dot``:
    :math:`\langle t_i, s_j+e_{ij}\rangle/\sqrt C`.

    Args:
        source, target: projected features ``[S, H, C]`` and ``[T, H, C]``.
        edge_index: ``[2, E]``, from source to target.
        att, att_target: ``[H, C]`` vectors a and b.
        edge: projected edge features ``[E, H, C]``.

    >>> import torch
    >>> x = torch.ones(2, 1, 4)
    >>> score_edges(x, x, torch.tensor([[0], [1]]), "dot", torch.zeros(1, 4))
    tensor([[2.]])
    """
    ends = source.index_select(0, edge_index[0]), target.index_select(0, edge_index[1])
    return score_pairs(*ends, scoring, att, negative_slope, edge, att_target)


def score_pairs(
    source: Tensor,
    target: Tensor,
    scoring: str,
    att: Tensor | None,
    negative_slope: float = 0.2,
    edge: Tensor | None = None,
    att_target: Tensor | None = None,
) -> Tensor:
    """:func:`score_edges` once the ends of every edge are side by side, ``[E, H, C]`` each."""
    if scoring not in ("gatv2", "gat", "dot"):
        raise InputError(f"scoring: expected 'gatv2', 'gat' or 'dot', got {scoring!r}")
    key = source if edge is None else source + edge
    if scoring == "dot":
        return (key * target).sum(-1) / source.size(-1) ** 0.5
    assert att is not None
    if scoring == "gatv2":
        return (F.leaky_relu(key + target, negative_slope) * att).sum(-1)
    assert att_target is not None
    return F.leaky_relu((key * att).sum(-1) + (target * att_target).sum(-1), negative_slope)


def normalise_edges(logits: Tensor, q: Index, target: Tensor, num_targets: int, normalizer: str) -> Tensor:
    """Weights ``[E, H]`` that sum to one over each target's incoming edges.

    >>> import torch
    >>> normalise_edges(torch.zeros(2, 1), 1.0, torch.tensor([0, 0]), 1, "softmax").flatten()
    tensor([0.5000, 0.5000])
    """
    if normalizer == "softmax":
        return segment_q_softmax(logits, 1.0, index=target, num_segments=num_targets)
    if normalizer == "q_softmax":
        return segment_q_softmax(logits, q, index=target, num_segments=num_targets)
    if normalizer == "entmax":
        return segment_entmax(logits, q, index=target, num_segments=num_targets)
    raise InputError(f"normalizer: expected 'q_softmax', 'entmax' or 'softmax', got {normalizer!r}")


def aggregate_edges(weights: Tensor, source: Tensor, edge_index: Tensor, num_targets: int) -> Tensor:
    """Weighted sums of source features over incoming edges, ``[T, H, C]``.

    >>> import torch
    >>> aggregate_edges(torch.ones(1, 1), torch.ones(2, 1, 3), torch.tensor([[1], [0]]), 2).shape
    torch.Size([2, 1, 3])
    """
    messages = weights.unsqueeze(-1) * source.index_select(0, edge_index[0])
    out = messages.new_zeros(num_targets, *source.shape[1:])
    return out.index_add(0, edge_index[1], messages)
