"""A fitted classifier as one safetensors file: weights and predictions as tensors, the rest as JSON beside them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ltga.errors import InputError, RecordError
from ltga.train.fit import Run, rebuild_model
from ltga.train.storage import write_atomic

_FORMAT = {"format": "ltga-classifier", "version": "1"}
_WEIGHT, _ARRAY = "weight/", "array/"


@dataclass(frozen=True, eq=False)
class StoredClassifier:
    """What a file holds: settings, labels, the fingerprint of the fitted graph and the run."""

    params: dict[str, Any]
    classes: np.ndarray
    graph: str
    run: Run


def write_classifier(path: str | Path, params: dict[str, Any], classes: np.ndarray, graph: str, run: Run) -> Path:
    """Store a fitted classifier; the file appears only when it is complete."""
    path = Path(path)
    if path.suffix != ".safetensors":
        raise InputError(f"path: got {path}; give a name that ends in .safetensors")
    tensors = {_WEIGHT + name: value.detach().clone().contiguous() for name, value in run.model.state_dict().items()}
    tensors |= {_ARRAY + name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in run.arrays.items()}
    described = {
        "params": params,
        "classes": classes.tolist(),
        "classes_dtype": "object" if classes.dtype == object else classes.dtype.str,
        "graph": graph,
        "record": run.record,
    }
    try:
        text = json.dumps(described, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"classifier: cannot be stored as JSON ({error}); use a whole number as random_state and "
            "text or numbers as labels"
        ) from None
    content = save(tensors, metadata={**_FORMAT, "classifier": text})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, lambda stream: stream.write(content))
    except OSError as error:
        raise InputError(f"path: {path} cannot be written ({error.strerror})") from None
    return path


def read_classifier(path: str | Path) -> StoredClassifier:
    """What :func:`write_classifier` stored, its network rebuilt."""
    path = Path(path)
    try:
        with safe_open(str(path), framework="pt") as stream:
            metadata = stream.metadata() or {}
            tensors: dict[str, Tensor] = {key: stream.get_tensor(key) for key in stream.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise RecordError(f"{path}: no such file; check the path") from None
    except (SafetensorError, OSError) as error:
        raise RecordError(f"{path}: damaged or not a safetensors file ({error})") from None
    if any(metadata.get(key) != value for key, value in _FORMAT.items()):
        raise RecordError(f"{path}: not a classifier written by LTGAClassifier.save")
    try:
        described = json.loads(metadata["classifier"])
        params = described["params"]
        if isinstance(params["fanout"], list):
            params["fanout"] = tuple(params["fanout"])
        classes = np.array(described["classes"], dtype=np.dtype(described["classes_dtype"]))
        graph, record = described["graph"], described["record"]
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"{path}: its description is damaged ({error})") from None
    weights = {key.removeprefix(_WEIGHT): value for key, value in tensors.items() if key.startswith(_WEIGHT)}
    arrays = {key.removeprefix(_ARRAY): value.numpy() for key, value in tensors.items() if key.startswith(_ARRAY)}
    return StoredClassifier(params, classes, graph, Run(record, rebuild_model(record, weights, path), arrays))
