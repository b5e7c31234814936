"""Which nodes a page carries with all their neighbours: all if they fit, else those that tell most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ltga.explanation.result import Explanation

PAGE_BYTES = 9_000_000  # for arrays and names; the rest of a page, scripts and tables, is below one megabyte
_BASE64 = 4 / 3
_NODE_BYTES = 24  # start, number, row, label, prediction and the like
_HUB = 0.05  # of the budget: no single neighbourhood may take more


@dataclass(frozen=True)
class Sample:
    """The nodes of a page.

    Attributes:
        nodes: ``[P]`` their numbers, ascending.
        has_row: ``[N]``: nodes of which all incoming edges are in the page; the others are only known as neighbours.
        exact: logits and q are stored in single precision, else in half.
        whole: every node is there with all its edges.
        told: how many of the rows are there for which reason, in order.
    """

    nodes: np.ndarray
    has_row: np.ndarray
    exact: bool
    whole: bool
    told: tuple[tuple[str, int], ...] = ()
    hubs: int = 0  # nodes with so many neighbours that they are not among them


def choose_nodes(
    explanation: Explanation, wanted: Sequence[tuple[str, np.ndarray]], own_index: bool, most: int, node_bytes: int = 0
) -> Sample:
    """All nodes if they fit into ``most`` bytes, at half precision if need be; otherwise a sample, exactly.

    The sample has the nodes ``wanted`` (by reason, the most important first), then neighbours of these up to half of
    the room, then nodes drawn at random by a fixed seed.

    Args:
        own_index: every edge has its q.
        node_bytes: what is stored per node beside the usual.
    """
    nodes, edges = explanation.num_nodes, explanation.edge_index.shape[1]
    values = explanation.num_layers * explanation.num_heads * (1 + own_index)
    names = _name_bytes(explanation)
    per_node = _NODE_BYTES + node_bytes

    def size(width: int) -> float:
        return _BASE64 * (edges * (values * width + 5) + nodes * per_node) + float(names.sum())

    everything = np.arange(nodes), np.ones(nodes, dtype=bool)
    for width in (4, 2):
        if size(width) <= most:
            return Sample(*everything, exact=width == 4, whole=True)
    degree = np.bincount(explanation.edge_index[1], minlength=nodes)
    per_edge = _BASE64 * (values * 4 + 5 + per_node) + float(names.mean())  # as if every neighbour were a new one
    cost = degree * per_edge + _BASE64 * per_node + names
    return _sampled(explanation, wanted, cost, most)


def _sampled(explanation: Explanation, wanted: Sequence[tuple[str, np.ndarray]], cost: np.ndarray, most: int) -> Sample:
    fits = cost <= max(_HUB * most, float(np.median(cost)))
    has_row = np.zeros(explanation.num_nodes, dtype=bool)
    told, spent = [], 0.0

    def take(reason: str, candidates: np.ndarray, until: float) -> None:
        nonlocal spent
        fresh = candidates[fits[candidates] & ~has_row[candidates]]
        fresh = fresh[np.sort(np.unique(fresh, return_index=True)[1])]
        chosen = fresh[spent + np.cumsum(cost[fresh]) <= until]
        has_row[chosen] = True
        spent += float(cost[chosen].sum())
        if len(chosen):
            told.append((reason, len(chosen)))

    for reason, candidates in wanted:
        take(reason, candidates, most)
    source, target = explanation.edge_index
    rng = np.random.default_rng(0)
    take("neighbours of these", rng.permutation(np.unique(source[has_row[target]])), max(spent, most / 2))
    take("drawn at random", rng.permutation(explanation.num_nodes), most)
    if not has_row.any():
        has_row[cost.argmin()] = True
        told.append(("with few neighbours", 1))
    nodes = np.union1d(np.flatnonzero(has_row), source[has_row[target]])
    return Sample(nodes, has_row, exact=True, whole=False, told=tuple(told), hubs=int((~fits).sum()))


def sample_words(explanation: Explanation, sample: Sample, unit: str = "nodes") -> str | None:
    """How the sample was chosen and how much was left out; nothing if all is there."""
    if sample.whole:
        return None
    rows, total = int(sample.has_row.sum()), explanation.num_nodes
    reasons = "; ".join(f"{count:,} {reason}" for reason, count in sample.told)
    hubs = f" {sample.hubs:,} with very many neighbours are not among them." if sample.hubs else ""
    return (
        f"The graph is too large for a page, so this is a sample: {rows:,} of {total:,} {unit} are here with all their "
        f"neighbours ({reasons}), and {len(sample.nodes) - rows:,} more only as neighbours of these; "
        f"{total - len(sample.nodes):,} are left out.{hubs} Numbers of the overview are of the whole graph."
    )


def _name_bytes(explanation: Explanation) -> np.ndarray:
    """``[N]``: what names and ids of a node take in the page, in bytes."""
    total = np.zeros(explanation.num_nodes)
    for names in (explanation.node_names, explanation.node_ids):
        if names is not None:
            total += np.array([4 + 2 * len(str(name)) for name in names])  # JSON may spell a sign as \uXXXX
    return total
