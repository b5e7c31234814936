"""The record of a run: a plain dictionary with its configuration, results and surroundings."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # records are read without torch, so that a list of runs need not wait for it
    import torch

    from ltga.train.loop import EpochInfo, Outcome

SCHEMA = 1
PACKAGES = ("ltga", "torch", "torch_geometric", "numpy", "scipy", "numba")

Record = dict[str, Any]


def configuration(
    dataset: str, fingerprint: str, split: int, method: str, protocol: Mapping[str, Any], seed: int
) -> dict[str, Any]:
    """Everything that decides the outcome of a run."""
    return {
        "dataset": {"name": clean_text(dataset), "fingerprint": fingerprint},
        "split": split,
        "method": method,
        "protocol": dict(protocol),
        "seed": seed,
        "major_version": int(version("ltga").split(".")[0]),
    }


def run_id(config: Mapping[str, Any]) -> str:
    """A sha256 of the configuration, the same on every machine.

    >>> run_id({"b": 1, "a": 2}) == run_id({"a": 2, "b": 1})
    True
    """
    canonical = json.dumps(config, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def timing_since(started: float, trained: float, outcome: Outcome, compiled: float) -> dict[str, float]:
    """What a record says of the time: begun and trained by ``time.perf_counter``, measured until now."""
    timing = {
        "train_seconds": outcome.seconds_before + trained - started,
        "observe_seconds": time.perf_counter() - trained,
        "median_epoch_seconds": float(np.median([info.seconds for info in outcome.history])),
    }
    return timing | ({"compile_seconds": compiled} if compiled else {})


def make_record(
    config: Mapping[str, Any],
    model: Mapping[str, Any],
    outcome: Outcome,
    observed: Mapping[str, Any],
    timing: Mapping[str, Any],
    device: torch.device | None = None,
) -> Record:
    """The record; numbers that are not finite become ``None``, as JSON has no word for them."""
    record = {
        "schema": SCHEMA,
        "id": run_id(config),
        "config": config,
        "model": model,
        "best_epoch": outcome.best_epoch,
        "epochs": len(outcome.history),
        "stopped": outcome.stopped,
        "interrupted": outcome.interrupted,
        **({"resumed": outcome.resumed} if outcome.resumed else {}),
        **observed,
        "trajectory": trajectory(outcome.history),
        "timing": timing,
        "environment": environment(device),
    }
    return plain(record)  # type: ignore[no-any-return]


def trajectory(history: list[EpochInfo]) -> dict[str, Any]:
    """The epochs as columns; ``q`` has per layer the mean (and std over edges) per epoch and head."""
    columns: dict[str, Any] = {
        name: [getattr(info, name) for info in history]
        for name in ("train_loss", "val_loss", "val_accuracy", "index_gradient_norm")
    }
    if history and history[0].val_score is not None:  # records of runs that the loss decides stay what they were
        columns["val_score"] = [info.val_score for info in history]
    layers = range(len(history[0].q)) if history else range(0)
    columns["q"] = [{key: [info.q[layer][key] for info in history] for key in history[0].q[layer]} for layer in layers]
    return columns


def kept_index(record: Mapping[str, Any]) -> list[dict[str, list[float | None]]]:
    """q of every layer at the epoch whose model was kept, as :class:`~ltga.train.EpochInfo` has it of any epoch.

    >>> kept_index({"best_epoch": 2, "trajectory": {"q": [{"mean": [[1.0, 1.0], [1.1, 0.9], [1.2, 0.8]]}]}})
    [{'mean': [1.1, 0.9]}]
    """
    epoch = record["best_epoch"] - 1
    return [
        {name: layer[name][epoch] for name in ("mean", "std") if layer.get(name) is not None}
        for layer in record["trajectory"]["q"]
    ]


def headline_score(record: Mapping[str, Any]) -> tuple[str, str, float | None]:
    """What a run is judged by: the part of the nodes, the metric, and its value.

    >>> headline_score({"metrics": {"val": {"accuracy": 0.5}}})
    ('val', 'accuracy', 0.5)
    """
    part = "test" if "test" in record["metrics"] else "val"
    found = record["metrics"][part]
    metric = record.get("metric") or "accuracy"
    if metric == "loss" and metric not in found:  # it chose the epoch, and is no score
        metric = "accuracy" if "accuracy" in found else next(iter(found), metric)
    return part, metric, found.get(metric)


def clean_text(text: str) -> str:
    r"""``text`` as every file and screen can take it: what is not Unicode, as in some file names, is spelt out.

    >>> print(clean_text("café"), clean_text("caf\udce9"))
    café caf\udce9
    """
    return text.encode("utf-8", "backslashreplace").decode()


def plain(value: Any) -> Any:
    """``value`` as strict JSON can hold it.

    >>> plain({"a": (1.5, float("nan"))})
    {'a': [1.5, None]}
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {clean_text(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def imported_from(record: Mapping[str, Any]) -> str | None:
    """The name of the archive that a record was taken from; ``None`` for a run that was made here.

    >>> imported_from({"imported": {"from": "records.jsonl.gz"}}), imported_from({})
    ('records.jsonl.gz', None)
    """
    mark = record.get("imported")
    return None if mark is None else str(mark["from"])


def environment(device: torch.device | None = None) -> dict[str, Any]:
    """Package versions, the machine, and what was computed on: the CPU if left out."""
    import torch

    from ltga.train.devices import CPU, device_name

    versions: dict[str, str | None] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    machine = {
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": device_name(device or CPU),
    }
    return {"versions": versions, "machine": machine}
