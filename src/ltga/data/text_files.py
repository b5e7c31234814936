"""The text of a file, and what it looks like if it is not in the encoding that was expected."""

from __future__ import annotations

import codecs
from pathlib import Path

from ltga.data.bounds import in_a_line
from ltga.errors import DataError

# The marks of UTF-32 begin with those of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_PACKED = (b"PK\x03\x04", b"\x1f\x8b", b"PAR1", b"\xd0\xcf\x11\xe0")  # zip and xlsx, gzip, Parquet, xls
_LOOKED_AT = 4096
_MANY = 0.3  # of the bytes of plain English in UTF-16, half are zero


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """What a file says; a :class:`DataError` names one that is not there or not text."""
    try:
        return path.read_text(encoding=encoding)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as text ({in_a_line(error)}); fetch it again") from None


def wide_encoding(content: bytes) -> str | None:
    """UTF-16 or UTF-32, if the beginning of a file looks like one of them.

    >>> wide_encoding("a,b".encode("utf-16")), wide_encoding("id,age".encode("utf-16-be")), wide_encoding(b"a,b")
    ('utf-16', 'utf-16-be', None)
    """
    marked = next((name for mark, name in _MARKS if content.startswith(mark)), None)
    if marked is not None:
        return marked
    start = content[:_LOOKED_AT]
    if start.count(0) <= _MANY * len(start):
        return None
    if start.count(0) > 0.6 * len(start):
        return "utf-32-le" if start[:1] != b"\0" else "utf-32-be"
    return "utf-16-le" if start[1::2].count(0) > start[::2].count(0) else "utf-16-be"


def encoding_hint(content: bytes, path: str | Path, option: bool = True) -> str:
    """What text that is not UTF-8 looks like, and how to convert it; `option`: whether `encoding=` can say it, too.

    >>> print(encoding_hint("é".encode("cp1252"), "nodes.csv"))
    it looks like cp1252; convert it (iconv -f cp1252 -t utf-8 nodes.csv > new), or say encoding=cp1252
    """
    if content.startswith(_PACKED) or (wide_encoding(content) is None and b"\0" in content):
        return "it is no text at all but a binary file; write the table as CSV (a spreadsheet: save as CSV)"
    if wide_encoding(content) is None and reads_as(content, "utf-8"):
        return "it looks like utf-8; give all tables in one encoding"
    looks = wide_encoding(content) or ("cp1252" if reads_as(content, "cp1252") else "latin-1")
    said = f"it looks like {looks}; convert it (iconv -f {looks} -t utf-8 {Path(path).name} > new)"
    return f"{said}, or say encoding={looks}" if option else said


def check_encoding(content: bytes, path: str | Path, encoding: str = "utf-8", option: bool = True) -> None:
    """Raise about text in UTF-16 or UTF-32 where another is expected, or the reverse: it reads as other letters.

    So does UTF-8 in an encoding of single bytes, in which hardly any text looks like it.
    """
    # Commas and ends of lines have a zero byte in both, whatever the language.
    if content and (b"\0" not in content if is_wide(encoding) else wide_encoding(content) is not None):
        raise DataError(f"{path}: is not {encoding} text; {encoding_hint(content, path, option)}")
    if not content.isascii() and _has_single_bytes(encoding) and reads_as(content, "utf-8"):
        raise DataError(
            f"{path}: is UTF-8 text, not {encoding}; leave encoding out, or say encoding=utf-8, for all tables"
        )


def is_wide(encoding: str) -> bool:
    """Whether a letter has at least two bytes.

    >>> is_wide("utf16"), is_wide("UTF_32_LE"), is_wide("utf-8")
    (True, True, False)
    """
    return codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))


def _has_single_bytes(encoding: str) -> bool:
    return (
        not codecs.lookup(encoding).name.startswith("utf") and len(bytes(range(256)).decode(encoding, "replace")) == 256
    )


def reads_as(content: bytes, encoding: str) -> bool:
    """Whether bytes are text in an encoding."""
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
