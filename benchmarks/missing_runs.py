"""Runs that a file of results lacks: what the scripts that choose settings on development data share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ltga.data.atomic import write_atomic


def add_missing(
    path: Path, wanted: Iterable[Mapping[str, Any]], measure: Callable[..., Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """All rows of ``path`` after measuring what of ``wanted`` is not there; a row is what was wanted and was found."""
    rows: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    for asked in wanted:
        if any(asked.items() <= row.items() for row in rows):
            continue
        rows.append({**asked, **measure(**asked)})
        text = json.dumps(rows, indent=0) + "\n"
        write_atomic(path, lambda stream, text=text: stream.write(text.encode()))  # type: ignore[misc]
        print(rows[-1], flush=True)
    return rows
