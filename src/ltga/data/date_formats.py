"""How dates are written: formats that people give, one or several, and those that cells seem to follow."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

ISO = "ISO8601"  # pandas' name for 2024-12-31, with or without a time
_YEAR = re.compile("%[YyGcxDF]")
_EXAMPLES = (datetime(2024, 3, 4), datetime(2024, 3, 4, 5, 6, 7))
_SHAPES = (("[.]", ("%d.%m.%Y",)), ("/", ("%d/%m/%Y", "%m/%d/%Y")), ("-", ("%d-%m-%Y", "%m-%d-%Y")))


def formats_in(date_format: str | None) -> list[str]:
    """The formats of an option, separated by commas; a comma within a format separates nothing.

    >>> formats_in("%d.%m.%Y,%m/%d/%Y"), formats_in("%b %d, %Y")
    (['%d.%m.%Y', '%m/%d/%Y'], ['%b %d, %Y'])
    """
    if date_format is None:
        return []
    parts = [part.strip() for part in date_format.split(",")]
    return parts if all(map(_YEAR.search, parts)) else [date_format]


def formats_to_try(date_format: str | None) -> list[str]:
    """What a cell is read by, the first that fits: those given, and 2024-12-31 unless they read that too.

    >>> formats_to_try("%d.%m.%Y"), formats_to_try("%Y-%d-%m")
    (['%d.%m.%Y', 'ISO8601'], ['%Y-%d-%m'])
    """
    given = formats_in(date_format)
    iso = [example.isoformat(sep) for example in _EXAMPLES for sep in "T "] + [_EXAMPLES[0].strftime("%Y-%m-%d")]
    return given if any(_reads(form, text) for form in given for text in iso) else [*given, ISO]


def check_date_format(date_format: str | None) -> None:
    """Raise ValueError for what is no format, or for two that read a cell in two ways."""
    given = formats_in(date_format)
    for form in given:
        written = _write(form)
        if "%" not in form or written is None or not _reads(form, written):
            raise ValueError("is no format of dates, use for example %d.%m.%Y")
    for form in given:
        for other in given:
            read = _read(other, str(_write(form)))
            if read is not None and read != _read(form, str(_write(form))):
                raise ValueError(f"{form} and {other} read {_write(form)} as two dates; give one of them")


def date_format_of(text: pa.Array) -> str | None:
    """How dates are written that are not written 2024-12-31, all ways that fit; `None` if the cells are no dates.

    >>> import pyarrow as pa
    >>> date_format_of(pa.array(["31.01.2020", "", "1.2.2021"])), date_format_of(pa.array(["1/31/2020", "2020-03-02"]))
    ('%d.%m.%Y', '%m/%d/%Y')
    """
    import pandas as pd  # now: what is written on a command line is checked without them
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    filled = text.filter(pc.not_equal(text, ""))
    filled = filled.filter(pc.invert(pc.match_substring_regex(filled, "^[0-9]{4}-[0-9]{2}-[0-9]{2}")))
    for sign, formats in _SHAPES:
        pattern = f"^[0-9]{{1,2}}{sign}[0-9]{{1,2}}{sign}[0-9]{{4}}$"
        if len(filled) and pc.all(pc.match_substring_regex(filled, pattern)).as_py():
            cells = pd.Series(filled.to_pylist())
            fits = [form for form in formats if pd.to_datetime(cells, format=form, errors="coerce").notna().all()]
            return " or ".join(fits) or None
    return None


def _write(form: str) -> str | None:
    try:
        return _EXAMPLES[0].strftime(form)
    except ValueError:
        return None


def _read(form: str, text: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except (ValueError, re.error):  # re.error: a part of the date twice
        return None


def _reads(form: str, text: str) -> bool:
    return _read(form, text) is not None
