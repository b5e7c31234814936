"""A run on disk: record in JSON, arrays in npz, model in safetensors; each written whole or not at all."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from ltga.errors import RecordError
from ltga.train.record import SCHEMA, Record


def write_run(folder: str | Path, record: Record, arrays: Mapping[str, np.ndarray], model: nn.Module) -> Path:
    """Store a run under its id; returns the path of the record."""
    try:
        return write_files(folder, record["id"], encode_run(record, arrays, model))
    except OSError as error:
        raise RecordError(f"{folder}: cannot be written ({error.strerror})") from None


def encode_run(record: Record, arrays: Mapping[str, np.ndarray], model: nn.Module) -> dict[str, bytes]:
    """The contents of a run's files by suffix: what one machine sends and another writes."""
    weights = {name: value.detach().clone().contiguous() for name, value in model.state_dict().items()}
    packed = io.BytesIO()
    _write_npz(packed, arrays)
    text = json.dumps(record, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    return {".safetensors": save(weights), ".npz": packed.getvalue(), ".json": text.encode()}


def write_files(folder: str | Path, run: str, files: Mapping[str, bytes]) -> Path:
    """Write the files of the run with this id; returns the path of the record.

    The record is written last: where there is a record, its arrays and its model are complete.
    """
    base = Path(folder) / run
    base.parent.mkdir(parents=True, exist_ok=True)
    for suffix in sorted(files, key=lambda suffix: suffix == ".json"):
        write_atomic(base.with_suffix(suffix), lambda stream, suffix=suffix: stream.write(files[suffix]))  # type: ignore[misc]
    return base.with_suffix(".json")


def read_record(path: str | Path) -> Record:
    """The record stored at ``path``."""
    path = Path(path)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecordError(f"{path}: no such record; check the path") from None
    except (ValueError, OSError) as error:
        raise RecordError(f"{path}: damaged, or not a record ({error}); delete it and run again") from None
    if not isinstance(record, dict) or "config" not in record or "id" not in record:
        raise RecordError(f"{path}: not the record of a run")
    if record.get("schema") != SCHEMA:
        found = record.get("schema")
        raise RecordError(f"{path}: has schema {found}, this version reads {SCHEMA}; run it again")
    return record


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """The arrays beside the record at ``path``."""
    beside = Path(path).with_suffix(".npz")
    try:
        with np.load(beside, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise RecordError(f"{beside}: missing or damaged ({error}); run it again") from None


def read_weights(path: str | Path) -> dict[str, Tensor]:
    """The model's parameters beside the record at ``path``."""
    beside = Path(path).with_suffix(".safetensors")
    try:
        weights: dict[str, Tensor] = load_file(beside)
    except (OSError, SafetensorError) as error:
        raise RecordError(f"{beside}: missing or damaged ({error}); run it again") from None
    return weights


def write_atomic(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    """Write beside ``path`` and move into place, so that nobody ever sees half a file."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())  # else a power cut may leave the new name on an empty file
        part.replace(path)
    finally:
        with suppress(NotADirectoryError):  # the folder is a file: opening has failed already
            part.unlink(missing_ok=True)


def _write_npz(stream: BinaryIO, arrays: Mapping[str, np.ndarray]) -> None:
    """``np.savez_compressed`` without the time of day in it: the same arrays give the same bytes."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(values), allow_pickle=False)
