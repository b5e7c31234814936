"""Features made from the edges alone, for graphs whose nodes have none.

| name | what | on |
| --- | --- | --- |
| `degree`, `log-degree` | how many neighbours a node has; log(1 + that) | neighbours |
| `pagerank` | N times PageRank with damping 0.85: 1 is a node of average standing | messages |
| `clustering` | which share of a node's pairs of neighbours are neighbours themselves | neighbours |
| `core` | the largest k such that the node is in a part where all have k neighbours | neighbours |
| `random-walk-K` | probabilities to be back after 1 to K random steps | neighbours |
| `laplacian-K` | K eigenvectors of the normalised Laplacian, by ascending eigenvalue after the first | neighbours |

Neighbours are nodes that an edge joins, whatever its direction; self-loops do not count. Eigenvectors place the nodes
of one graph and say nothing about another, so a preparation with `laplacian-K` cannot be repeated on another graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ltga.errors import InputError, did_you_mean

DEFAULT = ("log-degree", "pagerank", "clustering", "core")
_DAMPING, _TOLERANCE, _MOST_ITERATIONS = 0.85, 1e-12, 1000
_PATHS_AT_ONCE = 20_000_000
_MOST_STEPS = 64
_MOST_WORK = 4e10  # multiplications; about a minute
_DENSE = 800  # nodes, up to which all eigenvectors are found at once


def structural_features(
    edges: np.ndarray, num_nodes: int, names: Sequence[str], parts: np.ndarray | None = None
) -> tuple[np.ndarray, list[str]]:
    """Features `[N, K]` (float64) made from edge rows `[E, 2]`, source and target, and what each column is called.

    `parts` `[N]` numbers graphs that have no edge in common: each gets the features that it has alone.

    >>> values, columns = structural_features(np.array([[0, 1], [1, 2]]), 3, ["degree", "random-walk-2"])
    >>> columns
    ['degree', 'random walk, 1 steps', 'random walk, 2 steps']
    >>> values[:, 0].tolist(), values[:, 2].round(9).tolist()
    ([1.0, 2.0, 1.0], [0.5, 1.0, 0.5])
    """
    check_names(names)
    neighbours = _neighbours(edges, num_nodes)
    blocks, columns = [], []
    for name in names:
        kind, size = _parse(name)
        block = _pagerank(edges, num_nodes, parts) if kind == "pagerank" else _MAKERS[kind](neighbours, size)
        blocks.append(block.reshape(num_nodes, -1))
        columns += _column_names(kind, blocks[-1].shape[1])
    return np.concatenate(blocks, axis=1), columns


def check_names(names: Sequence[str]) -> None:
    """Raise unless all are names of structural features, none of them twice."""
    if not names:
        raise InputError("structure: names nothing; give names, 'auto' or 'none'")
    for name in names:
        kind, size = _parse(name)
        if kind not in _MAKERS or (kind in _SIZED) != (size > 0) or size > _MOST_STEPS:
            known = [f"{known}-8" if known in _SIZED else known for known in _MAKERS]
            raise InputError(
                f"structure: no feature is called {name!r}; "
                f"{did_you_mean(name, known, 'known are ' + ', '.join(known) + f' (at most {_MOST_STEPS})')}"
            )
    if len(set(names)) != len(names):
        raise InputError(f"structure: a name repeats in {', '.join(names)}; give each once")


def places_nodes(names: Sequence[str]) -> bool:
    """Whether some of these features mean nothing in another graph."""
    return any(_parse(name)[0] == "laplacian" for name in names)


def _parse(name: str) -> tuple[str, int]:
    found = re.fullmatch(r"([a-z-]+?)(?:-([0-9]{1,3}))?", name)
    return (found[1], int(found[2] or 0)) if found else ("", 0)


def _column_names(kind: str, count: int) -> list[str]:
    if kind == "random-walk":
        return [f"random walk, {step} steps" for step in range(1, count + 1)]
    if kind == "laplacian":
        return [f"Laplacian eigenvector {at}" for at in range(1, count + 1)]
    return [kind]


def _neighbours(edges: np.ndarray, num_nodes: int) -> Any:
    """The symmetric adjacency of 0 and 1 without self-loops, CSR."""
    import scipy.sparse  # now: names on a command line are checked without it

    off = edges[edges[:, 0] != edges[:, 1]]
    both = np.concatenate([off, off[:, ::-1]])
    matrix = scipy.sparse.csr_matrix((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(num_nodes, num_nodes))
    matrix.data[:] = 1.0  # repeated edges were added up
    return matrix


def _degree(neighbours: Any, _: int) -> np.ndarray:
    return np.diff(neighbours.indptr).astype(np.float64)


def _log_degree(neighbours: Any, _: int) -> np.ndarray:
    return np.log1p(_degree(neighbours, 0))


def _pagerank(edges: np.ndarray, num_nodes: int, parts: np.ndarray | None = None) -> np.ndarray:
    """Who has no way out goes anywhere, but stays in its part; then N times the rank is that of the part alone."""
    import scipy.sparse

    part = np.zeros(num_nodes, dtype=np.int64) if parts is None else parts
    sizes = np.bincount(part)
    pairs = np.unique(edges[:, 0] * num_nodes + edges[:, 1])
    source, target = np.divmod(pairs, num_nodes)
    out = np.bincount(source, minlength=num_nodes)
    flow = scipy.sparse.csr_matrix((1.0 / out[source], (target, source)), shape=(num_nodes, num_nodes))
    rank = np.full(num_nodes, 1.0 / num_nodes)
    for _ in range(_MOST_ITERATIONS):
        lost = np.bincount(part, np.where(out == 0, rank, 0.0), minlength=len(sizes))
        spread = flow @ rank + (lost / sizes.clip(1))[part]
        after = _DAMPING * spread + (1 - _DAMPING) / num_nodes
        moved, rank = np.abs(after - rank).sum(), after
        if moved < _TOLERANCE:
            break
    return num_nodes * rank


def _clustering(neighbours: Any, _: int) -> np.ndarray:
    """Triangles of every node over its pairs of neighbours.

    Edges point to the node of higher degree, so that a hub has few outgoing edges; blocks of rows bound the memory.
    """
    import scipy.sparse

    degree = _degree(neighbours, 0)
    order = np.lexsort((np.arange(len(degree)), degree))
    ranked = neighbours[order][:, order]
    upper = scipy.sparse.triu(ranked, k=1, format="csr")
    outgoing = np.diff(upper.indptr).astype(np.float64)
    paths = np.cumsum(upper @ outgoing + outgoing**2)
    triangles = np.zeros(len(degree))
    start = 0
    while start < len(degree):
        done = paths[start - 1] if start else 0.0
        stop = max(start + 1, int(np.searchsorted(paths, done + _PATHS_AT_ONCE)))
        rows = upper[start:stop]
        closed = (rows @ upper).multiply(rows).tocsr()  # a -> b -> c beside a -> c, counted at (a, c)
        triangles[start:stop] += np.asarray(closed.sum(axis=1)).ravel()
        triangles += np.asarray(closed.sum(axis=0)).ravel()
        middle = (rows.T @ rows).multiply(upper)  # the same, counted at (b, c)
        triangles += np.asarray(middle.sum(axis=1)).ravel()
        start = stop
    by_node = np.empty_like(triangles)
    by_node[order] = triangles
    pairs = degree * (degree - 1) / 2
    return np.divide(by_node, pairs, out=np.zeros_like(by_node), where=pairs > 0)


def _core(neighbours: Any, _: int) -> np.ndarray:
    """Core numbers by peeling: whoever has at most k neighbours left goes, until nobody is left."""
    left = np.diff(neighbours.indptr).astype(np.int64)
    core = np.zeros(len(left), dtype=np.int64)
    there = np.ones(len(left), dtype=bool)
    k = 0
    while there.any():
        k = max(k, int(left[there].min()))
        going = np.flatnonzero(there & (left <= k))
        while going.size:
            core[going], there[going] = k, False
            touched = neighbours[going].indices
            left -= np.bincount(touched, minlength=len(left))
            touched = np.unique(touched)
            going = touched[there[touched] & (left[touched] <= k)]
    return core.astype(np.float64)


def _random_walk(neighbours: Any, steps: int) -> np.ndarray:
    """Diagonals of the powers of the walk: S = D^-1/2 A D^-1/2 has the same, and as S is symmetric, the diagonal of
    S^(a+b) are the products of the columns of S^a and S^b, which halves the number of powers."""
    nodes = neighbours.shape[0]
    if float(nodes) * neighbours.nnz * (steps + 1) // 2 > _MOST_WORK:
        raise InputError(
            f"structure: random-walk-{steps} takes too long for {nodes:,} nodes and {neighbours.nnz:,} edges; take "
            "fewer steps, or other features"
        )
    symmetric = _normalised(neighbours)
    result = np.zeros((nodes, steps))
    width = max(1, min(nodes, 4_000_000 // max(nodes, 1)))
    for start in range(0, nodes, width):
        stop = min(start + width, nodes)
        before = np.zeros((nodes, stop - start))
        before[np.arange(start, stop), np.arange(stop - start)] = 1.0
        for step in range(1, steps + 1, 2):
            after = symmetric @ before
            result[start:stop, step - 1] = np.einsum("ij,ij->j", before, after)
            if step < steps:
                result[start:stop, step] = np.einsum("ij,ij->j", after, after)
            before = after
    return result


def _laplacian(neighbours: Any, count: int) -> np.ndarray:
    import scipy.sparse.linalg

    nodes = neighbours.shape[0]
    if nodes <= count + 1:
        raise InputError(f"structure: laplacian-{count} needs more than {count + 1} nodes, got {nodes}")
    symmetric = _normalised(neighbours)
    if nodes <= _DENSE:
        vectors = np.linalg.eigh(np.eye(nodes) - symmetric.toarray())[1][:, 1 : count + 1]
    else:
        start = np.random.default_rng(0).normal(size=nodes)  # else every call has another one
        try:
            values, found = scipy.sparse.linalg.eigsh(symmetric, k=count + 1, which="LA", v0=start)
        except scipy.sparse.linalg.ArpackError as error:
            raise InputError(f"structure: laplacian-{count} was not found ({error}); take fewer, or others") from None
        vectors = found[:, np.argsort(-values, kind="stable")[1:]]
    # A sign is arbitrary: the largest entry is made positive.
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return vectors * np.where(largest < 0, -1.0, 1.0)


def _normalised(neighbours: Any) -> Any:
    import scipy.sparse

    degree = _degree(neighbours, 0)
    root = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    return (scipy.sparse.diags(root) @ neighbours @ scipy.sparse.diags(root)).tocsr()


_MAKERS: dict[str, Callable[[Any, int], np.ndarray]] = {
    "degree": _degree,
    "log-degree": _log_degree,
    "pagerank": lambda neighbours, _: neighbours,  # made from the messages, not from the neighbours
    "clustering": _clustering,
    "core": _core,
    "random-walk": _random_walk,
    "laplacian": _laplacian,
}
_SIZED = ("random-walk", "laplacian")
