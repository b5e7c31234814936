"""Formats that cells which are no dates as they are read seem to follow, so that a person can choose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ltga.data.date_formats import check_date_format, formats_in

_SIGNS = (("[.]", ("%d.%m.",)), ("/", ("%d/%m/", "%m/%d/")), ("-", ("%d-%m-", "%m-%d-")))
_YEARS = (("[0-9]{4}", "%Y"), ("[0-9]{2}", "%y"))
_TIMES = (("", ""), (" [0-9]{1,2}:[0-9]{2}", " %H:%M"), (" [0-9]{1,2}:[0-9]{2}:[0-9]{2}", " %H:%M:%S"))
_ANY_SHAPE = "^[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2}"
# How a whole cell may look, and the formats that may be meant.
_SHAPES = tuple(
    (f"^[0-9]{{1,2}}{sign}[0-9]{{1,2}}{sign}{year}{time}$", tuple(f"{day}{years}{times}" for day in days))
    for sign, days in _SIGNS
    for year, years in _YEARS
    for time, times in _TIMES
)


@dataclass(frozen=True)
class DateFormats:
    """What to choose as `date_format`, and in brackets what about it only a person can know."""

    choose: str
    doubt: str = ""


def dates_look_like(text: pa.Array, date_format: str | None = None) -> DateFormats | None:
    """The formats that cover all cells, beside those given; `None` if the cells are no dates, or need no other format.

    >>> dates_look_like(pa.array(["31.01.2020", "", "2020-03-02", "1/31/2020"])).choose
    '%d.%m.%Y,%m/%d/%Y'
    >>> dates_look_like(pa.array(["1/2/2020"]))
    DateFormats(choose='%d/%m/%Y or date_format=%m/%d/%Y', doubt=' (day or month first: the cells fit both)')
    """
    filled = pc.unique(text.filter(pc.not_equal(text, "")))
    filled = filled.filter(pc.invert(pc.match_substring_regex(filled, "^[0-9]{4}-[0-9]{2}-[0-9]{2}")))
    if not pc.all(pc.match_substring_regex(filled, _ANY_SHAPE)).as_py():
        return None  # long texts are told from dates at once
    given = formats_in(date_format)
    fits: list[list[str]] = []
    for pattern, formats in _SHAPES:
        shaped = pc.match_substring_regex(filled, pattern)
        cells = pd.Series(filled.filter(shaped).to_pylist(), dtype=object)
        filled = filled.filter(pc.invert(shaped))
        if len(cells) and not any(_covers(form, cells) for form in given):
            fits.append([form for form in formats if _covers(form, cells) and _goes_with(form, given)])
    if len(filled) or not fits or not all(fits):
        return None
    sure = [form for forms in fits if len(forms) == 1 for form in forms]
    orders = {form[:3] for form in sure}  # 13/1/21 says how 1/2/2021 is meant
    unsure: list[list[str]] = []
    for forms in fits:
        if len(forms) > 1:
            told = [form for form in forms if form[:3] in orders]
            if len(told) == 1:
                sure += told
            else:
                unsure.append(forms)
    choices = [[*given, *sure, *(forms[first] for forms in unsure)] for first in range(2 if unsure else 1)]
    doubt = " (day or month first: the cells fit both)" if unsure else ""
    return DateFormats(" or date_format=".join(",".join(choice) for choice in choices), doubt)


def days_in_digits(numbers: np.ndarray) -> str | None:
    """The format that reads all of these numbers as days of the last hundred years or the next, if one does.

    >>> days_in_digits(np.array([20240131.0, 20231224.0])), days_in_digits(np.array([20240131.0, 20231324.0]))
    ('%Y%m%d', None)
    """
    if not len(numbers) or numbers.min() < 1900_01_01 or numbers.max() > 2100_12_31 or (numbers % 1).any():
        return None
    cells = pd.Series(np.unique(numbers).astype(np.int64).astype(str), dtype=object)
    return "%Y%m%d" if _covers("%Y%m%d", cells) else None


def _covers(form: str, cells: pd.Series) -> bool:
    return bool(pd.to_datetime(cells, format=form, errors="coerce").notna().all())


def _goes_with(form: str, given: list[str]) -> bool:
    """Whether two formats never read a cell in two ways."""
    try:
        check_date_format(",".join([*given, form]))
    except ValueError:
        return False
    return True
