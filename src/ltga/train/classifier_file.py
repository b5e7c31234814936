"""A fitted estimator as one safetensors file: weights and predictions as tensors, the rest as JSON beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ltga.data.bounds import in_a_line
from ltga.data.tensor_files import TensorFile, check_suffix
from ltga.errors import InputError, RecordError
from ltga.train.finished import Run, rebuild_model
from ltga.train.record_schema import checked_record
from ltga.train.tasks.task_run import TaskRun, rebuild

_FILE = TensorFile("ltga-classifier", "a classifier written by LTGAClassifier.save", RecordError)
_OTHER = TensorFile("ltga-estimator", "an estimator written by its save", RecordError)
_WEIGHT, _ARRAY = "weight/", "array/"


@dataclass(frozen=True, eq=False)
class StoredClassifier:
    """What a file holds: settings, labels, the fingerprint of the fitted graph and the run."""

    params: dict[str, Any]
    classes: np.ndarray
    graph: str
    run: Run


@dataclass(frozen=True, eq=False)
class StoredEstimator:
    """What a file of another task holds: which estimator, its settings, its labels if it has any, and the run."""

    kind: str
    params: dict[str, Any]
    classes: np.ndarray | None
    run: TaskRun


def write_classifier(path: str | Path, params: dict[str, Any], classes: np.ndarray, graph: str, run: Run) -> Path:
    """Store a fitted classifier; the file appears only when it is complete."""
    return _write(_FILE, path, {"params": params, **_described(classes), "graph": graph}, run)


def write_estimator(
    path: str | Path, kind: str, params: dict[str, Any], classes: np.ndarray | None, run: TaskRun
) -> Path:
    """Store a fitted estimator of another task; the file appears only when it is complete."""
    labels = {} if classes is None else _described(classes)
    return _write(_OTHER, path, {"kind": kind, "params": params, **labels}, run)


def read_classifier(path: str | Path) -> StoredClassifier:
    """What :func:`write_classifier` stored, its network rebuilt."""
    weights, arrays, described = _read(_FILE, path)
    with _sound(path):
        params, record = _params(described["params"]), checked_record(described["record"])
        classes = _classes(described["classes"], described["classes_dtype"])
        graph = str(described["graph"])
        if record.model["num_classes"] != len(classes):
            raise ValueError(f"{len(classes)} labels for a network of {record.model['num_classes']} classes")
        if arrays["log_probs"].shape != (record.model["num_nodes"], len(classes)):
            raise ValueError(f"predictions of shape {arrays['log_probs'].shape}")
    run = Run(described["record"], rebuild_model(record, weights, path), arrays)
    return StoredClassifier(params, classes, graph, run)


def read_estimator(path: str | Path) -> StoredEstimator:
    """What :func:`write_estimator` stored, its network rebuilt."""
    weights, arrays, described = _read(_OTHER, path)
    with _sound(path):
        params, record = _params(described["params"]), checked_record(described["record"])
        kind, classes = str(described["kind"]), None
        if record.config.task is None:
            raise ValueError("a run of node classification")
        if "classes" in described:
            classes = _classes(described["classes"], described["classes_dtype"])
            if record.model["num_classes"] != len(classes):
                raise ValueError(f"{len(classes)} labels for a network of {record.model['num_classes']} classes")
    run = TaskRun(described["record"], rebuild(record, weights, path), arrays)
    return StoredEstimator(kind, params, classes, run)


def _described(classes: np.ndarray) -> dict[str, Any]:
    dtype = "object" if classes.dtype == object else classes.dtype.str
    return {"classes": classes.tolist(), "classes_dtype": dtype}


def _write(file: TensorFile, path: str | Path, described: dict[str, Any], run: Run) -> Path:
    check_suffix(path)
    tensors = {_WEIGHT + name: value.cpu() for name, value in run.model.state_dict().items()}
    tensors |= {_ARRAY + name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in run.arrays.items()}
    try:
        text = json.dumps({**described, "record": run.record}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"classifier: cannot be stored as JSON ({error}); use a whole number as random_state and "
            "text or numbers as labels"
        ) from None
    return file.write(path, tensors, {"classifier": text})


def _read(file: TensorFile, path: str | Path) -> tuple[dict[str, Tensor], dict[str, np.ndarray], dict[str, Any]]:
    """Weights, arrays, and the description of whatever shape it may be."""
    tensors, metadata = file.read(path)
    weights = {key.removeprefix(_WEIGHT): value for key, value in tensors.items() if key.startswith(_WEIGHT)}
    with _sound(path):
        described = json.loads(metadata["classifier"])
        arrays = {
            key.removeprefix(_ARRAY): value.numpy() for key, value in tensors.items() if key.startswith(_ARRAY)
        }  # fmt: skip
    return weights, arrays, described


@contextmanager
def _sound(path: str | Path) -> Iterator[None]:
    """What is written there may be missing, of another type, or nested without end."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError, RuntimeError) as error:
        raise RecordError(f"{path}: its description is damaged ({in_a_line(error)})") from None


def _params(given: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}


def _classes(labels: list[Any], dtype: str) -> np.ndarray:
    """The labels as they were; the width of text follows from the text, not from what the file says."""
    # Not numpy's own reading alone, which takes far more than names of kinds.
    if not re.fullmatch(r"object|[<>=|]?([biuf][1-9]{1,2}|U[0-9]{1,6})", dtype):
        raise ValueError(f"labels of {dtype[:40]}")
    if any(not isinstance(label, str | int | float) for label in labels):
        raise ValueError("labels that are no numbers or text")
    classes = np.array(labels, dtype=str if "U" in dtype else np.dtype(dtype))
    if classes.ndim != 1 or len(set(classes.tolist())) != len(labels):
        raise ValueError("labels that repeat")
    return classes
