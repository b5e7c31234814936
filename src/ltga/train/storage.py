"""A run on disk: record in JSON, arrays in npz, model in safetensors; each written whole or not at all.

Whatever is read is checked first: that it is a record at all, of the run its name and its configuration say, and
that nothing has changed since it was written (see :mod:`ltga.train.checksums`).
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import reprlib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn

import numpy as np

from ltga.data.atomic import write_atomic
from ltga.errors import RecordError
from ltga.train.checksums import FIELD, broken_seal, sealed, unsealed
from ltga.train.record import SCHEMA, Record, plain, run_id
from ltga.train.record_schema import RunRecord, checked_record

if TYPE_CHECKING:
    from torch import Tensor, nn

MOST_BYTES = 1 << 30  # of a record; a hundred thousand epochs have a few per cent of that


@dataclass(frozen=True)
class Stored:
    """A record as it was read, checked, and the checksums that came with it: none in one of an earlier version."""

    record: Record
    typed: RunRecord
    checksums: Mapping[str, str]


def write_run(folder: str | Path, run: str, files: Mapping[str, bytes]) -> Path:
    """:func:`write_files` for whoever has no store; what goes wrong is a :class:`~ltga.errors.RecordError`."""
    try:
        return write_files(folder, run, files)
    except OSError as error:
        raise RecordError(f"{folder}: cannot be written ({error.strerror})") from None


def encode_run(record: Record, arrays: Mapping[str, np.ndarray], model: nn.Module) -> dict[str, bytes]:
    """The contents of a run's files by suffix: what one machine sends and another writes."""
    from safetensors.torch import save  # now: records are read without torch

    weights = save({name: value.detach().cpu().clone().contiguous() for name, value in model.state_dict().items()})
    packed = io.BytesIO()
    _write_npz(packed, arrays)
    text = encode_record(record, packed.getvalue(), weights)
    return {".safetensors": weights, ".npz": packed.getvalue(), ".json": text}


def encode_record(record: Record, arrays: bytes | None = None, weights: bytes | None = None) -> bytes:
    """A record as its file holds it, with checksums of itself and of the files beside it."""
    try:
        text = json.dumps(sealed(plain(record), arrays, weights), indent=1, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(f"record: something in it cannot be written as JSON ({error}); take that out") from None
    return text.encode() + b"\n"


def write_files(folder: str | Path, run: str, files: Mapping[str, bytes]) -> Path:
    """Write the files of the run with this id, all or none; returns the path of the record.

    The record is written last: where there is a record, its arrays and its model are complete.
    """
    base = Path(folder) / run
    base.parent.mkdir(parents=True, exist_ok=True)
    known = base.with_suffix(".json").exists()
    try:
        for suffix in sorted(files, key=lambda suffix: suffix == ".json"):
            write_atomic(base.with_suffix(suffix), lambda stream, suffix=suffix: stream.write(files[suffix]))  # type: ignore[misc]
    except OSError:
        if not known:
            for suffix in files:
                base.with_suffix(suffix).unlink(missing_ok=True)
        raise
    return base.with_suffix(".json")


def read_record(path: str | Path) -> Record:
    """The record stored at ``path``."""
    return read_stored(path).record


def read_stored(path: str | Path) -> Stored:
    """The record stored at ``path``, and its checksums."""
    path = Path(path)
    own = re.fullmatch("[0-9a-f]{64}", path.stem) is not None  # else it may be somebody's data
    remedy = "delete it and run again" if own else "give a run by the first digits of its id (`ltga runs`), or its file"
    stored = decode_record(_content(path), str(path), remedy)
    if path.stem != stored.typed.id:
        raise RecordError(
            f"{path}: holds the record of another run, {stored.typed.id}; give it that name, or delete it"
        )
    return stored


def decode_record(content: bytes, where: str, remedy: str = "delete it and run again") -> Stored:
    """The record in a file or in a line of an archive; ``where`` opens the message if it is not sound."""
    try:
        record = json.loads(content.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{where}: damaged, or not a record ({error}); {remedy}") from None
    if not isinstance(record, dict) or "config" not in record or "id" not in record:
        raise RecordError(f"{where}: not the record of a run; {remedy}")
    if record.get("schema") != SCHEMA:
        found = reprlib.repr(record.get("schema"))
        raise RecordError(f"{where}: has schema {found}, this version reads {SCHEMA}; {remedy}")
    try:
        checked = checked_record(record)
    except ValueError as error:
        raise RecordError(f"{where}: not the record of a run ({error}); {remedy}") from None
    if checked.id != run_id(record["config"]):
        raise RecordError(f"{where}: record {checked.id[:12]} is not of the run it says it is of; {remedy}")
    if (part := broken_seal(record)) is not None:
        raise RecordError(f"{where}: its {part} have changed since it was written (checksum differs); {remedy}")
    return Stored(unsealed(record), checked, record.get(FIELD) or {})


def read_arrays(path: str | Path, checksums: Mapping[str, str] | None = None) -> dict[str, np.ndarray]:
    """The arrays beside the record at ``path``; its checksums are looked up unless given."""
    checksums = read_stored(path).checksums if checksums is None else checksums
    beside = Path(path).with_suffix(".npz")
    content = _checked_file(beside, checksums.get("arrays"))
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except Exception as error:  # zip, zlib and numpy each have their own words for damage
        _damaged(beside, error)


def read_weights(path: str | Path, checksums: Mapping[str, str] | None = None) -> dict[str, Tensor]:
    """The model's parameters beside the record at ``path``; its checksums are looked up unless given."""
    from safetensors.torch import load

    checksums = read_stored(path).checksums if checksums is None else checksums
    beside = Path(path).with_suffix(".safetensors")
    content = _checked_file(beside, checksums.get("weights"))
    try:
        weights: dict[str, Tensor] = load(content)  # of the content: safetensors takes no path that is not text
    except Exception as error:  # as above
        _damaged(beside, error)
    return weights


def _content(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise RecordError(f"{path}: not a file; give the path of a record")
        with path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise RecordError(f"{path}: no such record; check the path") from None
    except (OSError, ValueError) as error:  # the latter for a path that cannot be one
        raise RecordError(f"{path}: cannot be read ({error})") from None
    if len(content) > MOST_BYTES:
        raise RecordError(f"{path}: has more than {MOST_BYTES >> 20} MiB, which no record has; delete it and run again")
    return content


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number that JSON has")


def _checked_file(path: Path, expected: str | None) -> bytes:
    """What a file holds; an error unless that hashes to what its record says, if it says anything."""
    try:
        content = path.read_bytes()
    except OSError as error:
        _damaged(path, error)
    if expected is not None and hashlib.sha256(content).hexdigest() != expected:
        raise RecordError(f"{path}: has changed since it was written (checksum differs); run it again")
    return content


def _damaged(path: Path, error: Exception) -> NoReturn:
    reason = " ".join(str(error).split()) or type(error).__name__
    raise RecordError(f"{path}: missing or damaged ({reason}); run it again") from None


def _write_npz(stream: BinaryIO, arrays: Mapping[str, np.ndarray]) -> None:
    """``np.savez_compressed`` without the time of day in it: the same arrays give the same bytes."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(values), allow_pickle=False)
