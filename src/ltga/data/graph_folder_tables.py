"""The two tables of a graph, CSV or Parquet, as a stream: a block of rows at a time, whatever their size."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.csv  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from ltga.data.bounds import in_a_line
from ltga.data.graph_folder_files import PARTS
from ltga.data.graph_folder_write import EdgeBlock, NodeBlock, check_convention
from ltga.data.node_ids import NodeIds
from ltga.data.table_graph import find_tables
from ltga.data.table_labels import class_order
from ltga.data.table_leftovers import INDEX
from ltga.data.table_targets import kind_of_words
from ltga.data.table_unknown_labels import is_no_label
from ltga.data.text_files import check_encoding, encoding_hint
from ltga.errors import DataError

_BLOCK_BYTES = 16 * 1024**2
_ROWS = 65536
_WHOLE = "--prepare categories=auto, say, which reads the tables whole and prepares them as ltga train does"
_SPLIT_NAMES = {**PARTS, "valid": PARTS["val"], "validation": PARTS["val"], "": 0}


class TableStream:
    """A folder with an edge table and a node table, see :func:`ltga.data.table_graph.read_folder`.

    A column ``time`` of the edges becomes their time.
    """

    repeats = "refuse"

    def __init__(self, folder: Path, convention: str = "directed") -> None:
        edges, nodes = find_tables(folder)
        self.name, self.where = folder.resolve().name, str(edges)
        self.convention = check_convention(convention)
        self.provenance: dict[str, Any] = {"path": str(folder)}
        self._nodes, self._edges = _Rows(nodes, ("id", "label")), _Rows(edges, ("source", "target"))
        self._features = [column for column in self._nodes.columns if column not in ("id", "label", "split")]
        if not self._features:
            raise DataError(f"{nodes}: no feature columns; give at least one beside id, label and split")
        attributes = [column for column in self._edges.columns if column not in ("source", "target", "time")]
        self.edge_columns = tuple(sorted(attributes, key=lambda column: column != "weight"))
        self.timed = "time" in self._edges.columns
        self._ids = NodeIds()
        self._labels: dict[str, int] = {}
        self._counts: Counter[str] = Counter()
        self._parts: list[np.ndarray] = []

    def nodes(self) -> Iterator[NodeBlock]:
        for first, batch in self._nodes.blocks():
            names = self._nodes.text(batch, "id")
            blank = np.flatnonzero(pc.equal(names, "").to_numpy(zero_copy_only=False))
            if blank.size:
                self._nodes.fail(first + int(blank[0]), "id is blank; every node needs an id")
            self._ids.add(names)
            x = np.stack([self._nodes.numbers(batch, column, first) for column in self._features], axis=1)
            words = self._nodes.text(batch, "label")
            for row, word in enumerate(words.to_pylist() if _has_unclear(words) else ()):
                if word and is_no_label(word):
                    choose = "choose --prepare missing_labels=unknown, or missing_labels=class"
                    self._nodes.fail(first + row, f"label is {word!r}, which may be a class, or not known; {choose}")
            labels = self._numbered(words)
            if "split" in self._nodes.columns:
                self._parts.append(self._split(batch, first, labels))
            yield NodeBlock(x, labels, [name.encode() for name in names.to_pylist()])
        repeat = self._ids.finish()
        if repeat is not None:
            self._nodes.fail(repeat[1], f"id repeats row {repeat[0] + 1}")

    def edges(self) -> Iterator[EdgeBlock]:
        for first, batch in self._edges.blocks():
            ends = []
            for column in ("source", "target"):
                names = self._edges.text(batch, column)
                ends.append(self._ids.positions(names))
                bad = np.flatnonzero(ends[-1] < 0)
                if bad.size:
                    name = names[int(bad[0])].as_py()
                    self._edges.fail(first + int(bad[0]), f"{column} {name!r} is not an id in {self._nodes.path}")
            columns = [self._edges.numbers(batch, column, first) for column in self.edge_columns]
            times = self._edges.numbers(batch, "time", first, np.float64) if self.timed else None
            yield EdgeBlock(ends[0], ends[1], np.stack(columns, axis=1) if columns else None, times)

    def classes(self) -> tuple[tuple[str, ...], np.ndarray | None]:
        kind = kind_of_words(self._counts)
        if kind != "classes":
            found = "several labels for a node" if kind == "labels" else f"{len(self._counts):,} different numbers"
            raise DataError(
                f"{self._nodes.path}: label holds {found}, and a graph folder holds classes; train on the tables "
                "themselves, or say --prepare predict=class"
            )
        names = class_order(self._labels)
        renumbered = np.full(len(self._labels), -1)
        for at, name in enumerate(names):
            renumbered[self._labels[name]] = at
        return tuple(names), renumbered

    def splits(self) -> np.ndarray | None:
        if not self._parts:
            return None
        parts = np.concatenate(self._parts)[None]
        if not (parts == PARTS["train"]).any():
            raise DataError(f"{self._nodes.path}: column split names no train node")
        return parts

    def _numbered(self, labels: pa.Array) -> np.ndarray:
        """Provisional numbers, in the order in which labels are met."""
        coded = labels.dictionary_encode()
        numbers = [
            -1 if name in ("", "-1") else self._labels.setdefault(name, len(self._labels))
            for name in coded.dictionary.to_pylist()
        ]
        indices = coded.indices.to_numpy(zero_copy_only=False)
        for name, count in zip(coded.dictionary.to_pylist(), np.bincount(indices, minlength=len(numbers)).tolist()):
            if name in self._labels:
                self._counts[name] += count
        return np.array(numbers, np.int64)[indices]

    def _split(self, batch: pa.RecordBatch, first: int, labels: np.ndarray) -> np.ndarray:
        coded = pc.utf8_lower(self._nodes.text(batch, "split")).dictionary_encode()
        numbers = np.array([_SPLIT_NAMES.get(name, 255) for name in coded.dictionary.to_pylist()], np.uint8)
        parts = numbers[coded.indices.to_numpy(zero_copy_only=False)]
        for bad, problem in (
            (parts == 255, "split must be train, val or test, or blank for none"),
            ((parts > 0) & (labels < 0), "label is blank or -1 although the node is in a split"),
        ):
            if bad.any():
                self._nodes.fail(first + int(bad.argmax()), problem)
        return parts


def _has_unclear(words: pa.Array) -> bool:
    return any(word and is_no_label(word) for word in pc.unique(words).to_pylist())


class _Rows:
    """A table file, read block by block, which knows its rows for error messages."""

    def __init__(self, path: Path, required: tuple[str, ...]) -> None:
        self.path = path
        with self._faults():
            self.columns = self._header()
        missing = [column for column in required if column not in self.columns]
        if missing:
            found = in_a_line(", ".join(self.columns) or "none")
            other = re.search("[;\t]|^sep=", "".join(self.columns[:1]))
            hint = f"; for columns that no comma separates choose {_WHOLE}" if other else ""
            raise DataError(f"{path}: column {missing[0]!r} is missing; found {found}{hint}")
        index = next(filter(INDEX.fullmatch, self.columns), None)
        if index is not None:
            what = f"column {index!r} is an index of pandas, it seems" if index else "a column has no name"
            raise DataError(f"{path}: {what}; name or delete it, or choose {_WHOLE}")
        if len(set(self.columns)) != len(self.columns):
            raise DataError(f"{path}: column names repeat: {in_a_line(', '.join(self.columns))}")

    def blocks(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The number of its first row, from 0, and a block."""
        first = 0
        with self._faults():
            for batch in self._batches():
                if batch.num_rows:
                    yield first, batch
                first += batch.num_rows
        if first == 0:
            raise DataError(f"{self.path}: there are no rows below the header")

    def text(self, batch: pa.RecordBatch, column: str) -> pa.Array:
        """A column as text; whole numbers without a decimal point, blanks as ''."""
        values = batch.column(self.columns.index(column))
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if pa.types.is_floating(values.type):
            try:
                values = pc.cast(values, pa.int64())
            except pa.ArrowInvalid:  # fractions
                values = pa.array([None if v is None else str(int(v) if v % 1 == 0 else v) for v in values.to_pylist()])
        return pc.utf8_trim_whitespace(pc.fill_null(pc.cast(values, pa.string()), ""))

    def numbers(self, batch: pa.RecordBatch, column: str, first: int, kind: Any = np.float32) -> np.ndarray:
        """A column as finite numbers."""
        values = batch.column(self.columns.index(column))
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            values = pc.utf8_trim_whitespace(values)
        try:
            given = pc.cast(values, pa.float64()).to_numpy(zero_copy_only=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            given = np.array([_number(value) for value in values.to_pylist()])
        with np.errstate(over="ignore"):
            result = given.astype(kind)
        bad = np.flatnonzero(~np.isfinite(result))
        if bad.size:
            shown = str(values[int(bad[0])].as_py())[:40]
            self.fail(first + int(bad[0]), f"{column} is {shown!r}, expected a finite number; choose {_WHOLE}")
        return result

    def fail(self, row: int, problem: str) -> None:
        """Raise about a data row, counted from 1 in the message."""
        raise DataError(f"{self.path}: row {row + 1}: {in_a_line(problem)}")

    def _header(self) -> list[str]:
        if self.path.suffix == ".parquet":
            with pq.ParquetFile(self.path) as file:
                return [name for name in file.schema_arrow.names if not name.startswith("__index_level_")]
        with self.path.open("rb") as start:
            check_encoding(start.read(4096), self.path)
        with self.path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, strict=True, skipinitialspace=True)
            header = [column.strip() for column in next(reader, [])]
            if reader.line_num > 1:
                raise DataError(f"{self.path}: its header has more than one line; give one")
            return header

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if self.path.suffix == ".parquet":
            with pq.ParquetFile(self.path) as file:
                yield from file.iter_batches(_ROWS, columns=self.columns, use_threads=False)
            return
        reader = pyarrow.csv.open_csv(
            self.path,
            pyarrow.csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES, column_names=self.columns, skip_rows=1),
            pyarrow.csv.ParseOptions(newlines_in_values=True),
            pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(self.columns, pa.string())),
        )
        with reader:
            yield from reader

    def _faults(self) -> Any:
        return _in_our_words(self.path)


class _in_our_words:
    """Whatever a library says about a damaged table becomes one line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, pa.ArrowException | csv.Error | ValueError | KeyError | TypeError):
            suffix = self._path.suffix[1:]
            if isinstance(error, UnicodeDecodeError) or "UTF8" in str(error):
                hint = encoding_hint(self._path.read_bytes(), self._path)
                raise DataError(f"{self._path}: is not utf-8 text; {hint} with --prepare") from None
            raise DataError(f"{self._path}: cannot be read as a {suffix} table ({in_a_line(error)})") from None


def _number(text: Any) -> float:
    try:
        return float(text)
    except (TypeError, ValueError):
        return float("nan")
