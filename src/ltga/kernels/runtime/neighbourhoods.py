"""A graph's edges sorted by destination, and by source for the way back: built once, used everywhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ltga.errors import GraphError
from ltga.kernels.runtime.backends import has_compiled_kernels
from ltga.kernels.runtime.memo import TensorMemo


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges ``[2, E]`` int64 in the caller's order (self-loops, if added, at the end): all that plain torch needs."""

    edge_index: Tensor
    num_sources: int
    num_targets: int

    @property
    def num_edges(self) -> int:
        return self.edge_index.size(1)


@dataclass(frozen=True, eq=False)
class Neighbourhoods(Edges):
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

    ptr: Tensor  # [T + 1] int64
    col: Tensor  # [E] int32
    perm: Tensor  # [E] int32
    tptr: Tensor  # [S + 1] int64
    tcol: Tensor  # [E] int32
    tpos: Tensor  # [E] int32

    @property
    def structure(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The six index arrays, in the order the kernels take them."""
        return self.ptr, self.col, self.perm, self.tptr, self.tcol, self.tpos

    @classmethod
    def build(cls, edge_index: Tensor, num_sources: int, num_targets: int) -> Neighbourhoods:
        """Sort a validated copy of ``edge_index``; see :func:`neighbourhoods` for the cached way."""
        return _built(edge_index, num_sources, num_targets, self_loops=False, flip=False)

    def to(self, device: torch.device | str) -> Neighbourhoods:
        """The same structure on another device."""
        moved = (array.to(device) for array in self.structure)
        return Neighbourhoods(self.edge_index.to(device), self.num_sources, self.num_targets, *moved)


def check_edge_index(edge_index: Tensor, num_sources: int, num_targets: int) -> None:
    """Raise :class:`GraphError` unless ``edge_index`` is ``[2, E]``, integer and within range."""
    _check_form(edge_index, num_sources, num_targets)
    if edge_index.size(1) == 0 or edge_index.is_meta:
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


def _check_form(edge_index: Tensor, num_sources: int, num_targets: int) -> None:
    if not isinstance(edge_index, Tensor):
        raise GraphError(f"edge_index: expected a tensor of shape [2, E], got {type(edge_index).__name__}")
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise GraphError(f"edge_index: expected shape [2, E], got {list(edge_index.shape)}")
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise GraphError(f"edge_index: expected integers, got {edge_index.dtype}; call edge_index.long()")
    if edge_index.size(1) >= 2**31 or max(num_sources, num_targets) >= 2**31:
        raise GraphError("edge_index: more than 2^31 - 1 nodes or edges in one graph; split it into batches")


def sorted_structure(edge_index: Tensor, num_sources: int, num_targets: int) -> tuple[Tensor, ...]:
    """The six arrays of :class:`Neighbourhoods` by torch's own sorting."""
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


_known: TensorMemo[Neighbourhoods] = TensorMemo()


def neighbourhoods(
    edge_index: Tensor, num_sources: int, num_targets: int, self_loops: bool, flip: bool = False
) -> Neighbourhoods:
    """The neighbourhoods of ``edge_index``, optionally with self-loops replaced by one per node.

    With ``flip``, edges run from the second row of ``edge_index`` to the first. Remembered for as long as the tensor
    lives and holds the same edges (:class:`~ltga.kernels.runtime.memo.TensorMemo`).
    """
    if not isinstance(edge_index, Tensor):
        check_edge_index(edge_index, num_sources, num_targets)
    key = (num_sources, num_targets, self_loops, flip)
    if not edge_index.is_cpu and edge_index.is_inference():  # there is no telling whether it changed
        return _built(edge_index, *key)
    known = _known.get(edge_index, key)
    if known is None:
        # Elsewhere a hash would wait for the device on every call: there torch's count of writes decides.
        content = _known.content(edge_index) if edge_index.is_cpu else None
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False):  # what is kept must be usable in training later
                known = _built(edge_index, *key)
        else:
            known = _built(edge_index, *key)
        _known.put(edge_index, key, content, known)
    return known


def plain_edges(
    edge_index: Tensor, num_sources: int, num_targets: int, self_loops: bool = False, flip: bool = False
) -> Edges:
    """The same edges, checked, in the same order but unsorted; nothing is remembered."""
    plain = edge_index
    if not torch.compiler.is_compiling():
        check_edge_index(edge_index, num_sources, num_targets)
        plain = edge_index.as_subclass(Tensor)
    plain = plain.long()
    plain = plain.flip(0) if flip else plain
    plain = with_self_loops(plain, min(num_sources, num_targets)) if self_loops else plain
    return Edges(plain, num_sources, num_targets)


def _built(edge_index: Tensor, num_sources: int, num_targets: int, self_loops: bool, flip: bool) -> Neighbourhoods:
    if has_compiled_kernels() and isinstance(edge_index, Tensor) and edge_index.is_cpu:
        arrays = _counted(edge_index, num_sources, num_targets, self_loops, flip)
        return Neighbourhoods(arrays[0], num_sources, num_targets, *arrays[1:])
    edges = plain_edges(edge_index, num_sources, num_targets, self_loops, flip).edge_index
    # A copy, so that what is kept neither keeps the caller's tensor alive nor sees later changes.
    edges = edges if self_loops else edges.clone()
    return Neighbourhoods(edges, num_sources, num_targets, *sorted_structure(edges, num_sources, num_targets))


def _counted(edge_index: Tensor, sources: int, targets: int, self_loops: bool, flip: bool) -> tuple[Tensor, ...]:
    """The edges and their structure in one compiled pass, which looks at every edge once and checks it."""
    from ltga.kernels.numba.sorting import sort_edges

    _check_form(edge_index, sources, targets)
    edges = edge_index.detach().as_subclass(Tensor).contiguous().numpy()
    loops = min(sources, targets) if self_loops else -1
    most = edges.shape[1] + max(loops, 0)
    # Made here and not in compiled code, which takes longer to hand an array over than to fill a small one.
    kept, ptr, tptr = np.empty((2, most), np.int64), np.zeros(targets + 1, np.int64), np.zeros(sources + 1, np.int64)
    col, perm, tcol, tpos = (np.empty(most, np.int32) for _ in range(4))
    count = sort_edges(edges, int(flip), sources, targets, loops, kept, ptr, col, perm, tptr, tcol, tpos)
    if count < 0:
        check_edge_index(edge_index, *((targets, sources) if flip else (sources, targets)))
    if count < most:
        kept = kept[:, :count].copy()
        col, perm, tcol, tpos = (array[:count].copy() for array in (col, perm, tcol, tpos))
    return tuple(map(torch.from_numpy, (kept, ptr, col, perm, tptr, tcol, tpos)))


def mean_features(edge_index: Tensor, edge_attr: Tensor, edges: Edges) -> Tensor:
    """Features of ``edges`` that have a self-loop per node: a loop's are the mean of those of the edges that end there.

    ``edge_attr`` are the features of ``edge_index``, from which the square ``edges`` were made; all on the CPU.
    """
    from ltga.kernels.numba.sorting import features_with_loops

    filled = edge_attr.new_empty((edges.num_edges, edge_attr.size(1)))
    given = edge_attr.detach().resolve_neg().contiguous().numpy()
    if not features_with_loops(edge_index.detach().contiguous().numpy(), given, edges.num_targets, filled.numpy()):
        raise GraphError("edge_index: its edges have changed, although assume_constant was told that they would not")
    return filled


@torch.library.custom_op("ltga::sorted_structure", mutates_args=())
def _sorted_structure_op(edge_index: Tensor, num_sources: int, num_targets: int, self_loops: bool) -> list[Tensor]:
    """The arrays of :class:`Neighbourhoods` as an operator, for graphs captured by torch.compile."""
    built = _built(edge_index, num_sources, num_targets, self_loops, flip=False)
    return [built.edge_index, *built.structure]


@_sorted_structure_op.register_fake
def _(edge_index, num_sources, num_targets, self_loops):  # type: ignore[no-untyped-def]
    edges = edge_index.size(1)
    if self_loops:
        edges = torch.library.get_ctx().new_dynamic_size()
    short = [edge_index.new_empty(edges, dtype=torch.int32) for _ in range(4)]
    ptr, tptr = (edge_index.new_empty(count + 1, dtype=torch.int64) for count in (num_targets, num_sources))
    return [edge_index.new_empty(2, edges, dtype=torch.int64), ptr, short[0], short[1], tptr, short[2], short[3]]


def build_neighbourhoods(edge_index: Tensor, num_sources: int, num_targets: int, self_loops: bool) -> Neighbourhoods:
    """Uncached neighbourhoods that torch.compile can capture."""
    arrays = _sorted_structure_op(edge_index, num_sources, num_targets, self_loops)
    return Neighbourhoods(arrays[0], num_sources, num_targets, *arrays[1:])


def edge_order(perm: Tensor, csr_order: bool) -> np.ndarray:
    """From CSR positions to the order in which per-edge values are stored."""
    return np.arange(len(perm), dtype=np.int32) if csr_order else perm.numpy()
