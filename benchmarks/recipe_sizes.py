"""How wide the network should be: ``python benchmarks/recipe_sizes.py``, on development graphs only (docs/recipe.md).

Adds to results/recipe-sizes.json, which docs/recipe.md shows; what is there already is not run again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from missing_runs import add_missing
from recipe_development import graph_of

from ltga import Protocol, fit

RESULTS = Path(__file__).parents[1] / "results" / "recipe-sizes.json"
GRAPHS = {
    "csbm:homophily=0.3,num_classes=5,num_nodes=200,snr=2": 0.2,
    "citeseer": 0.4,
    "citeseer:planted_per_edge=5@0.2": 0.4,
    "digits-noise:planted_per_edge=3,seed=1": 0.2,
    "digits-noise:planted_per_edge=10,seed=1": 0.2,
    "gum-syntax": 0.4,
}
"""Graph -> dropout, as in recipe_development.py."""
SIZES = ((8, 8), (16, 4), (32, 4), (64, 8))
"""(Channels per head, heads)."""
METHODS = ("gatv2", "entmax-head")


def measured(graph: str, channels: int, heads: int, method: str, seed: int) -> dict[str, Any]:
    protocol = Protocol.recommended(
        hidden_channels=channels, heads=heads, epochs=200, patience=200, dropout=GRAPHS[graph]
    )
    record = fit(graph_of(graph), method, seed, protocol=protocol).record
    curve = record["trajectory"]["val_accuracy"]
    return {"validation": round(max(curve), 6), "seconds": round(record["timing"]["train_seconds"], 1)}


def wanted(graphs: list[str], seeds: list[int]) -> Iterator[dict[str, Any]]:
    for name in graphs:
        for seed in seeds:
            for channels, heads in SIZES:
                for method in METHODS:
                    yield {"graph": name, "channels": channels, "heads": heads, "method": method, "seed": seed}


if __name__ == "__main__":
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[101, 102])
    parser.add_argument("--graphs", nargs="+", default=list(GRAPHS), choices=list(GRAPHS))
    given = parser.parse_args()
    add_missing(RESULTS, wanted(given.graphs, given.seeds), measured)
