"""What programs leave in tables and nobody meant: rows without a cell, an index, columns without a name."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pandas as pd
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ltga.data.preparation import Preparation
from ltga.data.problems import Problems
from ltga.data.table_cells import text_of

# What pandas calls its index: nothing when it writes it, this when it has read it back.
INDEX = re.compile(r"|Unnamed: [0-9]+(\.[0-9]+)*")


def blank_rows(frame: pd.DataFrame, key: str) -> np.ndarray:
    """Rows in which every cell is blank, as spreadsheets leave them; `key` is a column that others fill.

    >>> blank_rows(pd.DataFrame({"id": ["a", "", None], "x": ["1", "2", " "]}), "id").tolist()
    [2]
    """
    rows = np.arange(len(frame))
    for name in (key, *(name for name in frame.columns if name != key)):
        cells = text_of(frame[name].iloc[rows])
        rows = rows[pc.equal(cells, "").to_numpy(zero_copy_only=False).astype(bool)]
        if not rows.size:
            break
    return rows if rows.size < len(frame) else rows[:0]  # a table of nothing else is another fault


def note_blank_rows(rows: np.ndarray, where: str, problems: Problems) -> None:
    problems.add(where, "is a row without any cell", rows, "passed over", "note")


def meant_columns(
    frame: pd.DataFrame, names: Iterable[str], options: Preparation, where: str, problems: Problems
) -> list[str]:
    """The columns among `names` that somebody meant; what becomes of the others is added to `problems`."""
    kept = []
    for name in names:
        if not INDEX.fullmatch(name) or name in options.categorical:
            kept.append(name)
            continue
        text = text_of(frame[name])
        shown = f"column {name!r}" if name else "a column without a name"
        if pc.all(pc.equal(text, "")).as_py():
            problems.add(where, f"{shown} has no cells", 1, "left out", "note")
        elif _counts_rows(text):
            what = f"{shown} numbers the rows, as the index does that pandas writes"
            problems.add(where, what, 1, "left out (to_csv(index=False) does not write it)", "note")
        elif name:
            kept.append(name)
        else:
            example = next(cell for cell in text.to_pylist() if cell)
            action = "give it a name in the header, or delete it"
            problems.add(where, f"{shown} has cells, {example[:40]!r} for example", 1, action, "error")
    return kept


def note_misnamed(names: Iterable[str], options: Preparation, where: str, problems: Problems) -> None:
    """A note about each feature whose name is nearly that of a column which is no feature."""
    for name in names:
        meant = {"train_mask": "split", "val_mask": "split", "test_mask": "split"}.get(name.lower(), name.lower())
        if meant in ("id", "label", "split") and meant == getattr(options, meant):
            choose = f"{meant}={name} or drop={name}"
            if "mask" in name.lower():  # masks, as PyG has them
                choose = f"drop={name}, and say train, val or test in one column split"
            action = f"taken as a feature; if it is none, choose {choose}"
            problems.add(where, f"column {name!r} is named nearly like {meant!r}", 1, action, "note")


def _counts_rows(text: object) -> bool:
    """Whole numbers, every one another: an index, also of rows that were picked out or shuffled."""
    return bool(pc.all(pc.match_substring_regex(text, "^[0-9]+$")).as_py()) and len(pc.unique(text)) == len(text)  # type: ignore[arg-type]
