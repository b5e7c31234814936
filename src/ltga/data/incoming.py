"""Every node's incoming edges side by side, in memory or on disk, and the neighbourhoods drawn from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ltga.errors import DataError, InputError


@dataclass(frozen=True, eq=False)
class Drawn:
    """A neighbourhood as plain arrays.

    Attributes:
        nodes: ``[n]`` numbers in the whole graph, seeds first, then hop by hop in order of appearance.
        source, target: ``[m]`` positions in ``nodes``.
        edges: ``[m]`` numbers of edges in the whole graph.
        tree: ``[n]`` which seed a node was reached from, where every seed has a neighbourhood of its own.
        node_counts: how many nodes are seeds, how many the first hop added, and so on.
        edge_counts: how many edges every hop drew.
    """

    nodes: np.ndarray
    source: np.ndarray
    target: np.ndarray
    edges: np.ndarray
    tree: np.ndarray | None
    node_counts: list[int]
    edge_counts: list[int]


@dataclass(frozen=True, eq=False)
class Incoming:
    """Edges grouped by target.

    Attributes:
        ptr: ``[N + 1]`` int64; the edges of node v stand from ptr[v] to ptr[v + 1].
        source: ``[E]`` where each comes from.
        edges: ``[E]`` the number of each in the whole graph; ``None`` if they are numbered as they stand.
        weight: ``[E]`` how likely each is drawn beside its node's others; ``None``: all alike.
        time: ``[E]`` ascending within a node's edges; ``None``: edges have no time.
        where: opens the message about damage.
    """

    ptr: np.ndarray
    source: np.ndarray
    edges: np.ndarray | None = None
    weight: np.ndarray | None = None
    time: np.ndarray | None = None
    where: str = "data"
    _free: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Not to be written to; numba compiles for writable arrays apart, and files are mapped read-only.
        for name in ("ptr", "source", "edges", "weight", "time"):
            array = getattr(self, name)
            if array is not None:
                view = np.asarray(array).view()
                view.flags.writeable = False
                object.__setattr__(self, name, view)

    @property
    def num_nodes(self) -> int:
        return len(self.ptr) - 1

    def draw(self, seeds: np.ndarray, fanout: Sequence[int], key: int) -> Drawn:
        """The neighbourhood of ``seeds``, all different; from one ``key`` always the same."""
        try:
            place = self._free.pop()  # not after asking whether there is one: another thread may take it in between
        except IndexError:
            place = np.full(self.num_nodes, -1, np.int32)
        with np.errstate(over="ignore"):  # hashes wrap around; only Python's own arithmetic minds
            drawn = self._draw(seeds, fanout, key, _Numbers(self, seeds, place))
        self._free.append(place)
        return drawn

    def draw_before(self, seeds: np.ndarray, times: np.ndarray, fanout: Sequence[int], key: int) -> Drawn:
        """A neighbourhood for every seed, of edges earlier than its time."""
        with np.errstate(over="ignore"):
            return self._draw(seeds, fanout, key, _TreeNumbers(self, seeds, times))

    def _draw(self, seeds: np.ndarray, fanout: Sequence[int], key: int, numbers: Any) -> Drawn:
        from ltga.data import compiled_draws as compiled

        sources, targets, edges, node_counts = [], [], [], [len(seeds)]
        first = 0
        for limit in fanout:
            frontier = numbers.nodes[first : numbers.count]
            begin, end, codes = np.empty_like(frontier), np.empty_like(frontier), numbers.codes(first)
            self._check(compiled.windows(self.ptr, len(self.source), frontier, begin, end))
            numbers.shorten(begin, end, first)
            offsets = np.empty(len(frontier) + 1, np.int64)
            if self.weight is None or limit == -1:
                compiled.count_uniform(begin, end, limit, offsets)
                picks = np.empty(offsets[-1], np.int64)
                compiled.draw_uniform(begin, end, codes, np.uint64(key), offsets, picks)
            else:
                compiled.count_weighted(begin, end, limit, self.weight, offsets)
                picks = np.empty(offsets[-1], np.int64)
                compiled.draw_weighted(begin, end, codes, np.uint64(key), self.weight, offsets, picks)
            owner = np.empty_like(picks)
            compiled.owners(offsets, first, owner)
            first = numbers.count
            # Reads far apart go by themselves: the machine overlaps them as long as nothing waits for their results.
            sources.append(numbers.number(np.take(self.source, picks), owner))
            targets.append(owner)
            edges.append(picks if self.edges is None else np.take(self.edges, picks))
            node_counts.append(numbers.count - first)
        nodes, tree = numbers.finish()
        counts = [len(hop) for hop in edges]
        source, target, numbered = (np.concatenate(hops) for hops in (sources, targets, edges))
        return Drawn(nodes, source, target, numbered, tree, node_counts, counts)

    def _check(self, result: int) -> int:
        if result < 0:
            raise DataError(f"{self.where}: its edges lead out of the graph, so it is damaged; make it again")
        return result


class _Numbers:
    """Numbers the nodes of one neighbourhood, each once."""

    def __init__(self, graph: Incoming, seeds: np.ndarray, place: np.ndarray) -> None:
        self.nodes, self.count = seeds, len(seeds)
        self._graph, self._place = graph, place
        place[seeds] = np.arange(len(seeds), dtype=np.int32)

    def codes(self, first: int) -> np.ndarray:
        """What tells the nodes from ``first`` on apart in the eyes of the random numbers."""
        return self.nodes[first : self.count]

    def shorten(self, begin: np.ndarray, end: np.ndarray, first: int) -> None:
        """Leave out edges that the nodes from ``first`` on may not see: none."""

    def number(self, found: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """Positions of the sources of drawn edges, new ones added."""
        from ltga.data.compiled_draws import number_nodes

        local = np.empty_like(owner)
        nodes = np.empty(self.count + len(found), np.int64)
        nodes[: self.count] = self.nodes[: self.count]
        self.nodes = nodes
        self.count = self._graph._check(number_nodes(found, self._place, nodes, self.count, local))
        return local

    def finish(self) -> tuple[np.ndarray, np.ndarray | None]:
        """All nodes; the places are free again."""
        from ltga.data.compiled_draws import forget

        nodes = self.nodes[: self.count]
        forget(nodes, self._place)
        return nodes.copy(), None


class _TreeNumbers:
    """Numbers nodes where each seed has a neighbourhood, and a time, of its own."""

    def __init__(self, graph: Incoming, seeds: np.ndarray, times: np.ndarray) -> None:
        if len(seeds) * graph.num_nodes >= 2**63:
            raise InputError("batch_size: too many seeds for a graph of this size; give fewer")
        self.nodes, self.count = seeds, len(seeds)
        self._tree = np.arange(len(seeds))
        self._graph, self._times = graph, times

    def codes(self, first: int) -> np.ndarray:
        return self._tree[first : self.count] * self._graph.num_nodes + self.nodes[first : self.count]

    def shorten(self, begin: np.ndarray, end: np.ndarray, first: int) -> None:
        from ltga.data.compiled_draws import end_before

        assert self._graph.time is not None
        end_before(self._graph.time, begin, end, self._times[self._tree[first : self.count]])

    def number(self, found: np.ndarray, owner: np.ndarray) -> np.ndarray:
        from ltga.data.compiled_draws import enter, number_in_trees

        most = self.count + len(found)
        table = np.full((2, 2 ** int(2 * most).bit_length()), -1)
        enter(self.codes(0), table)
        room = np.zeros(len(found), np.int64)
        nodes, tree = (np.concatenate([part[: self.count], room]) for part in (self.nodes, self._tree))
        local = np.empty_like(owner)
        count = number_in_trees(found, owner, self._graph.num_nodes, table, nodes, tree, self.count, local)
        self.nodes, self._tree, self.count = nodes, tree, self._graph._check(count)
        return local

    def finish(self) -> tuple[np.ndarray, np.ndarray | None]:
        return self.nodes[: self.count].copy(), self._tree[: self.count].copy()


def group_edges(
    edge_index: np.ndarray, num_nodes: int, weight: np.ndarray | None = None, time: np.ndarray | None = None
) -> Incoming:
    """Edges ``[2, E]``, checked before, grouped by target; of one target in the order of their time, then as given."""
    from ltga.data.compiled_draws import group_by_target

    source, target = edge_index
    ptr = np.zeros(num_nodes + 1, np.int64)
    grouped = np.empty(len(source), np.int32 if num_nodes < 2**31 else np.int64)
    edges = np.empty(len(source), np.int64)
    group_by_target(source, target, ptr, grouped, edges)
    if time is not None:
        edges = np.lexsort((time, target))
        grouped = source[edges].astype(grouped.dtype)
    weight, time = (None if values is None else values[edges] for values in (weight, time))
    return Incoming(ptr, grouped, edges, weight, time)


def as_weights(values: np.ndarray, name: str) -> np.ndarray:
    """Weights ``[E]`` as float64, none negative or infinite; ``name`` opens the message."""
    bad = np.flatnonzero(~((values >= 0) & np.isfinite(values)))
    if bad.size:
        raise InputError(f"{name}: edge {bad[0]} has weight {values[bad[0]]}; give finite numbers, at least 0")
    return values.astype(np.float64)


def as_times(values: np.ndarray, name: str) -> np.ndarray:
    """Times as float64 that are still told apart, none NaN; ``name`` opens the message.

    >>> as_times(np.array([1_700_000_000_123_456_789]), "time")
    Traceback (most recent call last):
    ...
    ltga.errors.InputError: time: 1700000000123456789 is too large to be told from its neighbours; use a coarser unit
    """
    if values.dtype.kind in "iu":
        large = np.flatnonzero((values > 2**53) | (values < -(2**53 if values.dtype.kind == "i" else 0)))
        if large.size:
            raise InputError(
                f"{name}: {values[large[0]]} is too large to be told from its neighbours; use a coarser unit"
            )
    elif np.isnan(values).any():
        raise InputError(f"{name}: number {int(np.isnan(values).argmax())} is not a time but NaN")
    return values.astype(np.float64, copy=False)
