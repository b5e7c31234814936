"""The development runs behind ``Protocol.recommended()``: ``python benchmarks/recipe_development.py --seeds 101 102``.

Candidates and rivals on development graphs only (docs/recipe.md). Adds to results/recipe-development.json, which
docs/recipe.md shows; what is there already is not run again.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from missing_runs import add_missing

from ltga import Dataset, Protocol, fit, load_dataset
from ltga.data.splits import stratified_masks

RESULTS = Path(__file__).parents[1] / "results" / "recipe-development.json"
BUDGETS = (20, 40, 80, 120, 200)
SMALL: dict[str, Any] = {
    "init": "paired", "hidden_channels": 16, "heads": 4, "warmup": 0, "epochs": 200, "patience": 200,
}  # fmt: skip
GRAPHS = {
    **{f"digits-noise:planted_per_edge={share},seed=1": 0.2 for share in (20, 10, 3, 0)},
    "citeseer:planted_per_edge=5": 0.4,
    "citeseer": 0.4,
    "gum-syntax": 0.4,
    **{f"citeseer:planted_per_edge=5@{share}": 0.4 for share in (0.05, 0.1, 0.2, 0.5)},
    **{f"digits-noise:label_share={share},planted_per_edge=10,seed=1": 0.2 for share in (0.02, 0.05)},
}
"""Graph -> dropout. "@0.1" stands for new splits with a tenth of every class to learn from."""


def learned(start: float, form: str = "tanh", **more: Any) -> dict[str, Any]:
    return {"index_form": form, "index_start": start, **more}


CANDIDATES: dict[str, tuple[str, dict[str, Any]]] = {
    "softmax": ("gatv2", {}),
    "temperature k1": ("gatv2-temperature", {}),
    "temperature k.1": ("gatv2-temperature", {"kappa": 0.1}),
    "q0.5": ("frozen-q0.5", {}),
    "q1.5": ("frozen-q1.5", {}),
    "q2": ("frozen-q2.0", {}),
    "a1.5": ("entmax-1.5", {}),
    "a2": ("sparsemax", {}),
    "paper": ("ltga-head", {"warmup": 20}),
    "tanh s1 k.1": ("ltga-head", learned(1, kappa=0.1)),
    "tanh s1 k.03": ("ltga-head", learned(1, kappa=0.03)),
    "tanh s1.5 k1": ("ltga-head", learned(1.5)),
    "tanh s1.8 k1": ("ltga-head", learned(1.8)),
    "tanh2 s2 k1": ("ltga-head", learned(2, delta=2.0)),
    "log s1 k1": ("ltga-head", learned(1, "log")),
    "log s2 k1": ("ltga-head", learned(2, "log")),
    "log s1 k.1": ("ltga-head", learned(1, "log", kappa=0.1)),
    "log s1.5 k.1": ("ltga-head", learned(1.5, "log", kappa=0.1)),
    "log s2 k.1": ("ltga-head", learned(2, "log", kappa=0.1)),
    "alpha s1 k.1": ("entmax-head", learned(1, kappa=0.1)),
    "alpha s1.5 k1": ("entmax-head", learned(1.5)),
    "alpha s1.5 k.3": ("entmax-head", learned(1.5, kappa=0.3)),
    "alpha s1.5 k.1": ("entmax-head", learned(1.5, kappa=0.1)),
    "alpha log s1.3 k1": ("entmax-head", learned(1.3, "log")),
    "alpha log s1.5 k1": ("entmax-head", learned(1.5, "log")),
    **{f"alpha log s1 k{kappa}": ("entmax-head", learned(1, "log", kappa=float(kappa))) for kappa in (1, 3, 10)},
    **{f"alpha log s1 prior {prior}": ("entmax-head", learned(1, "log", prior=prior)) for prior in (0.1, 1.0)},
    "edge q s1": ("ltga-edge", learned(1)),
    "edge q s1.5": ("ltga-edge", learned(1.5)),
}
"""s: where the index starts; k: the paper's kappa, so k.1 learns ten times as fast as the weights."""


def graph_of(name: str) -> Dataset:
    base, _, share = name.partition("@")
    dataset = load_dataset(base)
    if not share:
        return dataset
    masks = stratified_masks(dataset.data.y.numpy(), (float(share), 0.2), 10, 1)
    masks = [torch.from_numpy(np.ascontiguousarray(mask)) for mask in masks]
    return Dataset(name, dataset.data, *masks, class_names=dataset.class_names)


def measured(graph: str, candidate: str, seed: int) -> dict[str, Any]:
    method, settings = CANDIDATES[candidate]
    run = fit(graph_of(graph), method, seed, protocol=Protocol(**{**SMALL, "dropout": GRAPHS[graph], **settings}))
    curve = run.record["trajectory"]["val_accuracy"]
    index = [[round(float(q), 3) for q in values] for values in run.model.index_values() if values is not None]
    validation = {str(budget): round(max(curve[:budget]), 6) for budget in BUDGETS}
    seconds = round(run.record["timing"]["train_seconds"], 1)
    return {"epochs": len(curve), "validation": validation, "index": index or None, "seconds": seconds}


if __name__ == "__main__":
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[101, 102])
    parser.add_argument("--graphs", nargs="+", default=list(GRAPHS), choices=list(GRAPHS))
    parser.add_argument("--candidates", nargs="+", default=list(CANDIDATES), choices=list(CANDIDATES))
    given = parser.parse_args()
    wanted = (
        {"graph": graph, "candidate": candidate, "seed": seed}
        for seed in given.seeds
        for graph in given.graphs
        for candidate in given.candidates
    )
    add_missing(RESULTS, wanted, measured)
