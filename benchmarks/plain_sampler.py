"""The sampler in plain torch that was there before the compiled one, kept to be measured against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data import Sample


class PlainSampler:
    """Batches of seeds with sampled neighbourhoods."""

    def __init__(
        self,
        data: Data,
        fanout: Sequence[int],
        nodes: Tensor | None = None,
        batch_size: int = 512,
        shuffle: bool = True,
        seed: int = 0,
    ) -> None:
        edge_index, num_nodes = data.edge_index, data.num_nodes
        self.data = data
        self.fanout = tuple(fanout)
        self.num_nodes = int(num_nodes)
        self.nodes = torch.arange(self.num_nodes) if nodes is None else nodes
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self._passes = 0
        source, target = edge_index.long()
        self._edges = target.argsort(stable=True)  # [E], grouped by target
        self._source = source[self._edges]
        self._ptr = torch.zeros(self.num_nodes + 1, dtype=torch.long)
        torch.cumsum(target.bincount(minlength=self.num_nodes), 0, out=self._ptr[1:])

    def __len__(self) -> int:
        return -(-len(self.nodes) // self.batch_size)

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
