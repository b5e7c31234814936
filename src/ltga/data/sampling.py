"""Mini-batches of a large graph: some seeds and the neighbours they need, numbered from 0."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data.graph_folder import GraphFolder
from ltga.data.incoming import Incoming, as_times, as_weights, group_edges
from ltga.data.mapped_rows import MappedRows
from ltga.data.prefetch import prefetched
from ltga.errors import GraphError, InputError

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Sample:
    """A subgraph around seeds.

    Attributes:
        nodes: ``[n]`` numbers in the whole graph; the seeds come first. All different, except where seeds have times:
            then a node stands once for every seed that reaches it.
        edge_index: ``[2, m]`` in positions of ``nodes``.
        edges: ``[m]`` numbers of edges in the whole graph.
        seeds: ``[S]`` position in ``nodes`` of every seed asked for, a repeated one included.
        num_seeds: number of different seeds.
        node_counts, edge_counts: how many nodes are seeds, how many the first hop added, ...; edges of every hop.
        tree: ``[n]`` the seed that a node belongs to, if seeds have times.
        input_id: ``[S]`` where the seeds stand in the sampler's ``nodes``, if they come from there.
        seed_time: ``[S]`` their times.
    """

    nodes: Tensor
    edge_index: Tensor
    edges: Tensor
    seeds: Tensor
    num_seeds: int
    node_counts: tuple[int, ...] = ()
    edge_counts: tuple[int, ...] = ()
    tree: Tensor | None = None
    input_id: Tensor | None = None
    seed_time: Tensor | None = None


class NeighborSampler:
    r"""Batches of seeds with sampled neighbourhoods, compiled: what PyG's ``NeighborLoader`` gives.

    From the seeds, hop after hop, every newly reached node draws at most ``fanout[hop]`` of its incoming
    edges, without replacement. With ``-1`` for every layer of a network the seeds' outputs are those of the
    whole graph. The work depends on the sample, not on the graph's size, nor on degrees unless edges are weighted.

    Args:
        data: the whole graph, or a graph folder on disk (:func:`ltga.data.open_graph_folder`), of which only what a
            batch needs is read; attributes of nodes and edges are cut out for every batch.
        fanout: edges per node and hop, one number per layer of the network; -1 for all.
        nodes: the seeds, as numbers or a boolean mask; all nodes if left out.
        batch_size: seeds in a batch.
        shuffle: whether every pass visits the seeds in a new order.
        seed: decides order and samples; the n-th pass of a seed is always the same, however many threads.
        weight_attr: name of an edge attribute ``[E]``, not negative: edges are drawn in proportion to it, one after
            the other; an edge of weight 0 only by a fan-out of -1. All alike if left out.
        time_attr: name of an edge attribute ``[E]``: a seed sees only edges earlier than its own time, which it gets
            from ``input_time``, and has a neighbourhood of its own.
        input_time: ``[S]``, the times of ``nodes``.
        threads: threads that prepare the coming batches while one is used; 0 for none.

    A batch is a ``Data`` with, besides the graph's own attributes, what PyG's loader has: ``n_id`` and ``e_id``
    (numbers in the whole graph), ``batch_size`` (the seeds are its first nodes), ``input_id`` (where they stand in
    ``nodes``), ``num_sampled_nodes`` and ``num_sampled_edges`` (per hop); with times ``seed_time`` and ``batch`` (the
    seed of every node); further ``seeds`` (the row of every seed; only needed if ``nodes`` repeats some).

    >>> data = Data(x=torch.arange(4.0).view(4, 1), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]))
    >>> batch = next(iter(NeighborSampler(data, [-1, -1], nodes=torch.tensor([3]))))
    >>> batch.n_id.tolist(), batch.edge_index.tolist(), batch.x.flatten().tolist()
    ([3, 2, 1], [[1, 2], [0, 1]], [3.0, 2.0, 1.0])
    """

    def __init__(
        self,
        data: Data | GraphFolder,
        fanout: Sequence[int],
        nodes: Tensor | None = None,
        batch_size: int = 512,
        shuffle: bool = True,
        seed: int = 0,
        *,
        weight_attr: str | None = None,
        time_attr: str | None = None,
        input_time: Tensor | None = None,
        threads: int = 1,
    ) -> None:
        self.data = data
        self.fanout = check_fanout(fanout)
        self.batch_size = check_whole("batch_size", batch_size, 1)
        self.shuffle = shuffle
        self.seed = check_whole("seed", seed, 0)
        self.threads = check_whole("threads", threads, 0)
        self._incoming = _incoming(data, weight_attr, time_attr)
        self.num_nodes = self._incoming.num_nodes
        self.nodes = torch.arange(self.num_nodes) if nodes is None else self._numbers(nodes, "nodes")
        self.input_time = _times(input_time, len(self.nodes), time_attr)
        self._passes = 0

    def over(
        self, nodes: Tensor | None = None, fanout: Sequence[int] | None = None, batch_size: int | None = None
    ) -> NeighborSampler:
        """A sampler of the same graph, which is not grouped again, with other seeds, visited in their order."""
        other = copy.copy(self)
        other.nodes = torch.arange(self.num_nodes) if nodes is None else self._numbers(nodes, "nodes")
        other.fanout = self.fanout if fanout is None else check_fanout(fanout)
        other.batch_size = self.batch_size if batch_size is None else check_whole("batch_size", batch_size, 1)
        other.shuffle, other.input_time, other._passes = False, None, 0
        return other

    def __len__(self) -> int:
        return -(-len(self.nodes) // self.batch_size)

    def __iter__(self) -> Iterator[Data]:
        self._passes += 1
        return self.prepared(self._passes - 1, self.batch)

    def share(self, rank: int, size: int) -> NeighborSampler:
        """A sampler of every ``size``-th seed from number ``rank`` on, with draws of its own; the graph is shared."""
        own = copy.copy(self)
        own.nodes = self.nodes[rank::size]
        own.input_time = None if self.input_time is None else self.input_time[rank::size]
        own.seed = _key(self.seed, size, rank)
        return own

    def epoch(self, number: int) -> Iterator[Sample]:
        """The samples of one pass over the seeds, a function of ``(seed, number)`` alone."""
        return self.prepared(number, lambda sample: sample)

    def prepared(self, number: int, make: Callable[[Sample], Result]) -> Iterator[Result]:
        """What ``make`` makes of the samples of :meth:`epoch`, in the threads that draw them."""
        # Hashed together, because torch's generator looks at 32 bits of its seed only.
        mixed = int(np.random.SeedSequence((self.seed, number)).generate_state(1)[0])
        order = torch.arange(len(self.nodes))
        if self.shuffle:
            order = torch.randperm(len(order), generator=torch.Generator().manual_seed(mixed))

        def work(job: tuple[int, Tensor]) -> Result:
            batch, at = job
            return make(self._sample(self.nodes[at], _key(self.seed, number, batch + 1), at))

        return prefetched(work, enumerate(order.split(self.batch_size)), self.threads)

    def sample(self, seeds: Tensor | Sequence[int], generator: torch.Generator | None = None) -> Sample:
        """The neighbourhood of ``seeds``; without a generator the first numbers of the sampler's own seed."""
        if self.input_time is not None:
            raise InputError("seeds: have no times here; go through the sampler, which has them in input_time")
        key = _key(self.seed) if generator is None else int(torch.randint(2**63 - 1, (), generator=generator))
        return self._sample(self._numbers(seeds, "seeds"), key)

    def _sample(self, seeds: Tensor, key: int, at: Tensor | None = None) -> Sample:
        times = None
        if self.input_time is None:
            distinct = _in_order_of_appearance(seeds)
            drawn = self._incoming.draw(distinct.numpy(), self.fanout, key)
        else:
            distinct, times = seeds, self.input_time[at]
            drawn = self._incoming.draw_before(seeds.numpy(), times.numpy(), self.fanout, key)
        positions = torch.arange(len(seeds)) if len(distinct) == len(seeds) else _Positions(distinct)(seeds)
        return Sample(
            nodes=torch.from_numpy(drawn.nodes),
            edge_index=torch.from_numpy(np.stack([drawn.source, drawn.target])),
            edges=torch.from_numpy(drawn.edges),
            seeds=positions,
            num_seeds=len(distinct),
            node_counts=tuple(drawn.node_counts),
            edge_counts=tuple(drawn.edge_counts),
            tree=None if drawn.tree is None else torch.from_numpy(drawn.tree),
            input_id=at,
            seed_time=times,
        )

    def batch(self, sample: Sample) -> Data:
        """A sample with the attributes of its nodes and edges."""
        batch = Data(num_nodes=len(sample.nodes))
        if isinstance(self.data, GraphFolder):
            attributes = self.data.attributes(sample.nodes.numpy(), sample.edges.numpy())
        else:
            attributes = _cut(self.data, sample)
        for name, attribute in attributes.items():
            batch[name] = attribute
        batch.edge_index, batch.n_id, batch.e_id = sample.edge_index, sample.nodes, sample.edges
        batch.seeds, batch.batch_size = sample.seeds, sample.num_seeds
        batch.num_sampled_nodes, batch.num_sampled_edges = list(sample.node_counts), list(sample.edge_counts)
        for key, value in (("input_id", sample.input_id), ("batch", sample.tree), ("seed_time", sample.seed_time)):
            if value is not None:
                batch[key] = value
        return batch

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


def _in_order_of_appearance(numbers: Tensor) -> Tensor:
    distinct, which = numbers.unique(return_inverse=True)
    first = torch.full_like(distinct, len(numbers)).scatter_reduce_(0, which, torch.arange(len(numbers)), "amin")
    return distinct[first.argsort()]


def _key(*words: int) -> int:
    """64 random bits that are a function of whole numbers."""
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])


def _cut(data: Data, sample: Sample) -> dict[str, Any]:
    """The graph's attributes at a sample's nodes and edges; what belongs to neither is kept as it is."""
    cut = {}
    for key, value in data.to_dict().items():
        if key in ("edge_index", "num_nodes"):
            continue
        if isinstance(value, Tensor) and data.is_node_attr(key):
            value = rows_of(value, sample.nodes)
        elif isinstance(value, Tensor) and data.is_edge_attr(key):
            value = rows_of(value, sample.edges)
        cut[key] = value
    return cut


def rows_of(values: Tensor | MappedRows, rows: Tensor) -> Tensor:
    """Rows of a tensor, where possible by numpy: torch would start a second team of threads from a prefetching one."""
    if isinstance(values, MappedRows):
        return values[rows]
    if values.requires_grad or values.device.type != "cpu" or values.layout != torch.strided or values.dim() == 0:
        return values[rows]
    try:
        plain = values.numpy()
    except TypeError:  # numpy has fewer kinds of numbers
        return values[rows]
    return torch.from_numpy(np.take(plain, rows.numpy(), axis=0))


def _incoming(data: Any, weight_attr: str | None, time_attr: str | None) -> Incoming:
    """Edges grouped by target, with the weights and times asked for."""
    if isinstance(data, GraphFolder):
        return data.incoming(weight_attr, time_attr)
    edge_index, num_nodes = data.get("edge_index"), data.num_nodes
    if edge_index is None or num_nodes is None:
        raise InputError("data: has no edge_index or no nodes; a graph needs both")
    _check_edges(edge_index, int(num_nodes))
    weight = None if weight_attr is None else as_weights(_of_edges(data, weight_attr, "weight_attr"), "weight_attr")
    time = None if time_attr is None else as_times(_of_edges(data, time_attr, "time_attr"), "time_attr")
    edges = np.ascontiguousarray(edge_index.long().numpy(force=True))
    return group_edges(edges, int(num_nodes), weight=weight, time=time)


def _of_edges(data: Data, key: str, name: str) -> np.ndarray:
    """An edge attribute ``[E]`` of numbers."""
    values, count = data.get(key), data.num_edges
    if not isinstance(values, Tensor) or values.shape not in ((count,), (count, 1)) or values.is_complex():
        raise InputError(f"{name}: data.{key} is not a tensor with a number for each of {count} edges")
    plain = values.reshape(count)
    return (plain.float() if plain.dtype == torch.bfloat16 else plain).numpy(force=True)


def _times(given: Any, count: int, time_attr: str | None) -> Tensor | None:
    if (given is None) != (time_attr is None):
        raise InputError("input_time: goes with time_attr; give both or neither")
    if given is None:
        return None
    times = torch.as_tensor(given)
    if times.shape != (count,) or times.is_complex():
        raise InputError(f"input_time: expected a number for each of {count} seeds, got shape {list(times.shape)}")
    return torch.from_numpy(as_times(times.numpy(force=True), "input_time"))


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
