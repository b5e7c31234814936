"""The backward pass: one sweep over destinations, one over sources, no atomics.

Every program writes its own rows only, or its own place among partial sums (``part_*``, one for each program), so the
same bits come out on every run.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ltga.kernels.triton.attend_rows import GATV2, GIVEN
from ltga.kernels.triton.dropout_hash import keep_factor
from ltga.kernels.triton.row_weights import ENTMAX, Q_SOFTMAX, derivatives, row_maximum
from ltga.kernels.triton.spans import index_minus_one, node_features, span, upstream, with_edge_features


@triton.jit
def weight_gradients(  # type: ignore[no-untyped-def]
    row, begin, end, h, c, col, perm, x, q, q_order, keep, key, logits, weights, grad_out, grad_weights, grad_kept,
    top, heads, channels, NORMALIZER: tl.constexpr, PER_EDGE: tl.constexpr, SHARE: tl.constexpr,
    AVERAGE: tl.constexpr, LIMIT: tl.constexpr, FACTOR: tl.constexpr, BE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Gradients g of a row's weights into grad_kept; returns sums of w g, s g, s and the number of largest logits."""
    SUMS: tl.constexpr = tl.float64 if NORMALIZER == ENTMAX else ACC
    by_weight, by_slope = tl.zeros(h.shape, SUMS), tl.zeros(h.shape, SUMS)
    slopes, ties = tl.zeros(h.shape, SUMS), tl.zeros(h.shape, SUMS)
    up = upstream(grad_out, row + tl.arange(0, 1), h, c, (h < heads)[None, :], heads, channels, AVERAGE, ACC)
    for start in range(begin, end, BE):
        k = start + tl.arange(0, BE)
        inside = k < end
        there = inside[:, None] & (h < heads)[None, :]
        at = k[:, None] * heads + h[None, :]
        w = tl.load(weights + at, mask=there, other=0.0)
        z = tl.load(logits + at, mask=there, other=float("-inf"))
        edge = tl.load(perm + k, mask=inside, other=0)
        kept = SHARE * keep_factor(edge, h, there, heads, keep, key, LIMIT, FACTOR, ACC)
        live = there & (w != 0.0)
        s = node_features(x, tl.load(col + k, mask=inside, other=0), h, c, live & (kept != 0.0), heads, channels, ACC)
        g = tl.where(kept != 0.0, kept * tl.sum(s * up, 2), 0.0)
        if grad_weights is not None:
            g += tl.load(grad_weights + at, mask=there, other=0.0).to(ACC)
        g = tl.where(live, g, 0.0)
        tl.store(grad_kept + at, g, mask=there)
        d = index_minus_one(q, q_order, k, h, there, heads, PER_EDGE)
        slope, _c = derivatives(z, w, top, d, NORMALIZER, ACC)
        slope = tl.where(live, slope, 0.0)
        by_weight += tl.sum((w * g).to(SUMS), 0)
        by_slope += tl.sum(slope.to(SUMS) * g, 0)
        slopes += tl.sum(slope.to(SUMS), 0)
        ties += tl.sum(tl.where(there & (z == top[None, :]), 1.0, 0.0).to(SUMS), 0)
    return by_weight, by_slope, slopes, ties


@triton.jit
def score_gradients(  # type: ignore[no-untyped-def]
    k, edge, h, there, q, q_order, scale, raw, logits, weights, top, mean, pull, grad_kept, grad_q, grad_scale,
    grad_shift, grad_given, heads, NORMALIZER: tl.constexpr, PER_EDGE: tl.constexpr, SCALE_PER_EDGE: tl.constexpr,
    ACC: tl.constexpr,
):  # fmt: skip
    """Some edges' gradients of the unscaled scores from those of their weights, and terms of those of q and scale."""
    at, own = k[:, None] * heads + h[None, :], edge[:, None] * heads + h[None, :]
    w = tl.load(weights + at, mask=there, other=0.0)
    z = tl.load(logits + at, mask=there, other=float("-inf"))
    slack = tl.load(grad_kept + at, mask=there, other=0.0) - mean[None, :]
    d = index_minus_one(q, q_order, k, h, there, heads, PER_EDGE)
    slope, by_q = derivatives(z, w, top, d, NORMALIZER, ACC)
    live = w != 0.0
    for_q = tl.where(live, slack * by_q, 0.0).to(ACC)
    if grad_q is not None:
        q_at = at if q_order is None else own
        tl.store(grad_q + q_at, for_q, mask=there)
    g = tl.where(live, slope * slack, 0.0).to(ACC)
    if NORMALIZER == Q_SOFTMAX:  # the row maximum moves every element: its share goes to those that attain it
        g -= tl.where(z == top[None, :], pull[None, :], 0.0)
    if grad_shift is not None:
        tl.store(grad_shift + own, g, mask=there)
    for_scale = tl.zeros(g.shape, ACC)
    if scale is not None:
        for_scale = tl.where(there, g * tl.load(raw + at, mask=there, other=0.0), 0.0)
        if grad_scale is not None:
            tl.store(grad_scale + own, for_scale, mask=there)
        factor = tl.load(scale + (own if SCALE_PER_EDGE else own * 0 + h[None, :]), mask=there, other=0.0)
        g = g * factor.to(ACC)
    if grad_given is not None:
        tl.store(grad_given + own, g, mask=there)
    return tl.where(there, g, 0.0), for_q, for_scale


@triton.jit
def row_sums(  # type: ignore[no-untyped-def]
    item, row, h, part_row, first_part, sums, heads, NORMALIZER: tl.constexpr, ACC: tl.constexpr
):
    """(mean gradient of a row, what the largest logits give back), from the sums of the row or of all its parts.

    Those of entmax are in double precision: above alpha = 2 one s may exceed all others by far, and what is left of
    its gradient beside the mean would be rounding.
    """
    SUMS: tl.constexpr = tl.float64 if NORMALIZER == ENTMAX else ACC
    by_weight, by_slope = tl.zeros(h.shape, SUMS), tl.zeros(h.shape, SUMS)
    slopes, ties = tl.zeros(h.shape, SUMS), tl.zeros(h.shape, SUMS)
    first, last = item, item + 1
    if part_row is not None:
        first, last = tl.load(first_part + row), tl.load(first_part + row + 1)
    for part in range(first, last):
        at = sums + part * 4 * heads + h
        by_weight += tl.load(at, mask=h < heads, other=0.0)
        by_slope += tl.load(at + heads, mask=h < heads, other=0.0)
        slopes += tl.load(at + 2 * heads, mask=h < heads, other=0.0)
        ties += tl.load(at + 3 * heads, mask=h < heads, other=0.0)
    mean = by_weight
    if NORMALIZER == ENTMAX:
        mean = tl.where(slopes > 0, by_slope / tl.where(slopes > 0, slopes, 1.0), 0.0)
    return mean, (by_slope - mean * slopes) / tl.maximum(ties, 1.0)


@triton.jit(do_not_specialize=["key"])
def backward_targets(  # type: ignore[no-untyped-def]
    ptr, part_row, first_part, rows, items, col, perm, x, target, att, edge_attr, edge_weight, scale, q, q_order, keep,
    key, raw, logits, weights, grad_out, grad_weights, stats, sums, grad_kept, grad_score, grad_target, part_att,
    part_q, grad_q, part_scale, grad_scale, grad_shift, grad_given, heads, channels, features,
    SCORING: tl.constexpr, NORMALIZER: tl.constexpr, SLOPE: tl.constexpr, DOT_SCALE: tl.constexpr,
    SCALE_PER_EDGE: tl.constexpr, PER_EDGE: tl.constexpr, SHARE: tl.constexpr, AVERAGE: tl.constexpr,
    LIMIT: tl.constexpr, FACTOR: tl.constexpr, FIRST: tl.constexpr, SPLIT: tl.constexpr,
    BE: tl.constexpr, SE: tl.constexpr, HB: tl.constexpr, CP: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Some rows, one after the other: gradients of scores, index, attention vector and target side.

    A ``FIRST`` launch finds the gradients of the weights (``grad_kept``) and their sums over every item, a second one
    what follows from them.
    """
    block, blocks = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    h, c = tl.program_id(1) * HB + tl.arange(0, HB), tl.arange(0, CP)
    tile, full = h[:, None] * channels + c[None, :], (h < heads)[:, None] & (c < channels)[None, :]
    for_att, for_q, for_scale = tl.zeros([HB, CP], ACC), tl.zeros([HB], ACC), tl.zeros([HB], ACC)
    for item in range(block * items // blocks, (block + 1) * items // blocks):
        row, begin, end, mine = span(item, ptr, part_row, first_part, rows, SPLIT)
        top = tl.zeros([HB], ACC)
        if NORMALIZER == Q_SOFTMAX:
            if part_row is None:
                top, _broken = row_maximum(begin, end, h, heads, logits, SE, ACC)
            else:
                top = tl.load(stats + tl.load(first_part + row) * 3 * heads + h, mask=h < heads, other=0.0).to(ACC)
        if FIRST:
            by_weight, by_slope, slopes, ties = weight_gradients(
                row, begin, end, h, c, col, perm, x, q, q_order, keep, key, logits, weights, grad_out, grad_weights,
                grad_kept, top, heads, channels, NORMALIZER, PER_EDGE, SHARE, AVERAGE, LIMIT, FACTOR, BE, ACC,
            )  # fmt: skip
            at = sums + item * 4 * heads + h
            tl.store(at, by_weight, mask=h < heads)
            tl.store(at + heads, by_slope, mask=h < heads)
            tl.store(at + 2 * heads, slopes, mask=h < heads)
            tl.store(at + 3 * heads, ties, mask=h < heads)
        else:
            mean, pull = row_sums(item, row, h, part_row, first_part, sums, heads, NORMALIZER, ACC)
            if SCORING != GIVEN:
                t = tl.load(target + row * heads * channels + tile, mask=full, other=0.0).to(ACC)
            for_target = tl.zeros([HB, CP], ACC)
            for start in range(begin, end, BE):
                k = start + tl.arange(0, BE)
                inside = k < end
                there = inside[:, None] & (h < heads)[None, :]
                edge = tl.load(perm + k, mask=inside, other=0).to(tl.int64)
                g, q_terms, scale_terms = score_gradients(
                    k, edge, h, there, q, q_order, scale, raw, logits, weights, top, mean, pull, grad_kept, grad_q,
                    grad_scale, grad_shift, grad_given, heads, NORMALIZER, PER_EDGE, SCALE_PER_EDGE, ACC,
                )  # fmt: skip
                for_q += tl.sum(q_terms, 0)
                for_scale += tl.sum(scale_terms, 0)
                tl.store(grad_score + k[:, None] * heads + h[None, :], g, mask=there)
                if SCORING != GIVEN:
                    live = there & (g != 0.0)
                    s = node_features(x, tl.load(col + k, mask=inside, other=0), h, c, live, heads, channels, ACC)
                    s = with_edge_features(s, edge_attr, edge_weight, edge, h, c, live, heads, channels, features, ACC)
                    if SCORING == GATV2:
                        v = s + t[None, :, :]
                        through = tl.where(v > 0, g[:, :, None], SLOPE * g[:, :, None])
                        for_att += tl.sum(through * v, 0)
                        for_target += tl.sum(through, 0)
                    else:
                        for_target += DOT_SCALE * tl.sum(g[:, :, None] * s, 0)
            if SCORING != GIVEN:
                if SCORING == GATV2:
                    for_target *= tl.load(att + tile, mask=full, other=0.0).to(ACC)
                place = row if part_row is None else item
                tl.store(
                    grad_target + place * heads * channels + tile,
                    for_target,
                    mask=full & (h < tl.where(mine, heads, 0))[:, None],
                )
    if not FIRST:
        if part_att is not None:
            tl.store(part_att + block * heads * channels + tile, for_att, mask=full)
        if part_q is not None:
            tl.store(part_q + block * heads + h, for_q, mask=h < heads)
        if part_scale is not None:
            tl.store(part_scale + block * heads + h, for_scale, mask=h < heads)


@triton.jit(do_not_specialize=["key"])
def backward_sources(  # type: ignore[no-untyped-def]
    ptr, part_row, first_part, rows, col, position, perm, x, target, att, edge_attr, edge_weight, keep, key, weights,
    grad_out, grad_score, grad_x, heads, channels, features,
    SCORING: tl.constexpr, SLOPE: tl.constexpr, DOT_SCALE: tl.constexpr, SHARE: tl.constexpr, AVERAGE: tl.constexpr,
    LIMIT: tl.constexpr, FACTOR: tl.constexpr, SPLIT: tl.constexpr, BE: tl.constexpr, HB: tl.constexpr,
    CP: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Gradient of the message and key side, over the outgoing edges of every source (or a part of them).

    ``ptr``, ``col`` and ``position`` are the transposed structure: destinations, and the edges' places in CSR order.
    """
    item, h, c = tl.program_id(0), tl.program_id(1) * HB + tl.arange(0, HB), tl.arange(0, CP)
    row, begin, end, mine = span(item, ptr, part_row, first_part, rows, SPLIT)
    tile, full = h[:, None] * channels + c[None, :], (h < heads)[:, None] & (c < channels)[None, :]
    total, through = tl.zeros([HB, CP], ACC), tl.zeros([HB, CP], ACC)
    if SCORING == GATV2:
        s = tl.load(x + row * heads * channels + tile, mask=full, other=0.0).to(ACC)
    for start in range(begin, end, BE):
        slot = start + tl.arange(0, BE)
        inside = slot < end
        there = inside[:, None] & (h < heads)[None, :]
        node = tl.load(col + slot, mask=inside, other=0)
        k = tl.load(position + slot, mask=inside, other=0).to(tl.int64)
        edge = tl.load(perm + k, mask=inside, other=0).to(tl.int64)
        w = SHARE * tl.load(weights + k[:, None] * heads + h[None, :], mask=there, other=0.0)
        w = w * keep_factor(edge, h, there, heads, keep, key, LIMIT, FACTOR, ACC)
        live = there & (w != 0.0)
        up = upstream(grad_out, node, h, c, live, heads, channels, AVERAGE, ACC)
        total += tl.sum(tl.where(live, w, 0.0)[:, :, None] * up, 0)
        if SCORING != GIVEN:
            g = tl.load(grad_score + k[:, None] * heads + h[None, :], mask=there, other=0.0)
            live = there & (g != 0.0)
            v = node_features(target, node, h, c, live, heads, channels, ACC)
            if SCORING == GATV2:
                v = with_edge_features(v, edge_attr, edge_weight, edge, h, c, live, heads, channels, features, ACC)
                through += tl.sum(tl.where(v + s[None, :, :] > 0, g[:, :, None], SLOPE * g[:, :, None]), 0)
            else:
                through += DOT_SCALE * tl.sum(g[:, :, None] * v, 0)
    if SCORING == GATV2:
        through *= tl.load(att + tile, mask=full, other=0.0).to(ACC)
    place = row if part_row is None else item.to(tl.int64)
    tl.store(
        grad_x + place * heads * channels + tile, total + through, mask=full & (h < tl.where(mine, heads, 0))[:, None]
    )
