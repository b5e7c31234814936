"""Cells of a table as text, numbers, days or categories, a whole column at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ltga.data.date_formats import formats_in, formats_of_digits, formats_to_try
from ltga.data.date_hints import dates_look_like
from ltga.data.number_cells import as_python_writes
from ltga.data.number_formats import NO_NUMBER, NumberFormat
from ltga.data.number_hints import nearly_numbers

Kind = Literal["number", "date", "category", "nested"]
_WORDS = {"true": 1.0, "false": 0.0}
# From this share of numbers or dates on, a column is one of them in which something else has strayed.
_MOSTLY = 0.5
_USUAL = NumberFormat()
_DAY = 86_400.0
_MOMENTS = ("now", "today")  # which pandas takes for the time at which it is asked
_MOST_BITS = 14_000


def text_of(series: pd.Series) -> pa.Array:
    """A column as trimmed text; whole numbers without a decimal point, empty cells as ''.

    >>> text_of(pd.Series([1.0, None, 2.5])).to_pylist(), text_of(pd.Series([" a", None, "3"])).to_pylist()
    (['1', '', '2.5'], ['a', '', '3'])
    """
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(object)
    if pd.api.types.is_bool_dtype(series.dtype) and not series.isna().any():
        return pa.array(np.where(series.to_numpy(dtype=bool), "True", "False"), pa.large_string())
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iu":
        return pa.array(series.to_numpy()).cast(pa.large_string())
    if not _is_text(series):
        codes, different = pd.factorize(series, use_na_sentinel=True) if series.dtype != object else _factorize(series)
        words = np.array([*map(_word, different), ""], dtype=object)
        return _trimmed(pa.array(words[codes], pa.large_string()))
    return _trimmed(_as_written(series))


def _as_written(series: pd.Series) -> pa.Array:
    """A column of text, null where a cell is empty."""
    cells = series.to_numpy() if series.dtype == object else series.array
    try:
        text = pa.array(cells, pa.large_string(), from_pandas=True)
    except UnicodeEncodeError:  # half a character, as in the name of a file that is not text
        text = pa.array([None if gap else _word(cell) for cell, gap in zip(cells, series.isna())], pa.large_string())
    return text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text


def _is_text(series: pd.Series) -> bool:
    if series.dtype == object:
        return pd.api.types.infer_dtype(series, skipna=True) in ("string", "empty")
    return isinstance(series.dtype, pd.StringDtype)


def _factorize(series: pd.Series) -> tuple[np.ndarray, list[Any]]:
    """Objects of any kind by number; -1 for empty cells. True and 1 are two values, though equal to Python."""
    numbers: dict[tuple[type, Any], int] = {}
    gaps = series.isna().to_numpy()
    codes = np.full(len(series), -1, dtype=np.int64)
    for at, value in enumerate(series.to_numpy(dtype=object)):
        if not gaps[at]:
            key = (type(value), value if isinstance(value, str | Real) else str(value))
            codes[at] = numbers.setdefault(key, len(numbers))
    return codes, [value for _, value in numbers]


def _word(value: Any) -> str:
    if isinstance(value, float | np.floating) and value.is_integer():
        return str(int(value))
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return hex(value)  # Python refuses to write so many digits
    return str(value).encode("utf-8", "backslashreplace").decode()


def _trimmed(text: pa.Array) -> pa.Array:
    return pc.utf8_trim_whitespace(pc.fill_null(text, ""))


def padded(series: pd.Series) -> np.ndarray:
    """The positions of cells of text with spaces around it, which `text_of` leaves out.

    >>> padded(pd.Series(["a", " b", "c "])).tolist(), padded(pd.Series([1, 2])).tolist()
    ([1, 2], [])
    >>> padded(pd.Series(["a", " b", None], dtype="category")).tolist()
    [1]
    """
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(object)
    if not _is_text(series):
        return np.empty(0, dtype=np.int64)
    text = pc.fill_null(_as_written(series), "")
    return np.flatnonzero(pc.not_equal(text, pc.utf8_trim_whitespace(text)).to_numpy(zero_copy_only=False))


@dataclass(frozen=True)
class Numbers:
    """A column as numbers `[R]` (float64, NaN where there is none), where it is empty, and where it is no number.

    `unit`: which of the format's units a cell had, -1 for none; `grouped`: where signs stood between thousands. Both
    are `None` for a column that is no text.
    """

    values: np.ndarray
    empty: np.ndarray
    stray: np.ndarray
    unit: np.ndarray | None = None
    grouped: np.ndarray | None = None


def numbers_of(series: pd.Series, form: NumberFormat = _USUAL) -> Numbers:
    """A column of numbers, or of text that says numbers.

    >>> numbers_of(pd.Series(["1", "n/a", "x", "2e1", "inf"])).values.tolist()
    [1.0, nan, nan, 20.0, nan]
    >>> numbers_of(pd.Series(["1.234,50 €", "3,5", "4.5"]), NumberFormat(",", ".", ("€",))).values.tolist()
    [1234.5, 3.5, nan]
    """
    unit, grouped = None, None
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(object)
    if pd.api.types.is_numeric_dtype(series.dtype) and not pd.api.types.is_complex_dtype(series.dtype):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        empty = np.isnan(values)
    else:
        text = text_of(series)
        if form != _USUAL:
            written = as_python_writes(text, form)
            text, unit, grouped = written.text, written.unit, written.grouped
        values, empty = _spoken_numbers(text)
        if form != _USUAL and series.dtype == object:
            values = _with_real_numbers(series, values, unit, grouped)
    with np.errstate(over="ignore"):  # a network computes in float32
        stray = ~np.isfinite(values.astype(np.float32)) & ~empty
    return Numbers(np.where(stray, np.nan, values), empty, stray, unit, grouped)


def _with_real_numbers(
    series: pd.Series, values: np.ndarray, unit: np.ndarray | None, grouped: np.ndarray | None
) -> np.ndarray:
    """Numbers that were never text have no decimal sign to choose."""
    values = values.copy()
    for at, cell in enumerate(series.to_numpy(dtype=object)):
        if isinstance(cell, Real | Decimal) and not isinstance(cell, bool | np.bool_):
            try:
                values[at] = float(cell)
            except OverflowError:
                values[at] = np.inf
            if unit is not None and grouped is not None:
                unit[at], grouped[at] = -1, False
    return values


def number_text(series: pd.Series, form: NumberFormat = _USUAL) -> pa.Array:
    """A column as text in which numbers are written as Python writes them."""
    text = text_of(series)
    return as_python_writes(text, form).text if form != _USUAL and _is_text(series) else text


def _spoken_numbers(text: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Text as numbers (NaN where it says none) and where it is empty."""
    try:
        plain = pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text).cast(pa.float64())
        values = plain.to_numpy(zero_copy_only=False)
        return values, np.isnan(values)
    except pa.ArrowInvalid:  # something else than numbers in it; look closer
        pass
    lower = pd.Series(pc.utf8_lower(text).to_numpy(zero_copy_only=False), dtype=object)
    empty = lower.isin(NO_NUMBER).to_numpy()
    values = pd.to_numeric(lower.where(~empty, None), errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    if not np.isin(values[~np.isnan(values)], list(_WORDS.values())).all():
        return values, empty  # true among numbers such as 2.5 has strayed there
    words = lower.map(_WORDS).to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.isnan(words), values, words), empty


def days_of(series: pd.Series, date_format: str | None = None) -> Numbers:
    """A column of dates as days since 1970, fractions of a day included.

    >>> days_of(pd.Series(["1970-01-02", "", "1970-01-03T12:00:00"])).values.tolist()
    [1.0, nan, 2.5]
    >>> days_of(pd.Series(["1970-01-02", "03.01.1970"]), "%d.%m.%Y").values.tolist()
    [1.0, 2.0]
    >>> days_of(pd.Series([2011970, 13011970]), "%d%m%Y").values.tolist()  # a number begins with no zero
    [1.0, 12.0]
    """
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        empty = series.isna().to_numpy()
        stamps = pd.to_datetime(series, utc=True)
    else:
        text = pd.Series(text_of(series).to_numpy(zero_copy_only=False), dtype=object)
        empty = text.str.lower().isin(NO_NUMBER).to_numpy()
        stamps = _stamps(text.where(~empty, None), date_format)
    gaps = stamps.isna().to_numpy()
    seconds = stamps.dt.tz_localize(None).to_numpy(dtype="datetime64[us]").astype(np.int64) / 1e6
    return Numbers(np.where(gaps, np.nan, seconds / _DAY), empty, gaps & ~empty)


def _stamps(text: pd.Series, date_format: str | None) -> pd.Series:
    """Every cell by the first format that fits it; no two of them read a cell in two ways."""
    text = text.where(~text.str.lower().isin(_MOMENTS), None)
    digits = formats_of_digits(date_format)
    stamps, numbers = _stamps_of_digits(text, digits)
    given = formats_in(date_format)
    for form in formats_to_try(date_format):
        left = stamps.isna() & text.notna()
        if form not in given:  # 20240131 may be another day than the one that was meant
            left &= ~numbers
        if left.any() and form not in digits:
            _read_into(stamps, text[left], form)
    return stamps


def _stamps_of_digits(text: pd.Series, formats: Mapping[str, int]) -> tuple[pd.Series, pd.Series]:
    """Cells that are numbers, by formats that write nothing else, and which these are, if there are such formats.

    Zeros that a number lacks in front are put back.
    """
    stamps = pd.Series(pd.DatetimeIndex([pd.NaT] * len(text), tz="UTC").as_unit("us"))
    if not formats:
        return stamps, pd.Series(False, index=text.index)
    whole = text.str.extract(r"^([0-9]+)(?:\.0*)?$", expand=False)
    for form, digits in formats.items():
        long = whole.str.len()
        left = stamps.isna() & ((long == digits) if form.startswith("%Y") else (long <= digits))
        if left.any():
            _read_into(stamps, whole[left].str.zfill(digits), form)
    return stamps, whole.notna()


def _read_into(stamps: pd.Series, cells: pd.Series, form: str) -> None:
    with contextlib.suppress(ValueError, OverflowError):  # a format that is none to pandas
        stamps[cells.index] = pd.to_datetime(cells, errors="coerce", utc=True, format=form).dt.as_unit("us")


def _dates_in_digits(series: pd.Series, date_format: str | None) -> bool:
    """Whether a column of numbers is one of dates, by a format that writes them without any sign between."""
    formats = formats_of_digits(date_format)
    if not formats:
        return False
    text = pd.Series(text_of(series).to_numpy(zero_copy_only=False), dtype=object)
    filled = ~text.str.lower().isin(NO_NUMBER)
    dated = _stamps_of_digits(text, formats)[0].notna()
    # Numbers as short as 101 may be days of 2000, but not a whole column of them.
    long = text.str.match("|".join(f"[0-9]{{{digits - 1},{digits}}}(?![0-9])" for digits in formats.values()))
    return bool((dated & long).any()) and dated.sum() >= _MOSTLY * filled.sum()


def kind_of(series: pd.Series, date_format: str | None = None, form: NumberFormat = _USUAL) -> Kind:
    """What a column holds.

    >>> [kind_of(pd.Series(cells)) for cells in (["1", "2", ""], ["a", "1"], ["2024-01-31"], [[1], [2]], ["5 €"])]
    ['number', 'number', 'date', 'nested', 'number']
    >>> kind_of(pd.Series([20240131, 20240201])), kind_of(pd.Series([20240131, 20240201]), "%Y%m%d")
    ('number', 'date')
    """
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return "date"
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biuf":
        return "date" if _dates_in_digits(series, date_format) else "number"
    if series.dtype == object and any(isinstance(value, list | tuple | dict | set | np.ndarray) for value in series):
        return "nested"
    numbers = numbers_of(series, form)
    filled = int((~numbers.empty).sum())
    if not numbers.stray.any():
        return "date" if _dates_in_digits(series, date_format) else "number"
    days = days_of(series, date_format)
    # pandas reads 2020 as a date; among other numbers it is none.
    dated = int((numbers.stray & ~days.stray & ~days.empty).sum())
    if not days.stray.any():
        return "date"
    if dated >= _MOSTLY * filled and dates_look_like(text_of(series), date_format) is None:
        return "date"  # the rest is not written in another way, it is no date
    spoken = filled - int((numbers.stray & ~nearly_numbers(text_of(series))).sum())
    return "number" if spoken >= _MOSTLY * filled else "category"
