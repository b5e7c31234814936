"""q and the modifiers of the logits, through the compiled kernels where they come from our own edge MLP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ltga.kernels import Edges, Neighbourhoods, edge_mlp
from ltga.nn.entitlement import is_plain_linear, is_untouched
from ltga.nn.index import EdgeBias, EdgeIndex, EdgeMLP, EdgeScale, FrozenIndex, LearnedIndex, Modifiers

NodeTerms = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def index_of(
    index: nn.Module, source: Tensor, target: Tensor, edges: Edges, node_terms: NodeTerms | None
) -> tuple[Tensor, bool]:
    """q of the edges, and whether it stands in CSR order; compiled if there are ``node_terms`` and ours is the gate."""
    if node_terms is not None and is_untouched(index, EdgeIndex) and _may_fuse(index.gate):
        assert isinstance(edges, Neighbourhoods) and isinstance(index, EdgeIndex)
        return index.note(fused_gate(index.gate, source, node_terms, edges, True, index.delta)), True
    seen = edges.edge_index if type(index) in (FrozenIndex, LearnedIndex) else own_copy(edges)
    return index(source, target, seen), False


def modifiers_of(
    modifier: nn.Module | None, source: Tensor, target: Tensor, edges: Edges, node_terms: NodeTerms | None
) -> Modifiers:
    """(factor, summand) of the logits; compiled likewise."""
    if modifier is None:
        return None, None
    if node_terms is not None and is_untouched(modifier, EdgeBias, EdgeScale) and _may_fuse(modifier.gate):
        assert isinstance(edges, Neighbourhoods) and isinstance(modifier, EdgeBias)
        return modifier.modifiers(fused_gate(modifier.gate, source, node_terms, edges, False, 0.0))
    found: Modifiers = modifier(source, target, own_copy(edges))
    return found


def own_copy(edges: Edges) -> Tensor:
    """Edges for code that is not ours: neither what is remembered nor what the caller gave may change in its hands."""
    return edges.edge_index.clone()


def _may_fuse(gate: Any) -> bool:
    """Whether the compiled form of ``gate`` is what a call of it would give."""
    plain = is_untouched(gate, EdgeMLP) and is_plain_linear(gate.hidden) and is_plain_linear(gate.out)
    return plain and gate.hidden.bias is not None and gate.out.bias is not None


def fused_gate(
    gate: EdgeMLP, source: Tensor, node_terms: NodeTerms, graph: Neighbourhoods, csr_order: bool, bound: float
) -> Tensor:
    """``gate`` on every edge, ``[E, H]``, in the order of ``edge_index`` or ``graph.col``; 1 + bound tanh if bound > 0.

    Args:
        source: embeddings ``[S, H, C]`` of the layer, for their shape and type.
        node_terms: weights ``[K, C]`` for (attending node, neighbour) -> their products with the endpoints'
            embeddings averaged over heads, ``[T, K]``, ``[S, K]``.
    """
    gate.check(source)
    per_target, per_source = node_terms(*gate.hidden.weight.split(gate.channels, dim=1))
    wide = torch.promote_types(source.dtype, torch.float32)
    parts = (per_target + gate.hidden.bias, per_source, gate.out.weight, gate.out.bias)
    return edge_mlp(*(part.to(wide) for part in parts), *graph.structure, csr_order, bound)  # type: ignore[no-any-return]
