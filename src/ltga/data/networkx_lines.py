"""Lists of edges as networkx writes them when it is not told otherwise: `0 1 {'weight': 4}`."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ltga.data.bounds import in_a_line
from ltga.data.problems import Problems

_LONGEST = 1 << 16  # characters of what is said about one edge
_PLAIN = (str, int, float, bool, type(None))


def has_dictionaries(line: str) -> bool:
    """
    >>> has_dictionaries("0 1 {'weight': 4}"), has_dictionaries("0 1 4")
    (True, False)
    """
    ends, said = _parted(line)
    return len(re.split(r"[\s,;]+", ends.strip())) >= 2 and said.endswith("}")


def _parted(line: str) -> tuple[str, str]:
    """What stands before the first brace, without the separator, and the rest."""
    ends, brace, said = line.partition("{")
    return ends.rstrip(" \t,;"), (brace + said).strip()


def split_dictionaries(lines: Sequence[str], path: Path, problems: Problems) -> tuple[list[str], list[dict[str, Any]]]:
    """Lines without their dictionaries, and these; what is none, or holds more than numbers and text, is a problem."""
    bare, details, odd = [], [], []
    for at, line in enumerate(lines):
        ends, text = _parted(line)
        said = _plain_dictionary(text)
        if said is None:
            odd.append(at)
        bare.append(ends)
        details.append(said or {})
    if odd:
        what = (
            f"expected a dictionary of plain numbers and text after the two nodes, got {in_a_line(lines[odd[0]], 60)!r}"
        )
        action = "mend these rows, or write the list with networkx.write_weighted_edgelist"
        problems.add(str(path), what, odd, action, "error")
    return bare, details


def _plain_dictionary(text: str) -> dict[str, Any] | None:
    """A dictionary that is written out; `None` for anything else, and nothing is ever run."""
    if len(text) > _LONGEST:
        return None
    try:
        read = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    if not isinstance(read, dict) or not all(isinstance(value, _PLAIN) for value in read.values()):
        return None
    words = "".join(value for value in (*read, *read.values()) if isinstance(value, str))
    if words.encode(errors="ignore").decode() != words:  # half a character, which nobody can write down
        return None
    return {str(name): value for name, value in read.items() if isinstance(name, _PLAIN)}
