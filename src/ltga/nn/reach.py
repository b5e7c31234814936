"""What the outputs of some nodes depend on, layer by layer, so that nothing else need be computed.

A network of L layers reads, for a node, its neighbours within L steps. Where few nodes carry a label, most of a
full-batch pass serves nobody: on Cora the 140 training nodes read a quarter of the first layer's outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ltga.errors import InputError
from ltga.kernels import Part, SparseFeatures, SparseRows, assume_constant, compact_form


@dataclass(frozen=True, eq=False)
class Hop:
    """One layer's graph: the nodes it reads, those it writes first among them, and the edges between.

    Attributes:
        edge_index: ``[2, E]``, or another adjacency that ``LTGAConv`` takes; in positions of the nodes it reads.
        edge_attr: ``[E, D]`` or ``None``.
        size: (nodes read, nodes written); ``None`` if it is the whole graph.
        nodes, edges: which nodes of the whole graph are read and which edges (loops after the others) are used.
    """

    edge_index: Any
    edge_attr: Tensor | None = None
    size: tuple[int, int] | None = None
    nodes: Part | None = None
    edges: Part | None = None


@dataclass(frozen=True, eq=False)
class Reach:
    """The features and the hops, first layer first, that give the outputs of ``nodes``.

    >>> path = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    >>> reach = Reach.of(torch.tensor([3]), torch.randn(5, 2), path, None, num_layers=2)
    >>> [hop.nodes.rows.tolist() for hop in reach.hops]
    [[3, 2, 1], [3, 2]]
    """

    x: Tensor | SparseFeatures
    hops: tuple[Hop, ...]
    nodes: Tensor

    @classmethod
    def of(
        cls,
        nodes: Tensor,
        x: Tensor | SparseFeatures,
        edge_index: Tensor,
        edge_attr: Tensor | None,
        num_layers: int,
    ) -> Reach:
        """The reach of different ``nodes`` ``[n]`` of a graph to whose nodes layers add self-loops."""
        _check(nodes, x)
        proper = (edge_index[0] != edge_index[1]).nonzero().squeeze(1)
        source, target = edge_index[:, proper]
        hops, written = [], nodes
        for _ in range(num_layers):
            hop, written = _hop_into(
                written, source, target, x.size(0), None if edge_attr is None else edge_attr[proper]
            )
            hops.append(hop)
        compact = x if isinstance(x, SparseFeatures) else compact_form(x)
        part = SparseRows.of(compact, written) if isinstance(compact, SparseFeatures) else x[written]  # type: ignore[index]
        return cls(part, tuple(reversed(hops)), nodes)

    @property
    def share(self) -> float:
        """Rows read and written in all layers, as a share of those of the whole graph."""
        rows = sum(sum(hop.size) for hop in self.hops if hop.size is not None)
        return rows / sum(2 * hop.nodes.total for hop in self.hops if hop.nodes is not None)


def _check(nodes: Tensor, x: Tensor | SparseFeatures) -> None:
    if nodes.dim() != 1 or nodes.dtype != torch.int64:
        raise InputError(f"nodes: expected node numbers [n], int64, got {nodes.dtype} {list(nodes.shape)}")
    if len(nodes) and (int(nodes.min()) < 0 or int(nodes.max()) >= x.size(0)):
        raise InputError(f"nodes: has numbers outside 0..{x.size(0) - 1}")
    if len(nodes.unique()) != len(nodes):
        raise InputError("nodes: has a node twice; a reach is of different nodes")
    if isinstance(x, Tensor) and not x.is_contiguous():
        raise InputError("x: dropout draws in the order of memory; call x.contiguous() first")


def _hop_into(
    written: Tensor, source: Tensor, target: Tensor, num_nodes: int, edge_attr: Tensor | None
) -> tuple[Hop, Tensor]:
    """The hop that ends in the nodes ``written``, over edges without loops, and all nodes it reads."""
    place = torch.full((num_nodes,), -1)
    place[written] = torch.arange(len(written))
    used = (place[target] >= 0).nonzero().squeeze(1)
    further = torch.zeros(num_nodes, dtype=torch.bool)
    further[source[used]] = True
    further[written] = False
    read = torch.cat([written, further.nonzero().squeeze(1)])
    place[read] = torch.arange(len(read))
    hop = Hop(
        assume_constant(torch.stack([place[source[used]], place[target[used]]])),
        None if edge_attr is None else edge_attr[used],
        (len(read), len(written)),
        Part(read, num_nodes),
        Part(torch.cat([used, len(source) + written]), len(source) + num_nodes),
    )
    return hop, read
