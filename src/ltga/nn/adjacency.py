"""From every form of adjacency PyG's layers accept to neighbourhoods, and back for the attention weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric import EdgeIndex as PygEdgeIndex
from torch_geometric.utils import add_self_loops, is_sparse, is_torch_sparse_tensor, remove_self_loops, to_edge_index
from torch_geometric.utils.sparse import set_sparse_value

from ltga.errors import GraphError
from ltga.kernels.operators.dispatch import is_observed, transformed
from ltga.kernels.runtime.backends import has_compiled_kernels
from ltga.kernels.runtime.memo import TensorMemo
from ltga.kernels.runtime.neighbourhoods import (
    Edges,
    Neighbourhoods,
    build_neighbourhoods,
    mean_features,
    neighbourhoods,
    plain_edges,
)
from ltga.nn.entitlement import is_ordinary

CheckFeatures = Callable[[Tensor, int], Tensor]


def edges_of(
    adjacency: Any,
    edge_attr: Tensor | None,
    sources: int,
    targets: int,
    self_loops: bool,
    flow: str,
    fill_value: float | Tensor | str,
    fused: bool,
    check: CheckFeatures,
) -> tuple[Edges, Tensor | None]:
    """The edges attention runs over, and their features in the same order.

    Args:
        adjacency: whatever PyG's layers accept, or neighbourhoods, whose self-loops have been dealt with already.
        edge_attr: features of the edges given; a sparse matrix may bring its own.
        fused: whether the edges are to be :class:`~ltga.kernels.Neighbourhoods`.
        check: given edge features and the number of edges, the features to use.
    """
    if isinstance(adjacency, Neighbourhoods):
        if (adjacency.num_sources, adjacency.num_targets) != (sources, targets):
            raise GraphError(
                f"edge_index: these neighbourhoods are for {adjacency.num_sources} sources and "
                f"{adjacency.num_targets} targets, but x has {sources} and {targets}"
            )
        edges: Edges = adjacency if fused else Edges(adjacency.edge_index.clone(), sources, targets)
        return edges, None if edge_attr is None else check(edge_attr, edges.num_edges)
    nodes = min(sources, targets)
    if flow != "source_to_target" and is_sparse(adjacency):
        raise GraphError("edge_index: a sparse adjacency has its own direction; transpose it instead of setting flow")
    if isinstance(adjacency, Tensor) and is_torch_sparse_tensor(adjacency):
        edge_index, values = _from_torch_sparse(adjacency, nodes if self_loops else None, fill_value)
        edges = (Neighbourhoods.build if fused else plain_edges)(edge_index, sources, targets)
        edge_attr = values if edge_attr is None else edge_attr
        return edges, None if edge_attr is None else check(edge_attr, edges.num_edges)
    if _is_torch_sparse_package(adjacency):
        row, col, values = adjacency.coo()
        adjacency, edge_attr = torch.stack([col, row]), values if edge_attr is None else edge_attr
    elif isinstance(adjacency, PygEdgeIndex):
        adjacency = adjacency.as_tensor()
    if not isinstance(adjacency, Tensor):
        raise GraphError(f"edge_index: expected a tensor [2, E] or a sparse adjacency, got {type(adjacency).__name__}")
    edges = _edges_of_tensor(adjacency, sources, targets, self_loops, flow != "source_to_target", fused)
    if edge_attr is None:
        return edges, None
    edge_attr = check(edge_attr, adjacency.size(1))
    if self_loops and fused and fill_value == "mean" and _may_fill(adjacency, edge_attr, edges):
        return edges, mean_features(adjacency, edge_attr, edges)
    if self_loops:
        kept, edge_attr = _without_loops(adjacency, edge_attr)
        kept, edge_attr = add_self_loops(kept, edge_attr, fill_value=fill_value, num_nodes=nodes)
        if not fused:  # the same edges; a compiler must see that there are as many of them as of their features
            edges = Edges(kept if flow == "source_to_target" else kept.flip(0), sources, targets)
    return edges, edge_attr


def _edges_of_tensor(edge_index: Tensor, sources: int, targets: int, loops: bool, flip: bool, fused: bool) -> Edges:
    if not fused:
        return plain_edges(edge_index, sources, targets, loops, flip)
    if is_observed():
        return build_neighbourhoods(edge_index.flip(0) if flip else edge_index, sources, targets, loops)
    return neighbourhoods(edge_index, sources, targets, loops, flip)


def _may_fill(edge_index: Tensor, edge_attr: Tensor, edges: Edges) -> bool:
    """Whether compiled code may make the features of self-loops: nobody differentiates them or looks on."""
    given = edge_attr.requires_grad and torch.is_grad_enabled()
    if given or is_observed() or transformed() or edges.num_sources != edges.num_targets:
        return False
    ordinary = is_ordinary(edge_index) and is_ordinary(edge_attr) and edge_index.is_cpu and edge_attr.is_cpu
    return ordinary and edge_attr.dtype in (torch.float32, torch.float64) and has_compiled_kernels()


_proper: TensorMemo[Tensor] = TensorMemo()


def _without_loops(edge_index: Tensor, edge_attr: Tensor) -> tuple[Tensor, Tensor]:
    """PyG's ``remove_self_loops``; on a GPU, where that waits for the number of edges left, these are remembered."""
    if edge_index.is_cpu or edge_index.is_meta or edge_index.is_inference() or is_observed():
        return remove_self_loops(edge_index.long(), edge_attr)  # type: ignore[return-value]
    kept = _proper.get(edge_index, "no loops")
    if kept is None:
        kept = (edge_index[0] != edge_index[1]).nonzero().squeeze(1)
        _proper.put(edge_index, "no loops", None, kept)
    return edge_index.long().index_select(1, kept), edge_attr.index_select(0, kept)


def _from_torch_sparse(
    adjacency: Tensor, loops: int | None, fill_value: float | Tensor | str
) -> tuple[Tensor, Tensor | None]:
    """(edges, their features) of a transposed sparse adjacency, with self-loops for the first ``loops`` nodes."""
    coo = adjacency.layout == torch.sparse_coo
    if coo and not adjacency.is_coalesced() and adjacency.coalesce()._nnz() != adjacency._nnz():
        raise GraphError("edge_index: a sparse tensor with repeated entries; call .coalesce() first")
    if adjacency.layout == torch.sparse_csc:
        adjacency = adjacency.to_sparse_coo()
    if loops is not None:
        adjacency, _ = remove_self_loops(adjacency)
        adjacency, _ = add_self_loops(adjacency, fill_value=fill_value, num_nodes=loops)
    indices, values = to_edge_index(adjacency)
    return indices.flip(0), values if values is not None and values.dim() > 1 else None


def pack_attention(given: Any, edge_index: Tensor, weights: Tensor, out: Tensor) -> Any:
    """``GATv2Conv``'s return value for ``return_attention_weights=True``."""
    if _is_torch_sparse_package(given):
        return out, given.__class__(row=edge_index[1], col=edge_index[0], value=weights, sparse_sizes=given.sizes())
    if isinstance(given, Tensor) and is_torch_sparse_tensor(given):
        size = tuple(given.shape[:2])
        pattern = torch.sparse_coo_tensor(edge_index.flip(0), weights.new_ones(len(weights)), size).coalesce()
        if given.layout == torch.sparse_csr:
            pattern = pattern.to_sparse_csr()
        return out, (set_sparse_value(pattern, weights), weights)
    return out, (edge_index, weights)


def _is_torch_sparse_package(value: Any) -> bool:
    return type(value).__name__ == "SparseTensor" and hasattr(value, "coo")
