"""GATv2's attention over a graph so small that what Python does around the sweeps matters; see :mod:`.layer`.

The numbers are those of :mod:`.attention_numba`, by the same compiled sweeps over the same blocks of rows, called once
for all of them. Tensors go by their addresses: all are of one type, and contiguous.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ltga.kernels.operators.operands import Kind, Structure
from ltga.kernels.runtime import buffers
from ltga.kernels.runtime.threads import ROW_WORK, most_blocks

MOST_ALONE, MOST_SHARED = 7, 2  # blocks of rows that one thread does in one call, if it is alone and if it is not

_NUMBERS = {torch.float32: np.float32, torch.float64: np.float64}


class Scored(NamedTuple):
    """What attention is made of."""

    source: Tensor  # [N, H * C]
    target: Tensor  # [N, H * C]
    att: Tensor  # [1, H, C]
    q: Tensor  # [1, H], or [E, H] in CSR order
    keep: Tensor | None  # [E, H]
    bias: Tensor | None  # [H * C] or [C]
    edge_attr: Tensor | None  # [E, D]
    edge_weight: Tensor | None  # [D, H, C]


class Wanted(NamedTuple):
    """Which gradients are wanted among those that cost something; those of sources come with their messages'."""

    source: bool
    q: bool
    edge_attr: bool


def is_small(edges: int, nodes: int) -> bool:
    """Whether one call is better than several threads; the numbers are the same. An empty tensor has no address."""
    return edges > 0 and most_blocks(edges, nodes) <= (MOST_ALONE if torch.get_num_threads() == 1 else MOST_SHARED)


def came_back_whole(scored: Scored, graph: Structure, made: tuple[Tensor, Tensor], dtype: torch.dtype) -> bool:
    """Whether saved tensors of the right shapes are what they were: a hook on them may have changed anything else."""
    lists, bounds = (graph.col, graph.perm, graph.tcol, graph.tpos), (graph.ptr, graph.tptr)
    numbers = [*made, *scored[:4], scored.keep, scored.edge_attr, scored.edge_weight]
    expected = [*((value, torch.int32) for value in lists), *((value, torch.int64) for value in bounds)]
    expected += [(value, dtype) for value in numbers if value is not None]
    if any(value.dtype is not kind or not value.is_cpu for value, kind in expected):
        return False
    return all(value.is_contiguous() for value in (*made, *graph))


def forward(given: Scored, graph: Structure, kind: Kind) -> tuple[Tensor, Tensor, Tensor]:
    """(output [N, H * C] or [N, C], weights [E, H], logits [E, H])."""
    from ltga.kernels.numba.whole_graph import forward_graph

    given, sizes, slope = _ready(given), _sizes(given, graph, kind), kind.slope
    nodes, edges, heads, channels, out_heads = sizes[:5]
    kind_of = given.source.dtype
    out = buffers.empty((nodes, out_heads * channels), kind_of)
    weights, logits = buffers.empty((edges, heads), kind_of), buffers.empty((edges, heads), kind_of)
    made = logits.data_ptr(), weights.data_ptr(), out.data_ptr()
    forward_graph(*sizes, _NUMBERS[kind_of](slope), *map(_address, graph), *map(_address, given), *made)
    return out, weights, logits


class Gradients(NamedTuple):
    """By the names of :class:`Scored`; of q as the sum over edges where they share it."""

    source: Tensor  # empty if not needed
    target: Tensor
    att: Tensor
    q: Tensor  # empty if not needed
    bias: Tensor
    edge_attr: Tensor  # empty if not needed
    edge_weight: Tensor


def backward(
    grad: Tensor, given: Scored, graph: Structure, made: tuple[Tensor, Tensor], kind: Kind, need: Wanted
) -> Gradients:
    """Gradients from that of the output, the weights and the logits."""
    from ltga.kernels.numba.whole_graph import backward_graph

    given, sizes, grad = _ready(given), _sizes(given, graph, kind), _in_order(grad)
    nodes, edges, heads, channels, out_heads, q_rows, blocks = sizes[:7]
    dtype, shape = grad.dtype, (nodes, heads * channels)
    of_source, of_target = buffers.empty(shape if need.source else (0, 0), dtype), buffers.empty(shape, dtype)
    of_att = torch.empty((1, heads, channels), dtype=dtype, device="cpu")
    of_bias = torch.empty(out_heads * channels, dtype=dtype, device="cpu")
    of_q, scores = buffers.empty((edges, heads), dtype), buffers.empty((edges, heads), dtype)
    parts = np.zeros((blocks, heads) if need.q else (0, 0)) if q_rows == 1 else of_q.numpy()
    features = sizes[-1]
    of_edge_attr = torch.empty((edges if need.edge_attr else 0, features), dtype=dtype, device="cpu")
    of_edge_weight = torch.empty((features, heads, channels), dtype=dtype, device="cpu")
    weights, logits = made
    backward_graph(
        *sizes, _NUMBERS[dtype](kind.slope), *map(_address, graph), *map(_address, given._replace(bias=None)),
        logits.data_ptr(), weights.data_ptr(), grad.data_ptr(), scores.data_ptr(),
        of_source.data_ptr() if need.source else 0, of_target.data_ptr(), of_att.data_ptr(), of_bias.data_ptr(), parts,
        of_edge_attr.data_ptr() if need.edge_attr else 0, of_edge_weight.data_ptr(),
    )  # fmt: skip
    if q_rows == 1:
        of_q = torch.from_numpy(parts[:1]).to(dtype)
    return Gradients(of_source, of_target, of_att, of_q, of_bias, of_edge_attr, of_edge_weight)


def _ready(given: Scored) -> Scored:
    return Scored._make([None if value is None else _in_order(value) for value in given])


def _in_order(value: Tensor) -> Tensor:
    """The numbers as they are meant, one after another: memory may hold their negatives (``torch._neg_view``)."""
    return value.resolve_neg().contiguous()


def _sizes(given: Scored, graph: Structure, kind: Kind) -> tuple[int, ...]:
    """The numbers that both compiled functions begin with."""
    (nodes, _), (_, heads, channels), edges = given.source.shape, given.att.shape, graph.col.size(0)
    out_heads, features = 1 if kind.average else heads, 0 if given.edge_attr is None else given.edge_attr.size(1)
    return (
        nodes, edges, heads, channels, out_heads, given.q.size(0), most_blocks(edges, nodes), ROW_WORK,
        kind.normalizer, features,
    )  # fmt: skip


def _address(value: Tensor | None) -> int:
    return 0 if value is None else value.data_ptr()
