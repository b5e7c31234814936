"""Sorting a graph's edges by target and by source, counted and checked; and the features of its self-loops."""

from __future__ import annotations

import numpy as np

from ltga.kernels.numba.scalar import compiled


@compiled()
def sort_edges(edges, source_row, sources, targets, loops, kept, ptr, col, perm, tptr, tcol, tpos):  # type: ignore[no-untyped-def]
    """Fill the arrays of ``Neighbourhoods``; equal keys keep order. Returns the number of edges, -1 if one is unsound.

    Args:
        edges: ``[2, E]``, whose row ``source_row`` has the sources; not sound if one is out of range.
        loops: number of nodes that get a self-loop at the end, in place of those that are there; -1 to leave them.
        kept: ``[2, E + loops]`` for the edges; like ``col`` and the others it is only filled as far as there are edges.
        ptr, tptr: zeros.
    """
    sound, count = True, 0
    for e in range(edges.shape[1]):
        j, i = edges[source_row, e], edges[1 - source_row, e]
        sound &= (j >= 0) & (j < sources) & (i >= 0) & (i < targets)
        kept[0, count], kept[1, count] = j, i
        count += (loops < 0) | (j != i)
    if not sound:
        return -1
    for node in range(max(loops, 0)):
        kept[0, count], kept[1, count] = node, node
        count += 1
    for e in range(count):
        tptr[kept[0, e] + 1] += 1
        ptr[kept[1, e] + 1] += 1
    for i in range(targets):
        ptr[i + 1] += ptr[i]
    for j in range(sources):
        tptr[j + 1] += tptr[j]
    place = ptr.copy()
    for e in range(count):
        k = place[kept[1, e]]
        place[kept[1, e]] = k + 1
        col[k], perm[k] = kept[0, e], e
    place = tptr.copy()
    for i in range(targets):
        for k in range(ptr[i], ptr[i + 1]):
            slot = place[col[k]]
            place[col[k]] = slot + 1
            tcol[slot], tpos[slot] = i, k
    return count


@compiled()
def features_with_loops(edges, given, nodes, filled):  # type: ignore[no-untyped-def]
    """Features of the edges that are no loops, then for every node the mean over those that end in it, 0 if none do.

    Args:
        edges: ``[2, E]``; the second row has the ends.
        given: ``[E, D]``.
        filled: ``[E without loops + nodes, D]``.

    Returns:
        False if the edges are not those that ``filled`` was made for.
    """
    count, start, ends = 0, len(filled) - nodes, np.zeros(nodes, given.dtype)
    filled[start:] = 0.0
    for e in range(edges.shape[1]):
        i = edges[1, e]
        if edges[0, e] == i:
            continue
        if count == start or i < 0 or i >= nodes:
            return False
        for f in range(given.shape[1]):
            filled[count, f] = given[e, f]
            filled[start + i, f] += given[e, f]
        ends[i] += 1
        count += 1
    for i in range(nodes):
        if ends[i] > 1:
            for f in range(given.shape[1]):
                filled[start + i, f] /= ends[i]
    return count == start
