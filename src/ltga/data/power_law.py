"""A synthetic graph of any size whose degrees follow a power law, made block by block and never whole in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ltga.data.graph_folder_files import PARTS
from ltga.data.graph_folder_write import EdgeBlock, NodeBlock
from ltga.data.knobs import knob_name
from ltga.errors import InputError

_BLOCK = 1 << 18


class PowerLaw:
    """Links between a node drawn by rank, the r-th with a probability in r^(-1 / (exponent - 1)), and any node.

    Degrees then fall as degree^-exponent. Links go both ways; a pair that is drawn twice is one link, so that there
    are a few edges less than ``num_edges``. A share ``homophily`` of links (and one in ``num_classes`` of the others)
    stays within a class. Features are the class's mean, of length ``snr``, and standard normal noise.

    >>> graph = PowerLaw(num_nodes=1000, num_edges=5000)
    >>> sum(len(block.source) for block in graph.edges()), graph.name
    (2500, 'power-law:num_edges=5000,num_nodes=1000')
    """

    convention, repeats, timed = "undirected, once", "drop", False
    edge_columns: tuple[str, ...] = ()
    where = "power-law"

    def __init__(
        self,
        num_nodes: int = 100_000,
        num_edges: int = 1_000_000,
        num_features: int = 64,
        num_classes: int = 8,
        exponent: float = 2.5,
        homophily: float = 0.6,
        snr: float = 1.0,
        train: float = 0.01,
        seed: int = 0,
    ) -> None:
        settings = {key: value for key, value in locals().items() if key != "self"}
        _check(**settings)
        self.num_nodes, self.num_features, self.num_classes = num_nodes, num_features, num_classes
        self._links = num_edges // 2
        self._power = (exponent - 1) / (exponent - 2)
        self._homophily, self._snr, self._train, self._seed = homophily, snr, train, seed
        self.name = knob_name("power-law", PowerLaw, settings)
        self.provenance: dict[str, Any] = {"source": "power-law", **settings}

    def nodes(self) -> Iterator[NodeBlock]:
        means = self._generator(0).standard_normal((self.num_classes, self.num_features), dtype=np.float32)
        means *= self._snr / np.linalg.norm(means, axis=1, keepdims=True)
        rng = self._generator(1)
        for first in range(0, self.num_nodes, _BLOCK):
            y = np.arange(first, min(first + _BLOCK, self.num_nodes)) % self.num_classes
            yield NodeBlock(means[y] + rng.standard_normal((len(y), self.num_features), dtype=np.float32), y)

    def edges(self) -> Iterator[EdgeBlock]:
        rng = self._generator(2)
        step = next(step for step in range(int(0.618 * self.num_nodes), self.num_nodes + 1) if self._coprime(step))
        for first in range(0, self._links, _BLOCK):
            count = min(_BLOCK, self._links - first)
            rank = (self.num_nodes * rng.random(count) ** self._power).astype(np.int64)
            hub = rank * step % self.num_nodes  # so that the hubs are no neighbours on disk
            other = rng.integers(0, self.num_nodes, count)
            alike = rng.random(count) < self._homophily
            other[alike] += (hub[alike] - other[alike]) % self.num_classes
            other[other >= self.num_nodes] -= self.num_classes
            other = np.where(other == hub, (other + self.num_classes) % self.num_nodes, other)
            yield EdgeBlock(hub, other)

    def classes(self) -> tuple[tuple[str, ...], np.ndarray | None]:
        return tuple(map(str, range(self.num_classes))), None

    def splits(self) -> np.ndarray:
        """One split: ``train`` of the nodes for training, as many for validation, twice as many for testing."""
        draws = self._generator(3).random(self.num_nodes, dtype=np.float32)
        bounds = np.array([1, 2, 4]) * self._train
        codes = np.array([*PARTS.values(), 0], np.uint8)
        return codes[np.searchsorted(bounds, draws, side="right")][None]

    def _generator(self, part: int) -> np.random.Generator:
        return np.random.default_rng((self._seed, part))

    def _coprime(self, step: int) -> bool:
        return math.gcd(step, self.num_nodes) == 1


def _check(**given: float) -> None:
    for key, least in (("num_nodes", 100), ("num_edges", 2), ("num_features", 1), ("num_classes", 2), ("seed", 0)):
        if given[key] < least:
            raise InputError(f"{key}: got {given[key]}; give at least {least}")
    if given["num_classes"] * 10 > given["num_nodes"]:
        raise InputError(f"num_classes: got {given['num_classes']}; give at most a tenth of the nodes")
    if not 2 < given["exponent"] < 10:
        raise InputError(f"exponent: got {given['exponent']}; give a number between 2 and 10, such as 2.5")
    if not 0 <= given["homophily"] <= 1:
        raise InputError(f"homophily: got {given['homophily']}; give a share between 0 and 1")
    if not 0 < given["train"] <= 0.25:
        raise InputError(f"train: got {given['train']}; give a share above 0 and up to 0.25")
