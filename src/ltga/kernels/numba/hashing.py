"""Compiled hashes: behind counter-based dropout, and of a tensor's content."""

from __future__ import annotations

import numpy as np

from ltga.kernels.numba.scalar import compiled, inlined

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


@inlined()
def is_kept(position, low, high, limit):  # type: ignore[no-untyped-def]
    h = mix32(np.uint32(np.uint32(position) + low))
    return mix32(np.uint32(h ^ high)) >= limit


@compiled()
def dropout_chunks(first, last, x, threshold, factor, key, out):  # type: ignore[no-untyped-def]
    """Chunks first..last of the flat array x: zero where the hash falls below the threshold."""
    limit, zero = np.uint32(threshold), x.dtype.type(0)
    for chunk in range(first, last):
        hashed = row_hash(key, chunk)
        low, high = np.uint32(hashed & np.uint64(0xFFFFFFFF)), np.uint32(hashed >> np.uint64(32))
        source, target = x[chunk * CHUNK : (chunk + 1) * CHUNK], out[chunk * CHUNK : (chunk + 1) * CHUNK]
        for c in range(len(source)):
            target[c] = source[c] * factor if is_kept(c, low, high, limit) else zero


@compiled()
def dropout_rows(first, last, x, rows, threshold, factor, key, out):  # type: ignore[no-untyped-def]
    """Rows first..last of x [n, C], which are rows ``rows`` of the array that :func:`dropout_chunks` would be given."""
    limit, zero, width = np.uint32(threshold), x.dtype.type(0), x.shape[1]
    for r in range(first, last):
        done, at = 0, rows[r] * width
        while done < width:
            chunk = (at + done) // CHUNK
            begin = at + done - chunk * CHUNK
            length = min(CHUNK - begin, width - done)
            hashed = row_hash(key, chunk)
            low, high = np.uint32(hashed & np.uint64(0xFFFFFFFF)), np.uint32(hashed >> np.uint64(32))
            source, target = x[r, done : done + length], out[r, done : done + length]
            for c in range(length):
                target[c] = source[c] * factor if is_kept(begin + c, low, high, limit) else zero
            done += length


LANES = 8  # words taken at once, each added up apart, so that the loop becomes vector code
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
SEEDS = np.array([0xD1B54A32D192ED03 * (lane + 1) % 2**64 for lane in range(LANES)], np.uint64)
STEP = np.uint64(0x9E3779B97F4A7C15)


@compiled()
def hash_words(number, first, last, words, parts):  # type: ignore[no-untyped-def]
    """parts[number] = a hash of words first..last, a multiple of LANES, by products of halves under moving keys."""
    sums, keys = SEEDS.copy(), SEEDS.copy()
    for at in range(first, last, LANES):
        for lane in range(LANES):
            word = words[at + lane]
            mixed = word ^ keys[lane]
            sums[lane] += (mixed & LOW) * (mixed >> HALF) + ((word << HALF) | (word >> HALF))
        for lane in range(LANES):
            keys[lane] += STEP
            sums[lane] ^= sums[lane] >> np.uint64(47)
    digest = np.uint64(last - first)
    for lane in range(LANES):
        digest = row_hash(digest ^ sums[lane], lane)
    parts[number] = digest
