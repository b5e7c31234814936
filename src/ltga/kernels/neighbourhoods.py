"""A graph's edges sorted by destination, and by source for the way back: built once, used everywhere."""

from __future__ import annotations

import os
import threading
import weakref
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ltga.errors import GraphError


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """Incoming edges of every node in CSR form, with the transposed order for the backward pass.

    Position k of the CSR arrays is edge ``perm[k]`` of ``edge_index``: an edge from ``col[k]`` to the
    row that holds k. ``tptr``, ``tcol``, ``tpos`` list for each source its destinations and their
    CSR positions.

    Args:
        edge_index: ``[2, E]`` in the caller's order (self-loops, if added, at the end).
        num_sources, num_targets: number of source and destination nodes.

    >>> nb = Neighbourhoods.build(torch.tensor([[0, 1, 2], [2, 2, 0]]), 3, 3)
    >>> nb.ptr.tolist(), nb.col.tolist()
    ([0, 1, 1, 3], [2, 0, 1])
    """

    edge_index: Tensor  # [2, E]
    num_sources: int
    num_targets: int
    ptr: Tensor  # [T + 1] int64
    col: Tensor  # [E] int32
    perm: Tensor  # [E] int32
    tptr: Tensor  # [S + 1] int64
    tcol: Tensor  # [E] int32
    tpos: Tensor  # [E] int32

    @property
    def num_edges(self) -> int:
        return self.edge_index.size(1)

    @property
    def structure(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The six index arrays, in the order the kernels take them."""
        return self.ptr, self.col, self.perm, self.tptr, self.tcol, self.tpos

    @classmethod
    def build(cls, edge_index: Tensor, num_sources: int, num_targets: int) -> Neighbourhoods:
        """Sort a validated copy of ``edge_index``; see :func:`neighbourhoods` for the cached way."""
        check_edge_index(edge_index, num_sources, num_targets)
        return cls(edge_index, num_sources, num_targets, *_sorted_structure(edge_index, num_sources, num_targets))

    def to(self, device: torch.device | str) -> Neighbourhoods:
        """The same structure on another device."""
        moved = (array.to(device) for array in self.structure)
        return Neighbourhoods(self.edge_index.to(device), self.num_sources, self.num_targets, *moved)


def check_edge_index(edge_index: Tensor, num_sources: int, num_targets: int) -> None:
    """Raise :class:`GraphError` unless ``edge_index`` is ``[2, E]``, integer and within range."""
    if not isinstance(edge_index, Tensor):
        raise GraphError(f"edge_index: expected a tensor of shape [2, E], got {type(edge_index).__name__}")
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise GraphError(f"edge_index: expected shape [2, E], got {list(edge_index.shape)}")
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise GraphError(f"edge_index: expected integers, got {edge_index.dtype}; call edge_index.long()")
    if edge_index.size(1) >= 2**31 or max(num_sources, num_targets) >= 2**31:
        raise GraphError("edge_index: more than 2^31 - 1 nodes or edges in one graph; split it into batches")
    if edge_index.size(1) == 0:
        return
    low, high = edge_index.amin(1).tolist(), edge_index.amax(1).tolist()
    for row, role, count in ((0, "source", num_sources), (1, "target", num_targets)):
        if low[row] < 0 or high[row] >= count:
            worst = low[row] if low[row] < 0 else high[row]
            position = int((edge_index[row] == worst).nonzero()[0])
            raise GraphError(
                f"edge_index: edge {position} has {role} {worst}, but there are {count} {role} nodes "
                f"(numbered from 0); check the edge list or pass more node features"
            )


def _sorted_structure(edge_index: Tensor, num_sources: int, num_targets: int) -> tuple[Tensor, ...]:
    source, target = edge_index[0].long(), edge_index[1].long()
    perm = target.sort(stable=True).indices
    col, row = source[perm], target[perm]
    tpos = col.sort(stable=True).indices
    ptr, tptr = _offsets(target, num_targets), _offsets(source, num_sources)
    return ptr, col.int(), perm.int(), tptr, row[tpos].int(), tpos.int()


def _offsets(nodes: Tensor, count: int) -> Tensor:
    counts = torch.zeros(count + 1, dtype=torch.long, device=nodes.device)
    counts.scatter_add_(0, nodes + 1, torch.ones_like(nodes))
    return counts.cumsum(0)


def with_self_loops(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Drop existing self-loops and append one per node: the edge order of PyG's attention layers."""
    loops = torch.arange(num_nodes, device=edge_index.device, dtype=edge_index.dtype)
    kept = edge_index[:, edge_index[0] != edge_index[1]]
    return torch.cat([kept, loops.expand(2, -1)], dim=1)


_Key = tuple[int, int, int, bool, bool]
_cache: dict[_Key, tuple[weakref.ref[Tensor], int, Neighbourhoods]] = {}
_lock = threading.Lock()


def _new_lock() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_new_lock)  # another thread may have held it


def neighbourhoods(
    edge_index: Tensor, num_sources: int, num_targets: int, self_loops: bool, flip: bool = False
) -> Neighbourhoods:
    """The (cached) neighbourhoods of ``edge_index``, optionally with self-loops replaced by one per node.

    With ``flip``, edges run from the second row of ``edge_index`` to the first.

    The cache is keyed by the tensor object; an in-place change is noticed through its version, and
    an entry disappears with its tensor.
    """
    if not isinstance(edge_index, Tensor):
        check_edge_index(edge_index, num_sources, num_targets)
    if edge_index.is_inference():  # no version counter, so changes could not be noticed
        return _fresh(edge_index.flip(0) if flip else edge_index, num_sources, num_targets, self_loops)
    key = (id(edge_index), num_sources, num_targets, self_loops, flip)
    with _lock:
        hit = _cache.get(key)
    if hit is not None and hit[0]() is edge_index and hit[1] == edge_index._version:
        return hit[2]
    version = edge_index._version
    with torch.inference_mode(False):  # what is kept must be usable in training later
        built = _fresh(edge_index.flip(0) if flip else edge_index, num_sources, num_targets, self_loops)
    reference = weakref.ref(edge_index, lambda _, key=key: _cache.pop(key, None))  # type: ignore[misc]
    with _lock:
        _cache[key] = (reference, version, built)
    return built


def _fresh(edge_index: Tensor, num_sources: int, num_targets: int, self_loops: bool) -> Neighbourhoods:
    check_edge_index(edge_index, num_sources, num_targets)
    # A copy, so that the cached structure keeps neither the caller's tensor alive nor later changes.
    plain = edge_index.as_subclass(Tensor)
    plain = with_self_loops(plain, min(num_sources, num_targets)) if self_loops else plain.clone()
    return Neighbourhoods.build(plain, num_sources, num_targets)


@torch.library.custom_op("ltga::sorted_structure", mutates_args=())
def _sorted_structure_op(edge_index: Tensor, num_sources: int, num_targets: int, self_loops: bool) -> list[Tensor]:
    """The arrays of :class:`Neighbourhoods` as an operator, for graphs captured by torch.compile."""
    built = _fresh(edge_index, num_sources, num_targets, self_loops)
    return [built.edge_index, *built.structure]


@_sorted_structure_op.register_fake
def _(edge_index, num_sources, num_targets, self_loops):  # type: ignore[no-untyped-def]
    edges = edge_index.size(1)
    if self_loops:
        edges = torch.library.get_ctx().new_dynamic_size()
    short = [edge_index.new_empty(edges, dtype=torch.int32) for _ in range(4)]
    ptr, tptr = (edge_index.new_empty(count + 1, dtype=torch.int64) for count in (num_targets, num_sources))
    return [edge_index.new_empty(2, edges), ptr, short[0], short[1], tptr, short[2], short[3]]


def build_neighbourhoods(edge_index: Tensor, num_sources: int, num_targets: int, self_loops: bool) -> Neighbourhoods:
    """Uncached neighbourhoods that torch.compile can capture."""
    arrays = _sorted_structure_op(edge_index, num_sources, num_targets, self_loops)
    return Neighbourhoods(arrays[0], num_sources, num_targets, *arrays[1:])


def edge_order(perm: Tensor, csr_order: bool) -> np.ndarray:
    """From CSR positions to the order in which per-edge values are stored."""
    return np.arange(len(perm), dtype=np.int32) if csr_order else perm.numpy()
