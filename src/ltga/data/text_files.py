"""The text of a file."""

from __future__ import annotations

from pathlib import Path

from ltga.data.bounds import in_a_line
from ltga.errors import DataError


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """What a file says; a :class:`DataError` names one that is not there or not text."""
    try:
        return path.read_text(encoding=encoding)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as text ({in_a_line(error)}); fetch it again") from None
