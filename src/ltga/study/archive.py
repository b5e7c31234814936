"""Many records in one small file, to commit beside the tables that were made from them.

An archive is gzipped JSON lines, one record per line in order of id. Curves and analyses are rounded to six
significant digits; metrics are not, since tests must see that two runs are equal. Arrays and models are not in
it; a record's id leads back to them in the store it came from. A record that came from an archive says so under
``imported``, from then on and wherever it goes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ltga.data.atomic import write_atomic
from ltga.errors import RecordError
from ltga.train.checksums import sealed
from ltga.train.record import Record, clean_text
from ltga.train.storage import decode_record, encode_record
from ltga.train.store import Store

DIGITS = 6
# An archive of the whole study has 17 MB when unpacked, four times its packed size, and no line of 100 kB.
LONGEST_LINE = 16 << 20
LARGEST = 1 << 30
LARGEST_RATIO, ANY_RATIO_UP_TO = 30, 16 << 20
MARK = "imported"
GET_AGAIN = "get the archive again from its source"


def write_archive(
    path: str | Path, records: Iterable[Record], left_out: Callable[[str], None] = lambda reason: None
) -> int:
    """Write the records to ``path``; returns how many. The same records give the same bytes.

    A record that no archive can hold is left out, and ``left_out`` told why.
    """
    lines = {}
    for record in records:
        line = _line(record)
        if len(line) < LONGEST_LINE:
            lines[record["id"]] = line
        else:
            left_out(f"record {record['id'][:12]} is left out: {len(line) >> 20} MiB are too long for an archive")
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=0) as stream:
        for run in sorted(lines):
            stream.write(lines[run])
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(target, lambda stream: stream.write(packed.getvalue()))
    except OSError as error:
        raise RecordError(f"{target}: cannot be written ({error.strerror}); what was there before is kept") from None
    return len(lines)


def _line(record: Record) -> bytes:
    # A record's id follows from its configuration, and ties between runs from their metrics: both stay as they are.
    short = sealed(rounded(record) | {name: record[name] for name in ("config", "metrics")})
    return json.dumps(short, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def read_archive(path: str | Path) -> Iterator[Record]:
    """The records in an archive, each checked, in order of id; one line is in memory at a time.

    An archive is sound as a whole or refused, which may show at its last line only.
    """
    last = ""
    for number, line in enumerate(_lines(Path(path)), 1):
        read = decode_record(line, f"{path}: line {number}", GET_AGAIN)
        if read.typed.interrupted:
            raise RecordError(f"{path}: line {number} is of an interrupted run; export it again")
        if read.typed.id <= last:
            raise RecordError(f"{path}: line {number} is out of order, or the second one of its run; export it again")
        last = read.typed.id
        yield read.record


def unpack_archive(path: str | Path, store: Store) -> tuple[int, int]:
    """Put the records of an archive into a store; returns how many are new there and how many it had.

    A run that a runner is at counts as there: its own record will have arrays and a model beside it.
    """
    total = sum(1 for _ in read_archive(path))  # all of them first: a bad archive changes nothing
    source = source_of(path)
    new = 0
    for record in read_archive(path):
        run = record["id"]
        if store.record(run) is not None or (claim := store.claim(run)) is None:
            continue
        try:
            if store.record(run) is None:  # nobody wrote it just before the claim
                store.save(run, {".json": encode_record(marked(record, source))})
                new += 1
        finally:
            claim.release()
    return new, total - new


def source_of(path: str | Path) -> dict[str, str]:
    """What a record says about the archive it came from."""
    try:
        with Path(path).open("rb") as stream:
            return {
                "from": clean_text(Path(path).name),
                "sha256": hashlib.file_digest(stream, "sha256").hexdigest(),
            }
    except OSError as error:
        raise _unreadable(Path(path), error) from None


def marked(record: Record, source: dict[str, str]) -> Record:
    """The record with the mark of an archive it came from; marks it had before are kept below it.

    >>> marked({"imported": {"from": "a.gz", "sha256": "1"}}, {"from": "b.gz", "sha256": "2"})
    {'imported': {'from': 'b.gz', 'sha256': '2', 'earlier': [{'from': 'a.gz', 'sha256': '1'}]}}
    """
    before = record.get(MARK)
    if before is None:
        return {**record, MARK: source}
    origin = {name: before[name] for name in ("from", "sha256")}
    return {**record, MARK: {**source, "earlier": [origin, *before.get("earlier", [])]}}


def stored_records(place: str | Path) -> list[Record]:
    """The records of a store (a folder), or of an archive (a file), which they are then marked with."""
    if Path(place).is_dir():
        return list(Store(place).records())
    records = list(read_archive(place))
    source = source_of(place)
    return [marked(record, source) for record in records]


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


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a gzipped file, as long as it keeps within what an archive may be."""
    try:
        if path.exists() and not path.is_file():
            raise RecordError(f"{path}: not a file; give what `ltga suite export` wrote")
        with path.open("rb") as packed, gzip.GzipFile(fileobj=packed) as stream:
            unpacked, size = 0, path.stat().st_size
            while line := stream.readline(LONGEST_LINE + 1):
                unpacked += len(line)
                _check_size(path, len(line), unpacked, size)
                yield line
    except FileNotFoundError:
        raise RecordError(f"{path}: there is no such file") from None
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise _unreadable(path, error) from None


def _check_size(path: Path, line: int, unpacked: int, packed: int) -> None:
    limits = {
        f"has a line of more than {LONGEST_LINE >> 20} MiB": line > LONGEST_LINE,
        f"unpacks to more than {LARGEST >> 20} MiB": unpacked > LARGEST,
        f"unpacks to more than {LARGEST_RATIO} times its size": unpacked > max(LARGEST_RATIO * packed, ANY_RATIO_UP_TO),
    }
    for what, exceeded in limits.items():
        if exceeded:
            raise RecordError(f"{path}: {what}, which no archive of ours does; {GET_AGAIN}")


def _unreadable(path: Path, error: Exception) -> RecordError:
    return RecordError(f"{path}: not an archive of records ({error}); {GET_AGAIN}")
