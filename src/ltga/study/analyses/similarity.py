"""Cosine similarity along edges, without holding all endpoints' features at once."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

_CHUNK = 1 << 14  # edges whose endpoint features are held at once


def edge_cosine(x: Tensor, edge_index: Tensor) -> Tensor:
    r""":math:`\cos(x_i, x_j)` for every edge, ``[E]`` in float64; NaN where an endpoint is the zero vector.

    Args:
        x: node features ``[N, F]``.
        edge_index: ``[2, E]``.

    >>> edge_cosine(torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]), torch.tensor([[0, 0], [1, 2]]))
    tensor([0.7071,    nan], dtype=torch.float64)
    """
    unit = F.normalize(x.double(), dim=1)
    unit[(x == 0).all(dim=1)] = torch.nan
    parts = [(unit[chunk[0]] * unit[chunk[1]]).sum(1) for chunk in edge_index.split(_CHUNK, dim=1)]
    return torch.cat(parts) if parts else unit.new_zeros(0)
