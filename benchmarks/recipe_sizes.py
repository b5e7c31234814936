"""How wide the network should be: ``python benchmarks/recipe_sizes.py``, on development graphs only (docs/recipe.md).

Adds to results/recipe-sizes.json, which docs/recipe.md shows; what is there already is not run again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
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


def measured(name: str, size: tuple[int, int], method: str, seed: int) -> dict[str, Any]:
    channels, heads = size
    protocol = Protocol.recommended(
        hidden_channels=channels, heads=heads, epochs=200, patience=200, dropout=GRAPHS[name]
    )
    record = fit(graph_of(name), method, seed, protocol=protocol).record
    curve = record["trajectory"]["val_accuracy"]
    return {
        "graph": name, "channels": channels, "heads": heads, "method": method, "seed": seed,
        "validation": round(max(curve), 6), "seconds": round(record["timing"]["train_seconds"], 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[101, 102])
    parser.add_argument("--graphs", nargs="+", default=list(GRAPHS), choices=list(GRAPHS))
    given = parser.parse_args()
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    known = {(row["graph"], row["channels"], row["heads"], row["method"], row["seed"]) for row in rows}
    for name in given.graphs:
        for seed in given.seeds:
            for size in SIZES:
                for method in METHODS:
                    if (name, *size, method, seed) not in known:
                        rows.append(measured(name, size, method, seed))
                        RESULTS.write_text(json.dumps(rows, indent=0) + "\n")
                        print(rows[-1], flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
