"""Reader for the Planetoid files: eight parts of one dataset."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ltga.data.assemble import GraphArrays
from ltga.data.bounds import check_dense_size, in_a_line
from ltga.data.inert_pickle import load_inert
from ltga.data.text_files import read_text
from ltga.errors import DataError

PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
_NUM_VAL = 500


def read_planetoid(files: Mapping[str, Path]) -> GraphArrays:
    """The graph in the eight files of one dataset, keyed by `PARTS`; equal to what PyG makes of them.

    Check the files' sha256 first (`ltga.load_dataset` does): this reader trusts their meaning.
    """
    missing = [part for part in PARTS if part not in files]
    if missing:
        raise DataError(f"planetoid: files missing: {', '.join(missing)}")
    _, y, tx, ty, allx, ally, graph = (load_inert(Path(files[part])) for part in PARTS[:-1])
    test_index = _read_test_index(Path(files["test.index"]))
    folder = Path(files["graph"]).parent
    try:
        num_nodes = _checked_num_nodes(y, tx, ty, allx, ally, test_index)
        stored = sum(part.data.nbytes + part.indices.nbytes for part in (allx, tx)) + ally.nbytes + ty.nbytes
        check_dense_size(num_nodes, allx.shape[1] + 2 * ally.shape[1], stored, folder)
        # Rows of the range that the test index leaves out (CiteSeer has 15) stay zero.
        features = np.zeros((num_nodes, allx.shape[1]), dtype=np.float32)
        one_hot = np.zeros((num_nodes, ally.shape[1]))
        features[: allx.shape[0]], features[test_index] = allx.toarray(), tx.toarray()
        one_hot[: ally.shape[0]], one_hot[test_index] = ally, ty
        masks = np.zeros((3, 1, num_nodes), dtype=bool)
        masks[0, 0, : y.shape[0]] = True
        masks[1, 0, y.shape[0] : y.shape[0] + _NUM_VAL] = True
        masks[2, 0, test_index] = True
        edges = _edges(graph)
    except (ValueError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise DataError(f"{folder}: the Planetoid files do not fit together ({in_a_line(error)})") from None
    return GraphArrays(features, one_hot.argmax(axis=1), edges, (masks[0], masks[1], masks[2]))


def _checked_num_nodes(y: Any, tx: Any, ty: Any, allx: Any, ally: Any, test_index: np.ndarray) -> int:
    """How many nodes there are, if the parts have the shapes they must have; numpy would stretch some to fit."""
    known, tested = allx.shape[0], tx.shape[0]
    if not (allx.shape[1] == tx.shape[1] and ally.shape == (known, ty.shape[1]) and ty.shape[0] == tested):
        raise ValueError(f"allx {allx.shape}, tx {tx.shape}, ally {ally.shape} and ty {ty.shape} disagree")
    if y.ndim != 2 or y.shape[0] > known or y.shape[1] != ally.shape[1]:
        raise ValueError(f"y {y.shape} is no part of ally {ally.shape}")
    if test_index.size != tested or np.unique(test_index).size != tested:
        raise ValueError(f"test.index lists {np.unique(test_index).size} nodes, tx has {tested}")
    if int(test_index.min()) < known:
        raise ValueError(f"test.index holds node {test_index.min()}, but the first {known} are in allx")
    num_nodes = int(test_index.max()) + 1
    if num_nodes > 2 * (known + tested):
        raise ValueError(f"test.index holds node {num_nodes - 1}, but there are {known + tested} rows of features")
    return num_nodes


def _read_test_index(path: Path) -> np.ndarray:
    words = read_text(path, "ascii").split()
    bad = next((word for word in words if not re.fullmatch("[0-9]{1,18}", word)), None)
    if bad is not None or not words:
        raise DataError(f"{path}: expected a node number on every line, got {(bad or '')[:40]!r}; fetch it again")
    return np.array([int(word) for word in words], dtype=np.int64)


def _edges(graph: dict[int, list[int]]) -> np.ndarray:
    """Distinct pairs `[E, 2]` without self-loops, ordered by target and then source as in PyG."""
    pairs = np.array([(node, other) for node, others in graph.items() for other in others], dtype=np.int64)
    pairs = pairs.reshape(-1, 2)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return np.unique(pairs[:, ::-1], axis=0)[:, ::-1]
