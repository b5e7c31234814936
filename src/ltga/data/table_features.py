"""Columns side by side: the features of nodes and the attributes of edges, scaled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict

from ltga.data.bounds import MAX_BYTES
from ltga.data.close_numbers import rounded_away
from ltga.data.graph_tables import Tables
from ltga.data.preparation import Preparation
from ltga.data.problems import Problems
from ltga.data.structure import DEFAULT, structural_features
from ltga.data.table_columns import Column, NumberColumn, fit_column
from ltga.data.table_edges import Edges
from ltga.data.table_leftovers import meant_columns, note_misnamed
from ltga.data.table_targets import label_columns
from ltga.errors import InputError


class FittedTable(BaseModel):
    """The columns of a table that are kept, and the mean and scale of every number they become."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    columns: tuple[Column, ...] = ()
    structure: tuple[str, ...] = ()
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()


@dataclass(frozen=True)
class Block:
    """Numbers `[R, K]`, a name for each column, and how many of the first are to be scaled."""

    values: np.ndarray
    names: Sequence[str]
    scaled: int


@dataclass(frozen=True)
class Matrix:
    """All blocks side by side `[R, F]` (float32; `None` if there are none), their names, and how they were made."""

    values: np.ndarray | None
    names: tuple[str, ...]
    fitted: FittedTable


def node_features(
    nodes: pd.DataFrame, messages: np.ndarray, options: Preparation, where: str, problems: Problems,
    fitted: FittedTable | None, parts: np.ndarray | None = None,
) -> Matrix:  # fmt: skip
    """Features of nodes: the columns of their table, and what is made from the edges, `messages` `[E, 2]`."""
    special = (options.id, *label_columns(options, nodes.columns), options.split, *options.drop)
    named = [name for name in nodes.columns if name not in special]
    if fitted is None:
        note_misnamed(named, options, where, problems)
    columns = _columns(nodes, named, options, where, problems, fitted)
    blocks = [_block(column, nodes, options, where, problems) for column in columns]
    structure = fitted.structure if fitted else _wanted_structure(bool(columns), options, where, problems)
    if structure:
        try:
            values, names = structural_features(messages, len(nodes), structure, parts)
            blocks.append(Block(values, names, len(names)))
        except InputError as error:
            problems.add(where, str(error), 1, "see structure=", "error")
    if not blocks:
        problems.add(where, "no feature columns are left", 1, "keep some, or choose structure=auto", "error")
    return _side_by_side(blocks, columns, structure, options, where, problems, fitted)


def edge_attributes(
    tables: Tables, edges: Edges, options: Preparation, problems: Problems, fitted: FittedTable | None
) -> Matrix:
    """Attributes of edges, the weight first; those of merged rows are merged before they are scaled."""
    frame, where = tables.edges, tables.edge_table
    names = [name for name in frame.columns if name not in (options.source, options.target, *options.drop)]
    if "id" in names and tables.origin.get("format") != "frames":  # GEXF and GraphML number their edges
        names.remove("id")
        problems.add(where, "column 'id' names edges", 1, "left out", "note")
    refused = options.unknown_ids == "error" and bool(problems.errors)  # then everything wrong is told
    if 0 < len(edges.used) < len(frame) and not refused:  # rows that are no edges say nothing about those that are
        frame, problems = frame.iloc[edges.used], problems.of_rows(edges.used)
    names.sort(key=lambda name: name != options.weight)
    counted = (options.weight,) if any(rule == "sum" for _, rule in edges.steps) else ()
    columns = _columns(frame, names, options, where, problems, fitted, counted)
    blocks = []
    for column in columns:
        block = _block(column, frame, options, where, problems)
        merged = edges.values(block.values, column.name == options.weight)
        blocks.append(Block(merged, block.names, block.scaled))
    return _side_by_side(blocks, columns, (), options, where, problems, fitted)


def _block(column: Any, frame: pd.DataFrame, options: Preparation, where: str, problems: Problems) -> Block:
    values = column.encode(frame[column.name], options, where, problems)
    return Block(values, column.names, 1 if isinstance(column, NumberColumn) else 0)


def _columns(
    frame: pd.DataFrame, names: list[str], options: Preparation, where: str, problems: Problems,
    fitted: FittedTable | None, counted: tuple[str, ...] = (),
) -> list[Any]:  # fmt: skip
    """What becomes of every column: decided now, or as it was decided before."""
    if fitted is None:
        names = meant_columns(frame, names, options, where, problems)
        made = [fit_column(name, frame[name], options, where, problems, name in counted) for name in names]
        return [column for column in made if column is not None]
    for column in fitted.columns:
        if column.name not in frame:
            problems.add(where, f"column {column.name!r} is missing, on which the model relies", 1, "add it", "error")
    return [column for column in fitted.columns if column.name in frame]


def _wanted_structure(has_features: bool, options: Preparation, where: str, problems: Problems) -> tuple[str, ...]:
    if options.structure == ("none",) or (options.structure == ("auto",) and has_features):
        return ()
    if options.structure != ("auto",):
        return options.structure
    problems.add(where, "no feature columns", 1, f"made from the edges: {', '.join(DEFAULT)} (structure=auto)", "note")
    return DEFAULT


def _side_by_side(
    blocks: list[Block], columns: list[Any], structure: tuple[str, ...], options: Preparation, where: str,
    problems: Problems, fitted: FittedTable | None,
) -> Matrix:  # fmt: skip
    names = tuple(name for block in blocks for name in block.names)
    rows = len(blocks[0].values) if blocks else 0
    if rows * len(names) * 4 > MAX_BYTES:
        what = f"{rows:,} rows of {len(names):,} numbers need more than {MAX_BYTES:,} bytes"
        problems.add(where, what, 1, "drop columns, or choose categories=hash", "error")
    if not blocks or problems.errors:  # some column may not be what it was, or not be there
        return Matrix(None, names, fitted or FittedTable(structure=structure))
    if fitted is None:
        mean, scale = np.zeros(len(names)), np.ones(len(names))
        at = 0
        for block in blocks:
            if options.scale == "standard" and block.scaled:
                measured = block.values[:, : block.scaled]
                mean[at : at + block.scaled], scale[at : at + block.scaled] = mean_and_scale(measured)
            at += len(block.names)
        fitted = FittedTable(columns=tuple(columns), structure=structure, mean=tuple(mean), scale=tuple(scale))
        _refuse_rounding(blocks, options, where, problems)
    out = np.empty((rows, len(names)), dtype=np.float32)
    at = 0
    for block in blocks:
        scaled = slice(at, at + block.scaled)
        out[:, at : at + len(block.names)] = block.values
        out[:, scaled] = (block.values[:, : block.scaled] - fitted.mean[scaled]) / fitted.scale[scaled]
        at += len(block.names)
    return Matrix(out, names, fitted)


def _refuse_rounding(blocks: list[Block], options: Preparation, where: str, problems: Problems) -> None:
    if options.scale != "none":
        return
    for block in blocks:
        for at in range(block.scaled):
            lost = rounded_away(block.values[:, at])
            if lost is not None:
                what = f"{block.names[at]} has numbers too close for float32, in which {lost[0]:.15g} is {lost[1]:.15g}"
                problems.add(where, what, 1, "choose scale=standard, or subtract what they have in common", "error")


def mean_and_scale(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By column; the scale of a column that never changes is left at 1."""
    constant = values.min(axis=0) == values.max(axis=0)
    return values.mean(axis=0), np.where(constant, 1.0, values.std(axis=0))
