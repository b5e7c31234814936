"""Link prediction on an ordinary graph: edges held out, and pairs without an edge to tell them from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data.dataset import check_graph
from ltga.data.facts import Task
from ltga.errors import DataError, InputError

Negatives = Literal["random", "two-hop", "degree"]
Part = Literal["train", "val", "test"]
NEGATIVES: tuple[str, ...] = get_args(Negatives)
_PARTS: tuple[str, ...] = get_args(Part)


@dataclass(frozen=True, eq=False)
class LinkSplit:
    """The undirected edges of a graph, divided; made by `split_links`.

    Attributes:
        name: what the graph is called.
        data: what a model may see: the nodes, and the training edges in both directions.
        train, val, test: undirected edges `[2, P]`, each once, smaller node first, self-loops left out.
        seed: what the division and the negatives follow from.
        node_ids, node_names: what people call the nodes, as of the graph it was made from.
        reading: how that graph was read, see `ltga.data.readings`.
    """

    name: str
    data: Data
    train: Tensor
    val: Tensor
    test: Tensor
    seed: int
    _all: scipy.sparse.csr_matrix
    _seen: scipy.sparse.csr_matrix
    node_ids: tuple[str, ...] | None = None
    node_names: tuple[str, ...] | None = None
    reading: Mapping[str, Any] | None = None

    @property
    def task(self) -> Task:
        """What there is to learn."""
        return "link prediction"

    @property
    def seen(self) -> scipy.sparse.csr_matrix:
        """The training graph as a symmetric matrix of 0 and 1."""
        return self._seen

    def positives(self, part: Part) -> Tensor:
        """The edges `[2, P]` of a part."""
        if part not in _PARTS:
            raise InputError(f"part: got {part!r}; use one of {', '.join(_PARTS)}")
        return {"train": self.train, "val": self.val, "test": self.test}[part]

    def negatives(self, part: Part, kind: Negatives = "two-hop", each: int = 1) -> Tensor:
        """Pairs without an edge `[2, P, each]`, for every edge of a part `each` ones that share an end with it.

        None of them is an edge of the whole graph, held out or not. Where an edge (u, v) is tested, (u, w) stands
        against it, u being either end in turn:

        - "random": w is any node. Easy: nearly all lie far apart, and common neighbours alone tell them from edges.
        - "two-hop": w shares a neighbour with u in the training graph, so having common neighbours decides nothing.
        - "degree": w has a degree in the training graph as near to that of v as can be, so that being popular decides
          nothing.

        A node with fewer such w than `each` gets some of them repeatedly; one with none, for example because all its
        edges are held out, is asked at its other end, and then gets random ones (`hard_enough` counts them).
        """
        return self._draw(part, kind, each)[0]

    def hard_enough(self, part: Part, kind: Negatives, each: int = 1) -> float:
        """The share of the negatives of a part that are of the kind asked for and not a random stand-in."""
        return float(self._draw(part, kind, each)[1].mean())

    def _draw(self, part: Part, kind: Negatives, each: int) -> tuple[Tensor, np.ndarray]:
        positives = self.positives(part).numpy()
        if kind not in NEGATIVES:
            raise InputError(f"kind: got {kind!r}; use one of {', '.join(map(repr, NEGATIVES))}")
        if isinstance(each, bool) or not isinstance(each, int) or each < 1:
            raise InputError(f"each: got {each!r}; give how many negatives stand against an edge, at least 1")
        rng = np.random.default_rng([self.seed, _PARTS.index(part), NEGATIVES.index(kind)])
        pick = _Picker(self._all, self._seen, rng)
        pairs = np.empty((2, positives.shape[1], each), dtype=np.int64)
        as_asked = np.empty(positives.shape[1], dtype=bool)
        for at, (first, second) in enumerate(positives.T.tolist()):
            u, v = (first, second) if at % 2 == 0 else (second, first)
            u, others, as_asked[at] = pick.others(u, v, kind, each)
            pairs[0, at], pairs[1, at] = u, others
        return torch.from_numpy(pairs), as_asked


def split_links(data: Data, name: str = "graph", *, val: float = 0.05, test: float = 0.1, seed: int = 0) -> LinkSplit:
    """Hold out a share of the undirected edges of a graph for validation and test.

    The direction of edges, repeated edges and self-loops are disregarded; `edge_attr`, `y` and masks are not kept, so
    that no label leaks into the task. The same seed gives the same division.

    >>> ring = Data(x=torch.eye(40), edge_index=torch.stack([torch.arange(40), (torch.arange(40) + 1) % 40]))
    >>> links = split_links(ring, "ring")
    >>> [links.positives(part).shape[1] for part in ("train", "val", "test")], links.data.edge_index.shape[1]
    ([34, 2, 4], 68)
    >>> links.negatives("test", "random", each=3).shape
    torch.Size([2, 4, 3])
    """
    check_graph(data, name, needs=("x", "edge_index"))
    for key, share in (("val", val), ("test", test)):
        if not 0 < share < 1 or val + test >= 1:
            raise InputError(f"{key}: got {share}; give shares of the edges above 0 that leave some to train on")
    nodes = data.x.shape[0]
    ends = np.sort(data.edge_index.numpy(), axis=0)
    codes = np.unique(ends[0] * nodes + ends[1])
    edges = np.stack([codes // nodes, codes % nodes])
    edges = edges[:, edges[0] != edges[1]]
    count = edges.shape[1]
    sizes = round(test * count), round(val * count)
    if min(*sizes, count - sum(sizes)) < 1:
        raise DataError(f"{name}: {count} edges are too few to hold out {val:g} and {test:g} of them; give more")
    if count == nodes * (nodes - 1) // 2:
        raise DataError(f"{name}: every pair of nodes has an edge; there is nothing to tell edges from")
    order = np.random.default_rng(seed).permutation(count)
    held_test, held_val, train = (
        torch.from_numpy(edges[:, np.sort(chosen)]) for chosen in np.split(order, np.cumsum(sizes))
    )
    seen = _adjacency(train.numpy(), nodes)
    both = np.stack(seen.nonzero()).astype(np.int64)
    graph = Data(x=data.x, edge_index=torch.from_numpy(both))
    return LinkSplit(name, graph, train, held_val, held_test, seed, _adjacency(edges, nodes), seen)


def _adjacency(edges: np.ndarray, nodes: int) -> scipy.sparse.csr_matrix:
    """Undirected edges `[2, P]` as a symmetric matrix of 0 and 1."""
    rows, columns = np.concatenate([edges, edges[::-1]], axis=1)
    return scipy.sparse.csr_matrix((np.ones(rows.size, dtype=np.int8), (rows, columns)), shape=(nodes, nodes))


class _Picker:
    """Draws partners of a node that it has no edge to."""

    def __init__(self, every: scipy.sparse.csr_matrix, seen: scipy.sparse.csr_matrix, rng: np.random.Generator) -> None:
        self._every, self._seen, self._rng = every, seen, rng
        self._degree = np.diff(seen.indptr)
        self._by_degree = np.lexsort((rng.permutation(self._degree.size), self._degree))
        self._rank = np.argsort(self._by_degree)

    def others(self, u: int, v: int, kind: str, each: int) -> tuple[int, np.ndarray, bool]:
        """The end that is asked, `each` partners of it, and whether they are of the kind asked for."""
        for near, far in ((u, v), (v, u)):
            if kind == "two-hop":
                found = self._two_hop(near)
            elif kind == "degree":
                found = self._like(near, far, each)
            else:
                found = self._free(near)
            if found.size:
                return near, self._take(found, each), True
        for near in (u, v):
            found = self._free(near)
            if found.size:
                return near, self._take(found, each), False
        raise DataError(f"links: nodes {u} and {v} have an edge to every other node; no pair can stand against theirs")

    def _take(self, found: np.ndarray, each: int) -> np.ndarray:
        if found.size >= each:
            return self._rng.choice(found, each, replace=False)
        return np.concatenate([self._rng.permutation(found), self._rng.choice(found, each - found.size)])

    def _taken(self, node: int) -> np.ndarray:
        row = self._every
        return np.append(row.indices[row.indptr[node] : row.indptr[node + 1]], node)

    def _free(self, node: int) -> np.ndarray:
        free = np.ones(self._degree.size, dtype=bool)
        free[self._taken(node)] = False
        return np.flatnonzero(free)

    def _two_hop(self, node: int) -> np.ndarray:
        seen = self._seen
        near = seen.indices[seen.indptr[node] : seen.indptr[node + 1]]
        if near.size == 0:
            return near
        reached = np.unique(np.concatenate([seen.indices[seen.indptr[at] : seen.indptr[at + 1]] for at in near]))
        return np.setdiff1d(reached, self._taken(node), assume_unique=False)

    def _like(self, node: int, model: int, each: int) -> np.ndarray:
        """Of the nodes that `node` has no edge to, the `each` nearest to `model` in degree."""
        taken, rank = self._taken(node), int(self._rank[model])
        reach = each + taken.size
        around = self._by_degree[max(0, rank - reach) : rank + reach + 1]
        around = around[~np.isin(around, taken)]
        distance = np.abs(self._degree[around] - self._degree[model])
        return around[np.argsort(distance, kind="stable")[:each]]
