"""What a stored row of `edges` means, and how it becomes PyG's edge_index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ltga.data.conventions import CONVENTIONS
from ltga.errors import DataError, InputError

if TYPE_CHECKING:
    from torch import Tensor


def arrange_edges(
    rows: np.ndarray,
    convention: str,
    num_nodes: int,
    attributes: np.ndarray | None = None,
    where: str = "edges",
) -> tuple[Tensor, Tensor | None]:
    """Stored rows `[E, 2]` (and attributes `[E, D]`) as edge_index `[2, E']` (and edge_attr `[E', D]`).

    "both directions" keeps the rows as they stand, "directed" sorts them and drops repeats as PyG's
    `coalesce` does, "undirected, once" adds the reversed rows in the order of PyG's `to_undirected`.

    >>> arrange_edges(np.array([[2, 0], [0, 1]]), "undirected, once", 3)[0].tolist()
    [[0, 0, 1, 2], [1, 2, 0, 0]]
    >>> arrange_edges(np.array([[2, 0], [0, 1]]), "directed", 3)[0].tolist()
    [[0, 2], [1, 0]]
    """
    import torch  # now: tables are checked without it
    from torch_geometric.utils import coalesce, to_undirected

    if convention not in CONVENTIONS:
        raise InputError(f"convention: got {convention!r}; use one of {', '.join(map(repr, CONVENTIONS))}")
    _check_rows(rows, num_nodes, where)
    edge_index = torch.from_numpy(np.ascontiguousarray(rows.T, dtype=np.int64))  # [2, E]
    edge_attr = None if attributes is None else torch.from_numpy(np.array(attributes, dtype=np.float32))
    if edge_attr is not None and edge_attr.shape[0] != rows.shape[0]:
        raise DataError(
            f"{where}: {rows.shape[0]} edges but {edge_attr.shape[0]} rows of edge attributes; give one each"
        )
    if edge_attr is not None and edge_attr.dim() == 1:
        edge_attr = edge_attr.unsqueeze(-1)
    if convention == "both directions":
        _check_both_directions(rows, num_nodes, where)
        return edge_index, edge_attr
    if edge_attr is not None:
        _check_no_repeats(rows, convention, num_nodes, where)
    if convention == "directed":
        if edge_attr is None:
            return coalesce(edge_index, num_nodes=num_nodes), None
        return coalesce(edge_index, edge_attr, num_nodes=num_nodes)
    if edge_attr is None:
        return to_undirected(edge_index, num_nodes=num_nodes), None
    # "mean" because a self-loop meets its own reversed row: a sum would double its attributes.
    return to_undirected(edge_index, edge_attr, num_nodes=num_nodes, reduce="mean")


def message_rows(rows: np.ndarray, convention: str) -> np.ndarray:
    """Stored rows `[E, 2]` as messages: both ways where an undirected edge is stored once."""
    return np.concatenate([rows, rows[:, ::-1]]) if convention == "undirected, once" else rows


def pair_codes(rows: np.ndarray, num_nodes: int, convention: str = "directed") -> np.ndarray:
    """One integer per row `[E]`, equal for equal edges (either direction if undirected)."""
    first, second = rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64)
    if convention == "undirected, once":
        first, second = np.minimum(first, second), np.maximum(first, second)
    return first * num_nodes + second


def first_repeat(codes: np.ndarray) -> tuple[int, int] | None:
    """Positions (earlier, later) of the first value that occurs for a second time.

    >>> first_repeat(np.array([5, 3, 5, 3]))
    (0, 2)
    """
    ordered = np.sort(codes)
    if not (ordered[1:] == ordered[:-1]).any():  # as a rule, and three times as fast
        return None
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    later = np.flatnonzero(first[inverse] != np.arange(codes.shape[0]))
    if later.size == 0:
        return None
    return int(first[inverse[later[0]]]), int(later[0])


def _check_rows(rows: np.ndarray, num_nodes: int, where: str) -> None:
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise DataError(f"{where}: expected edges of shape [E, 2], got {list(rows.shape)}")
    if rows.dtype.kind not in "iu":
        raise DataError(f"{where}: expected whole numbers in edges, got {rows.dtype}")
    bad = np.flatnonzero(((rows < 0) | (rows >= num_nodes)).any(axis=1))
    if bad.size:
        raise DataError(
            f"{where}: edge row {bad[0] + 1} joins {rows[bad[0]].tolist()}, but nodes are numbered 0 to {num_nodes - 1}"
        )


def lonely_rows(rows: np.ndarray, num_nodes: int) -> np.ndarray:
    """The positions of rows whose reverse is not there.

    >>> lonely_rows(np.array([[0, 1], [1, 2], [1, 0]]), 3).tolist()
    [1]
    """
    return np.flatnonzero(~np.isin(pair_codes(rows[:, ::-1], num_nodes), pair_codes(rows, num_nodes)))


def _check_both_directions(rows: np.ndarray, num_nodes: int, where: str) -> None:
    lonely = lonely_rows(rows, num_nodes)
    if lonely.size:
        source, target = rows[lonely[0]].tolist()
        raise DataError(
            f"{where}: edge row {lonely[0] + 1} ({source}, {target}) has no row ({target}, {source}) "
            "although both directions were promised; use convention='undirected, once' or 'directed'"
        )


def _check_no_repeats(rows: np.ndarray, convention: str, num_nodes: int, where: str) -> None:
    repeat = first_repeat(pair_codes(rows, num_nodes, convention))
    if repeat is not None:
        raise DataError(
            f"{where}: edge row {repeat[1] + 1} repeats row {repeat[0] + 1} and both carry attributes; "
            "keep one of them, or combine their attributes"
        )
