"""From every form of adjacency PyG's layers accept to neighbourhoods, and back for the attention weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric import EdgeIndex as PygEdgeIndex
from torch_geometric.utils import add_self_loops, is_torch_sparse_tensor, remove_self_loops, to_edge_index
from torch_geometric.utils.sparse import set_sparse_value

from ltga.errors import GraphError
from ltga.kernels.neighbourhoods import Neighbourhoods, build_neighbourhoods, neighbourhoods


def graph_of(
    adjacency: Any,
    sources: int,
    targets: int,
    self_loops: bool,
    flow: str = "source_to_target",
    fill_value: float | Tensor | str = "mean",
) -> tuple[Neighbourhoods, Tensor | None, Tensor | None]:
    """(neighbourhoods, edge_index before self-loops, edge features of a sparse matrix in final order).

    The second is ``None`` where self-loops, and their features, have been dealt with already.
    """
    if isinstance(adjacency, Neighbourhoods):
        if (adjacency.num_sources, adjacency.num_targets) != (sources, targets):
            raise GraphError(
                f"edge_index: these neighbourhoods are for {adjacency.num_sources} sources and "
                f"{adjacency.num_targets} targets, but x has {sources} and {targets}"
            )
        return adjacency, None, None
    values = None
    if _is_torch_sparse_package(adjacency):
        row, col, values = adjacency.coo()
        adjacency = torch.stack([col, row])
    elif isinstance(adjacency, Tensor) and is_torch_sparse_tensor(adjacency):
        if adjacency.layout == torch.sparse_csc:
            adjacency = adjacency.to_sparse_coo()
        if self_loops:
            adjacency, _ = remove_self_loops(adjacency)
            adjacency, _ = add_self_loops(adjacency, fill_value=fill_value, num_nodes=min(sources, targets))
        indices, values = to_edge_index(adjacency)
        values = values if values is not None and values.dim() > 1 else None
        edge_index = indices.flip(0)  # rows of a transposed adjacency are the targets
        return Neighbourhoods.build(edge_index, sources, targets), None, values
    elif isinstance(adjacency, PygEdgeIndex):
        adjacency = adjacency.as_tensor()
    if not isinstance(adjacency, Tensor):
        raise GraphError(f"edge_index: expected a tensor [2, E] or a sparse adjacency, got {type(adjacency).__name__}")
    flip = flow != "source_to_target"
    if torch.compiler.is_compiling():
        oriented = adjacency.flip(0) if flip else adjacency
        return build_neighbourhoods(oriented, sources, targets, self_loops), adjacency, values
    return neighbourhoods(adjacency, sources, targets, self_loops, flip), adjacency, values


def pack_attention(given: Any, edge_index: Tensor, weights: Tensor, out: Tensor) -> Any:
    """``GATv2Conv``'s return value for ``return_attention_weights=True``."""
    if _is_torch_sparse_package(given):
        return out, given.__class__(row=edge_index[1], col=edge_index[0], value=weights, sparse_sizes=given.sizes())
    if isinstance(given, Tensor) and is_torch_sparse_tensor(given):
        size = tuple(given.shape)
        pattern = torch.sparse_coo_tensor(edge_index.flip(0), weights.new_ones(len(weights)), size).coalesce()
        if given.layout == torch.sparse_csr:
            pattern = pattern.to_sparse_csr()
        return out, (set_sparse_value(pattern, weights), weights)
    return out, (edge_index, weights)


def _is_torch_sparse_package(value: Any) -> bool:
    return type(value).__name__ == "SparseTensor" and hasattr(value, "coo")
