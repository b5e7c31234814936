"""The constants of `cost_model`: seconds for each thing a step grows with, fitted, and tried on what was kept back.

    python benchmarks/cost.py                          # some three minutes; writes benchmarks/results/cost.json
    python benchmarks/cost.py --rounds 2 --out /tmp/cost.json

Times are processor times of one thread, so that what else runs disturbs them little. Constants are those, not negative,
with the least squares of relative errors. What was kept back is predicted from sizes and degrees, without a batch.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from cost_model import Shape, draw_work, expected_batch, seconds, step_work
from sampling import graph
from scipy.optimize import nnls

from ltga.data import NeighborSampler
from ltga.nn import LTGA

HERE = Path(__file__).parent
BASE: dict[str, Any] = {
    "nodes": 200_000, "edges": 2_000_000, "features": 64, "hidden": 8, "heads": 4, "layers": 2, "classes": 8,
    "fanout": [10, 5], "batch_size": 512,
}  # fmt: skip
FITTED = [
    BASE,
    {**BASE, "features": 256},
    {**BASE, "hidden": 32},
    {**BASE, "heads": 8, "hidden": 16, "batch_size": 256},
    {**BASE, "fanout": [15, 10]},
    {**BASE, "layers": 3, "fanout": [10, 5, 5], "batch_size": 128},
    {**BASE, "batch_size": 2048},
    {**BASE, "classes": 40},
    {**BASE, "layers": 1, "fanout": [20]},
    {**BASE, "hidden": 64, "heads": 8, "batch_size": 128},
    {**BASE, "hidden": 32, "heads": 1},
    {**BASE, "hidden": 4, "heads": 16},
    {**BASE, "nodes": 50_000, "edges": 3_000_000, "fanout": [20, 15], "batch_size": 256},
    {**BASE, "nodes": 50_000, "edges": 3_000_000, "fanout": [20, 15], "batch_size": 128, "hidden": 64},
]
# `fanout` of nothing: the whole graph at once.
KEPT_BACK = [
    {"nodes": 400_000, "edges": 5_000_000, "features": 100, "hidden": 24, "heads": 6, "layers": 3, "classes": 12,
     "fanout": [12, 4, 3], "batch_size": 400},
    {**BASE, "nodes": 60_000, "edges": 700_000, "features": 96, "hidden": 12, "fanout": []},
]  # fmt: skip


def shape_of(size: dict[str, Any]) -> Shape:
    return Shape(**{name: size[name] for name in ("features", "hidden", "heads", "layers", "classes")})


class Measured:
    """A graph, a network and how long its batches take."""

    def __init__(self, size: dict[str, Any]) -> None:
        self.size = size
        self.data = graph(size["nodes"], size["edges"])
        torch.manual_seed(0)
        self.x = torch.randn(size["nodes"], size["features"])
        self.y = torch.randint(0, size["classes"], (size["nodes"],))
        self.model = LTGA(
            size["features"], size["classes"], hidden_channels=size["hidden"], heads=size["heads"],
            num_layers=size["layers"], index="head",
        )  # fmt: skip
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)

    def step(self, x: torch.Tensor, edge_index: torch.Tensor, y: torch.Tensor) -> float:
        start = time.process_time()
        self.optimizer.zero_grad()
        logits = self.model(x, edge_index)[: len(y)]
        torch.nn.functional.cross_entropy(logits, y).backward()
        self.optimizer.step()
        return time.process_time() - start

    def times(self, rounds: int) -> dict[str, Any]:
        """Medians over batches; the first two compile and fill caches."""
        fanout = self.size["fanout"]
        if not fanout:
            spent = [self.step(self.x, self.data.edge_index, self.y) for _ in range(rounds + 1)][1:]
            return {"nodes": self.size["nodes"], "edges": self.data.num_edges, "step": median(spent), "draw": 0.0}
        seeds = torch.randperm(self.size["nodes"])[: self.size["batch_size"] * (rounds + 2)]
        sampler = NeighborSampler(self.data, fanout, seeds, self.size["batch_size"], threads=0)
        rows = []
        start = time.process_time()
        for sample in sampler.epoch(0):
            x = torch.from_numpy(np.take(self.x.numpy(), sample.nodes.numpy(), axis=0))
            drawn = time.process_time() - start
            step = self.step(x, sample.edge_index, self.y[sample.nodes[: sample.num_seeds]])
            rows.append((len(sample.nodes), len(sample.edges), step, drawn))
            start = time.process_time()
        names = ("nodes", "edges", "step", "draw")
        return {name: median(column) for name, column in zip(names, zip(*rows[2:]))}

    def expected(self) -> tuple[float, float]:
        if not self.size["fanout"]:
            return self.size["nodes"], self.data.num_edges
        source, target = (self.data.edge_index[end].numpy() for end in (0, 1))
        degrees = (np.bincount(end, minlength=self.size["nodes"]) for end in (target, source))
        return expected_batch(*degrees, self.size["batch_size"], self.size["fanout"])


def fitted(works: list[dict[str, float]], times: list[float]) -> dict[str, float]:
    names, found = list(works[0]), np.array(times)
    design = np.array([[work[name] for name in names] for work in works])
    scale = np.abs(design).max(axis=0)  # so that constants of any size are found alike
    constants, _ = nnls(design / scale / found[:, None], np.ones(len(found)))
    return dict(zip(names, (constants / scale).tolist()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "cost.json")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows, kept = [], []
    for sizes, found in ((FITTED, rows), (KEPT_BACK, kept)):
        for size in sizes:
            measured = Measured(size)
            expected = dict(zip(("nodes", "edges"), measured.expected()))
            found.append({"size": size, "measured": measured.times(given.rounds), "expected": expected})
            print(json.dumps(found[-1]), flush=True)
    shapes = [shape_of(row["size"]) for row in rows]
    counts = [(row["measured"]["nodes"], row["measured"]["edges"]) for row in rows]
    constants = {
        **fitted(
            [step_work(*count, shape) for count, shape in zip(counts, shapes)],
            [row["measured"]["step"] for row in rows],
        ),
        **fitted(
            [draw_work(*count, shape) for count, shape in zip(counts, shapes)],
            [row["measured"]["draw"] for row in rows],
        ),
    }
    for row in rows + kept:
        shape, sizes = shape_of(row["size"]), tuple(row["expected"].values())
        row["predicted"] = {"step": seconds(step_work(*sizes, shape), constants)}
        row["predicted"]["draw"] = seconds(draw_work(*sizes, shape), constants) if row["size"]["fanout"] else 0.0
        row["error"] = sum(row["predicted"].values()) / (row["measured"]["step"] + row["measured"]["draw"]) - 1
    for row in kept:
        print(f"kept back: predicted {row['predicted']}, measured {row['measured']}, error {row['error']:+.0%}")
    results = {
        "constants": constants,
        "fitted": rows,
        "kept_back": kept,
        "machine": {
            "processor": platform.processor() or platform.machine(), "cores": os.cpu_count(),
            "load_average": os.getloadavg(),
        },
    }  # fmt: skip
    given.out.parent.mkdir(exist_ok=True)
    given.out.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(constants, indent=1))


if __name__ == "__main__":
    main()
