"""`Tables`: a graph as two data frames, from wherever it came, before anything is done to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ltga.data.conventions import Convention
from ltga.data.problems import Problems
from ltga.errors import InputError


@dataclass(frozen=True, eq=False)
class Tables:
    """An edge table, and a node table unless the edges are all that is known.

    Attributes:
        edges: a row per edge: source, target, and attributes.
        nodes: a row per node: id, and whatever is known about it.
        name: what the graph is called.
        where: what a message calls it (a path).
        node_table, edge_table: what a message calls the tables.
        convention: what a row of edges means, if the source says so.
        origin: where it came from, as JSON can say it.
        problems: what was found when it was read.
        parts: a number for each row of nodes, if the graph is several that have no edge in common.
    """

    edges: pd.DataFrame
    nodes: pd.DataFrame | None = None
    name: str = "graph"
    where: str = "graph"
    node_table: str = "nodes"
    edge_table: str = "edges"
    convention: Convention | None = None
    origin: Mapping[str, Any] = field(default_factory=lambda: {"format": "frames"})
    problems: Problems = field(default_factory=Problems)
    parts: pd.Series | None = None

    def __post_init__(self) -> None:
        for name in ("edges", "nodes"):
            frame = getattr(self, name)
            if not isinstance(frame, pd.DataFrame) and not (name == "nodes" and frame is None):
                raise InputError(f"{name}: expected a data frame, got {type(frame).__name__}")
            if frame is not None:  # columns of any kind of name, rows by position
                object.__setattr__(self, name, frame.set_axis([str(column) for column in frame], axis=1))

    def __repr__(self) -> str:
        nodes = "no node table" if self.nodes is None else f"{len(self.nodes):,} rows of nodes"
        return f"Tables({self.name!r}, {nodes}, {len(self.edges):,} rows of edges)"
