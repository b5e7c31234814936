"""Softmax in one pass over a row: scores, normalisation and aggregation, every feature read once.

What has been seen of a row is (top, total, summed): its largest logit, the sum of exp(z - top), and the sum of features
times that. Two such triples join into one, so blocks of edges join into rows and parts of long rows into rows alike.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ltga.kernels.triton.attend_rows import GIVEN, edge_logits, target_side
from ltga.kernels.triton.dropout_hash import keep_factor
from ltga.kernels.triton.spans import node_features, span


@triton.jit
def joined(top, total, summed, other_top, other_total, other_summed):  # type: ignore[no-untyped-def]
    """What two lots of edges are together; one without a finite logit has top -inf and adds nothing."""
    highest = tl.maximum(top, other_top)
    base = tl.where(highest == float("-inf"), 0.0, highest)
    ours, theirs = tl.exp(top - base), tl.exp(other_top - base)
    total = total * ours + other_total * theirs
    # A weight that comes to 0 in the end lets no infinite feature through.
    summed = tl.where((ours == 0.0)[:, None], 0.0, summed * ours[:, None])
    summed += tl.where((theirs == 0.0)[:, None], 0.0, other_summed * theirs[:, None])
    return highest, total, summed


@triton.jit
def statistics(top, total):  # type: ignore[no-untyped-def]
    """(top, 1 / total); weights are 0 where all logits are masked, NaN where one is NaN or infinite."""
    inverse = tl.where(total > 0, 1.0 / tl.where(total > 0, total, 1.0), 0.0)
    broken = (total != total) | (total == float("inf"))
    return tl.where(top == float("-inf"), 0.0, top), tl.where(broken, float("nan"), inverse)


@triton.jit
def softmax_row(  # type: ignore[no-untyped-def]
    row, begin, end, h, c, col, perm, x, target, att, edge_attr, edge_weight, given, scale, shift, keep, key, raw,
    logits, heads, channels, features, SCORING: tl.constexpr, SLOPE: tl.constexpr, DOT_SCALE: tl.constexpr,
    SCALE_PER_EDGE: tl.constexpr, LIMIT: tl.constexpr, FACTOR: tl.constexpr, BE: tl.constexpr, HB: tl.constexpr,
    CP: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """(top, total, summed) of a row; ``total`` is of all weights, ``summed`` of those that dropout keeps."""
    t, a = target_side(row, h, c, target, att, heads, channels, SCORING, ACC)
    top, total, summed = tl.full([HB], float("-inf"), ACC), tl.zeros([HB], ACC), tl.zeros([HB, CP], ACC)
    for start in range(begin, end, BE):
        k = start + tl.arange(0, BE)
        inside = k < end
        there = inside[:, None] & (h < heads)[None, :]
        edge = tl.load(perm + k, mask=inside, other=0).to(tl.int64)
        node, s = tl.load(col + k, mask=inside, other=0), edge
        if SCORING != GIVEN:
            s = node_features(x, node, h, c, there, heads, channels, ACC)
        z = edge_logits(
            k, edge, h, c, there, t, a, s, edge_attr, edge_weight, given, scale, shift, raw, logits, heads, channels,
            features, SCORING, SLOPE, DOT_SCALE, SCALE_PER_EDGE, ACC,
        )  # fmt: skip
        z = tl.where(there, z, float("-inf"))
        finite = tl.where((z == z) & (z != float("inf")), z, float("-inf"))
        block_top = tl.max(finite, 0)
        y = tl.exp(z - tl.where(block_top == float("-inf"), 0.0, block_top)[None, :])
        w = y * keep_factor(edge, h, there, heads, keep, key, LIMIT, FACTOR, ACC)
        live = there & (w != 0.0)
        if SCORING == GIVEN:
            s = node_features(x, node, h, c, live, heads, channels, ACC)
        block_sum = tl.sum(tl.where(live[:, :, None], w[:, :, None] * s, 0.0), 0)
        top, total, summed = joined(top, total, summed, block_top, tl.sum(y, 0), block_sum)
    return top, total, summed


@triton.jit(do_not_specialize=["key"])
def forward_softmax(  # type: ignore[no-untyped-def]
    ptr, part_row, first_part, rows, col, perm, x, target, att, edge_attr, edge_weight, given, scale, shift, keep, key,
    bias, raw, logits, stats, out, heads, channels, features,
    SCORING: tl.constexpr, SLOPE: tl.constexpr, DOT_SCALE: tl.constexpr, SCALE_PER_EDGE: tl.constexpr,
    LIMIT: tl.constexpr, FACTOR: tl.constexpr, SPLIT: tl.constexpr, BE: tl.constexpr, HB: tl.constexpr,
    CP: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Logits, weighted sums and (top, 1 / total) of every row, or (top, total) and undivided sums of parts of rows."""
    item, h, c = tl.program_id(0), tl.program_id(1) * HB + tl.arange(0, HB), tl.arange(0, CP)
    row, begin, end, mine = span(item, ptr, part_row, first_part, rows, SPLIT)
    top, total, summed = softmax_row(
        row, begin, end, h, c, col, perm, x, target, att, edge_attr, edge_weight, given, scale, shift, keep, key, raw,
        logits, heads, channels, features, SCORING, SLOPE, DOT_SCALE, SCALE_PER_EDGE, LIMIT, FACTOR, BE, HB, CP, ACC,
    )  # fmt: skip
    tile, full = h[:, None] * channels + c[None, :], (h < heads)[:, None] & (c < channels)[None, :]
    place = row
    if part_row is not None:
        place = item.to(tl.int64)
    else:
        top, total = statistics(top, total)
        summed = summed * total[:, None]
        if bias is not None:
            summed += tl.load(bias + tile, mask=full, other=0.0).to(ACC)
    ours = h < tl.where(mine, heads, 0)
    tl.store(stats + place * 2 * heads + h, top, mask=ours)
    tl.store(stats + place * 2 * heads + heads + h, total, mask=ours)
    tl.store(out + place * heads * channels + tile, summed, mask=full & ours[:, None])


@triton.jit
def join_softmax(  # type: ignore[no-untyped-def]
    ptr, part_row, first_part, rows, part_stats, partial, bias, stats, out, heads, channels,
    SPLIT: tl.constexpr, HB: tl.constexpr, CP: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Long rows from their parts, ``part_stats`` [parts, 2, H] and ``partial`` [parts, H, C], in their order."""
    item, h, c = tl.program_id(0), tl.program_id(1) * HB + tl.arange(0, HB), tl.arange(0, CP)
    row, begin, _end, mine = span(item, ptr, part_row, first_part, rows, SPLIT)
    if mine & (begin == tl.load(ptr + row)):
        tile, full = h[:, None] * channels + c[None, :], (h < heads)[:, None] & (c < channels)[None, :]
        top, total, summed = tl.full([HB], float("-inf"), ACC), tl.zeros([HB], ACC), tl.zeros([HB, CP], ACC)
        for part in range(tl.load(first_part + row), tl.load(first_part + row + 1)):
            at = part_stats + part * 2 * heads + h
            part_top = tl.load(at, mask=h < heads, other=float("-inf"))
            part_total = tl.load(at + heads, mask=h < heads, other=0.0)
            part_sum = tl.load(partial + part * heads * channels + tile, mask=full, other=0.0)
            top, total, summed = joined(top, total, summed, part_top, part_total, part_sum)
        top, inverse = statistics(top, total)
        summed = summed * inverse[:, None]
        if bias is not None:
            summed += tl.load(bias + tile, mask=full, other=0.0).to(ACC)
        tl.store(stats + row * 2 * heads + h, top, mask=h < heads)
        tl.store(stats + row * 2 * heads + heads + h, inverse, mask=h < heads)
        tl.store(out + row * heads * channels + tile, summed, mask=full)


@triton.jit
def softmax_weights(  # type: ignore[no-untyped-def]
    ptr, part_row, first_part, rows, logits, stats, weights, heads,
    SPLIT: tl.constexpr, SE: tl.constexpr, HB: tl.constexpr,
):  # fmt: skip
    """Weights from logits and their rows' statistics, in a launch after those that write the two."""
    item, h = tl.program_id(0), tl.program_id(1) * HB + tl.arange(0, HB)
    row, begin, end, _mine = span(item, ptr, part_row, first_part, rows, SPLIT)
    top = tl.load(stats + row * 2 * heads + h, mask=h < heads, other=0.0)
    inverse = tl.load(stats + row * 2 * heads + heads + h, mask=h < heads, other=0.0)
    for start in range(begin, end, SE):
        k = start + tl.arange(0, SE)
        there = (k < end)[:, None] & (h < heads)[None, :]
        at = k[:, None] * heads + h[None, :]
        z = tl.load(logits + at, mask=there, other=float("-inf"))
        tl.store(weights + at, tl.exp(z - top[None, :]) * inverse[None, :], mask=there)
