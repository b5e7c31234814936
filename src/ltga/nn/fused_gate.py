"""q and the modifiers of the logits, through the compiled kernels where they come from our own edge MLP."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ltga.kernels import Edges, GateOperands, Neighbourhoods, edge_mlp, gate_features
from ltga.nn.edge_mlp import EdgeMLP
from ltga.nn.entitlement import is_plain_linear, is_untouched
from ltga.nn.index import FrozenIndex, GatedIndex, LearnedIndex, LogIndex
from ltga.nn.modifiers import EdgeBias, EdgeScale, Modifiers
from ltga.nn.projections import Embeddings


def index_of(index: nn.Module, embeddings: Embeddings, edges: Edges, compiled: bool) -> tuple[Tensor, bool]:
    """q of the edges, and whether it stands in CSR order; compiled for sorted edges if ours is the gate."""
    sorted_edges = compiled and isinstance(edges, Neighbourhoods)
    if sorted_edges and may_fuse_gate(index):
        assert isinstance(index, GatedIndex) and isinstance(edges, Neighbourhoods)
        return index.note(fused_gate(index.gate, embeddings, edges, True, index.delta)), True
    seen = edges.edge_index if type(index) in (FrozenIndex, LearnedIndex, LogIndex) else own_copy(edges)
    return index(embeddings.source, embeddings.target, seen), False


def modifiers_of(modifier: nn.Module | None, embeddings: Embeddings, edges: Edges, compiled: bool) -> Modifiers:
    """(factor, summand) of the logits; compiled likewise."""
    if modifier is None:
        return None, None
    fused = compiled and isinstance(edges, Neighbourhoods) and is_untouched(modifier, EdgeBias, EdgeScale)
    if fused and _may_fuse(modifier.gate):
        assert isinstance(edges, Neighbourhoods) and isinstance(modifier, EdgeBias)
        return modifier.modifiers(fused_gate(modifier.gate, embeddings, edges, False, 0.0))
    found: Modifiers = modifier(embeddings.source, embeddings.target, own_copy(edges))
    return found


def own_copy(edges: Edges) -> Tensor:
    """Edges for code that is not ours: neither what is remembered nor what the caller gave may change in its hands."""
    return edges.edge_index.clone()


def may_fuse_gate(index: nn.Module) -> bool:
    """Whether ``index`` is a gate of ours that :func:`gated` may stand in for."""
    return is_untouched(index, GatedIndex) and has_plain_bound(index) and _may_fuse(index.gate)


def has_plain_bound(index: Any) -> bool:
    """Whether ``index.delta`` is a number that kernels can put on: not learned, and not 0, which they take for none."""
    return type(index.delta) is float and index.delta > 0


def gated(index: GatedIndex, x: Tensor, linears: tuple[Any, Any], heads: int, graph: Neighbourhoods) -> Tensor:
    """q of every edge in CSR order, straight from the features and the plain ``linears`` of sources and targets."""
    gate, (left, right) = index.gate, linears
    gate.check(heads, left.weight.size(0) // heads)
    ends = left.weight, left.bias, right.weight, right.bias
    own = gate.hidden.weight, gate.hidden.bias, gate.out.weight, gate.out.bias
    return index.note(gate_features(GateOperands(x, *ends, *own), graph, index.delta))


def _may_fuse(gate: Any) -> bool:
    """Whether the compiled form of ``gate`` is what a call of it would give."""
    plain = is_untouched(gate, EdgeMLP) and is_plain_linear(gate.hidden) and is_plain_linear(gate.out)
    return plain and gate.hidden.bias is not None and gate.out.bias is not None


def fused_gate(gate: EdgeMLP, embeddings: Embeddings, graph: Neighbourhoods, csr_order: bool, bound: float) -> Tensor:
    """``gate`` on every edge ``[E, H]``, 1 + bound tanh of it if bound > 0; in CSR order or the caller's."""
    gate.check(*embeddings.source.shape[1:])
    per_target, per_source = embeddings.averaged(*gate.hidden.weight.split(gate.channels, dim=1))
    wide = torch.promote_types(embeddings.source.dtype, torch.float32)
    parts = (per_target + gate.hidden.bias, per_source, gate.out.weight, gate.out.bias)
    return edge_mlp(*(part.to(wide) for part in parts), *graph.structure, csr_order, bound)  # type: ignore[no-any-return]
