"""How a column of numbers or dates is read: what fills its gaps, which unit it has, and what is no number in it."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict

from ltga.data.date_hints import dates_look_like, days_in_digits
from ltga.data.number_hints import looks_like
from ltga.data.preparation import Preparation
from ltga.data.problems import Problems
from ltga.data.table_cells import Numbers, days_of, numbers_of, text_of


class FittedColumn(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str


class Writing(BaseModel):
    """How numbers were written when they were first read: what they mean later depends on it.

    `unit`: what stood beside them; `bare`: some had none; `grouped`: signs stood between thousands. `None` for the last
    two where that was not looked at yet.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    unit: str | None = None
    bare: bool | None = None
    grouped: bool | None = None


class NumberColumn(FittedColumn, Writing):
    """Numbers or dates, with what fills empty cells, and whether another column says where."""

    kind: Literal["number", "date"]
    fill: float
    indicator: bool

    @property
    def names(self) -> list[str]:
        return [self.name, f"{self.name} is missing"] if self.indicator else [self.name]

    def encode(self, series: pd.Series, options: Preparation, where: str, problems: Problems) -> np.ndarray:
        """`[R, 1]` or `[R, 2]`."""
        found = _read(series, self.kind, options)
        check_writing(self.name, series, found, self, options, where, problems)
        empty = about_strays(self.name, series, found, self.kind, options, where, problems)
        # Strays that are refused are told once, as what they are.
        told = found.empty if options.stray_cells == "error" else empty
        if told.any():
            beside = f" beside a column that says where ({self.name} is missing)" if self.indicator else ""
            _about_empty(told, options, where, self.name, f"filled with {self.fill:.6g}{beside}", problems)
        filled = np.where(empty, self.fill, found.values)
        return np.stack([filled, empty], axis=1) if self.indicator else filled[:, None]


def fit_numbers(
    name: str, series: pd.Series, kind: Literal["number", "date"], options: Preparation, where: str,
    problems: Problems, keep_constant: bool,
) -> NumberColumn | None:  # fmt: skip
    """What becomes of a column of numbers or dates; `None` if it is left out, and why is added to `problems`."""
    place = f"{where}, {name}"
    found = _read(series, kind, options)
    empty = found.empty | found.stray
    if empty.all():
        before = len(problems)
        about_strays(name, series, found, kind, options, where, problems)  # what stands there may be text
        if len(problems) == before:
            problems.add(place, "no cell holds a number", 1, "left out", "note")
        return None
    known = found.values[~empty]
    written = writing_of(name, series, found, options, place, problems)
    if known.min() == known.max() and not (empty.any() and options.indicator) and not keep_constant:
        if found.stray.any() and options.stray_cells == "error":  # they may be other numbers
            about_strays(name, series, found, kind, options, where, problems)
        problems.add(place, f"is {known[0]:.6g} in every row", 1, "left out", "note")
        return None
    if kind == "date":
        problems.add(place, "holds dates", 1, "taken as days since 1970-01-01 (dates=number)", "note")
    else:
        _note_writing(name, series, found, options, place, problems)
    fill = {"median": np.median(known), "mean": known.mean()}.get(options.empty_cells, 0.0)
    indicator = options.indicator and bool(empty.any())
    return NumberColumn(name=name, kind=kind, fill=float(fill), indicator=indicator, **written.model_dump())


def _read(series: pd.Series, kind: str, options: Preparation) -> Numbers:
    return days_of(series, options.date_format) if kind == "date" else numbers_of(series, options.number_format)


def about_strays(
    name: str, series: pd.Series, found: Numbers, kind: str, options: Preparation, where: str, problems: Problems
) -> np.ndarray:
    """Where a column `[R]` has no numbers; text among them goes to `problems`, with what it may be meant as."""
    stray = np.flatnonzero(found.stray)
    if stray.size:
        wanted = "a date" if kind == "date" else "a finite number"
        what = f"{name} is {str(series.iloc[int(stray[0])])[:40]!r}, expected {wanted}"
        if options.stray_cells == "error":
            looks, choose = meant_as(series, found, options)
            action = f"mend it, or choose stray_cells=empty, categorical={name} or drop={name}"
            what = f"{what}; looks like {looks}" if looks else what
            action = f"choose {choose}; if not, {action}" if choose else action
            problems.add(where, what, stray, action, "error")
        else:
            problems.add(where, what, stray, "taken as empty (stray_cells=empty)", "mended")
    return found.empty | found.stray


def meant_as(series: pd.Series, found: Numbers, options: Preparation) -> tuple[str, str]:
    """What a column with cells that are no numbers looks like, and the option to choose; '' where nobody can say."""
    text = text_of(series)
    form = dates_look_like(pc.filter(text, pa.array(found.stray)), options.date_format)
    if form is not None:
        return f"dates{form.doubt}", f"date_format={form.choose}"
    look = looks_like(text, options.number_format)
    if look is None:
        return "", ""
    another_unit = "units=" in look.choose and found.unit is not None and bool((found.unit >= 0).any())
    return look.what, "" if another_unit else look.choose


def writing_of(
    name: str, series: pd.Series, found: Numbers, options: Preparation, place: str, problems: Problems
) -> Writing:
    """How a column's numbers are written, with notes about what may be meant otherwise."""
    unit = _unit_of(name, series, found, options, place, problems)
    _note_groups(series, found, options, place, problems, "note")
    grouped = found.grouped is not None and bool(found.grouped.any())
    return Writing(unit=unit, bare=bool(_bare(found).any()), grouped=grouped)


def check_writing(
    name: str, series: pd.Series, found: Numbers, before: Writing, options: Preparation, where: str, problems: Problems
) -> None:
    """Tell what of a column is written otherwise than when it was first read; another unit is an error."""
    _other_units(name, series, found, before.unit, options, where, problems)
    bare = np.flatnonzero(_bare(found))
    if before.unit is not None and before.bare is False and bare.size:
        what = f"{name} is {str(series.iloc[int(bare[0])])[:40]!r}, but all had the unit {before.unit!r} before"
        problems.add(where, what, bare, f"taken as {before.unit}", "mended")
    if before.grouped is False:
        also = ", though none had a sign between thousands before"
        _note_groups(series, found, options, f"{where}, {name}", problems, "mended", also)


def _bare(found: Numbers) -> np.ndarray:
    """Where numbers `[R]` have no unit."""
    number = ~(found.empty | found.stray)
    return number if found.unit is None else number & (found.unit < 0)


def _unit_of(
    name: str, series: pd.Series, found: Numbers, options: Preparation, place: str, problems: Problems
) -> str | None:
    """The one unit of a column; two of them make its numbers mean different things."""
    if found.unit is None or not (found.unit >= 0).any():
        return None
    here = np.unique(found.unit[found.unit >= 0])
    units = [options.units[int(at)] for at in here]
    if len(units) > 1:
        rows = np.flatnonzero(found.unit == here[1])
        first = str(series.iloc[int(np.flatnonzero(found.unit == here[0])[0])])
        what = f"{name} is {str(series.iloc[int(rows[0])])[:40]!r}, but {first[:40]!r} in another row"
        problems.add(place.rpartition(", ")[0], what, rows, "give the column one unit, or leave it out", "error")
        return units[0]
    count = int((found.unit >= 0).sum())
    bare = int((~found.empty & ~found.stray).sum()) - count
    beside = f", and {bare:,} of its numbers have none" if bare else ""
    problems.add(place, f"{units[0]!r} stands beside numbers{beside}", count, f"taken off (units={units[0]})", "note")
    return units[0]


def _other_units(
    name: str, series: pd.Series, found: Numbers, unit: str | None, options: Preparation, where: str,
    problems: Problems,
) -> None:  # fmt: skip
    """Add an error about cells in another unit than the column had when it was first read."""
    if found.unit is None:
        return
    expected = options.units.index(unit) if unit in options.units else -1
    other = np.flatnonzero((found.unit >= 0) & (found.unit != expected))
    # While fitting, two units in one column have been told already.
    if other.size and not any(problem.where == where and name in problem.what for problem in problems.errors):
        had = "no unit" if unit is None else f"the unit {unit!r}"
        what = f"{name} is {str(series.iloc[int(other[0])])[:40]!r}, but the column had {had} before"
        problems.add(where, what, other, "give numbers in the unit that was learned from", "error")


def _note_writing(
    name: str, series: pd.Series, found: Numbers, options: Preparation, place: str, problems: Problems
) -> None:
    """Notes about numbers that may be meant otherwise than they are read."""
    if found.unit is None or not (found.unit >= 0).any():
        form = days_in_digits(found.values[~(found.empty | found.stray)])
        if form is not None:
            action = f"taken as numbers; choose date_format={form} to take them as dates"
            problems.add(place, "these look like dates without signs between", 1, action, "note")
    text = pc.fill_null(text_of(series), "") if _may_be_text(series) else None
    if text is not None:
        led = pc.match_substring_regex(text, "^0[0-9]+$").to_numpy(zero_copy_only=False).astype(bool)
        if led.any():
            shown = text[int(np.flatnonzero(led)[0])].as_py()[:40]
            action = f"taken as numbers; choose categorical={name} if they are names, as post codes are"
            problems.add(place, f"{shown!r} begins with 0", int(led.sum()), action, "note")


def _note_groups(
    series: pd.Series, found: Numbers, options: Preparation, place: str, problems: Problems,
    severity: Literal["note", "mended"], also: str = "",
) -> None:  # fmt: skip
    """That a sign was taken for one between thousands: 1.234 may be meant as 1.234."""
    if found.grouped is None or not found.grouped.any():
        return
    at = int(np.flatnonzero(found.grouped)[0])
    form = options.number_format
    what = f"{str(series.iloc[at])[:40]!r} is read as {found.values[at]:.10g}"
    action = f"as chosen (decimal={form.decimal}, thousands={form.thousands}){also}"
    problems.add(place, what, int(found.grouped.sum()), action, severity)


def _may_be_text(series: pd.Series) -> bool:
    return not (isinstance(series.dtype, np.dtype) and series.dtype.kind in "biufM")


def _about_empty(empty: np.ndarray, options: Preparation, where: str, name: str, done: str, problems: Problems) -> None:
    rows = np.flatnonzero(empty)
    if options.empty_cells == "error":
        problems.add(where, f"{name} is empty", rows, "fill it, or choose empty_cells=median, mean or zero", "error")
    else:
        problems.add(where, f"{name} is empty", rows, f"{done} (empty_cells={options.empty_cells})", "mended")
