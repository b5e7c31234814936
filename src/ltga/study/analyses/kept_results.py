"""Results of analyses, kept so that no run is analysed twice: in a folder, and inside the records of an archive.

    <folder>/<id>.<analysis>.json   one result of one run

A kept result counts only if it is whole, of the current version of its analysis and of a run that ended as this one;
anything else is as good as absent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from ltga.data.atomic import write_atomic
from ltga.study.analyses.every_analysis import ANALYSES, WORDS, Frames
from ltga.study.archive import rounded
from ltga.train.checksums import digest
from ltga.train.record import Record, plain
from ltga.train.record_schema import json_fault

FIELD = "analyses"
"""Where an archived record has its results."""


def folder_of(store: Path) -> Path:
    """Where the results of a store are kept unless told otherwise."""
    return store / FIELD


class Kept:
    """The results in ``folder``, which is made when the first one is written."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def read(self, record: Record, name: str) -> Frames | None:
        """The result of an analysis of a run; ``None`` if there is none that counts."""
        try:
            kept = json.loads(self._path(record, name).read_text(encoding="utf-8"))
            whole = isinstance(kept, dict) and kept.get("digest") == digest(kept.get("tables"))
        except (OSError, ValueError, RecursionError):
            return None
        ours = whole and kept.get("analysis") == name and kept.get("outcome") == _outcome(record)
        return _decode(kept, name) if ours else None

    def write(self, record: Record, name: str, frames: Frames) -> None:
        """Keep a result; an ``OSError`` if that cannot be."""
        body = _encode(frames, name)
        kept = {"run": record["id"], "analysis": name, "outcome": _outcome(record), "digest": digest(body["tables"])}
        text = json.dumps({**kept, **body}, allow_nan=False) + "\n"
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomic(self._path(record, name), lambda stream: stream.write(text.encode()))

    def _path(self, record: Record, name: str) -> Path:
        return self.folder / f"{record['id']}.{name}.json"


def with_results(records: Iterable[Record], kept: Kept) -> Iterator[Record]:
    """The records with their kept results inside, for an archive."""
    for record in records:
        found = {name: kept.read(record, name) for name in ANALYSES}
        results = {name: _encode(frames, name) for name, frames in found.items() if frames is not None}
        yield {**record, FIELD: results} if results else record


def result_inside(record: Record, name: str) -> Frames | None:
    """The result that came with an archived record; ``None`` if there is none that counts."""
    results = record.get(FIELD)
    return _decode(results.get(name), name) if isinstance(results, dict) else None


def _encode(frames: Frames, name: str) -> dict[str, Any]:
    columns = {
        table: {column: plain(frame[column].tolist()) for column in ANALYSES[name].tables[table]}
        for table, frame in frames.items()
    }
    return {"version": ANALYSES[name].version, "tables": columns}


def _decode(body: Any, name: str) -> Frames | None:
    """The tables, if all are there with the columns they should have; ``None`` is read as NaN."""
    analysis = ANALYSES[name]
    if not isinstance(body, dict) or body.get("version") != analysis.version:
        return None
    tables, frames = body.get("tables"), {}
    for table, columns in analysis.tables.items():
        found = tables.get(table) if isinstance(tables, dict) else None
        if not isinstance(found, dict) or not all(_sound(found.get(column), column) for column in columns):
            return None
        if len({len(found[column]) for column in columns}) > 1:
            return None
        types = {column: object if column in WORDS else float for column in columns}
        frames[table] = pd.DataFrame({column: found[column] for column in columns}).astype(types)
    return frames


def _sound(values: Any, column: str) -> bool:
    wanted = (str,) if column in WORDS else (int, float, type(None))
    return isinstance(values, list) and all(isinstance(value, wanted) for value in values) and not json_fault(values)


def _outcome(record: Record) -> str:
    """What tells two executions of one run apart, but not a record from its rounded copy in an archive."""
    return digest(rounded([record["id"], record.get("best_epoch"), record.get("metrics")]))
