"""How dates are written: formats that people give, one or several."""

from __future__ import annotations

import re
from datetime import UTC, datetime

ISO = "ISO8601"  # pandas' name for 2024-12-31, with or without a time
_YEAR = re.compile("%[YyGcxDF]")
_EXAMPLES = (datetime(2024, 3, 4), datetime(2024, 3, 4, 5, 6, 7))


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


def formats_of_digits(date_format: str | None) -> dict[str, int]:
    """Those of the formats that write a day as digits and nothing else, as numbers are written, with how many digits.

    Cells of any other length are not read by them: `%d%m%Y` would take 1022024, the first of February, for the tenth.

    >>> formats_of_digits("%Y%m%d,%d.%m.%Y"), formats_of_digits("%Y")
    ({'%Y%m%d': 8}, {})
    """
    written = {form: _write(form) or "" for form in formats_in(date_format)}
    return {
        form: len(text)
        for form, text in written.items()
        if text.isdecimal() and _read(form, text) in (_EXAMPLES[0], _EXAMPLES[1])
    }


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


def _write(form: str) -> str | None:
    zone = UTC if re.search("%[zZ]", form) else None  # without one nothing would be written there
    try:
        return _EXAMPLES[0].replace(tzinfo=zone).strftime(form)
    except ValueError:
        return None


def _read(form: str, text: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except (ValueError, re.error):  # re.error: a part of the date twice
        return None


def _reads(form: str, text: str) -> bool:
    return _read(form, text) is not None
