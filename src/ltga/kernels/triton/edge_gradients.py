"""Gradients of edge features and of their projection W_e, which only some layers have."""

from __future__ import annotations

import triton
import triton.language as tl

from ltga.kernels.triton.attend_rows import GATV2
from ltga.kernels.triton.spans import node_features, span, with_edge_features


@triton.jit
def edge_vector_gradients(  # type: ignore[no-untyped-def]
    row, k, edge, inside, h, c, col, x, target, att, edge_attr, edge_weight, grad_score, heads, channels, features,
    SCORING: tl.constexpr, SLOPE: tl.constexpr, DOT_SCALE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Gradients of W_e e for some edges of a row, ``[edges, heads, channels]``."""
    tile, full = h[:, None] * channels + c[None, :], (h < heads)[:, None] & (c < channels)[None, :]
    there = inside[:, None] & (h < heads)[None, :]
    t = tl.load(target + row * heads * channels + tile, mask=full, other=0.0).to(ACC)
    g = tl.load(grad_score + k[:, None] * heads + h[None, :], mask=there, other=0.0)
    if SCORING == GATV2:
        live = there & (g != 0.0)
        v = node_features(x, tl.load(col + k, mask=inside, other=0), h, c, live, heads, channels, ACC)
        v = with_edge_features(v, edge_attr, edge_weight, edge, h, c, live, heads, channels, features, ACC)
        a = tl.load(att + tile, mask=full, other=0.0).to(ACC)
        through = tl.where(v + t[None, :, :] > 0, g[:, :, None], SLOPE * g[:, :, None]) * a[None, :, :]
    else:
        through = g[:, :, None] * DOT_SCALE * t[None, :, :]
    return through


@triton.jit
def backward_edge_features(  # type: ignore[no-untyped-def]
    ptr, part_row, first_part, rows, col, perm, x, target, att, edge_attr, edge_weight, grad_score, grad_edge_attr,
    heads, channels, features, SCORING: tl.constexpr, SLOPE: tl.constexpr, DOT_SCALE: tl.constexpr,
    SPLIT: tl.constexpr, BE: tl.constexpr, HB: tl.constexpr, CP: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Gradient of one feature of the edges of a row (or a part of it), over all heads."""
    item, f, c = tl.program_id(0), tl.program_id(1), tl.arange(0, CP)
    row, begin, end, _mine = span(item, ptr, part_row, first_part, rows, SPLIT)
    for start in range(begin, end, BE):
        k = start + tl.arange(0, BE)
        inside = k < end
        edge = tl.load(perm + k, mask=inside, other=0).to(tl.int64)
        total = tl.zeros([BE], ACC)
        for first_head in range(0, heads, HB):
            h = first_head + tl.arange(0, HB)
            tile, full = h[:, None] * channels + c[None, :], (h < heads)[:, None] & (c < channels)[None, :]
            through = edge_vector_gradients(
                row, k, edge, inside, h, c, col, x, target, att, edge_attr, edge_weight, grad_score, heads, channels,
                features, SCORING, SLOPE, DOT_SCALE, ACC,
            )  # fmt: skip
            weight = tl.load(edge_weight + f * heads * channels + tile, mask=full, other=0.0).to(ACC)
            total += tl.sum(tl.sum(through * weight[None, :, :], 2), 1)
        tl.store(grad_edge_attr + edge * features + f, total, mask=inside)


@triton.jit
def backward_edge_weight(  # type: ignore[no-untyped-def]
    ptr, part_row, first_part, rows, items, col, perm, x, target, att, edge_attr, edge_weight, grad_score, part_weight,
    heads, channels, features, SCORING: tl.constexpr, SLOPE: tl.constexpr, DOT_SCALE: tl.constexpr,
    SPLIT: tl.constexpr, BE: tl.constexpr, HB: tl.constexpr, CP: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Gradient of one feature's row of W_e, summed over some rows of the graph: ``part_weight`` [programs, D, H, C]."""
    block, blocks, f, c = tl.program_id(0).to(tl.int64), tl.num_programs(0), tl.program_id(1), tl.arange(0, CP)
    for first_head in range(0, heads, HB):
        h = first_head + tl.arange(0, HB)
        tile, full = h[:, None] * channels + c[None, :], (h < heads)[:, None] & (c < channels)[None, :]
        total = tl.zeros([HB, CP], ACC)
        for item in range(block * items // blocks, (block + 1) * items // blocks):
            row, begin, end, _mine = span(item, ptr, part_row, first_part, rows, SPLIT)
            for start in range(begin, end, BE):
                k = start + tl.arange(0, BE)
                inside = k < end
                edge = tl.load(perm + k, mask=inside, other=0).to(tl.int64)
                through = edge_vector_gradients(
                    row, k, edge, inside, h, c, col, x, target, att, edge_attr, edge_weight, grad_score, heads,
                    channels, features, SCORING, SLOPE, DOT_SCALE, ACC,
                )  # fmt: skip
                value = tl.load(edge_attr + edge * features + f, mask=inside, other=0.0).to(ACC)
                total += tl.sum(value[:, None, None] * through, 0)
        tl.store(part_weight + (block * features + f) * heads * channels + tile, total, mask=full)
