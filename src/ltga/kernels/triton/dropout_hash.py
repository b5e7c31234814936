"""Dropout masks by the hash of the CPU kernels: a function of a key and a position alone, so never stored."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def mix32(h):  # type: ignore[no-untyped-def]
    h = (h ^ (h >> 16)) * tl.full([], 0x7FEB352D, tl.uint32)
    h = (h ^ (h >> 15)) * tl.full([], 0x846CA68B, tl.uint32)
    return h ^ (h >> 16)


@triton.jit
def is_kept(position, key, LIMIT: tl.constexpr):  # type: ignore[no-untyped-def]
    """Whether the element at ``position`` of an array stays: a hash of its chunk of 1024, and of its place there."""
    chunk = (position // 1024 + 1).to(tl.uint64)
    z = key.to(tl.uint64) + chunk * tl.full([], 0x9E3779B97F4A7C15, tl.uint64)
    z = (z ^ (z >> 30)) * tl.full([], 0xBF58476D1CE4E5B9, tl.uint64)
    z = (z ^ (z >> 27)) * tl.full([], 0x94D049BB133111EB, tl.uint64)
    z = z ^ (z >> 31)
    low, high = (z & 0xFFFFFFFF).to(tl.uint32), (z >> 32).to(tl.uint32)
    h = mix32((position % 1024).to(tl.uint32) + low)
    return mix32(h ^ high) >= tl.full([], LIMIT, tl.uint32)


@triton.jit
def keep_factor(edge, h, there, heads, keep, key, LIMIT: tl.constexpr, FACTOR: tl.constexpr, ACC: tl.constexpr):  # type: ignore[no-untyped-def]
    """What dropout multiplies the weights of some edges and heads with, ``[edges, heads]``: a mask, a hash, or ones."""
    at = edge.to(tl.int64)[:, None] * heads + h[None, :]
    if keep is not None:
        factor = tl.load(keep + at, mask=there, other=0.0).to(ACC)
    elif LIMIT > 0:
        factor = tl.where(is_kept(at, key, LIMIT), tl.full(there.shape, FACTOR, ACC), 0.0)
    else:
        factor = tl.full(there.shape, 1.0, ACC)
    return factor


@triton.jit(do_not_specialize=["key"])
def dropout_elements(x, rows, out, key, count, width, LIMIT: tl.constexpr, FACTOR: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """A flat array after dropout; with ``rows``, x [n, width] is those rows of the array whose positions count."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    position = at
    if rows is not None:
        position = tl.load(rows + at // width, mask=inside, other=0) * width + at % width
    value = tl.load(x + at, mask=inside, other=0.0)
    tl.store(out + at, tl.where(is_kept(position, key, LIMIT), value * FACTOR, 0.0), mask=inside)
