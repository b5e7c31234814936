"""The edge MLP of gates and controls through the compiled kernels."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ltga.kernels import Neighbourhoods, edge_mlp
from ltga.nn.entitlement import is_plain_linear, is_untouched
from ltga.nn.index import EdgeMLP

NodeTerms = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def may_fuse(gate: EdgeMLP) -> bool:
    """Whether the compiled form of ``gate`` is what a call of it would give."""
    return is_untouched(gate, EdgeMLP) and is_plain_linear(gate.hidden) and is_plain_linear(gate.out)


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
