"""What attention weights look like: how sparse, how spread out, over how many neighbours."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import scatter

from ltga.errors import InputError


def attention_statistics(weights: Tensor, index: Tensor, num_nodes: int) -> dict[str, Tensor]:
    r"""Four statistics of normalised attention weights, each per head.

    =======================  ============================================================
    ``zero_fraction``        share of the weights that are exactly zero
    ``entropy``              mean over nodes of :math:`-\sum_j w_{ij} \ln w_{ij}`
    ``top1``                 mean over nodes of :math:`\max_j w_{ij}`
    ``effective_neighbors``  mean over nodes of :math:`1 / \sum_j w_{ij}^2`
    =======================  ============================================================

    The means run over the nodes with at least one neighbour (self-loops count if they are among the
    edges); without any edge they are NaN.

    Args:
        weights: ``[E, H]``, non-negative, summing to 1 over each node's edges: the weights before
            attention dropout.
        index: ``[E]``, the node that each weight belongs to (the edge's destination).
        num_nodes: number of nodes N.

    Returns:
        float64 tensors ``[H]``.

    >>> weights = torch.tensor([[0.5, 1.0], [0.5, 0.0], [1.0, 1.0]])  # two edges to node 0, one to node 2
    >>> statistics = attention_statistics(weights, torch.tensor([0, 0, 2]), num_nodes=3)
    >>> for name, value in statistics.items():
    ...     print(name, value)
    zero_fraction tensor([0.0000, 0.3333], dtype=torch.float64)
    entropy tensor([0.3466, 0.0000], dtype=torch.float64)
    top1 tensor([0.7500, 1.0000], dtype=torch.float64)
    effective_neighbors tensor([1.5000, 1.0000], dtype=torch.float64)
    """
    if weights.dim() != 2 or index.shape != weights.shape[:1]:
        raise InputError(
            f"weights, index: expected shapes [E, H] and [E], got {list(weights.shape)} and {list(index.shape)}"
        )
    if len(index) and not 0 <= int(index.min()) <= int(index.max()) < num_nodes:
        raise InputError(f"index: expected values in 0..{num_nodes - 1}, got one outside")
    exact_zero = weights == 0
    weights = weights.detach().double()
    occupied = index.bincount(minlength=num_nodes) > 0

    def node_sums(values: Tensor) -> Tensor:  # [E, H] -> [nodes with an edge, H]
        return values.new_zeros(num_nodes, values.size(1)).index_add(0, index, values)[occupied]

    error = (node_sums(weights) - 1).abs().amax().item() if len(index) else 0.0
    # 1e-2 leaves room for weights in half precision and still catches dropout.
    if not error < 1e-2 or (weights < 0).any():
        raise InputError(
            "weights: expected non-negative numbers that sum to 1 over each node's edges "
            f"(largest deviation here {error:.3g}); pass the weights before dropout"
        )
    top1 = scatter(weights, index, dim_size=num_nodes, reduce="max")[occupied]
    return {
        "zero_fraction": exact_zero.double().mean(dim=0),
        "entropy": node_sums(torch.special.entr(weights)).mean(dim=0),
        "top1": top1.mean(dim=0),
        "effective_neighbors": node_sums(weights.square()).reciprocal().mean(dim=0),
    }
