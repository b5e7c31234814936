"""An epoch of a deep, narrow stack: our layers against PyG's in the same blocks, interleaved, as ratios of one run.

    OMP_NUM_THREADS=1 python benchmarks/deep_stack.py --out deep_stack.json

Eight blocks of 64, one head (attention plus a linear map, batch norm, ReLU, dropout) on minesweeper: a training step in
its parts, and an evaluation. With one thread times are of the processor, so that other work on the machine counts less.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GATv2Conv

from ltga.data import load_dataset
from ltga.data.atomic import write_atomic
from ltga.nn import LTGAConv
from ltga.nn.backbones.classic import ClassicStack
from ltga.train.record import environment

WIDTH, BLOCKS = 64, 8
REFERENCE = "GATConv (PyG)"
PARTS = ("forward", "backward", "step", "evaluation")
Make = Callable[[int], nn.Module]


class Blocks(nn.Module):
    """The same blocks around any layer, with torch's own dropout."""

    def __init__(self, features: int, classes: int, layer: Make) -> None:
        super().__init__()
        widths = [features] + [WIDTH] * (BLOCKS - 1)
        self.convs = nn.ModuleList([layer(width) for width in widths])
        self.skips = nn.ModuleList([nn.Linear(width, WIDTH) for width in widths])
        self.norms = nn.ModuleList([nn.BatchNorm1d(WIDTH) for _ in widths])
        self.out = nn.Linear(WIDTH, classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for conv, skip, norm in zip(self.convs, self.skips, self.norms, strict=True):
            x = F.dropout(F.relu(norm(conv(x, edge_index) + skip(x))), 0.2, self.training)
        logits: Tensor = self.out(x)
        return logits


def models(features: int, classes: int) -> dict[str, nn.Module]:
    def around(layer: Make) -> nn.Module:
        return Blocks(features, classes, layer)

    def classic(**slot: object) -> nn.Module:
        model = ClassicStack(features, classes, hidden_channels=WIDTH, num_layers=BLOCKS, **slot)
        model.dropout_key = (0, 1)
        return model

    return {
        REFERENCE: around(lambda width: GATConv(width, WIDTH, bias=False)),
        "GATv2Conv (PyG)": around(lambda width: GATv2Conv(width, WIDTH)),
        "LTGAConv, GATv2's scores, head q": around(lambda width: LTGAConv(width, WIDTH, index="head")),
        "classic-softmax": classic(index=1.0, normalizer="softmax"),
        "classic-head": classic(index="head"),
        "classic-edge": classic(index="edge"),
        "classic-entmax-head": classic(index="head", normalizer="entmax"),
    }


def epoch(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, edges: Tensor, y: Tensor) -> list[float]:
    """Seconds of the parts of one epoch."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    model.train()
    optimizer.zero_grad()
    times = [clock()]
    loss = F.cross_entropy(model(x, edges), y)
    times.append(clock())
    loss.backward()
    times.append(clock())
    optimizer.step()
    times.append(clock())
    model.eval()
    with torch.no_grad():
        model(x, edges)
    times.append(clock())
    return [end - start for start, end in pairwise(times)]


def measure(epochs: int) -> dict[str, dict[str, float]]:
    """The shortest time of every part, and of whole epochs with their ratio to PyG's GATConv."""
    graph = load_dataset("minesweeper").data
    x, edges, y = graph.x, graph.edge_index, graph.y
    torch.manual_seed(0)
    stacks = models(x.size(1), int(y.max()) + 1)
    optimizers = {name: torch.optim.Adam(model.parameters(), fused=True) for name, model in stacks.items()}
    taken: dict[str, list[list[float]]] = {name: [] for name in stacks}
    for number in range(epochs + 1):
        for name, model in stacks.items():
            times = epoch(model, optimizers[name], x, edges, y)
            if number > 0:  # the first compiles and sorts
                taken[name].append(times)
    best = {name: min(map(sum, times)) for name, times in taken.items()}
    return {
        name: {part: 1e3 * min(column) for part, column in zip(PARTS, zip(*times, strict=True), strict=True)}
        | {"epoch": 1e3 * best[name], "ratio": best[name] / best[REFERENCE]}
        for name, times in taken.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10, help="of every stack")
    parser.add_argument("--out", type=Path, help="write the measurements here as JSON")
    given = parser.parse_args()
    found = measure(given.epochs)
    print(f"{'milliseconds':34s}" + "".join(f"{part:>12s}" for part in (*PARTS, "epoch", "ratio")))
    for name, numbers in found.items():
        columns = "".join(f"{numbers[part]:12.1f}" for part in (*PARTS, "epoch"))
        print(f"{name:34s}{columns}{numbers['ratio']:12.2f}")
    if given.out is not None:
        text = json.dumps({"stacks": found, "environment": environment()}, indent=1) + "\n"
        write_atomic(given.out, lambda stream: stream.write(text.encode()))


if __name__ == "__main__":
    main()
