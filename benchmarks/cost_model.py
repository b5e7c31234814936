"""What a step of training costs, as a function of sizes; constants come from benchmarks/cost.py.

Everything here is arithmetic: nothing is measured and nothing is drawn. A batch has n nodes and m edges, a full batch
all of a graph's. Seconds are those of one core.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Shape:
    """A network on a kind of graph."""

    features: int
    hidden: int
    heads: int
    layers: int
    classes: int

    @property
    def widths(self) -> list[tuple[int, int]]:
        """What every layer reads and computes: numbers for a node."""
        between = self.hidden * self.heads
        inputs = [self.features, *[between] * (self.layers - 1)]
        outputs = [*[between] * (self.layers - 1), self.classes * self.heads]
        return list(zip(inputs, outputs))

    @property
    def parameters(self) -> int:
        """Two projections with their biases, attention and output bias of every layer."""
        return sum(2 * read * made + 4 * made for read, made in self.widths)


def step_work(nodes: float, edges: float, shape: Shape) -> dict[str, float]:
    """What the time of a gradient step grows with; every node has a self-loop."""
    with_loops = edges + nodes
    return {
        "project": sum(12.0 * nodes * read * made for read, made in shape.widths),  # operations, both ways
        "attend": with_loops * sum(made for _, made in shape.widths),  # numbers, both ways
        "weigh": with_loops * shape.heads * shape.layers,  # weights, both ways
        "edges": with_loops * shape.layers,
        "step": 1.0,
    }


def draw_work(nodes: float, edges: float, shape: Shape) -> dict[str, float]:
    """What the time of drawing a batch and gathering its features grows with."""
    return {"draw": edges, "gather": nodes * shape.features, "batch": 1.0}


def seconds(work: Mapping[str, float], constants: Mapping[str, float]) -> float:
    return sum(constants[name] * amount for name, amount in work.items())


def expected_batch(
    in_degree: np.ndarray, out_degree: np.ndarray, seeds: int, fanout: Sequence[int]
) -> tuple[float, float]:
    """Nodes and edges of a batch with seeds at random, from degrees alone, if links go both ways.

    A drawn edge is taken to come from a node in proportion to its edges out, whatever node it leads to; but one of the
    edges of a node that a hop has reached leads back to where it was reached from.
    """
    nodes = len(in_degree)
    new = np.full(nodes, seeds / nodes)  # how likely each is reached by this hop and by none before
    reached, total = new.copy(), 0.0
    for hop, limit in enumerate(fanout):
        draws = in_degree if limit == -1 else np.minimum(in_degree, limit)
        drawn = float(new @ draws)
        back = float(new @ (draws / np.maximum(in_degree, 1))) if hop else 0.0
        found = -np.expm1(-(drawn - back) * out_degree / max(out_degree.sum(), 1))
        new = found * (1 - reached)
        reached, total = reached + new, total + drawn
    return float(reached.sum()), total


def most_in_a_batch(seeds: int, fanout: Sequence[int]) -> tuple[int, int]:
    """Nodes and edges of a batch if no neighbourhood overlaps and no degree is below the fan-out."""
    edges = int(seeds * sum(np.cumprod(fanout)))
    return seeds + edges, edges


def averaging_seconds(parameters: int, workers: int, bytes_per_second: float) -> float:
    """Of a ring: every worker sends and receives each gradient twice, but for its own share."""
    return 8 * parameters * (workers - 1) / workers / bytes_per_second


def folder_bytes(nodes: int, edges: int, features: int, bytes_per_number: int = 2) -> int:
    """A graph on disk, one split, without names."""
    return edges * (4 if nodes < 2**31 else 8) + nodes * (8 + 4 + 1 + features * bytes_per_number)


def resident_bytes(nodes: int, classes: int, threads: int = 1) -> int:
    """What training from disk keeps in memory for every node: labels, masks, places, predictions and a copy of them."""
    return nodes * (8 + 3 + 4 * (threads + 1) + 8 + 8 * classes)
