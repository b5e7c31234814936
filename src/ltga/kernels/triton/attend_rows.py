"""The forward pass: scores, normalisation and aggregation, one program for each row and block of heads.

Shapes as in :mod:`ltga.kernels.numba.sweeps`: x ``[S, H, C]`` sources, target ``[T, H, C]``, att ``[H, C]``; logits,
weights and raw ``[E, H]`` in CSR order, everything the caller gave in the caller's order through ``perm``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ltga.kernels import codes
from ltga.kernels.triton.dropout_hash import keep_factor
from ltga.kernels.triton.row_weights import deformed, row_statistics
from ltga.kernels.triton.spans import index_minus_one, node_features, span, with_edge_features

GIVEN = tl.constexpr(codes.GIVEN)
GATV2 = tl.constexpr(codes.GATV2)
KNOWN = tl.constexpr(-1)  # instead of a normaliser: the weights are there already


@triton.jit
def scores(  # type: ignore[no-untyped-def]
    s, t, a, edge_attr, edge_weight, edge, h, c, there, heads, channels, features,
    SCORING: tl.constexpr, SLOPE: tl.constexpr, DOT_SCALE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Logits ``[edges, heads]`` of one row: source features s [edges, heads, channels], the target's t, att a."""
    key = with_edge_features(s, edge_attr, edge_weight, edge, h, c, there, heads, channels, features, ACC)
    if SCORING == GATV2:
        v = key + t[None, :, :]
        z = tl.sum(a[None, :, :] * tl.where(v > 0, v, SLOPE * v), 2)
    else:
        z = DOT_SCALE * tl.sum(key * t[None, :, :], 2)
    return z


@triton.jit
def target_side(  # type: ignore[no-untyped-def]
    row, h, c, target, att, heads, channels, SCORING: tl.constexpr, ACC: tl.constexpr
):
    """A row's target features and the attention vector, ``[heads, channels]`` each; the row alone if it needs none."""
    tile, full = h[:, None] * channels + c[None, :], (h < heads)[:, None] & (c < channels)[None, :]
    t = row
    if SCORING != GIVEN:
        t = tl.load(target + row * heads * channels + tile, mask=full, other=0.0).to(ACC)
    a = t
    if SCORING == GATV2:
        a = tl.load(att + tile, mask=full, other=0.0).to(ACC)
    return t, a


@triton.jit
def edge_logits(  # type: ignore[no-untyped-def]
    k, edge, h, c, there, t, a, s, edge_attr, edge_weight, given, scale, shift, raw, logits, heads, channels, features,
    SCORING: tl.constexpr, SLOPE: tl.constexpr, DOT_SCALE: tl.constexpr, SCALE_PER_EDGE: tl.constexpr,
    ACC: tl.constexpr,
):  # fmt: skip
    """Logits of some edges of a row, scaled and shifted; writes them, and the unscaled ones where they were scaled."""
    own, at = edge[:, None] * heads + h[None, :], k[:, None] * heads + h[None, :]
    if SCORING == GIVEN:
        z = tl.load(given + own, mask=there, other=0.0).to(ACC)
    else:
        z = scores(
            s, t, a, edge_attr, edge_weight, edge, h, c, there, heads, channels, features, SCORING, SLOPE, DOT_SCALE,
            ACC,
        )  # fmt: skip
    if scale is not None:
        tl.store(raw + at, z, mask=there)
        factor = tl.load(scale + (own if SCALE_PER_EDGE else own * 0 + h[None, :]), mask=there, other=0.0)
        z = z * factor.to(ACC)
    if shift is not None:
        z += tl.load(shift + own, mask=there, other=0.0).to(ACC)
    tl.store(logits + at, z, mask=there)
    return z


@triton.jit
def score_row(  # type: ignore[no-untyped-def]
    row, begin, end, h, c, col, perm, x, target, att, edge_attr, edge_weight, given, scale, shift, raw, logits,
    heads, channels, features, SCORING: tl.constexpr, SLOPE: tl.constexpr, DOT_SCALE: tl.constexpr,
    SCALE_PER_EDGE: tl.constexpr, BE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Logits of a row."""
    t, a = target_side(row, h, c, target, att, heads, channels, SCORING, ACC)
    for start in range(begin, end, BE):
        k = start + tl.arange(0, BE)
        inside = k < end
        there = inside[:, None] & (h < heads)[None, :]
        edge = tl.load(perm + k, mask=inside, other=0).to(tl.int64)
        s = edge
        if SCORING != GIVEN:
            s = node_features(x, tl.load(col + k, mask=inside, other=0), h, c, there, heads, channels, ACC)
        edge_logits(
            k, edge, h, c, there, t, a, s, edge_attr, edge_weight, given, scale, shift, raw, logits, heads, channels,
            features, SCORING, SLOPE, DOT_SCALE, SCALE_PER_EDGE, ACC,
        )  # fmt: skip


@triton.jit
def sum_row(  # type: ignore[no-untyped-def]
    begin, end, h, c, col, perm, x, q, q_order, keep, key, logits, weights, top, nu, inverse, heads, channels,
    NORMALIZER: tl.constexpr, PER_EDGE: tl.constexpr, LIMIT: tl.constexpr, FACTOR: tl.constexpr,
    BE: tl.constexpr, HB: tl.constexpr, CP: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Weighted sum over a row, ``[heads, channels]``; writes the weights, reads no features of those that are 0."""
    total = tl.zeros([HB, CP], ACC)
    for start in range(begin, end, BE):
        k = start + tl.arange(0, BE)
        inside = k < end
        there = inside[:, None] & (h < heads)[None, :]
        at = k[:, None] * heads + h[None, :]
        if NORMALIZER == KNOWN:
            w = tl.load(weights + at, mask=there, other=0.0).to(ACC)
        else:
            z = tl.load(logits + at, mask=there, other=float("-inf"))
            d = index_minus_one(q, q_order, k, h, there, heads, PER_EDGE)
            w = deformed(z, top, nu, d, NORMALIZER, ACC) * inverse[None, :]
            tl.store(weights + at, w, mask=there)
        edge = tl.load(perm + k, mask=inside, other=0)
        w = w * keep_factor(edge, h, there, heads, keep, key, LIMIT, FACTOR, ACC)
        live = there & (w != 0.0)
        s = node_features(x, tl.load(col + k, mask=inside, other=0), h, c, live, heads, channels, ACC)
        total += tl.sum(tl.where(live, w, 0.0)[:, :, None] * s, 0)
    return total


@triton.jit(do_not_specialize=["key"])
def forward_rows(  # type: ignore[no-untyped-def]
    ptr, part_row, first_part, rows, col, perm, x, target, att, edge_attr, edge_weight, given, scale, shift, q, q_order,
    keep, key, bias, raw, logits, weights, stats, out, heads, channels, features,
    SCORING: tl.constexpr, NORMALIZER: tl.constexpr, SLOPE: tl.constexpr, DOT_SCALE: tl.constexpr,
    SCALE_PER_EDGE: tl.constexpr, PER_EDGE: tl.constexpr, LIMIT: tl.constexpr, FACTOR: tl.constexpr,
    SCORE: tl.constexpr, SUM: tl.constexpr, SPLIT: tl.constexpr, BE: tl.constexpr, SE: tl.constexpr, HB: tl.constexpr,
    CP: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """``SCORE`` writes the logits; ``SUM``, in a launch of its own, reads them and writes weights and weighted sums.

    No program reads what one of the same launch writes: a barrier between the two would order global memory on
    NVIDIA's devices but not on AMD's.
    """
    item, h, c = tl.program_id(0), tl.program_id(1) * HB + tl.arange(0, HB), tl.arange(0, CP)
    row, begin, end, mine = span(item, ptr, part_row, first_part, rows, SPLIT)
    if SCORE:
        score_row(
            row, begin, end, h, c, col, perm, x, target, att, edge_attr, edge_weight, given, scale, shift, raw, logits,
            heads, channels, features, SCORING, SLOPE, DOT_SCALE, SCALE_PER_EDGE, BE, ACC,
        )  # fmt: skip
    if SUM:
        top, nu, inverse = tl.zeros([HB], ACC), tl.zeros([HB], tl.float64), tl.zeros([HB], ACC)
        if part_row is not None:
            if NORMALIZER != KNOWN:
                at = stats + tl.load(first_part + row) * 3 * heads + h
                top = tl.load(at, mask=h < heads, other=0.0).to(ACC)
                nu = tl.load(at + heads, mask=h < heads, other=0.0)
                inverse = tl.load(at + 2 * heads, mask=h < heads, other=0.0).to(ACC)
        elif NORMALIZER != KNOWN:
            top, nu, inverse = row_statistics(begin, end, h, heads, logits, q, q_order, NORMALIZER, PER_EDGE, SE, ACC)
        total = sum_row(
            begin, end, h, c, col, perm, x, q, q_order, keep, key, logits, weights, top, nu, inverse, heads, channels,
            NORMALIZER, PER_EDGE, LIMIT, FACTOR, BE, HB, CP, ACC,
        )  # fmt: skip
        tile, full = h[:, None] * channels + c[None, :], (h < heads)[:, None] & (c < channels)[None, :]
        place = row
        if part_row is not None:
            place = item.to(tl.int64)
        elif bias is not None:
            total += tl.load(bias + tile, mask=full, other=0.0).to(ACC)
        tl.store(out + place * heads * channels + tile, total, mask=full & (h < tl.where(mine, heads, 0))[:, None])


@triton.jit
def join_parts(  # type: ignore[no-untyped-def]
    ptr, part_row, first_part, rows, partial, bias, out, heads, channels,
    SPLIT: tl.constexpr, HB: tl.constexpr, CP: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Add up what the parts of every long row gave, ``partial`` [parts, H, C], in their order."""
    item, h, c = tl.program_id(0), tl.program_id(1) * HB + tl.arange(0, HB), tl.arange(0, CP)
    row, begin, _end, mine = span(item, ptr, part_row, first_part, rows, SPLIT)
    if mine & (begin == tl.load(ptr + row)):
        tile, full = h[:, None] * channels + c[None, :], (h < heads)[:, None] & (c < channels)[None, :]
        total = tl.zeros([HB, CP], ACC)
        if bias is not None:
            total += tl.load(bias + tile, mask=full, other=0.0).to(ACC)
        for part in range(tl.load(first_part + row), tl.load(first_part + row + 1)):
            total += tl.load(partial + part * heads * channels + tile, mask=full, other=0.0)
        tl.store(out + row * heads * channels + tile, total, mask=full)
