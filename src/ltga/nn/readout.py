"""A network for whole graphs: nodes are encoded, a graph is what its nodes are on average, at most and together."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import global_add_pool, global_max_pool, global_mean_pool

from ltga.errors import InputError
from ltga.nn.composed import Composed
from ltga.nn.interface import Network


def _root_pool(nodes: Tensor, batch: Tensor, graphs: int | None) -> Tensor:
    """The sum over each graph's nodes, divided by the square root of their number."""
    sums = global_add_pool(nodes, batch, graphs)
    return sums / torch.bincount(batch, minlength=len(sums)).clamp(min=1).to(sums).sqrt().unsqueeze(1)


POOLS: Mapping[str, Callable[[Tensor, Tensor, int | None], Tensor]] = {
    "mean": global_mean_pool,
    "max": global_max_pool,
    "sum": global_add_pool,
    "root": _root_pool,
}
"""What a graph can be told by; the mean and the maximum do not see how many nodes it has, the others do."""


def pools(readout: str) -> tuple[str, ...]:
    """The pools that a readout names, joined by hyphens.

    >>> pools("mean-max")
    ('mean', 'max')
    >>> pools("mean-min")
    Traceback (most recent call last):
    ...
    ltga.errors.InputError: readout: got 'mean-min'; join some of mean, max, sum, root by hyphens, each once
    """
    names = tuple(readout.split("-")) if isinstance(readout, str) else ()
    if not names or len(set(names)) < len(names) or not set(names) <= set(POOLS):
        raise InputError(f"readout: got {readout!r}; join some of {', '.join(POOLS)} by hyphens, each once")
    return names


class GraphNetwork(Composed):
    """An encoder of nodes, its nodes pooled in one way or several side by side, and a perceptron of two layers.

    Args:
        encoder: gives every node ``width`` numbers.
        width: see above.
        outputs: how many numbers a graph gets.
        dropout: probability of dropping what the perceptron reads.
        readout: names from :data:`POOLS`, joined by hyphens; ``root`` is the sum over the square root of the size.

    Shapes:
        ``x`` ``[N, F]``, ``edge_index`` ``[2, E]``, ``edge_attr`` ``[E, D]`` or ``None``, ``batch`` ``[N]``: which
        graph a node is of -> ``[graphs, outputs]``.

    >>> from ltga.nn import LTGA
    >>> model = GraphNetwork(LTGA(4, 8, hidden_channels=2, heads=2), 8, outputs=3)
    >>> x, batch = torch.randn(5, 4), torch.tensor([0, 0, 1, 1, 1])
    >>> model(x, torch.tensor([[0, 2], [1, 3]]), None, batch, 2).shape
    torch.Size([2, 3])
    """

    def __init__(
        self, encoder: Network, width: int, outputs: int, dropout: float = 0.0, readout: str = "mean-max"
    ) -> None:
        super().__init__(encoder, dropout)
        self.pools = pools(readout)
        self.first = nn.Linear(len(self.pools) * width, width)
        self.last = nn.Linear(width, outputs)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, batch: Tensor, graphs: int | None = None
    ) -> Tensor:
        nodes = F.elu(self.encode(x, edge_index, edge_attr))
        read = torch.cat([POOLS[name](nodes, batch, graphs) for name in self.pools], dim=1)
        out: Tensor = self.last(self.drop(F.elu(self.first(self.drop(read))), 1))
        return out
