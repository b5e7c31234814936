"""Numbers and several labels in a node table: whether a column holds them instead of classes, and what they are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from ltga.data.preparation import Preparation
from ltga.data.problems import Problems
from ltga.data.table_cells import text_of
from ltga.data.table_labels import in_no_split
from ltga.data.target import Kind

SEPARATOR = ";"
_FEW = 20  # different values up to which numbers are rather names of classes
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
    text = text_of(nodes[columns[0]])
    counts = {entry["values"].as_py(): entry["counts"].as_py() for entry in text.value_counts()}
    counts.pop("", None)
    place = f"{where}, {columns[0]}"
    if any(SEPARATOR in word for word in counts):
        action = "several labels for a node (predict=labels; predict=class if the sign belongs to a name)"
        cells = sum(count for word, count in counts.items() if SEPARATOR in word)
        problems.add(place, f"has cells with {SEPARATOR!r}", cells, action, "note")
        return "labels"
    if not all(is_number(word) for word in counts):
        return "classes"
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


def read_target(
    nodes: pd.DataFrame, options: Preparation, kind: Kind, where: str, problems: Problems,
    names: tuple[str, ...] | None, item: str = "node",
) -> tuple[np.ndarray, tuple[str, ...]]:  # fmt: skip
    """Numbers `[N]` or labels `[N, L]` with NaN where not known, and their names; `names` are those of before."""
    columns = label_columns(options, nodes.columns)
    missing = [column for column in columns if column not in nodes]
    if missing:
        if names is None:
            hint = "rename one, or say which it is with label=COLUMN"
            listed = ", ".join(map(str, nodes.columns))
            problems.add(where, f"column {missing[0]!r} is missing; found {listed}", 1, hint, "error")
        shape = (len(nodes),) if kind == "number" else (len(nodes), len(names or columns))
        return np.full(shape, np.nan), names or columns
    if kind == "number":
        values, found = _numbers(nodes[columns[0]], where, problems), columns
    elif len(columns) > 1 or SEPARATOR not in "".join(set(text_of(nodes[columns[0]]).to_pylist())):
        values, found = _truths(nodes, columns, where, problems), columns
    else:
        values, found = _listed(nodes[columns[0]], names, options, where, problems)
    if names is None:
        _check(values, found, options, where, problems, item)
    return values, found


def _numbers(series: pd.Series, where: str, problems: Problems) -> np.ndarray:
    words = text_of(series).to_pylist()
    values = np.array([float(word) if is_number(word) else math.nan for word in words])
    bad = np.array([at for at, word in enumerate(words) if word and not is_number(word)], dtype=int)
    if bad.size:
        what = f"{series.name} is {words[bad[0]][:40]!r}"
        problems.add(where, what, bad, "give a number, or leave blank what is not known", "error")
    return values


def _truths(nodes: pd.DataFrame, columns: tuple[str, ...], where: str, problems: Problems) -> np.ndarray:
    """A column for each label."""
    values = np.full((len(nodes), len(columns)), np.nan)
    for at, column in enumerate(columns):
        words = text_of(nodes[column]).to_pylist()
        values[:, at] = [TRUTH.get(word.lower(), math.nan) for word in words]
        bad = np.array([row for row, word in enumerate(words) if word.lower() not in TRUTH], dtype=int)
        if bad.size:
            what = f"{column} is {words[bad[0]][:40]!r}"
            problems.add(where, what, bad, "use 1 and 0, yes and no, true and false, or blank if not known", "error")
    return values


def _listed(
    series: pd.Series, names: tuple[str, ...] | None, options: Preparation, where: str, problems: Problems
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The labels of a node in one cell; a blank cell is not known, one that holds only the separator has none."""
    cells = [[part.strip() for part in word.split(SEPARATOR) if part.strip()] for word in text_of(series).to_pylist()]
    blank = np.array([not word for word in text_of(series).to_pylist()])
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
    known = ~np.isnan(values)
    some = known if known.ndim == 1 else known.any(axis=1)
    if not some.any():
        problems.add(f"{where}, {options.label}", "all labels are missing", len(values), "fill in some", "error")
        return
    for name, column, there in zip(names, np.atleast_2d(values.T), np.atleast_2d(known.T)):
        different = np.unique(column[there])
        if different.size < 2:
            what = (
                f"is {different[0]:g} for every {item} that has it"
                if different.size
                else f"is missing for every {item}"
            )
            problems.add(f"{where}, {name}", f"{what}; there is nothing to learn", 1, "leave it out", "error")
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
