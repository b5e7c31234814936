"""Rows of an edge table as pairs of nodes, each pair once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ltga.data.edges import lonely_rows, pair_codes
from ltga.data.preparation import Preparation
from ltga.data.problems import Problems
from ltga.data.table_cells import text_of

Rule = Literal["sum", "mean", "first"]


def positions(series: pd.Series, ids: pd.Series, id_text: pa.Array) -> np.ndarray:
    """Where the ids of a column `[R]` stand in the node table `[N]`; -1 for those that it does not have."""
    if series.dtype == ids.dtype and isinstance(ids.dtype, np.dtype) and ids.dtype.kind in "iu":
        found = pc.index_in(pa.array(series.to_numpy()), value_set=pa.array(ids.to_numpy()))
    else:
        found = pc.index_in(text_of(series), value_set=id_text)
    return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)


@dataclass(frozen=True)
class Merge:
    """Rows that mean the same edge, brought together: `order` sorts them, `starts` are the first of each edge."""

    order: np.ndarray
    starts: np.ndarray

    @property
    def first(self) -> np.ndarray:
        """The row of every edge that comes first, ascending."""
        return np.sort(self.order[self.starts])

    @property
    def later(self) -> np.ndarray:
        """All the other rows, ascending."""
        other = np.ones(len(self.order), dtype=bool)
        other[self.starts] = False
        return np.sort(self.order[other])

    def values(self, block: np.ndarray, rule: Rule) -> np.ndarray:
        """Attributes `[R, K]` of the rows as those of the edges, in the order of `first`."""
        back = np.argsort(self.order[self.starts])
        if rule == "first":
            return block[self.first]
        added = np.add.reduceat(block[self.order], self.starts, axis=0)[back]
        if rule == "sum":
            return added
        counts = np.diff([*self.starts, len(self.order)])[back]
        return added / counts[:, None]

    def unlike_the_first(self, columns: Iterable[pd.Series]) -> np.ndarray:
        """Rows, in their order, that say something else than the first row they are one with."""
        counts = np.diff([*self.starts, len(self.order)])
        firsts = np.repeat(self.order[self.starts], counts)
        differs = np.zeros(len(self.order), dtype=bool)
        for column in columns:
            words = text_of(column).to_numpy(zero_copy_only=False)
            differs[self.order] |= words[self.order] != words[firsts]
        return np.flatnonzero(differs)


def merge_of(codes: np.ndarray) -> Merge | None:
    """How rows with equal codes come together; `None` if no two are equal.

    >>> merge = merge_of(np.array([7, 3, 7]))
    >>> merge.first.tolist(), merge.later.tolist(), merge.values(np.array([[1.0], [2.0], [5.0]]), "sum").tolist()
    ([0, 1], [2], [[6.0], [2.0]])
    """
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    new = np.r_[True, ordered[1:] != ordered[:-1]] if codes.size else np.zeros(0, dtype=bool)
    return None if new.all() else Merge(order, np.flatnonzero(new))


@dataclass(frozen=True)
class Edges:
    """Edges `[E, 2]` by node numbers, the table's row of each, which rows were used, and how they were merged."""

    rows: np.ndarray
    numbers: np.ndarray
    used: np.ndarray
    steps: tuple[tuple[Merge, Rule], ...] = ()

    def merged(self, merge: Merge, rule: str) -> Edges:
        chosen: Rule = "first" if rule == "error" else rule  # type: ignore[assignment]
        return Edges(self.rows[merge.first], self.numbers[merge.first], self.used, (*self.steps, (merge, chosen)))

    def values(self, block: np.ndarray, is_weight: bool) -> np.ndarray:
        """Attributes `[R, K]` of the table's rows as those of the edges. Only weights are ever added up."""
        if len(self.used) != len(block):
            block = block[self.used]
        for merge, rule in self.steps:
            block = merge.values(block, "mean" if rule == "sum" and not is_weight else rule)
        return block


def without_repeats(
    edges: Edges,
    ids: pa.Array,
    convention: str,
    options: Preparation,
    where: str,
    problems: Problems,
    weights: pd.Series | None = None,
) -> Edges:
    """Every edge once; what had to be merged is added to `problems`, and whether `weights` contradict one another."""

    def tell(merge: Merge, what: str, rule: str, option: str) -> None:
        later = merge.later
        pair = " to ".join(repr(ids[int(node)].as_py()[:40]) for node in edges.rows[later[0]])
        if rule == "error":
            action, weight = f"keep one of them, or choose {option}=sum, mean or first", "error"
        else:
            how = {"sum": "weights added", "mean": "weights averaged", "first": "the first kept"}[rule]
            action, weight = f"made one edge, {how} ({option}={rule})", "mended"
        problems.add(where, f"{what}, {pair}", edges.numbers[later], action, weight)  # type: ignore[arg-type]

    merge = merge_of(pair_codes(edges.rows, len(ids)))
    if merge is not None:
        tell(merge, "repeats an earlier edge", options.repeated_edges, "repeated_edges")
        other = merge.unlike_the_first([] if weights is None else [weights.iloc[edges.numbers]])
        if other.size:
            pair = " to ".join(repr(ids[int(node)].as_py()[:40]) for node in edges.rows[other[0]])
            what = f"{options.weight} of {pair} is not what an earlier row says"
            problems.add(where, what, edges.numbers[other], "merged as other repeated edges are", "note")
        edges = edges.merged(merge, options.repeated_edges)
    if convention == "both directions":
        alone = lonely_rows(edges.rows, len(ids))
        if alone.size:
            problems.add(
                where, "has no row the other way although both directions were promised", edges.numbers[alone],
                "choose convention='undirected, once' or 'directed'", "error",
            )  # fmt: skip
        return edges
    merge = merge_of(pair_codes(edges.rows, len(ids), "undirected, once"))
    if merge is None:
        return edges
    if convention == "undirected, once":
        tell(merge, "is an earlier edge the other way round", options.reversed_edges, "reversed_edges")
        return edges.merged(merge, options.reversed_edges)
    between = edges.rows[:, 0] != edges.rows[:, 1]
    if 2 * len(merge.later) != int(between.sum()):  # if all are, the table simply stores both directions
        problems.add(
            where, "is an earlier edge the other way round", edges.numbers[merge.later],
            "kept, each a message of its own (convention='undirected, once' if edges have no direction)", "note",
        )  # fmt: skip
    return edges


def note_strangers(
    ends: pd.Series,
    rows: np.ndarray,
    id_text: pa.Array,
    tables: tuple[str, str],
    options: Preparation,
    problems: Problems,
) -> None:
    """Add what is wrong with the ends of edges that are no node's id: blank ones apart from the others.

    ``tables`` are what the tables of edges and of nodes are called.
    """
    edge_table, node_table = tables
    found = text_of(ends.iloc[rows])
    blank = pc.equal(found, "").to_numpy(zero_copy_only=False).astype(bool)
    for some, is_blank in ((rows[blank], True), (rows[~blank], False)):
        if not some.size:
            continue
        shown = text_of(ends.iloc[some[:1]])[0].as_py()
        what = f"{ends.name} is blank" if is_blank else f"{ends.name} {shown[:60]!r} is not an id in {node_table}"
        drop = "choose unknown_ids=drop"
        action = f"mend it, or {drop}"
        whole, _, rest = shown.partition(".")
        if rest and not rest.strip("0") and pc.index(id_text, whole).as_py() >= 0:
            action = f"write {whole} (programs add .0 to whole numbers where a cell of the column is blank), or {drop}"
        if options.unknown_ids == "error":
            problems.add(edge_table, what, some, action, "error")
        else:
            problems.add(edge_table, what, some, "left out (unknown_ids=drop)", "mended")
