"""An epoch of every published network: ours against the same with PyG's layers, interleaved, as ratios of one run.

    OMP_NUM_THREADS=1 python benchmarks/baselines.py --out benchmarks/results/baselines.json

The paper's sizes and dropout; a training step on all nodes, and an evaluation. H2GCN, which PyG does not have, is
written with torch's sparse products. Everything is measured twice: as it is, and with an allocator told to keep freed
memory, as the command line does. With one thread times are of the processor, so that other work on the machine
counts less.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import FAConv, GATConv, GATv2Conv, GCNConv

from ltga.cli.allocator import keep_freed_memory
from ltga.data import load_dataset
from ltga.data.atomic import write_atomic
from ltga.nn.baselines import FAGCN, GAT, GCN, H2GCN, GATv2
from ltga.nn.baselines.h2gcn import hop_operators
from ltga.train.record import environment

GRAPHS = ("cora", "pubmed", "roman-words")
WIDTH, HEADS, DROPOUT = 64, 8, 0.4


class Layers(nn.Module):
    """Two layers with dropout before each and ELU between."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.elu(self.first(F.dropout(x, DROPOUT, self.training), edge_index))
        logits: Tensor = self.second(F.dropout(x, DROPOUT, self.training), edge_index)
        return logits


class PlainFAGCN(nn.Module):
    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.embed, self.classify = nn.Linear(features, WIDTH * HEADS), nn.Linear(WIDTH * HEADS, classes)
        self.convs = nn.ModuleList(FAConv(WIDTH * HEADS, eps=0.3, dropout=DROPOUT, cached=True) for _ in range(2))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.relu(self.embed(F.dropout(x, DROPOUT, self.training)))
        start = x = F.dropout(x, DROPOUT, self.training)
        for conv in self.convs:
            x = conv(x, start, edge_index)
        logits: Tensor = self.classify(x)
        return logits


class PlainH2GCN(nn.Module):
    def __init__(self, features: int, classes: int, edge_index: Tensor, nodes: int) -> None:
        super().__init__()
        self.embed, self.classify = nn.Linear(features, WIDTH * HEADS), nn.Linear(7 * WIDTH * HEADS, classes)
        self.hops = [hop.products for hop in hop_operators(edge_index, nodes, torch.float32)]

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        rounds = [F.relu(self.embed(x))]
        for _ in range(2):
            rounds.append(torch.cat([_Product.apply(rounds[-1], *hop) for hop in self.hops], dim=1))
        logits: Tensor = self.classify(F.dropout(torch.cat(rounds, dim=1), DROPOUT, self.training))
        return logits


class _Product(torch.autograd.Function):
    """A sparse product that does not transpose the matrix in every backward pass, as torch's own does."""

    @staticmethod
    def forward(ctx, x, matrix, transpose):  # type: ignore[no-untyped-def]
        ctx.transpose = transpose
        return matrix @ x

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def,override]
        return ctx.transpose @ grad.contiguous(), None, None


def networks(features: int, classes: int, edge_index: Tensor, nodes: int) -> dict[str, tuple[nn.Module, nn.Module]]:
    """Every network in the two forms."""
    wide, ends = WIDTH * HEADS, {"heads": HEADS, "dropout": DROPOUT}

    def attention(layer: type[nn.Module]) -> nn.Module:
        return Layers(layer(features, WIDTH, **ends), layer(wide, classes, concat=False, **ends))

    convolution = Layers(GCNConv(features, wide, cached=True), GCNConv(wide, classes, cached=True))
    return {
        "GCN": (convolution, GCN(features, classes)),
        "GAT": (attention(GATConv), GAT(features, classes)),
        "GATv2": (attention(GATv2Conv), GATv2(features, classes)),
        "FAGCN": (PlainFAGCN(features, classes), FAGCN(features, classes)),
        "H2GCN": (PlainH2GCN(features, classes, edge_index, nodes), H2GCN(features, classes)),
    }


def epoch(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, edges: Tensor, y: Tensor) -> float:
    """Seconds of a training step and an evaluation."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    model.train()
    optimizer.zero_grad()
    F.cross_entropy(model(x, edges), y).backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        model(x, edges)
    return clock() - start


def measure(graph: str, epochs: int) -> dict[str, dict[str, float]]:
    """The shortest epoch of every network in both forms, in milliseconds."""
    data = load_dataset(graph).data
    x, edges, y = data.x.contiguous(), data.edge_index, data.y
    found = {}
    for name, pair in networks(x.size(1), int(y.max()) + 1, edges, len(x)).items():
        optimizers = [torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4) for model in pair]
        taken = [
            [epoch(model, optimizer, x, edges, y) for model, optimizer in zip(pair, optimizers, strict=True)]
            for _ in range(epochs + 1)
        ][1:]  # the first compiles and sorts
        pyg, ours = (1e3 * min(column) for column in zip(*taken, strict=True))
        found[name] = {"pyg": pyg, "ours": ours, "faster": pyg / ours}
        print(f"{graph:12s} {name:6s} {pyg:8.0f} ms {ours:8.0f} ms {pyg / ours:6.1f} times as fast", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=3, help="of every network in both forms")
    parser.add_argument("--out", type=Path, help="write the measurements here as JSON")
    given = parser.parse_args()
    torch.manual_seed(0)
    found = {"default": {graph: measure(graph, given.epochs) for graph in GRAPHS}}
    keep_freed_memory()
    print("with an allocator that keeps freed memory")
    found["reusing"] = {graph: measure(graph, given.epochs) for graph in GRAPHS}
    if given.out is not None:
        text = json.dumps({"milliseconds": found, "environment": environment()}, indent=1) + "\n"
        write_atomic(given.out, lambda stream: stream.write(text.encode()))


if __name__ == "__main__":
    main()
