"""Hand-made records: what a run would say, without the run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ltga.train import Protocol
from ltga.train.record import SCHEMA, Record, configuration, run_id


def make_record(
    dataset: str = "texas",
    method: str = "gat",
    seed: int = 1,
    test: float = 0.5,
    val: float | None = None,
    q: float | None = None,
    heads: int = 2,
    zeros: float = 0.0,
    ece: float = 0.1,
    **settings: Any,
) -> Record:
    """A record in which only what is named is real; q rises linearly from 1 to ``q`` over 30 epochs."""
    split = 0 if dataset in ("cora", "citeseer", "pubmed") else (seed - 1) % 10
    config = configuration(dataset, f"print of {dataset}", split, method, Protocol(**settings).model_dump(), seed)
    epochs = 30
    values = [] if q is None else np.linspace(1, q, epochs).round(6).tolist()
    scores = {"macro_f1": test, "nll": 1.0, "brier": 0.4, "ece": ece}
    return {
        "schema": SCHEMA,
        "id": run_id(config),
        "config": config,
        "model": {"parameters": 10},
        "best_epoch": epochs,
        "epochs": epochs,
        "stopped": "epochs",
        "interrupted": False,
        "metrics": {
            "val": {**scores, "accuracy": test if val is None else val},
            "test": {**scores, "accuracy": test},
        },
        "attention": [
            {"zero_fraction": [zeros] * heads, "entropy": [0.5] * heads, "top1": [0.6] * heads,
             "effective_neighbors": [2.5] * heads}
        ] * 2,
        "trajectory": {
            "train_loss": [1.0] * epochs,
            "val_loss": [1.0] * epochs,
            "val_accuracy": [0.5] * epochs,
            "index_gradient_norm": np.geomspace(1e-2, 1e-4, epochs).tolist(),
            "q": [{"mean": [[value] * heads for value in values]} for _ in range(2)] if values else [],
        },
        "timing": {"train_seconds": 1.0, "observe_seconds": 0.1},
        "environment": {},
    }  # fmt: skip


def write_records(folder: Path, records: Iterable[Record]) -> Path:
    """A store of these records."""
    folder.mkdir(parents=True, exist_ok=True)
    for record in records:
        (folder / f"{record['id']}.json").write_text(json.dumps(record))
    return folder


def without_surroundings(record: Record) -> Record:
    """The part of a record that is the same whenever the run is repeated on one machine."""
    return {key: value for key, value in record.items() if key not in ("timing", "environment")}
