"""Sorting a graph's edges by target and by source: counted, not compared, and checked on the way."""

from __future__ import annotations

import numpy as np

from ltga.kernels.numba.scalar import compiled


@compiled()
def sort_edges(edges, source_row, sources, targets, loops):  # type: ignore[no-untyped-def]
    """(sound, edges [2, E] int64, ptr, col, perm, tptr, tcol, tpos) as in ``Neighbourhoods``; equal keys keep order.

    Args:
        edges: ``[2, E]``, whose row ``source_row`` has the sources; not sound if one is out of range.
        loops: number of nodes that get a self-loop at the end, in place of those that are there; -1 to leave them.
    """
    count, sound = max(loops, 0), True
    for e in range(edges.shape[1]):
        j, i = edges[source_row, e], edges[1 - source_row, e]
        sound &= (j >= 0) & (j < sources) & (i >= 0) & (i < targets)
        count += (loops < 0) | (j != i)
    count = count if sound else 0
    kept = np.empty((2, count), np.int64)
    ptr, tptr = np.zeros(targets + 1, np.int64), np.zeros(sources + 1, np.int64)
    end = 0
    for e in range(edges.shape[1] if sound else 0):
        j, i = edges[source_row, e], edges[1 - source_row, e]
        if loops < 0 or j != i:
            kept[0, end], kept[1, end] = j, i
            end += 1
    for node in range(count - end):
        kept[0, end + node], kept[1, end + node] = node, node
    for e in range(count):
        tptr[kept[0, e] + 1] += 1
        ptr[kept[1, e] + 1] += 1
    for i in range(targets):
        ptr[i + 1] += ptr[i]
    for j in range(sources):
        tptr[j + 1] += tptr[j]
    col, perm = np.empty(count, np.int32), np.empty(count, np.int32)
    tcol, tpos = np.empty(count, np.int32), np.empty(count, np.int32)
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
    return sound, kept, ptr, col, perm, tptr, tcol, tpos
