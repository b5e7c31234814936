"""Which edges a program works on, and how it reads what belongs to them.

Rows of a CSR structure are whole, or cut into parts of ``SPLIT`` edges if they are longer. A program's *item* is a row
or, where ``part_row`` says which row each part is of, a part of a long row.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def span(item, ptr, part_row, first_part, rows, SPLIT: tl.constexpr):  # type: ignore[no-untyped-def]
    """(row, first edge, end, whether there is anything to do): long rows are nobody's items but in parts."""
    if part_row is None:
        row = tl.full([], 0, tl.int64) + item  # the interpreter counts in Python's integers
        begin, end = tl.load(ptr + row), tl.load(ptr + row + 1)
        mine = end - begin <= SPLIT
    else:
        row = tl.load(part_row + item)
        mine = row < rows
        row = tl.where(mine, row, 0)
        begin = tl.load(ptr + row) + (item - tl.load(first_part + row)) * SPLIT
        end = tl.minimum(tl.load(ptr + row + 1), begin + SPLIT)
    return row, begin, tl.where(mine, end, begin), mine


@triton.jit
def index_minus_one(q, q_order, k, h, there, heads, PER_EDGE: tl.constexpr):  # type: ignore[no-untyped-def]
    """q - 1 in double precision: one row for all edges, or ``[edges, heads]`` by way of ``q_order`` (None: CSR)."""
    if PER_EDGE:
        edge = k
        if q_order is not None:
            edge = tl.load(q_order + k, mask=tl.max(there.to(tl.int32), 1) > 0, other=0).to(tl.int64)
        value = tl.load(q + edge[:, None] * heads + h[None, :], mask=there, other=1.0)
    else:
        value = tl.load(q + h, mask=h < heads, other=1.0)[None, :]
    return value.to(tl.float64) - 1.0


@triton.jit
def node_features(x, node, h, c, there, heads, channels, ACC: tl.constexpr):  # type: ignore[no-untyped-def]
    """Rows ``node`` of x ``[N, H, C]``, as ``[nodes, heads, channels]``; ``there`` [nodes, heads] says which heads."""
    at = node.to(tl.int64)[:, None, None] * (heads * channels) + h[None, :, None] * channels + c[None, None, :]
    return tl.load(x + at, mask=there[:, :, None] & (c < channels)[None, None, :], other=0.0).to(ACC)


@triton.jit
def upstream(grad_out, node, h, c, there, heads, channels, AVERAGE: tl.constexpr, ACC: tl.constexpr):  # type: ignore[no-untyped-def]
    """The same of the gradient of the output, which is one for all heads if they were averaged."""
    if AVERAGE:
        value = node_features(grad_out, node, h * 0, c, there, 1, channels, ACC)
    else:
        value = node_features(grad_out, node, h, c, there, heads, channels, ACC)
    return value


@triton.jit
def with_edge_features(  # type: ignore[no-untyped-def]
    vectors, edge_attr, edge_weight, edge, h, c, there, heads, channels, features, ACC: tl.constexpr
):
    """``vectors`` [edges, heads, channels] plus W_e e, for edge_attr [E, D] and edge_weight [D, H, C]."""
    if edge_attr is not None:
        inside = tl.max(there.to(tl.int32), 1) > 0
        tile = h[:, None] * channels + c[None, :]
        full = (h < heads)[:, None] & (c < channels)[None, :]
        for f in range(features):
            value = tl.load(edge_attr + edge.to(tl.int64) * features + f, mask=inside, other=0.0).to(ACC)
            weight = tl.load(edge_weight + f * heads * channels + tile, mask=full, other=0.0).to(ACC)
            vectors += value[:, None, None] * weight[None, :, :]
    return vectors
