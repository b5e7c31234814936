"""Checksums of a run: what tells that something has changed since it was written.

A record carries two of itself. ``results`` covers what its numbers rest on (configuration, metrics, epochs), which
an archive keeps to the last digit, so it stays the same wherever the record goes; ``record`` covers all of it, and is
made anew where an archive rounds the curves. ``arrays`` and ``weights`` are those of the files beside it. They find
damage, not forgery: whoever writes a record can hash it too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ltga.train.record import Record

FIELD = "checksums"
RESULTS = ("config", "metrics", "best_epoch", "epochs", "stopped", "interrupted")


def sealed(record: Mapping[str, Any], arrays: bytes | None = None, weights: bytes | None = None) -> Record:
    """The record with its checksums, and those of the files beside it where there are any.

    >>> sorted(sealed({"metrics": {}}, arrays=b"")["checksums"])
    ['arrays', 'record', 'results']
    """
    bare = unsealed(record)
    sums = {"results": _results(bare), "record": digest(bare)}
    beside = {"arrays": arrays, "weights": weights}
    sums |= {name: hashlib.sha256(content).hexdigest() for name, content in beside.items() if content is not None}
    return {**bare, FIELD: sums}


def unsealed(record: Mapping[str, Any]) -> Record:
    """The record without its checksums."""
    return {name: value for name, value in record.items() if name != FIELD}


def broken_seal(record: Mapping[str, Any]) -> str | None:
    """Which part of a record is not what it was when it was written; ``None`` if it is, or has no checksums.

    >>> record = sealed({"metrics": {"test": {"accuracy": 0.5}}})
    >>> record["metrics"]["test"]["accuracy"] = 0.9
    >>> broken_seal(record)
    'results'
    """
    sums = record.get(FIELD)
    if sums is None:
        return None
    bare = unsealed(record)
    if sums["results"] != _results(bare):
        return "results"
    return None if sums["record"] == digest(bare) else "contents"


def digest(value: Any) -> str:
    """The sha256 of a value's canonical JSON.

    >>> digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})
    True
    """
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _results(record: Mapping[str, Any]) -> str:
    return digest({name: record.get(name) for name in RESULTS})
