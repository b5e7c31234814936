"""Mini-batches of a large graph: some seeds and the neighbours they need, numbered from 0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.errors import GraphError, InputError


@dataclass(frozen=True, eq=False)
class Sample:
    """A subgraph around seeds.

    Attributes:
        nodes: ``[n]`` numbers in the whole graph, all different; the seeds come first.
        edge_index: ``[2, m]`` in positions of ``nodes``.
        edges: ``[m]`` positions in the whole graph's ``edge_index``.
        seeds: ``[S]`` position in ``nodes`` of every seed asked for, a repeated one included.
        num_seeds: number of different seeds.
    """

    nodes: Tensor
    edge_index: Tensor
    edges: Tensor
    seeds: Tensor
    num_seeds: int


class NeighborSampler:
    r"""Batches of seeds with sampled neighbourhoods, in plain torch: what PyG's ``NeighborLoader`` gives.

    From the seeds, hop after hop, every newly reached node draws at most ``fanout[hop]`` of its incoming
    edges, uniformly and without replacement. With ``-1`` for every layer of a network the seeds' outputs
    are those of the whole graph. The work depends on the sample, not on degrees or on the graph's size.

    Args:
        data: the whole graph; attributes of nodes and edges are cut out for every batch.
        fanout: edges per node and hop, one number per layer of the network; -1 for all.
        nodes: the seeds, as numbers or a boolean mask; all nodes if left out.
        batch_size: seeds in a batch.
        shuffle: whether every pass visits the seeds in a new order.
        seed: decides order and samples; the n-th pass of a seed is always the same.

    A batch is a ``Data`` with, besides the graph's own attributes, ``n_id`` and ``e_id`` (numbers in the
    whole graph), ``batch_size`` (the seeds are its first nodes) and ``seeds`` (the row of every seed; only
    needed if ``nodes`` repeats some).

    >>> data = Data(x=torch.arange(4.0).view(4, 1), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]))
    >>> batch = next(iter(NeighborSampler(data, [-1, -1], nodes=torch.tensor([3]))))
    >>> batch.n_id.tolist(), batch.edge_index.tolist(), batch.x.flatten().tolist()
    ([3, 2, 1], [[1, 2], [0, 1]], [3.0, 2.0, 1.0])
    """

    def __init__(
        self,
        data: Data,
        fanout: Sequence[int],
        nodes: Tensor | None = None,
        batch_size: int = 512,
        shuffle: bool = True,
        seed: int = 0,
    ) -> None:
        edge_index, num_nodes = data.get("edge_index"), data.num_nodes
        if edge_index is None or num_nodes is None:
            raise InputError("data: has no edge_index or no nodes; a graph needs both")
        self.data = data
        self.fanout = check_fanout(fanout)
        self.num_nodes = int(num_nodes)
        _check_edges(edge_index, self.num_nodes)
        self.nodes = torch.arange(self.num_nodes) if nodes is None else self._numbers(nodes, "nodes")
        self.batch_size = check_whole("batch_size", batch_size, 1)
        self.shuffle = shuffle
        self.seed = check_whole("seed", seed, 0)
        self._passes = 0
        source, target = edge_index.long()
        self._edges = target.argsort(stable=True)  # [E], grouped by target
        self._source = source[self._edges]
        self._ptr = torch.zeros(self.num_nodes + 1, dtype=torch.long)
        torch.cumsum(target.bincount(minlength=self.num_nodes), 0, out=self._ptr[1:])

    def __len__(self) -> int:
        return -(-len(self.nodes) // self.batch_size)

    def __iter__(self) -> Iterator[Data]:
        self._passes += 1
        return (self.batch(sample) for sample in self.epoch(self._passes - 1))

    def epoch(self, number: int) -> Iterator[Sample]:
        """The samples of one pass over the seeds, a function of ``(seed, number)`` alone."""
        # Hashed together, because torch's generator looks at 32 bits of its seed only.
        mixed = int(np.random.SeedSequence((self.seed, number)).generate_state(1)[0])
        generator = torch.Generator().manual_seed(mixed)
        order = self.nodes
        if self.shuffle:
            order = order[torch.randperm(len(order), generator=generator)]
        for seeds in order.split(self.batch_size):
            yield self.sample(seeds, generator)

    def sample(self, seeds: Tensor | Sequence[int], generator: torch.Generator | None = None) -> Sample:
        """The neighbourhood of ``seeds``; without a generator the first numbers of the sampler's own seed."""
        seeds = self._numbers(seeds, "seeds")
        generator = torch.Generator().manual_seed(self.seed) if generator is None else generator
        nodes = _in_order_of_appearance(seeds)
        num_seeds, frontier, reached = len(nodes), nodes, 0
        sources, targets, edges = [], [], []
        for fanout in self.fanout:
            position, owner = self._draw(frontier, fanout, generator)
            found = self._source[position]
            sources.append(found)
            targets.append(owner + reached)
            edges.append(self._edges[position])
            reached = len(nodes)
            frontier = found[~torch.isin(found, nodes)].unique()
            nodes = torch.cat([nodes, frontier])
        local = _Positions(nodes)
        edge_index = torch.stack([local(torch.cat(sources)), torch.cat(targets)])
        return Sample(nodes, edge_index, torch.cat(edges), local(seeds), num_seeds)

    def batch(self, sample: Sample) -> Data:
        """A sample with the attributes of its nodes and edges."""
        batch = Data(num_nodes=len(sample.nodes))
        for key, value in self.data.to_dict().items():
            if key in ("edge_index", "num_nodes"):
                continue
            if isinstance(value, Tensor) and self.data.is_node_attr(key):
                value = value[sample.nodes]
            elif isinstance(value, Tensor) and self.data.is_edge_attr(key):
                value = value[sample.edges]
            batch[key] = value
        batch.edge_index, batch.n_id, batch.e_id = sample.edge_index, sample.nodes, sample.edges
        batch.seeds, batch.batch_size = sample.seeds, sample.num_seeds
        return batch

    def _draw(self, frontier: Tensor, fanout: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """CSR positions of the drawn edges in ascending order per node, and whose edge each is."""
        start = self._ptr[frontier]
        degree = self._ptr[frontier + 1] - start
        few = degree if fanout == -1 else degree.where(degree <= fanout, 0)
        owner = torch.repeat_interleave(torch.arange(len(frontier)), few)
        offset = torch.arange(len(owner)) - torch.repeat_interleave(few.cumsum(0) - few, few)
        many = (degree > fanout).nonzero().squeeze(1) if fanout != -1 else owner[:0]
        if len(many):
            picks = _distinct_draws(degree[many], fanout, generator)  # [len(many), fanout]
            owner = torch.cat([owner, many.repeat_interleave(fanout)])
            offset = torch.cat([offset, picks.flatten()])
            order = (start[owner] + offset).argsort()
            owner, offset = owner[order], offset[order]
        return start[owner] + offset, owner

    def _numbers(self, nodes: Any, name: str) -> Tensor:
        """Node numbers from numbers or a mask, checked."""
        nodes = torch.as_tensor(nodes)
        if nodes.dtype == torch.bool:
            if nodes.shape != (self.num_nodes,):
                raise InputError(f"{name}: a mask needs shape [{self.num_nodes}], got {list(nodes.shape)}")
            nodes = nodes.nonzero().squeeze(1)
        if nodes.dim() != 1 or (nodes.is_floating_point() and len(nodes)):
            raise InputError(f"{name}: expected node numbers [S] or a mask, got {nodes.dtype} {list(nodes.shape)}")
        if len(nodes) == 0:
            raise InputError(f"{name}: there are none; give at least one node")
        outside = ((nodes < 0) | (nodes >= self.num_nodes)).nonzero()
        if len(outside):
            raise InputError(f"{name}: node {int(nodes[outside[0]])} is not in 0..{self.num_nodes - 1}")
        return nodes.long()


class _Positions:
    """Where values stand in a list of different numbers."""

    def __init__(self, numbers: Tensor) -> None:
        self._sorted, self._order = numbers.sort()

    def __call__(self, values: Tensor) -> Tensor:
        return self._order[torch.searchsorted(self._sorted, values)]


def _distinct_draws(population: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """``[n, count]``: for each n a uniform subset of 0..population[n]-1 (Floyd's algorithm, all n at once).

    >>> draws = _distinct_draws(torch.tensor([3, 1000]), 3, torch.Generator().manual_seed(0))
    >>> draws.sort(dim=1).values[0].tolist()
    [0, 1, 2]
    """
    picks = population.new_empty(len(population), count)
    for at in range(count):
        last = population - count + at
        pick = (torch.rand(len(last), dtype=torch.float64, generator=generator) * (last + 1)).long().minimum(last)
        taken = (picks[:, :at] == pick.unsqueeze(1)).any(dim=1)
        picks[:, at] = pick.where(~taken, last)
    return picks


def _in_order_of_appearance(numbers: Tensor) -> Tensor:
    distinct, which = numbers.unique(return_inverse=True)
    first = torch.full_like(distinct, len(numbers)).scatter_reduce_(0, which, torch.arange(len(numbers)), "amin")
    return distinct[first.argsort()]


def _check_edges(edge_index: Any, num_nodes: int) -> None:
    if not isinstance(edge_index, Tensor) or edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise GraphError("edge_index: expected a tensor of shape [2, E]")
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise GraphError(f"edge_index: expected integers, got {edge_index.dtype}; call edge_index.long()")
    outside = ((edge_index < 0) | (edge_index >= num_nodes)).any(dim=0).nonzero()
    if len(outside):
        at = int(outside[0])
        raise GraphError(
            f"edge_index: edge {at} joins {edge_index[:, at].tolist()}, but nodes are numbered 0 to {num_nodes - 1}"
        )


def check_fanout(fanout: Any) -> tuple[int, ...]:
    """``fanout`` if it has whole numbers from 1, or -1 for all neighbours."""
    if not isinstance(fanout, Sequence) or isinstance(fanout, str) or not fanout:
        raise InputError(f"fanout: expected one number per layer, such as [10, 5], got {fanout!r}")
    for edges in fanout:
        if isinstance(edges, bool) or not isinstance(edges, int) or (edges < 1 and edges != -1):
            raise InputError(f"fanout: expected whole numbers from 1, or -1 for all neighbours, got {edges!r}")
    return tuple(fanout)


def check_whole(name: str, value: Any, least: int) -> int:
    """``value`` if it is a whole number from ``least``; the argument's ``name`` opens the message."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name}: expected a whole number from {least}, got {value!r}")
    return value
