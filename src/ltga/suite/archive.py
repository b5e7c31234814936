"""Many records in one small file, to commit beside the tables that were made from them.

An archive is gzipped JSON lines, one record per line in order of id. Curves and analyses are rounded to six
significant digits; metrics are not, since tests must see that two runs are equal. Arrays and models are not in
it; a record's id leads back to them in the store it came from.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ltga.errors import RecordError
from ltga.suite.store import Store
from ltga.train.record import SCHEMA, Record, run_id
from ltga.train.storage import write_atomic

DIGITS = 6
LARGEST = 1 << 30  # bytes when unpacked; an archive of the whole study has a few per cent of that


def write_archive(path: str | Path, records: Iterable[Record]) -> int:
    """Write the records to ``path``; returns how many. The same records give the same bytes."""
    # A record's id follows from its configuration, and ties between runs from their metrics: both stay as they are.
    short = (rounded(record) | {name: record[name] for name in ("config", "metrics")} for record in records)
    lines = {record["id"]: json.dumps(record, separators=(",", ":"), allow_nan=False) for record in short}
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=0) as stream:
        for run in sorted(lines):
            stream.write(lines[run].encode() + b"\n")
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(target, lambda stream: stream.write(packed.getvalue()))
    return len(lines)


def read_archive(path: str | Path) -> Iterator[Record]:
    """The records in an archive, in order of id."""
    try:
        with gzip.open(path, "rb") as stream:
            content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise RecordError(f"{path}: unpacks to more than {LARGEST >> 20} MiB, which no archive of ours does")
        records = [json.loads(line) for line in content.splitlines()]
    except FileNotFoundError:
        raise RecordError(f"{path}: there is no such file") from None
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise RecordError(f"{path}: not an archive of records ({error})") from None
    for number, record in enumerate(records, 1):
        if not isinstance(record, dict) or not {"id", "config", "metrics"} <= record.keys():
            raise RecordError(f"{path}: line {number} is not a record")
        yield record


def unpack_archive(path: str | Path, store: Store) -> tuple[int, int]:
    """Put the records of an archive into a store; returns how many are new there and how many it had.

    A run that a runner is at counts as there: its own record will have arrays and a model beside it.
    """
    records = list(read_archive(path))
    for record in records:  # all of them first: a bad archive changes nothing
        if record["id"] != run_id(record["config"]):
            raise RecordError(f"{path}: record {str(record['id'])[:12]} is not of the run it says it is of")
        if record.get("schema") != SCHEMA or record.get("interrupted"):
            raise RecordError(f"{path}: record {record['id'][:12]} is of another version, or of an interrupted run")
    new = 0
    for record in records:
        if (store.folder / f"{record['id']}.json").exists() or (claim := store.claim(record["id"])) is None:
            continue
        try:
            if not (store.folder / f"{record['id']}.json").exists():  # nobody wrote it just before the claim
                store.save(record["id"], {".json": json.dumps(record, indent=1).encode() + b"\n"})
                new += 1
        finally:
            claim.release(done=True)
    return new, len(records) - new


def stored_records(place: str | Path) -> list[Record]:
    """The records of a store (a folder) or of an archive (a file)."""
    return list(Store(place).records() if Path(place).is_dir() else read_archive(place))


def rounded(value: Any) -> Any:
    """``value`` with shorter numbers.

    >>> rounded({"a": [0.123456789, 12345678.9, 3, None]})
    {'a': [0.123457, 12345700.0, 3, None]}
    """
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.{DIGITS}g}")
    return value
