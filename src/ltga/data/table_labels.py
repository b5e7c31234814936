"""The label and split columns of a node table."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ltga.data.preparation import Preparation
from ltga.data.problems import Problems
from ltga.data.splits import Masks
from ltga.data.table_capitals import note_capitals, note_same_numbers
from ltga.data.table_cells import text_of
from ltga.data.table_unknown_labels import without_missing_words

_SPLIT_PARTS = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}
# Beyond so many different labels, most of them on a single node, the column is something else than classes.
_FEW_CLASSES = 20


_NO_CLASS = ("-1", "-1.0")
_OR_ELSE = "say which column it is with label=COLUMN; links need none (predict=links)"
_NODE_TABLE = (
    "for them make a folder of edges.csv (source, target) and nodes.csv (id, label); links need none (predict=links)"
)


def read_labels(
    nodes: pd.DataFrame, options: Preparation, where: str, problems: Problems, known: tuple[str, ...] | None = None,
    item: str = "node",
) -> tuple[np.ndarray, tuple[str, ...]]:  # fmt: skip
    """Labels `[N]` numbered from 0 (-1: not known) and the classes in order; `known` are those of an earlier graph.

    `item` is what a row describes.
    """
    if options.label not in nodes:
        if known is None:
            what = f"there are no labels (column {options.label!r})"
            nothing_but_ids = list(nodes.columns) == [options.id]  # as a list of edges has it
            action = _NODE_TABLE if nothing_but_ids else f"add them, or {_OR_ELSE}"
            problems.add(where, what, 1, action, "error")
        return np.full(len(nodes), -1, dtype=np.int64), known or ()
    text = without_missing_words(text_of(nodes[options.label]), options.label, options, where, problems, known)
    counts = {entry["values"].as_py(): entry["counts"].as_py() for entry in text.value_counts()}
    classes = known if known is not None else class_order(counts)
    at = pc.fill_null(pc.index_in(text, value_set=pa.array(classes, text.type)), -1)
    y = at.to_numpy(zero_copy_only=False).astype(np.int64)
    if known is None:
        _check(y, classes, text, options, where, problems, item)
    else:
        strange = sorted(set(class_order(counts)) - set(known))
        rows = np.flatnonzero(pc.is_in(text, value_set=pa.array(strange, text.type)).to_numpy(zero_copy_only=False))
        what = f"{options.label} is {strange[0][:40]!r}, a class that was not there before" if strange else ""
        action = "mend it, or choose new_category=other" if options.new_category == "error" else "taken as not known"
        problems.add(where, what, rows, action, "error" if options.new_category == "error" else "mended")
    return y, classes


def class_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Names of classes in order, by number if all are whole numbers; '' and -1 are none.

    >>> class_order(["10", "9", "-1", ""]), class_order(["b", "a"])
    (('9', '10'), ('a', 'b'))
    """
    given = sorted(set(labels) - {"", "-1"})
    # Digits as in ASCII and few of them: int() knows more scripts, and refuses very long numbers.
    if all(re.fullmatch("-?[0-9]{1,18}", name) for name in given):
        given = sorted((name for name in given if int(name) != -1), key=int)
    elif all(re.fullmatch(r"-?[0-9]{1,18}\.0*", name) for name in given):  # a table of fractions: -1.0 is -1
        given = [name for name in given if float(name) != -1]
    return tuple(given)


def _check(
    y: np.ndarray, classes: tuple[str, ...], text: pa.Array, options: Preparation, where: str, problems: Problems,
    item: str,
) -> None:  # fmt: skip
    """What is odd about labels to learn from."""
    place, other = f"{where}, {options.label}", "say which column it is with label=COLUMN"
    rows = np.flatnonzero(pc.is_in(text, value_set=pa.array(_NO_CLASS, text.type)).to_numpy(zero_copy_only=False))
    if rows.size:
        action = "read as not known; if it is a class, give it a name in words"
        problems.add(where, f"{options.label} is {text[int(rows[0])].as_py()!r}", rows, action, "mended")
    note_capitals(classes, place, "classes", problems)
    note_same_numbers(classes, place, "classes", problems)
    sizes = np.bincount(y[y >= 0], minlength=len(classes))
    labelled = int(sizes.sum())
    if labelled == 0:
        problems.add(place, "all labels are missing", len(y), f"label some {item}s, or {other}", "error")
        return
    if len(classes) == 1:
        what = f"the only label is {classes[0][:40]!r}; classification needs at least two"
        problems.add(place, what, labelled, f"label {item}s of another class, or {other}", "error")
        return
    single = np.flatnonzero(sizes == 1)
    if len(single) > len(classes) / 2 and len(classes) > _FEW_CLASSES:
        what = f"{len(classes):,} different labels on {labelled:,} {item}s, {len(single):,} of them on one only"
        kind = "numbers to predict" if all(_is_number(name) for name in classes[:100]) else "names"
        action = f"{other}, or choose predict=number" if kind != "names" else other
        problems.add(place, f"{what}: these look like {kind}, not classes", labelled, action, "error")
    elif single.size:
        rows = np.flatnonzero(np.isin(y, single))
        what = f"{options.label} {classes[single[0]][:40]!r} appears once"
        if item == "graph":  # the folds have every class in every part
            problems.add(where, what, rows, "merge it with another class, or leave it out", "error")
        else:
            problems.add(where, what, rows, "kept: it is learnt from and never tested", "note")
    unknown = len(y) - labelled
    if unknown:
        what = f"{unknown:,} of {len(y):,} labels are not known"
        problems.add(place, what, unknown, in_no_split(item), "note")


def in_no_split(item: str) -> str:
    """What becomes of nodes or graphs without a label."""
    return f"these {item}s are in the graph but in no split" if item == "node" else f"these {item}s are in no split"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_splits(
    nodes: pd.DataFrame, y: np.ndarray, options: Preparation, where: str, problems: Problems, item: str = "node"
) -> Masks | None:
    """Masks `[1, N]` of the three parts, if the table has such a column."""
    if options.split not in nodes or options.split in options.drop:
        return None
    parts = pc.utf8_lower(text_of(nodes[options.split])).to_numpy(zero_copy_only=False)
    name = options.split
    odd = np.flatnonzero(~np.isin(parts, [*_SPLIT_PARTS, ""]))
    problems.add(
        where, f"{name} must be train, val or test, or blank for none", odd, f"mend it, or choose drop={name}", "error"
    )
    bare = np.flatnonzero((parts != "") & (y < 0))
    what = f"{options.label} is blank or -1 although the {item} is in a split"
    problems.add(where, what, bare, "label it, or leave its split blank", "error")
    masks = np.zeros((3, 1, y.shape[0]), dtype=bool)
    for part_name, part in _SPLIT_PARTS.items():
        masks[part, 0] |= parts == part_name
    if not masks[0].any():
        problems.add(where, f"column {name} names no train {item}", 1, "name some", "error")
    if not masks[1].any():
        problems.add(where, f"column {name} names no val {item}", 1, "name some, to choose the best epoch by", "error")
    return masks[0], masks[1], masks[2]
