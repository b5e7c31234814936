"""Numbers and several labels in a node table: whether a column holds them instead of classes, and what they are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]

from ltga.data.close_numbers import rounded_away
from ltga.data.number_hints import looks_like, nearly_numbers
from ltga.data.preparation import Preparation
from ltga.data.problems import Problems
from ltga.data.table_cells import number_text, numbers_of, text_of
from ltga.data.table_labels import in_no_split
from ltga.data.table_numbers import Writing, check_writing, writing_of
from ltga.data.table_unknown_labels import is_no_label, without_missing_words
from ltga.data.target import Kind

SEPARATOR = ";"
_FEW = 20  # different values up to which numbers are rather names of classes
_NEARLY_ALL = 0.9  # of the labels, if they are numbers among which something else has strayed
_YES, _NO = ("1", "1.0", "true", "yes"), ("0", "0.0", "false", "no")
TRUTH = {**dict.fromkeys(_YES, 1.0), **dict.fromkeys(_NO, 0.0), "": math.nan}


def label_columns(options: Preparation, columns: Iterable[str]) -> tuple[str, ...]:
    """The columns with what is to be predicted: one, or several if the name is a list of names.

    >>> label_columns(Preparation(label="red,blue"), ["id", "red", "blue"]), label_columns(Preparation(), ["id"])
    (('red', 'blue'), ('label',))
    """
    if options.label in set(columns) or "," not in options.label:
        return (options.label,)
    return tuple(part.strip() for part in options.label.split(","))


def kind_of_words(counts: Mapping[str, int]) -> Kind:
    """What cells look like, told by how often each of them is there; blanks left out.

    >>> kind_of_words({"a;b": 1, "a": 2}), kind_of_words({"red": 3, "blue": 2})
    ('labels', 'classes')
    """
    if any(SEPARATOR in word for word in counts):
        return "labels"
    if len(counts) <= _FEW or not all(is_number(word) for word in counts):
        return "classes"
    once = sum(count == 1 for count in counts.values()) > len(counts) / 2
    return "number" if once or any(float(word) % 1 for word in counts) else "classes"


def kind_of_target(nodes: pd.DataFrame, options: Preparation, where: str, problems: Problems) -> Kind:
    """What the options say, else what the cells look like; a choice that was not asked for is told."""
    columns = label_columns(options, nodes.columns)
    if options.predict == "links":
        return "classes"
    if options.predict != "auto":
        chosen: Kind = {"class": "classes", "number": "number", "labels": "labels"}[options.predict]  # type: ignore[assignment]
        if len(columns) > 1 and chosen != "labels":
            problems.add(where, f"label names {len(columns)} columns", 1, "name one, or choose predict=labels", "error")
        return chosen
    if len(columns) > 1:
        return "labels"
    if columns[0] not in nodes:
        return "classes"
    counts = target_words(nodes[columns[0]], options)
    place = f"{where}, {columns[0]}"
    if any(SEPARATOR in word for word in counts):
        action = "several labels for a node (predict=labels; predict=class if the sign belongs to a name)"
        cells = sum(count for word, count in counts.items() if SEPARATOR in word)
        problems.add(place, f"has cells with {SEPARATOR!r}", cells, action, "note")
        return "labels"
    if not all(is_number(word) for word in counts):
        return "number" if meant_as_numbers(counts, options, place, problems) else "classes"
    what = f"{len(counts):,} different numbers"
    if len(counts) <= _FEW:
        if any(float(word) % 1 for word in counts):
            action = "taken as classes; to predict a number: predict=number"
            problems.add(place, what, sum(counts.values()), action, "note")
        return "classes"
    if kind_of_words(counts) == "number":
        problems.add(place, what, sum(counts.values()), "a number is predicted (predict=number)", "note")
        return "number"
    problems.add(place, what, sum(counts.values()), "taken as classes; to predict a number: predict=number", "note")
    return "classes"


def target_words(series: pd.Series, options: Preparation) -> dict[str, int]:
    """How often each cell is there, numbers as Python writes them; those left out that say nothing."""
    text = number_text(series, options.number_format)
    counts = {entry["values"].as_py(): entry["counts"].as_py() for entry in text.value_counts()}
    class_of_its_own = options.missing_labels == "class"
    return {word: count for word, count in counts.items() if word and (class_of_its_own or not is_no_label(word))}


def meant_as_numbers(counts: Mapping[str, int], options: Preparation, place: str, problems: Problems) -> bool:
    """Whether cells that are not all numbers are meant as such, and too many to be classes: then what is none is told
    when they are read. A few of them are classes, and what they look like is a note."""
    words = pa.array(list(counts), pa.large_string())
    near = nearly_numbers(words)
    spoken = {word: count for (word, count), nearly in zip(counts.items(), near) if nearly or is_number(word)}
    if not spoken or sum(spoken.values()) < _NEARLY_ALL * sum(counts.values()):
        return False
    if len(spoken) > _FEW and sum(count == 1 for count in spoken.values()) > len(spoken) / 2:
        return True
    look = looks_like(words, options.number_format)
    if look is not None:
        number = f"; for numbers choose {look.choose} and predict=number" if look.choose else ""
        problems.add(place, f"looks like {look.what}", sum(counts.values()), f"taken as classes{number}", "note")
    return False


def read_target(
    nodes: pd.DataFrame, options: Preparation, kind: Kind, where: str, problems: Problems,
    names: tuple[str, ...] | None, item: str = "node", written: Writing | None = None,
) -> tuple[np.ndarray, tuple[str, ...], Writing | None]:  # fmt: skip
    """Numbers `[N]` or labels `[N, L]` with NaN where not known, their names, and how numbers are written.

    `names` and `written` are those of before, where a model has been trained.
    """
    columns = label_columns(options, nodes.columns)
    missing = [column for column in columns if column not in nodes]
    if missing:
        if names is None:
            hint = "rename one, or say which it is with label=COLUMN"
            listed = ", ".join(map(str, nodes.columns))
            problems.add(where, f"column {missing[0]!r} is missing; found {listed}", 1, hint, "error")
        shape = (len(nodes),) if kind == "number" else (len(nodes), len(names or columns))
        return np.full(shape, np.nan), names or columns, written
    if kind == "number":
        values, written = _numbers(nodes[columns[0]], options, where, problems, names is None, written)
        found = columns
    elif len(columns) > 1 or SEPARATOR not in "".join(set(text_of(nodes[columns[0]]).to_pylist())):
        values, found = _truths(nodes, columns, options, where, problems), columns
    else:
        values, found = _listed(nodes[columns[0]], names, options, where, problems)
    if names is None:
        _check(values, found, options, where, problems, item)
    return values, found, written


def _numbers(
    series: pd.Series, options: Preparation, where: str, problems: Problems, fresh: bool, written: Writing | None
) -> tuple[np.ndarray, Writing | None]:
    """A column of numbers and how they are written, which is as `written` says unless they are `fresh`."""
    name = str(series.name)
    words = text_of(series)
    without_missing_words(words, name, options, where, problems, may_be_class=False)
    found = numbers_of(series, options.number_format)
    bad = np.flatnonzero(found.stray)
    if bad.size:
        what = f"{name} is {words[int(bad[0])].as_py()[:40]!r}"
        look = looks_like(words, options.number_format)
        chosen = "" if look is None or (not fresh and "units=" in look.choose) else look.choose
        choose = f"choose {chosen}; if not, " if chosen else ""
        seems = "" if look is None else f", which looks like {look.what}"
        blank = "leave blank what is not known"
        instead = f"give a number, {blank}, or choose predict=class" if fresh else f"give a number, or {blank}"
        action = f"{choose}{instead}"
        problems.add(where, f"{what}{seems}", bad, action, "error")
    if fresh:
        written = writing_of(name, series, found, options, f"{where}, {name}", problems)
    elif written is not None:  # it was not looked at in runs of before
        check_writing(name, series, found, written, options, where, problems)
    return found.values, written


def _truths(
    nodes: pd.DataFrame, columns: tuple[str, ...], options: Preparation, where: str, problems: Problems
) -> np.ndarray:
    """A column for each label."""
    values = np.full((len(nodes), len(columns)), np.nan)
    for at, column in enumerate(columns):
        text = without_missing_words(text_of(nodes[column]), column, options, where, problems, may_be_class=False)
        words = text.to_pylist()
        values[:, at] = [TRUTH.get(word.lower(), math.nan) for word in words]
        bad = np.array([row for row, word in enumerate(words) if word.lower() not in TRUTH], dtype=int)
        if bad.size:
            what = f"{column} is {words[bad[0]][:40]!r}"
            problems.add(where, what, bad, "use 1 and 0, yes and no, true and false, or blank if not known", "error")
    return values


def _listed(
    series: pd.Series, names: tuple[str, ...] | None, options: Preparation, where: str, problems: Problems
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The labels of a node in one cell; a blank cell is not known, one that holds only the separator has none.

    A cell is not known either if a part of it is not.
    """
    words = text_of(series).to_pylist()
    cells = [[part.strip() for part in word.split(SEPARATOR) if part.strip()] for word in words]
    unclear = [next(filter(is_no_label, cell), "") for cell in cells]
    classes = without_missing_words(
        pa.array(unclear, pa.large_string()), str(series.name), options, where, problems, names
    )  # fmt: skip
    blank = np.array([
        not word or (bool(odd) and not kept) for word, odd, kept in zip(words, unclear, classes.to_pylist())
    ])  # fmt: skip
    cells = [[] if gone else cell for cell, gone in zip(cells, blank)]
    found = names if names is not None else tuple(sorted({part for cell in cells for part in cell}))
    at = {name: number for number, name in enumerate(found)}
    values = np.zeros((len(cells), len(found)))
    strange = []
    for row, cell in enumerate(cells):
        for part in cell:
            if part in at:
                values[row, at[part]] = 1.0
            else:
                strange.append(row)
    values[blank] = np.nan
    if strange:
        other = options.new_category == "other"
        action = "left out" if other else "mend it, or choose new_category=other"
        what = f"{series.name} has a label that was not there before"
        problems.add(where, what, np.array(strange), action, "mended" if other else "error")
    return values, found


def _check(
    values: np.ndarray, names: tuple[str, ...], options: Preparation, where: str, problems: Problems, item: str
) -> None:
    """What leaves nothing to learn."""
    lost = rounded_away(values) if values.ndim == 1 else None
    if lost is not None:
        what = f"numbers too close for float32, in which {lost[0]:.15g} is {lost[1]:.15g}"
        problems.add(f"{where}, {names[0]}", what, 1, "subtract what they have in common, their mean for one", "error")
    known = ~np.isnan(values)
    some = known if known.ndim == 1 else known.any(axis=1)
    if not some.any():
        problems.add(f"{where}, {options.label}", "all labels are missing", len(values), "fill in some", "error")
        return
    for name, column, there in zip(names, np.atleast_2d(values.T), np.atleast_2d(known.T)):
        different = np.unique(column[there])
        action = (
            "give other values, or say which column is to be predicted with label=COLUMN"
            if values.ndim == 1
            else "leave this label out (label=COLUMN,COLUMN names those to predict)"
        )
        if different.size < 2:
            what = (
                f"is {different[0]:g} for every {item} that has it"
                if different.size
                else f"is missing for every {item}"
            )
            problems.add(f"{where}, {name}", f"{what}; there is nothing to learn", 1, action, "error")
        elif values.ndim == 2 and column[there].sum() == 1:
            problems.add(
                f"{where}, {name}", f"only one {item} has this label", 1, "kept: it is in one part only", "note"
            )
    unknown = int((~some).sum())
    if unknown:
        what = f"{unknown:,} of {len(values):,} labels are not known"
        problems.add(f"{where}, {options.label}", what, unknown, in_no_split(item), "note")


def is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text)) and text.isascii()
    except ValueError:
        return False
