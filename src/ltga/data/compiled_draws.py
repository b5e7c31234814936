"""Compiled draws of neighbours: which incoming edges a node keeps, and how the nodes found are numbered.

Every random number is a hash of (key, node, slot) and nothing else, so that no order of work and no number of threads
changes a draw. The loops run without the GIL. They stand here and not with the kernels because graphs know nothing of
attention, and all in one file because numba's cache notices a change of the file that a function stands in, but not of
one it calls into.

What is read may be a damaged file: numbers of nodes and edges are checked before they are followed.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numba import njit

_compiled = partial(njit, nogil=True, cache=True, error_model="numpy")

_STEP = np.uint64(0x9E3779B97F4A7C15)
_TO_UNIT = 2.0**-53
DAMAGED = -1
_EMPTY = -1


@_compiled(inline="always")
def _mixed(z):  # type: ignore[no-untyped-def]
    """The finaliser of splitmix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@_compiled(inline="always")
def _unit(stream, slot):  # type: ignore[no-untyped-def]
    """A number strictly between 0 and 1, a function of a node's stream and a slot."""
    z = _mixed(stream + np.uint64(slot + 1) * _STEP)
    return (np.float64(z >> np.uint64(11)) + 0.5) * _TO_UNIT


@_compiled()
def group_by_target(source, target, ptr, grouped, edges):  # type: ignore[no-untyped-def]
    """A stable counting sort of edges by target: ``ptr`` [N + 1] (zeros before), sources and positions [E]."""
    for e in range(len(target)):
        ptr[target[e] + 1] += 1
    for v in range(len(ptr) - 1):
        ptr[v + 1] += ptr[v]
    free = ptr[:-1].copy()
    for e in range(len(target)):
        at = free[target[e]]
        free[target[e]] = at + 1
        grouped[at], edges[at] = source[e], e


@_compiled()
def windows(ptr, num_edges, frontier, begin, end):  # type: ignore[no-untyped-def]
    """Where the incoming edges of every frontier node stand; DAMAGED if that is nowhere."""
    for i in range(len(frontier)):
        begin[i], end[i] = ptr[frontier[i]], ptr[frontier[i] + 1]
        if begin[i] < 0 or end[i] < begin[i] or end[i] > num_edges:
            return DAMAGED
    return 0


@_compiled()
def end_before(time, begin, end, limit):  # type: ignore[no-untyped-def]
    """Shorten every window, sorted by time, to what is earlier than its limit."""
    for i in range(len(begin)):
        low, high = begin[i], end[i]
        while low < high:
            middle = (low + high) // 2
            if time[middle] < limit[i]:
                low = middle + 1
            else:
                high = middle
        end[i] = low


@_compiled()
def count_uniform(begin, end, fanout, offsets):  # type: ignore[no-untyped-def]
    """offsets [n + 1]: where the draws of every window go if at most ``fanout`` (-1: all) are drawn."""
    offsets[0] = 0
    for i in range(len(begin)):
        degree = end[i] - begin[i]
        offsets[i + 1] = offsets[i] + (degree if fanout < 0 else min(degree, fanout))


@_compiled()
def count_weighted(begin, end, fanout, weight, offsets):  # type: ignore[no-untyped-def]
    """The same where edges of weight 0 are never drawn."""
    offsets[0] = 0
    for i in range(len(begin)):
        drawn = 0
        for e in range(begin[i], end[i]):
            drawn += weight[e] > 0
            if drawn == fanout:
                break
        offsets[i + 1] = offsets[i] + drawn


@_compiled()
def draw_uniform(begin, end, codes, key, offsets, picks):  # type: ignore[no-untyped-def]
    """Uniform subsets without replacement, ascending: by Floyd's algorithm, or in one pass if that is shorter."""
    for i in range(len(begin)):
        first, count, degree = offsets[i], offsets[i + 1] - offsets[i], end[i] - begin[i]
        if count == degree:
            for j in range(count):
                picks[first + j] = begin[i] + j
            continue
        stream = _mixed(key + np.uint64(codes[i] + 1) * _STEP)
        if count > 32 and count * count > 16 * degree:
            left = count
            for j in range(degree):
                if _unit(stream, j) * (degree - j) < left:
                    picks[first + count - left] = begin[i] + j
                    left -= 1
                    if left == 0:
                        break
            continue
        for j in range(count):
            last = degree - count + j
            pick = begin[i] + min(np.int64(_unit(stream, j) * (last + 1)), last)
            taken = False
            for at in range(first, first + j):
                taken |= picks[at] == pick
            pick = begin[i] + last if taken else pick  # the last one cannot be taken: nobody could draw it before
            for at in range(first, first + j):  # into its place by an insertion without branches
                held = picks[at]
                picks[at], pick = min(held, pick), max(held, pick)
            picks[first + j] = pick


@_compiled()
def draw_weighted(begin, end, codes, key, weight, offsets, picks):  # type: ignore[no-untyped-def]
    """Successive draws in proportion to weight, without replacement: the smallest of -log(u) / weight."""
    for i in range(len(begin)):
        first, count = offsets[i], offsets[i + 1] - offsets[i]
        if count == 0:
            continue
        stream = _mixed(key + np.uint64(codes[i] + 1) * _STEP)
        worth = np.empty(count, np.float64)
        held, worst = 0, 0
        for e in range(begin[i], end[i]):
            if not weight[e] > 0:
                continue
            own = -math.log(_unit(stream, e - begin[i])) / weight[e]
            if held < count:
                worth[held], picks[first + held] = own, e
                held += 1
            elif own < worth[worst]:
                worth[worst], picks[first + worst] = own, e
            else:
                continue
            if held == count:
                worst = int(np.argmax(worth))
        picks[first : first + count].sort()


@_compiled()
def owners(offsets, first, owner):  # type: ignore[no-untyped-def]
    """Whose every draw is: windows are numbered from ``first``."""
    for i in range(len(offsets) - 1):
        for at in range(offsets[i], offsets[i + 1]):
            owner[at] = first + i


@_compiled()
def number_nodes(found, place, nodes, count, local):  # type: ignore[no-untyped-def]
    """Number nodes in order of appearance; returns how many there are then, or DAMAGED.

    ``place`` [N] says where a node stands in ``nodes``, or -1.
    """
    for i in range(len(found)):
        node = found[i]
        if node < 0 or node >= len(place):
            return DAMAGED
        at = place[node]
        if at < 0:
            at = count
            place[node], nodes[count] = at, node
            count += 1
        local[i] = at
    return count


@_compiled()
def forget(nodes, place):  # type: ignore[no-untyped-def]
    """Take nodes out of ``place``."""
    for i in range(len(nodes)):
        place[nodes[i]] = -1


@_compiled()
def number_in_trees(found, owner, num_nodes, table, nodes, tree, count, local):  # type: ignore[no-untyped-def]
    """The same where a node stands once in every tree that reaches it; ``table`` [2, 2^k] is a hash table for it.

    Its first row holds tree * N + node, or -1, its second where that stands in ``nodes``.
    """
    mask = np.uint64(table.shape[1] - 1)
    for i in range(len(found)):
        node = found[i]
        if node < 0 or node >= num_nodes:
            return DAMAGED
        code = tree[owner[i]] * num_nodes + node
        slot = _mixed(np.uint64(code)) & mask
        while table[0, slot] != _EMPTY and table[0, slot] != code:
            slot = (slot + np.uint64(1)) & mask
        if table[0, slot] == _EMPTY:
            table[0, slot], table[1, slot] = code, count
            nodes[count], tree[count] = node, tree[owner[i]]
            count += 1
        local[i] = table[1, slot]
    return count


@_compiled()
def enter(codes, table):  # type: ignore[no-untyped-def]
    """Put codes, all different, into an empty hash table, numbered as they stand."""
    mask = np.uint64(table.shape[1] - 1)
    for i in range(len(codes)):
        slot = _mixed(np.uint64(codes[i])) & mask
        while table[0, slot] != _EMPTY:
            slot = (slot + np.uint64(1)) & mask
        table[0, slot], table[1, slot] = codes[i], i
