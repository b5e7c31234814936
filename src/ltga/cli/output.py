"""Files the command line writes: refused before the work if they cannot be written, whole or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ltga.errors import InputError
from ltga.train.find_run import SHORT

TABLES = (".csv", ".parquet")
PAGES = (".html", ".htm")
_LONGEST_NAME = 100  # of a graph in the name of its page; a file name has 255 bytes
_OF_A_GRAPH = tuple(f"{stem}{suffix}" for stem in ("nodes", "edges", "graphs", "triples") for suffix in TABLES)


def check_output(path: Path | None, option: str, suffixes: Sequence[str] = (), what: str = "it is") -> None:
    """Raise unless a file can be written at ``path``; called before hours of work, not after.

    Args:
        suffixes: how its name may end; any if left out.
        what: opens the sentence that says so.
    """
    if path is None:
        return
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(f"{option}: cannot write {path}; its folder must exist and be writable")
    if suffixes and path.suffix not in suffixes:
        raise InputError(f"{option}: {path.name}: {what} written as {' or '.join(suffixes)}")


def page_name(graph: str, method: str, run: str) -> str:
    """What the page of a run is called beside its record.

    >>> page_name("my graph", "ltga-head", "1c556dcb" * 8)
    'my-graph-ltga-head-1c556dcb.html'
    """
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", graph).strip("-.") or "graph"
    return f"{plain[:_LONGEST_NAME]}-{method}-{run[:SHORT]}.html"


def keep_inputs(path: Path | None, option: str, read: Iterable[str | Path | None]) -> None:
    """Raise if a file written at ``path`` would take the place of one of those ``read``, or of a table beside them."""
    if path is None:
        return
    target = path.expanduser().resolve()
    for given in read:
        if given is None:
            continue
        source = Path(given).expanduser().resolve()
        folder = source.parent if source.name in _OF_A_GRAPH else source
        if target == source or (target.parent == folder and target.name in _OF_A_GRAPH):
            raise InputError(f"{option}: {path} is the name of a file that is read; choose another one")


def write_text(path: Path, text: str) -> None:
    """Write ``text`` to ``path``, whole or not at all."""
    from ltga.data.atomic import write_atomic

    write_atomic(path, lambda stream: stream.write(text.encode()))
