"""Compiled hashes behind counter-based dropout."""

from __future__ import annotations

import numpy as np

from ltga.kernels.scalar import compiled, inlined

CHUNK = 1024


@compiled()
def row_hash(key, row):  # type: ignore[no-untyped-def]
    """splitmix64 of a key and a row number."""
    z = np.uint64(key) + np.uint64(row + 1) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined()
def mix32(h):  # type: ignore[no-untyped-def]
    """A 32-bit finaliser in operations that vectorise."""
    h = np.uint32(h ^ np.uint32(h >> np.uint32(16)))
    h = np.uint32(h * np.uint32(0x7FEB352D))
    h = np.uint32(h ^ np.uint32(h >> np.uint32(15)))
    h = np.uint32(h * np.uint32(0x846CA68B))
    return np.uint32(h ^ np.uint32(h >> np.uint32(16)))


@compiled()
def dropout_chunks(first, last, x, threshold, factor, key, out):  # type: ignore[no-untyped-def]
    """Chunks first..last of the flat array x: zero where the hash falls below the threshold."""
    limit = np.uint32(threshold)
    zero = x.dtype.type(0)
    for chunk in range(first, last):
        hashed = row_hash(key, chunk)
        low, high = np.uint32(hashed & np.uint64(0xFFFFFFFF)), np.uint32(hashed >> np.uint64(32))
        source, target = x[chunk * CHUNK : (chunk + 1) * CHUNK], out[chunk * CHUNK : (chunk + 1) * CHUNK]
        for c in range(len(source)):
            h = mix32(np.uint32(np.uint32(c) + low))
            h = mix32(np.uint32(h ^ high))
            target[c] = source[c] * factor if h >= limit else zero
