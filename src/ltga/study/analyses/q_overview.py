"""Where q ends up: by layer and head, against homophily, and how far from softmax it paid to go.

Everything here is a function of records. q is that of the best epoch, which is the model that is
reported. Layers are counted from 1, and heads too; head 0 is a value that all heads share. For an edge
gate a head's q is its mean over edges.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch_geometric.utils import coalesce

from ltga.data import Dataset
from ltga.errors import InputError
from ltga.train.protocol import Protocol
from ltga.train.record import Record, kept_index

INDEX_SETTINGS = ("kappa", "warmup", "prior", "delta")  # mean nothing to a network whose q does not move
KEYS = ["dataset", "method", "setting", "split", "seed"]


def edge_homophily(dataset: Dataset) -> float:
    """Share of distinct undirected edges (self-loops included) that join one class, as in the catalogue.

    Edges at an unlabelled node are left out; NaN if none remains.

    >>> from ltga.data import csbm
    >>> 0.8 < edge_homophily(csbm(num_nodes=400, homophily=0.9)) < 1
    True
    """
    y, edges = dataset.data.y, dataset.data.edge_index
    source, target = coalesce(torch.stack([edges.amin(0), edges.amax(0)]), num_nodes=len(y))
    labelled = (y[source] >= 0) & (y[target] >= 0)
    return float((y[source] == y[target])[labelled].double().mean())


def final_q(records: Iterable[Record]) -> pd.DataFrame:
    """q of the reported model: a row per run, layer and head.

    Returns:
        ``dataset``, ``method``, ``setting`` (see :func:`setting_of`), ``split``, ``seed``, ``layer``,
        ``head``, ``q``, ``std`` (over edges; 0 where they share q) and ``distance``, the root mean square
        of q - 1 over edges. Methods without an index have no rows.
    """
    return _joined([_index_values(record) for record in records])


def q_against_homophily(records: Iterable[Record], homophily: Mapping[str, float]) -> pd.DataFrame:
    """Mean q of every dataset, method and setting beside the graph's homophily.

    Args:
        records: runs of methods with an index; others are passed over.
        homophily: by dataset name, see :func:`edge_homophily`; NaN for a dataset it does not know.

    Returns:
        ``homophily``, ``q`` (mean over heads, layers and runs), ``q_std`` (of the runs' means; NaN for a
        single run), ``distance`` from softmax, ``zero_fraction``, ``effective_neighbors`` and ``runs``.
    """
    runs = _per_run(records)
    grouped = runs.groupby(["dataset", "method", "setting"], sort=True)
    frame = grouped.agg(
        q=("q", "mean"),
        q_std=("q", "std"),
        distance=("distance", "mean"),
        zero_fraction=("zero_fraction", "mean"),
        effective_neighbors=("effective_neighbors", "mean"),
        runs=("q", "size"),
    ).reset_index()
    frame.insert(3, "homophily", [homophily.get(name, float("nan")) for name in frame["dataset"]])
    return frame


def distance_from_softmax(records: Iterable[Record], baseline: str = "frozen-q1.0") -> pd.DataFrame:
    """How far each run's q went from 1, and what that brought: the sweeps on one axis.

    A run is paired with the run of ``baseline`` (softmax) on the same graph, split and seed under the
    same protocol, settings of the index aside.

    Args:
        records: runs of the sweep and of the baseline.
        baseline: a method whose q stays at 1.

    Returns:
        A row per run with an index, the baseline aside: its keys, ``q``, ``distance``, test
        ``accuracy`` and ``accuracy_change`` against its partner (NaN without one).
    """
    records = list(records)
    partners = {_pairing(record): _test(record, "accuracy") for record in records if _method(record) == baseline}
    if not partners:
        raise InputError(f"baseline: no record of {baseline!r} is among the records; add its runs")
    others = [record for record in records if _method(record) != baseline]
    frame = _per_run(others).drop(columns=["zero_fraction", "effective_neighbors"])
    frame["accuracy_change"] = frame["accuracy"] - [partners.get(key, float("nan")) for key in frame["pairing"]]
    return frame.drop(columns="pairing")


def setting_of(record: Record) -> str:
    """In which settings a run's protocol differs from the paper's; empty if in none.

    >>> setting_of({"config": {"protocol": {**Protocol().model_dump(), "kappa": 4.0, "warmup": 0}}})
    'kappa=4, warmup=0'
    """
    usual = Protocol().model_dump()
    changed = {name: value for name, value in record["config"]["protocol"].items() if value != usual.get(name)}
    parts = (f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in changed.items())
    return ", ".join(sorted(parts))


def _index_values(record: Record) -> pd.DataFrame:
    """A row per layer and head, at the best epoch."""
    frames = []
    for layer, kept in enumerate(kept_index(record), start=1):
        q = _numbers(kept["mean"])  # [H] or [1]
        std = _numbers(kept["std"]) if "std" in kept else np.zeros_like(q)
        shared = len(q) == 1 and record["config"]["protocol"]["heads"] > 1
        values = {
            "layer": layer,
            "head": [0] if shared else np.arange(1, len(q) + 1),
            "q": q,
            "std": std,
            "distance": np.hypot(q - 1, std),
        }
        frames.append(pd.DataFrame({**_keys(record), **values}))
    return _joined(frames)


def _joined(frames: list[pd.DataFrame]) -> pd.DataFrame:
    full = [frame for frame in frames if len(frame)]
    columns = [*KEYS, "layer", "head", "q", "std", "distance"]
    return pd.concat(full, ignore_index=True) if full else pd.DataFrame(columns=columns)


def _per_run(records: Iterable[Record]) -> pd.DataFrame:
    """A row per run with an index: means over layers and heads, and its test accuracy."""
    rows = []
    for record in records:
        q = final_q([record])
        if q.empty:
            continue
        layers = record["attention"]
        rows.append(
            {
                **_keys(record),
                "q": _layer_mean(q, "q"),
                "distance": _layer_mean(q, "distance"),
                "accuracy": _test(record, "accuracy"),
                **{name: _attention_mean(layers, name) for name in ("zero_fraction", "effective_neighbors")},
                "pairing": _pairing(record),
            }
        )
    columns = [*KEYS, "q", "distance", "accuracy", "zero_fraction", "effective_neighbors", "pairing"]
    return pd.DataFrame(rows, columns=columns)


def _layer_mean(q: pd.DataFrame, column: str) -> float:
    return float(q.groupby("layer")[column].mean().mean())


def _attention_mean(layers: list[dict[str, Any]], name: str) -> float:
    return float(np.mean([_numbers(layer[name]).mean() for layer in layers]))


def _keys(record: Record) -> dict[str, Any]:
    config = record["config"]
    return {
        "dataset": config["dataset"]["name"],
        "method": config["method"],
        "setting": setting_of(record),
        "split": config["split"],
        "seed": config["seed"],
    }


def _pairing(record: Record) -> str:
    config = record["config"]
    protocol = {name: value for name, value in config["protocol"].items() if name not in INDEX_SETTINGS}
    return json.dumps([config["dataset"]["fingerprint"], config["split"], config["seed"], protocol], sort_keys=True)


def _method(record: Record) -> str:
    return str(record["config"]["method"])


def _test(record: Record, metric: str) -> float:
    value = record["metrics"].get("test", {}).get(metric)
    return float("nan") if value is None else float(value)


def _numbers(stored: list[Any]) -> np.ndarray:
    """What was not finite is stored as ``None`` and becomes NaN."""
    return np.array(stored, dtype=np.float64)
