"""Your own graph as two tables, edges and nodes, in CSV or Parquet."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd

from ltga.data.assemble import GraphArrays
from ltga.data.bounds import in_a_line
from ltga.data.edges import first_repeat, pair_codes
from ltga.data.splits import Masks
from ltga.data.table_files import SUFFIXES, read_frame
from ltga.errors import DataError

_SPLIT_PARTS = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}


def find_tables(folder: Path) -> tuple[Path, Path]:
    """The edge and node tables of a folder: `edges.csv` or `.parquet`, `nodes.csv` or `.parquet`."""
    found = []
    for stem in ("edges", "nodes"):
        candidates = [folder / f"{stem}{suffix}" for suffix in SUFFIXES if (folder / f"{stem}{suffix}").exists()]
        if len(candidates) != 1:
            state = "neither is there" if not candidates else "both are there"
            raise DataError(f"{folder}: expected {stem}.csv or {stem}.parquet, but {state}")
        found.append(candidates[0])
    return found[0], found[1]


def read_tables(edges: str | Path, nodes: str | Path, convention: str = "directed") -> GraphArrays:
    """The graph in an edge table and a node table; an error names the file and the data row, from 1.

    Args:
        edges: columns `source`, `target`, optionally `weight` and further numeric attributes, which
            become edge attributes in the order of their columns, weight first.
        nodes: columns `id`, `label` (blank or -1: unlabelled), optionally `split` (train, val, test or
            blank); every other column is a numeric feature. Identifiers and labels may be text or
            whole numbers.
        convention: what a row of `edges` means, see `ltga.data.edges`.
    """
    edges, nodes = Path(edges), Path(nodes)
    node_table = _Table(nodes, ("id", "label"))
    edge_table = _Table(edges, ("source", "target"))
    ids = node_table.text("id")
    node_table.refuse(ids == "", "id", "is blank; every node needs an id")
    repeat = first_repeat(np.unique(ids, return_inverse=True)[1])
    if repeat is not None:
        node_table.fail(repeat[1], f"id {ids[repeat[1]]!r} repeats row {repeat[0] + 1}")
    features = [column for column in node_table.columns if column not in ("id", "label", "split")]
    if not features:
        raise DataError(f"{nodes}: no feature columns; give at least one beside id, label and split")
    y, class_names = _labels(node_table)
    rows = _endpoints(edge_table, ids, nodes)
    repeat = first_repeat(pair_codes(rows, ids.size, convention))
    if repeat is not None:
        edge_table.fail(repeat[1], f"repeats the edge of row {repeat[0] + 1}; keep one of them")
    attributes = [column for column in edge_table.columns if column not in ("source", "target")]
    attributes.sort(key=lambda column: column != "weight")
    return GraphArrays(
        x=node_table.numbers(features),
        y=y,
        edges=rows,
        masks=_splits(node_table, y) if "split" in node_table.columns else None,
        edge_attr=edge_table.numbers(attributes) if attributes else None,
        class_names=class_names,
        node_names=tuple(ids.tolist()),
    )


class _Table:
    """A table read as text, which knows its file for error messages."""

    def __init__(self, path: Path, required: tuple[str, ...]) -> None:
        self.path = path
        self.frame = read_frame(path)
        self.columns = [str(column) for column in self.frame.columns]
        self.frame.columns = pd.Index(self.columns)
        missing = [column for column in required if column not in self.columns]
        if missing:
            raise DataError(
                f"{path}: column {missing[0]!r} is missing; found {in_a_line(', '.join(self.columns) or 'none')}"
            )
        if len(set(self.columns)) != len(self.columns):
            raise DataError(f"{path}: column names repeat: {in_a_line(', '.join(self.columns))}")
        if len(self.frame) == 0:
            raise DataError(f"{path}: there are no rows below the header")

    def fail(self, row: int, problem: str) -> None:
        """Raise about the data row at position `row`, counted from 1 in the message."""
        raise DataError(f"{self.path}: row {row + 1}: {in_a_line(problem)}")

    def refuse(self, bad: np.ndarray, column: str, problem: str) -> None:
        """Raise about the first row where `bad` holds."""
        rows = np.flatnonzero(bad)
        if rows.size:
            self.fail(int(rows[0]), f"{column} {problem}")

    def text(self, column: str) -> np.ndarray:
        """A column as text `[R]`; whole numbers without a decimal point, blanks as ''."""
        series = self.frame[column]
        if pd.api.types.is_float_dtype(series):
            series = series.map(lambda v: "" if pd.isna(v) else str(int(v)) if float(v).is_integer() else str(v))
        elif not pd.api.types.is_string_dtype(series):
            series = series.map(lambda v: "" if pd.isna(v) else str(v))
        return series.fillna("").astype(str).str.strip().to_numpy(dtype=object)

    def numbers(self, columns: list[str]) -> np.ndarray:
        """Columns as finite float32 `[R, C]`."""
        values = np.empty((len(self.frame), len(columns)), dtype=np.float32)
        for at, column in enumerate(columns):
            given = pd.to_numeric(self.frame[column], errors="coerce")
            with np.errstate(over="ignore"):  # too large for float32 becomes inf and is refused below
                values[:, at] = given.to_numpy(dtype=np.float64, na_value=np.nan)
            bad = np.flatnonzero(~np.isfinite(values[:, at]))
            if bad.size:
                shown = self.frame[column].iloc[int(bad[0])]
                self.fail(int(bad[0]), f"{column} is {str(shown)[:40]!r}, expected a finite number")
        return values


def _labels(table: _Table) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels `[N]` numbered from 0 (-1: unlabelled) and the class names in order."""
    labels = table.text("label")
    given = sorted(set(labels.tolist()) - {"", "-1"})
    # Digits as in ASCII and few of them: int() knows more scripts, and refuses very long numbers.
    if all(re.fullmatch("-?[0-9]{1,18}", name) for name in given):
        given = sorted((name for name in given if int(name) != -1), key=int)
    elif all(re.fullmatch(r"-?[0-9]{1,18}\.0*", name) for name in given):  # a table of fractions: -1.0 is -1
        given = [name for name in given if float(name) != -1]
    number = {name: at for at, name in enumerate(given)}
    y = np.array([number.get(label, -1) for label in labels.tolist()], dtype=np.int64)
    return y, tuple(given)


def _endpoints(table: _Table, ids: np.ndarray, nodes: Path) -> np.ndarray:
    """Edge rows `[E, 2]` as node positions."""
    position = pd.Index(ids)
    rows = np.empty((len(table.frame), 2), dtype=np.int64)
    for at, column in enumerate(("source", "target")):
        names = table.text(column)
        rows[:, at] = position.get_indexer(pd.Index(names))
        bad = np.flatnonzero(rows[:, at] < 0)
        if bad.size:
            table.fail(int(bad[0]), f"{column} {names[bad[0]]!r} is not an id in {nodes}")
    return rows


def _splits(table: _Table, y: np.ndarray) -> Masks:
    parts = np.array([part.lower() for part in table.text("split").tolist()], dtype=object)
    table.refuse(~np.isin(parts, [*_SPLIT_PARTS, ""]), "split", "must be train, val or test, or blank for none")
    table.refuse((parts != "") & (y < 0), "label", "is blank or -1 although the node is in a split")
    masks = np.zeros((3, 1, y.shape[0]), dtype=bool)
    for name, part in _SPLIT_PARTS.items():
        masks[part, 0] |= parts == name
    if not masks[0].any():
        raise DataError(f"{table.path}: column split names no train node")
    return masks[0], masks[1], masks[2]
