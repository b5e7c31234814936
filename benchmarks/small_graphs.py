"""A new batch of small graphs each step: our layer against PyG's GATv2Conv, interleaved, as ratios of one run.

    python benchmarks/small_graphs.py --out small_graphs.json
    python benchmarks/small_graphs.py --profile head     # where the time of one layer goes

A step makes nothing but the layer's forward and backward pass on edges it has not seen; the batches are made before.
What counts is a layer's fastest steps (the first decile): other work on the machine can only add to a step.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATv2Conv

from ltga.data.atomic import write_atomic
from ltga.nn import LTGAConv
from ltga.train.record import environment

FEATURES, BOND_FEATURES, HIDDEN, HEADS, GRAPHS = 39, 10, 16, 4, 32
LAYERS: dict[str, Callable[[], nn.Module]] = {
    "GATv2Conv (PyG)": lambda: GATv2Conv(FEATURES, HIDDEN, HEADS),
    "softmax": lambda: LTGAConv(FEATURES, HIDDEN, HEADS, index=1.0, normalizer="softmax"),
    "head": lambda: LTGAConv(FEATURES, HIDDEN, HEADS, index="head"),
    "edge": lambda: LTGAConv(FEATURES, HIDDEN, HEADS, index="edge"),
    "entmax-head": lambda: LTGAConv(FEATURES, HIDDEN, HEADS, index="head", normalizer="entmax"),
    "GATv2Conv (PyG), edge features": lambda: GATv2Conv(FEATURES, HIDDEN, HEADS, edge_dim=BOND_FEATURES),
    "head, edge features": lambda: LTGAConv(FEATURES, HIDDEN, HEADS, edge_dim=BOND_FEATURES, index="head"),
}


def reference(name: str) -> str:
    """PyG's layer that does the same."""
    return "GATv2Conv (PyG)" + (", edge features" if "edge features" in name else "")


def molecule_like(generator: torch.Generator) -> Data:
    """A random tree of 10 to 40 nodes with two extra edges, both ways: about as many bonds as a molecule has."""
    nodes = int(torch.randint(10, 41, (), generator=generator))
    later = torch.arange(1, nodes)
    earlier = (torch.rand(nodes - 1, generator=generator) * later).long()
    rings = torch.randint(0, nodes, (2, 2), generator=generator)
    half = torch.cat([torch.stack([earlier, later]), rings[:, rings[0] != rings[1]]], dim=1)
    x = torch.randn(nodes, FEATURES, generator=generator)
    bonds = torch.randn(half.size(1), BOND_FEATURES, generator=generator)
    return Data(x=x, edge_index=torch.cat([half, half.flip(0)], dim=1), edge_attr=torch.cat([bonds, bonds]))


def batches(count: int, seed: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Batches of 32 graphs, each of edges that no layer has seen: features, edges, features of the edges."""
    generator = torch.Generator().manual_seed(seed)
    made = [Batch.from_data_list([molecule_like(generator) for _ in range(GRAPHS)]) for _ in range(count)]
    return [(batch.x, batch.edge_index, batch.edge_attr) for batch in made]


def step(layer: nn.Module, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> None:
    layer.zero_grad()
    given = (x, edge_index) if layer.edge_dim is None else (x, edge_index, edge_attr)
    layer(*given).sum().backward()


def seconds(layer: nn.Module, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> float:
    """Seconds of a step on a copy of the edges, so that nothing is remembered from another layer."""
    edge_index = edge_index.clone()
    start = time.perf_counter()
    step(layer, x, edge_index, edge_attr)
    return time.perf_counter() - start


def measure(steps: int) -> dict[str, dict[str, float]]:
    """Each layer's quick steps and their ratio to PyG's; every batch goes through all layers, the first in turn."""
    layers = {name: make() for name, make in LAYERS.items()}
    for layer in layers.values():
        for batch in batches(5, seed=0):  # compile, warm up
            step(layer, *batch)
    times: dict[str, list[float]] = {name: [] for name in layers}
    names = list(layers)
    for number, batch in enumerate(batches(steps, seed=1)):
        for at in range(len(names)):
            name = names[(number + at) % len(names)]
            times[name].append(seconds(layers[name], *batch))
    quick = {name: statistics.quantiles(taken, n=10)[0] for name, taken in times.items()}
    return {name: {"milliseconds": 1e3 * one, "ratio": one / quick[reference(name)]} for name, one in quick.items()}


def profile(name: str, steps: int) -> None:
    """Print the functions in which one layer spends its steps."""
    layer = LAYERS[name]()
    for batch in batches(5, seed=0):
        step(layer, *batch)
    work = [(x, edge_index.clone(), edge_attr) for x, edge_index, edge_attr in batches(steps, seed=1)]
    watch = cProfile.Profile()
    watch.enable()
    for batch in work:
        step(layer, *batch)
    watch.disable()
    pstats.Stats(watch).sort_stats("tottime").print_stats(25)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200, help="batches")
    parser.add_argument("--profile", choices=list(LAYERS), help="print where the time of this layer goes, and stop")
    parser.add_argument("--out", type=Path, help="write the measurements here as JSON")
    given = parser.parse_args()
    if given.profile:
        profile(given.profile, given.steps)
        return
    found = measure(given.steps)
    for name, numbers in found.items():
        print(f"{name:30s} {numbers['milliseconds']:7.2f} ms a step, {numbers['ratio']:.2f} of PyG's")
    if given.out is not None:
        text = json.dumps({"layers": found, "environment": environment()}, indent=1) + "\n"
        write_atomic(given.out, lambda stream: stream.write(text.encode()))


if __name__ == "__main__":
    main()
