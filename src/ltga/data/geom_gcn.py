"""Reader for the Geom-GCN text files: WebKB pages, the film (Actor) graph, and their splits."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ltga.data.assemble import GraphArrays
from ltga.data.bounds import check_dense_size
from ltga.data.npz import read_arrays
from ltga.data.splits import Masks
from ltga.data.text_files import read_text
from ltga.errors import DataError

_MASKS = ("train_mask", "val_mask", "test_mask")
_MAX_COLUMNS = 1_000_000


def read_geom_gcn(nodes: Path, edges: Path, splits: Sequence[Path]) -> GraphArrays:
    """The graph in a node file, an edge file and one npz file per split; links stay directed.

    WebKB lists a 0/1 for each word; film lists the positions of the words that occur, which its header
    announces as `feature(feature_amount:...)`.
    """
    header, rows = _table(nodes, columns=3)
    positions = "feature_amount" in header
    parse = _word_positions if positions else _word_flags
    words: dict[int, list[int]] = {}
    labels: dict[int, int] = {}
    for line, (node_text, feature_text, label_text) in rows:
        node, label = (_whole(text, nodes, line) for text in (node_text, label_text))
        if node in words:
            raise DataError(f"{nodes}: line {line}: node {node} is listed twice")
        words[node] = parse(feature_text, nodes, line)
        labels[node] = label
    num_nodes = len(words)
    if sorted(words) != list(range(num_nodes)):
        raise DataError(f"{nodes}: expected nodes 0 to {num_nodes - 1}, each once")
    if positions:
        width = max(max(row, default=0) for row in words.values()) + 1
        check_dense_size(num_nodes, width, nodes.stat().st_size, nodes)
        x = np.zeros((num_nodes, width), dtype=np.float32)
        for node, row in words.items():
            x[node, row] = 1.0
    else:
        if len({len(row) for row in words.values()}) != 1:
            raise DataError(f"{nodes}: lines differ in their number of features")
        x = np.array([words[node] for node in range(num_nodes)], dtype=np.float32)
    return GraphArrays(
        x=x,
        y=np.array([labels[node] for node in range(num_nodes)], dtype=np.int64),
        edges=_read_edges(edges),
        masks=_read_splits(splits, num_nodes),
    )


def _read_edges(path: Path) -> np.ndarray:
    """Distinct links `[E, 2]` in order of source and target."""
    _, rows = _table(path, columns=2)
    pairs = [[_whole(text, path, line) for text in fields] for line, fields in rows]
    return np.unique(np.array(pairs, dtype=np.int64).reshape(-1, 2), axis=0)


def _read_splits(paths: Sequence[Path], num_nodes: int) -> Masks:
    masks = np.zeros((3, len(paths), num_nodes), dtype=bool)
    for i, path in enumerate(paths):
        arrays = read_arrays(path, set(_MASKS))
        for part, key in enumerate(_MASKS):
            if key not in arrays or arrays[key].shape != (num_nodes,) or arrays[key].dtype.kind not in "biu":
                raise DataError(f"{path}: expected {key} with one flag for each of {num_nodes} nodes")
            if not np.isin(arrays[key], (0, 1)).all():
                raise DataError(f"{path}: {key} must hold true/false (or 0/1) only")
            masks[part, i] = arrays[key].astype(bool)
    return masks[0], masks[1], masks[2]


def _table(path: Path, columns: int) -> tuple[str, list[tuple[int, list[str]]]]:
    """The header and the (line number, fields) of a tab-separated file."""
    lines = read_text(path).splitlines()
    if len(lines) < 2 or not lines[0].startswith("node_id"):
        raise DataError(f"{path}: expected a header that starts with node_id, then one line per row")
    rows = [(number, line.split("\t")) for number, line in enumerate(lines[1:], start=2) if line]
    for number, fields in rows:
        if len(fields) != columns:
            raise DataError(f"{path}: line {number}: expected {columns} tab-separated fields, got {len(fields)}")
    return lines[0], rows


def _whole(text: str, path: Path, line: int) -> int:
    # Not int() alone, which also takes 1_0 and other scripts' digits, and numbers that fit no array.
    if not re.fullmatch(r"-?[0-9]{1,18}", text.strip()):
        raise DataError(f"{path}: line {line}: expected a whole number, got {text[:40]!r}")
    return int(text)


def _words(text: str, path: Path, line: int, fits: Callable[[int], bool], expected: str) -> list[int]:
    numbers = [_whole(part, path, line) for part in text.split(",")]
    bad = [number for number in numbers if not fits(number)]
    if bad:
        raise DataError(f"{path}: line {line}: expected {expected}, got {bad[0]}")
    return numbers


def _word_flags(text: str, path: Path, line: int) -> list[int]:
    return _words(text, path, line, lambda flag: flag in (0, 1), "features 0 or 1")


def _word_positions(text: str, path: Path, line: int) -> list[int]:
    return _words(
        text, path, line, lambda at: 0 <= at < _MAX_COLUMNS, f"feature positions from 0 to {_MAX_COLUMNS - 1}"
    )
