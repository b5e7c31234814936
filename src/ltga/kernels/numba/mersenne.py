"""Compiled draws from torch's CPU generator (the Mersenne twister mt19937), a block of 624 words at a time.

torch makes its numbers one by one; made by blocks the same numbers come several times faster. One Bernoulli draw takes
two words r, s and asks whether the low 53 bits of 2^32 r + s fall below a limit, as torch's does.
"""

from __future__ import annotations

import numpy as np

from ltga.kernels.numba.scalar import compiled, inlined

WORDS, MIDDLE = 624, 397


@inlined()
def twist(upper, lower):  # type: ignore[no-untyped-def]
    mixed = np.uint32((upper & np.uint32(0x80000000)) | (lower & np.uint32(0x7FFFFFFF)))
    flip = np.uint32(np.uint32(0) - np.uint32(lower & np.uint32(1))) & np.uint32(0x9908B0DF)
    return np.uint32(np.uint32(mixed >> np.uint32(1)) ^ flip)


@inlined()
def temper(y):  # type: ignore[no-untyped-def]
    y = np.uint32(y ^ np.uint32(y >> np.uint32(11)))
    y = np.uint32(y ^ (np.uint32(y << np.uint32(7)) & np.uint32(0x9D2C5680)))
    y = np.uint32(y ^ (np.uint32(y << np.uint32(15)) & np.uint32(0xEFC60000)))
    return np.uint32(y ^ np.uint32(y >> np.uint32(18)))


@compiled()
def next_block(old, new):  # type: ignore[no-untyped-def]
    """The 624 words of state that follow ``old``; the two must not be the same array."""
    for j in range(WORDS - MIDDLE):
        new[j] = old[j + MIDDLE] ^ twist(old[j], old[j + 1])
    for start in range(WORDS - MIDDLE, WORDS - 1, WORDS - MIDDLE):  # what a stretch reads of ``new`` is finished
        for j in range(start, min(start + WORDS - MIDDLE, WORDS - 1)):
            new[j] = new[j - (WORDS - MIDDLE)] ^ twist(old[j], old[j + 1])
    new[WORDS - 1] = new[MIDDLE - 1] ^ twist(old[WORDS - 1], new[0])


@inlined()
def below(pair, limit):  # type: ignore[no-untyped-def]
    """Whether two words that stand in memory one after the other, the first in the low half, make a draw below."""
    first, second = pair & np.int64(0x1FFFFF), (pair >> np.int64(32)) & np.int64(0xFFFFFFFF)
    return (first << np.int64(32) | second) < limit


@compiled()
def draw_all(state, position, limit, kept):  # type: ignore[no-untyped-def]
    """Fill ``kept``; leaves ``state`` where torch would and returns the new position in it."""
    words, other = np.empty(WORDS + 2, np.uint32), np.empty(WORDS, np.uint32)
    pairs = words.view(np.int64)
    done, held = 0, 0
    while done < len(kept):
        if position == WORDS:
            next_block(state, other)
            state[:] = other
            position = 0
        taken = min(WORDS - position, 2 * (len(kept) - done) - held)
        for j in range(taken):
            words[held + j] = temper(state[position + j])
        position, held = position + taken, held + taken
        for m in range(held // 2):
            kept[done + m] = below(pairs[m], limit)
        done += held // 2
        words[0], held = words[held - 1], held % 2  # a draw whose words stand in two blocks
    return position


@compiled()
def draw_some(state, position, limit, count, wanted, kept):  # type: ignore[no-untyped-def]
    """As :func:`draw_all` for ``count`` draws of which only those numbered ``wanted`` (ascending) are looked at."""
    other = np.empty(WORDS, np.uint32)
    left, first, slot = 2 * count, -position, 0  # words to go; number of the block's first word
    carried = np.uint32(0)
    while left > 0:
        if position == WORDS:
            next_block(state, other)
            carried = state[WORDS - 1]
            state[:] = other
            position, first = 0, first + WORDS
        while slot < len(wanted):
            at = 2 * wanted[slot] - first
            if at + 1 >= WORDS:
                break
            upper = temper(state[at]) if at >= 0 else temper(carried)
            kept[slot] = below(np.int64(upper) | np.int64(temper(state[at + 1])) << np.int64(32), limit)
            slot += 1
        step = min(left, WORDS - position)
        left, position = left - step, position + step
    return position


@compiled()
def scale_kept(first, last, x, kept, factor, out):  # type: ignore[no-untyped-def]
    """out = x times factor where kept, else x times 0."""
    zero = x.dtype.type(0)
    for i in range(first, last):
        out[i] = x[i] * (factor if kept[i] else zero)
