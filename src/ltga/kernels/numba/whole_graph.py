"""The sweeps of :mod:`.sweeps` over all rows of a graph in one call, for graphs on which the calling is what costs.

Arrays come as addresses, which Python makes and hands over more quickly than arrays. Whoever calls vouches for them:
C-contiguous, floating-point numbers of the type of ``slope``, of the shapes given here, 0 for what there is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray
from numba.core import types
from numba.extending import intrinsic

from ltga.kernels.codes import GATV2
from ltga.kernels.numba.scalar import compiled
from ltga.kernels.numba.short_rows import backward_sources_short, backward_targets_short, forward_short, rows_of_edges
from ltga.kernels.numba.side_by_side import LANES
from ltga.kernels.numba.sweeps import backward_sources, backward_targets, cut_rows, forward_rows


@intrinsic
def pointer(typingctx, address, like):  # type: ignore[no-untyped-def]
    """Where numbers of the type of ``like`` are."""
    kind = types.CPointer(like)  # type: ignore[attr-defined]

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(kind))

    return kind(types.int64, like), codegen


@compiled()
def sorted_edges(ptr, col, perm, rows, edges):  # type: ignore[no-untyped-def]
    """The arrays of edges sorted by one of their ends."""
    bounds = carray(pointer(ptr, np.int64(0)), (rows + 1,))
    return bounds, carray(pointer(col, np.int32(0)), (edges,)), carray(pointer(perm, np.int32(0)), (edges,))


@compiled()
def order_of_q(places, q_rows):  # type: ignore[no-untyped-def]
    """One q per head needs none; one per edge stands in CSR order."""
    return places if q_rows == 1 else np.arange(len(places)).astype(np.int32)


@compiled()
def forward_graph(  # type: ignore[no-untyped-def]
    nodes, edges, heads, channels, out_heads, q_rows, blocks, row_work, kind, features, slope, ptr, col, perm, tptr,
    tcol, tpos, x, target, att, q, keep, bias, edge_attr, edge_weight, logits, weights, out,
):  # fmt: skip
    """GATv2's attention: logits and weights ``[E, H]`` and out ``[N, out_heads, C]`` with 1 or H of them.

    ``q_rows`` is 1 for one q per head, or the number of edges for q in CSR order. ``blocks`` and ``row_work`` are those
    of :func:`~ltga.kernels.numba.sweeps.cut_rows`. Edges have ``features`` features, which may be none.
    """
    bounds, sources, places = sorted_edges(ptr, col, perm, nodes, edges)
    number, wide, per_edge = pointer(x, slope), (nodes, heads, channels), (edges, heads)
    nothing = carray(number, (0, 0))
    of_edges = carray(pointer(edge_attr, slope), (edges, features) if features > 0 else (0, 0))
    by_feature = carray(pointer(edge_weight, slope), (features, heads, channels))
    start = np.zeros((out_heads, channels), nothing.dtype)
    if bias != 0:
        start = carray(pointer(bias, slope), (out_heads, channels))
    order, cuts = order_of_q(places, q_rows), cut_rows(bounds, blocks, row_work)
    sent, targets = carray(number, wide), carray(pointer(target, slope), wide)
    vector, index = carray(pointer(att, slope), (heads, channels)), carray(pointer(q, slope), (q_rows, heads))
    mask = carray(pointer(keep, slope), per_edge if keep != 0 else (0, 0))
    scores, shares = carray(pointer(logits, slope), per_edge), carray(pointer(weights, slope), per_edge)
    result = carray(pointer(out, slope), (nodes, out_heads, channels))
    if channels % LANES == 0 and features == 0:
        ends = sorted_edges(tptr, tcol, tpos, nodes, edges)
        rows = rows_of_edges(ends[1], ends[2])
        for block in range(len(cuts) - 1):
            forward_short(
                cuts[block], cuts[block + 1], bounds, sources, places, rows, order, sent, targets, vector, index,
                mask, start, kind, slope, scores, shares, result,
            )  # fmt: skip
        return
    for block in range(len(cuts) - 1):
        forward_rows(
            cuts[block], cuts[block + 1], bounds, sources, places, order, sent, targets, vector, of_edges, by_feature,
            nothing, nothing, nothing, index, mask, start, GATV2, kind, slope, slope, nothing, scores, shares, result,
        )  # fmt: skip


@compiled()
def backward_graph(  # type: ignore[no-untyped-def]
    nodes, edges, heads, channels, out_heads, q_rows, blocks, row_work, kind, features, slope, ptr, col, perm, tptr,
    tcol, tpos, x, target, att, q, keep, bias, edge_attr, edge_weight, logits, weights, upstream, grad_score, grad_x,
    grad_target, grad_att, grad_bias, grad_q, grad_edge_attr, grad_edge_weight,
):  # fmt: skip
    """Gradients of what :func:`forward_graph` takes; grad_x and grad_edge_attr may be 0.

    The bias is not looked at, and grad_score is room for numbers ``[E, H]``.
    ``grad_q`` is an array: empty, ``[E, H]``, or zeros ``[blocks, H]`` in float64, of which the first row gets the sum.
    """
    bounds, sources, places = sorted_edges(ptr, col, perm, nodes, edges)
    number, wide, per_edge = pointer(x, slope), (nodes, heads, channels), (edges, heads)
    nothing, sent, targets = carray(number, (0, 0)), carray(number, wide), carray(pointer(target, slope), wide)
    of_edges = carray(pointer(edge_attr, slope), (edges, features) if features > 0 else (0, 0))
    by_feature = carray(pointer(edge_weight, slope), (features, heads, channels))
    to_edges = carray(pointer(grad_edge_attr, slope), (edges, features) if grad_edge_attr != 0 else (0, 0))
    vector = carray(pointer(att, slope), (heads, channels))
    mask = carray(pointer(keep, slope), per_edge if keep != 0 else (0, 0))
    shares, scores = carray(pointer(weights, slope), per_edge), carray(pointer(grad_score, slope), per_edge)
    above = carray(pointer(upstream, slope), (nodes, out_heads, channels))
    order, cuts = order_of_q(places, q_rows), cut_rows(bounds, blocks, row_work)
    count = len(cuts) - 1
    of_att = np.zeros((count, heads, channels), nothing.dtype)
    of_bias = np.zeros((count, out_heads, channels), nothing.dtype)
    of_features = np.zeros((count, features, heads, channels), nothing.dtype)
    index, scored = carray(pointer(q, slope), (q_rows, heads)), carray(pointer(logits, slope), per_edge)
    to_target, ends = carray(pointer(grad_target, slope), wide), sorted_edges(tptr, tcol, tpos, nodes, edges)
    short = channels % LANES == 0 and features == 0
    rows = rows_of_edges(ends[1], ends[2]) if short else places
    for block in range(count):
        if short:
            backward_targets_short(
                block, cuts[block], cuts[block + 1], bounds, sources, places, rows, order, sent, targets, vector,
                index, mask, kind, slope, scored, shares, above, scores, to_target, of_att, grad_q, of_bias,
            )  # fmt: skip
            continue
        backward_targets(
            block, cuts[block], cuts[block + 1], bounds, sources, places, order, sent, targets, vector, of_edges,
            by_feature, nothing, index, mask, GATV2, kind, slope, slope, nothing, scored, shares, above, nothing,
            scores, to_target, of_att, grad_q, nothing, nothing, nothing, to_edges, of_features, of_bias,
        )  # fmt: skip
    add_blocks(of_att.reshape(count, -1), carray(pointer(grad_att, slope), (heads * channels,)))
    add_blocks(of_bias.reshape(count, -1), carray(pointer(grad_bias, slope), (out_heads * channels,)))
    if features > 0:
        whole = carray(pointer(grad_edge_weight, slope), (features * heads * channels,))
        add_blocks(of_features.reshape(count, -1), whole)
    if q_rows == 1 and len(grad_q) > 0:
        add_blocks(grad_q[:count], grad_q[0])
    if grad_x == 0:
        return
    to_source = carray(pointer(grad_x, slope), wide)
    if short:
        backward_sources_short(
            ends[0], ends[1], ends[2], places, sent, targets, vector, mask, slope, shares, above, scores, to_source
        )
        return
    backward_sources(
        0, nodes, ends[0], ends[1], ends[2], places, sent, targets, vector, of_edges, by_feature, mask, GATV2,
        slope, slope, shares, above, scores, to_source,
    )  # fmt: skip


@compiled()
def add_blocks(parts, total):  # type: ignore[no-untyped-def]
    """The sum of the rows of ``parts``, which may have the total for its first."""
    for n in range(parts.shape[1]):
        total[n] = parts[0, n]
        for block in range(1, len(parts)):
            total[n] += parts[block, n]
