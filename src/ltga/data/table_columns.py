"""How one column becomes numbers: decided on one table, repeated on others."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pydantic import Field

from ltga.data.date_hints import dates_look_like
from ltga.data.preparation import Preparation
from ltga.data.problems import Problems
from ltga.data.table_capitals import note_capitals
from ltga.data.table_cells import kind_of, text_of
from ltga.data.table_numbers import FittedColumn, NumberColumn, fit_numbers

# Of the filled cells of a text column; beyond, it names rows rather than kinds of rows.
_MOSTLY_DIFFERENT = 0.5


class OneHotColumn(FittedColumn):
    """A column of 0 and 1 for each category; `missing`: one for empty cells, too."""

    kind: Literal["one-hot"] = "one-hot"
    values: tuple[str, ...]
    missing: bool

    @property
    def names(self) -> list[str]:
        return [f"{self.name}={value}" for value in self.values] + [f"{self.name} is missing"] * self.missing

    def encode(self, series: pd.Series, options: Preparation, where: str, problems: Problems) -> np.ndarray:
        """`[R, K]`; a category that is not known is zeros, if the options allow it."""
        text = text_of(series)
        known = [*self.values, ""] if self.missing else list(self.values)
        at = pc.fill_null(pc.index_in(text, value_set=pa.array(known, text.type)), -1).to_numpy(zero_copy_only=False)
        new = np.flatnonzero(at < 0)
        if new.size:
            shown = text[int(new[0])].as_py()
            _about_new(new, f"{self.name} is {shown[:40]!r}, which was not there before", options, where, problems)
        out = np.zeros((len(at), len(known)), dtype=np.float32)
        rows = np.flatnonzero(at >= 0)
        out[rows, at[rows]] = 1.0
        return out


class HashedColumn(FittedColumn):
    """Categories by a hash of their text, in `columns` columns of 0 and 1; empty cells are zeros."""

    kind: Literal["hash"] = "hash"
    columns: int

    @property
    def names(self) -> list[str]:
        return [f"{self.name}#{at}" for at in range(self.columns)]

    def encode(self, series: pd.Series, options: Preparation, where: str, problems: Problems) -> np.ndarray:
        """`[R, columns]`."""
        coded = text_of(series).dictionary_encode()
        buckets = np.array([self._bucket(text) for text in coded.dictionary.to_pylist()], dtype=np.int64)
        at = buckets[coded.indices.to_numpy(zero_copy_only=False)] if len(buckets) else np.zeros(0, dtype=np.int64)
        out = np.zeros((len(at), self.columns), dtype=np.float32)
        rows = np.flatnonzero(at >= 0)
        out[rows, at[rows]] = 1.0
        return out

    def _bucket(self, text: str) -> int:
        if not text:
            return -1
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") % self.columns


Column = Annotated[NumberColumn | OneHotColumn | HashedColumn, Field(discriminator="kind")]


def fit_column(
    name: str, series: pd.Series, options: Preparation, where: str, problems: Problems, keep_constant: bool = False
) -> NumberColumn | OneHotColumn | HashedColumn | None:
    """What becomes of a column; `None` if it is left out, and why is added to `problems`.

    `keep_constant`: equal numbers are kept, because they will be added up and differ then.
    """
    kind = "category" if name in options.categorical else kind_of(series, options.date_format, options.number_format)
    place = f"{where}, {name}"
    if kind == "date" and options.dates == "error":
        problems.add(place, "holds dates", 1, "choose dates=number, category or drop", "error")
        return None
    if kind == "date" and options.dates == "drop":
        problems.add(place, "holds dates", 1, "left out (dates=drop)", "note")
        return None
    if kind == "nested":
        problems.add(place, "holds lists or tables", 1, "left out; give one number or text in each cell", "note")
        return None
    if kind == "category" or (kind == "date" and options.dates == "category"):
        return _fit_category(name, series, options, place, problems)
    assert kind in ("number", "date")
    return fit_numbers(name, series, kind, options, where, problems, keep_constant)  # type: ignore[arg-type]


def _fit_category(
    name: str, series: pd.Series, options: Preparation, place: str, problems: Problems
) -> OneHotColumn | HashedColumn | None:
    text = text_of(series)
    counts = text.value_counts()
    count = {entry["values"].as_py(): entry["counts"].as_py() for entry in counts} if len(counts) < 100_000 else None
    filled = len(series) - (count.get("", 0) if count is not None else 0)
    different = len(counts) - (count is not None and "" in count)
    example = next((text for text in (count or {}) if text), "")
    what = f"text with {different:,} different values, {example[:30]!r} for example"
    if options.categories == "error":
        problems.add(place, what, 1, "choose categories=auto, one-hot, hash or drop", "error")
        return None
    if len(counts) <= 1:
        problems.add(place, f"is {example[:40]!r} in every row", 1, "left out", "note")
        return None
    dates = dates_look_like(text, options.date_format)
    if dates is not None:
        action = f"taken as text; choose date_format={dates.choose} to take them as dates"
        problems.add(place, f"these look like dates{dates.doubt}, {example[:30]!r} for example", 1, action, "note")
    chosen = options.categories
    if chosen == "auto":
        names_rows = different > options.one_hot_limit and different > _MOSTLY_DIFFERENT * filled
        chosen = "drop" if names_rows else "one-hot" if different <= options.one_hot_limit else "hash"
    if chosen == "drop":
        keep = "categories=hash to keep it" if dates is None else "date_format= as above to keep it"
        why = f"left out ({keep})" if options.categories == "auto" else "left out (categories=drop)"
        problems.add(place, what, 1, why, "note")
        return None
    if chosen == "one-hot" and count is not None:
        note_capitals(sorted(text for text in count if text), place, "categories", problems)
    gaps = np.flatnonzero(pc.equal(text, "").to_numpy(zero_copy_only=False))
    if gaps.size:
        done = "a category of its own" if chosen == "one-hot" else "zeros"
        problems.add(place.rpartition(",")[0], f"{name} is empty", gaps, f"{done} (categories={chosen})", "note")
    if chosen == "hash":
        problems.add(place, what, 1, f"hashed into {options.hash_columns} columns", "note")
        return HashedColumn(name=name, columns=options.hash_columns)
    if count is None:
        problems.add(place, what, 1, "too many for categories=one-hot; choose hash or drop", "error")
        return None
    problems.add(place, what, 1, "a column of 0 and 1 for each (one-hot)", "note")
    return OneHotColumn(name=name, values=tuple(sorted(text for text in count if text)), missing="" in count)


def _about_new(new: np.ndarray, what: str, options: Preparation, where: str, problems: Problems) -> None:
    if options.new_category == "error":
        problems.add(where, what, new, "mend it, or choose new_category=other", "error")
    else:
        problems.add(where, what, new, "taken as none of the known ones (new_category=other)", "mended")
