"""How graphs are read and links are told: ``python benchmarks/task_development.py``, by validation scores only.

Adds to results/task-development.json, which docs/guides/other-tasks.md shows; what is there already is not run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from missing_runs import add_missing

from ltga import fit, load_dataset

RESULTS = Path(__file__).parents[1] / "results" / "task-development.json"
SEEDS = (1, 2)
# Whole graphs: what a graph is told by. Links: with and without a linear map of a node's own features in each layer.
READOUTS = ("mean-max", "mean-max-root", "mean-max-sum", "sum")
GRAPHS = ("esol", "mutag", "enzymes:attributes=1,scale=1")
RESIDUALS = ("without own features", "with own features")
LINKS = ("cora", "citeseer")


def wanted() -> Iterator[dict[str, Any]]:
    for seed in SEEDS:
        for data in LINKS:
            yield from ({"data": data, "candidate": candidate, "seed": seed} for candidate in RESIDUALS)
        for data in GRAPHS:
            yield from ({"data": data, "candidate": candidate, "seed": seed} for candidate in READOUTS)


def measured(data: str, candidate: str, seed: int) -> dict[str, Any]:
    if data in LINKS:
        protocol = {"residual": candidate == RESIDUALS[1]}
        run = fit(load_dataset(data), "gatv2", seed, task="link", protocol=protocol)
    else:
        run = fit(load_dataset(data), "gatv2", seed, options={"readout": candidate})
    metric = str(run.record["metric"])
    return {
        "metric": metric,
        "validation": round(run.record["metrics"]["val"][metric], 6),
        "seconds": round(run.record["timing"]["train_seconds"], 1),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    add_missing(RESULTS, wanted(), measured)
