"""What is predicted of each graph of a collection: which columns of its table, and what they hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ltga.data.preparation import Preparation
from ltga.data.problems import Problems
from ltga.data.splits import Masks
from ltga.data.table_cells import text_of
from ltga.data.table_labels import read_labels, read_splits
from ltga.data.table_leftovers import meant_columns
from ltga.data.table_numbers import Writing
from ltga.data.table_targets import (
    TRUTH,
    is_number,
    kind_of_words,
    label_columns,
    meant_as_numbers,
    read_target,
    target_words,
)
from ltga.data.table_unknown_labels import is_no_label
from ltga.data.target import Kind, Target, make_target

_KINDS: dict[str, Kind] = {"class": "classes", "number": "number", "labels": "labels"}


@dataclass(frozen=True, eq=False)
class GraphTargets:
    """Values as `make_target` takes them, NaN or -1 where not known, and what they mean.

    Attributes:
        columns: of the table of graphs; empty if they are not there, as with graphs to predict.
        kind, names, values: as of a `Target`.
        masks: the parts that a column of splits names, if there is one.
        written: how numbers are.
    """

    columns: tuple[str, ...]
    kind: Kind
    names: tuple[str, ...]
    values: np.ndarray
    masks: Masks | None
    written: Writing | None = None

    def target(self, where: str) -> Target:
        return make_target(self.values, where, self.kind, self.names, item="graph")


def read_targets(
    graphs: pd.DataFrame, options: Preparation, where: str, problems: Problems, before: GraphTargets | None = None
) -> GraphTargets | None:
    """The targets of a table of graphs; `before`: those that a model was trained on, whose names these have."""
    columns = before.columns if before else _columns(graphs, options, where, problems)
    if not columns:
        return None
    kind = before.kind if before else _kind(graphs, columns, options, where, problems)
    named = options.model_copy(update={"label": ",".join(columns)})
    known, written = (before.names, before.written) if before else (None, None)
    if kind == "classes":
        values, names = read_labels(graphs, named, where, problems, known, item="graph")
        there = values >= 0
    else:
        values, names, written = read_target(graphs, named, kind, where, problems, known, "graph", written)
        there = ~np.isnan(values) if values.ndim == 1 else (~np.isnan(values)).any(axis=1)
    about_splits = problems if before is None else Problems()  # they matter where a model is trained
    masks = read_splits(graphs, np.where(there, 0, -1), named, where, about_splits, item="graph")
    return GraphTargets(columns, kind, names, values, None if before and about_splits.errors else masks, written)


def _columns(graphs: pd.DataFrame, options: Preparation, where: str, problems: Problems) -> tuple[str, ...]:
    rest = [str(name) for name in graphs if name not in ("graph_id", "smiles", options.split, *options.drop)]
    rest = meant_columns(graphs, rest, options, where, problems)
    if "label" in options.changed:
        chosen = label_columns(options, graphs.columns)
        missing = [name for name in chosen if name not in graphs]
        if missing:
            listed = ", ".join(rest) or "none"
            problems.add(where, f"column {missing[0]!r} is missing; found {listed}", 1, "name one of them", "error")
            return ()
    elif not rest:
        action = "give a column label, or one for each of several labels"
        problems.add(where, "no target", 1, action, "error")
        return ()
    elif "label" in rest and not all(_is_truth(graphs[name]) for name in rest):
        chosen = ("label",)
    elif len(rest) > 1 and not any(_is_truth(graphs[name]) for name in rest):
        action = "say which is predicted with label=COLUMN; several labels are columns of 0 and 1"
        problems.add(where, f"{len(rest)} columns may be the target: {', '.join(rest)}", 1, action, "error")
        return ()
    else:
        chosen = tuple(rest)
    for name in rest:
        if name not in chosen:
            what = "is known of a graph as a whole, and no target"
            problems.add(f"{where}, {name}", what, 1, "left out (label=COLUMN to predict it)", "note")
    return chosen


def _is_truth(series: pd.Series) -> bool:
    words = pc.utf8_lower(text_of(series)).unique().to_pylist()
    return all(word in TRUTH or is_no_label(word) for word in words)


def _kind(graphs: pd.DataFrame, columns: tuple[str, ...], options: Preparation, where: str, problems: Problems) -> Kind:
    chosen = _KINDS.get(options.predict)
    if len(columns) > 1:
        if chosen not in (None, "labels"):
            what = f"{len(columns)} columns to predict, but one {options.predict} is wanted"
            problems.add(where, what, 1, "name one with label=COLUMN, or choose predict=labels", "error")
        return "labels"
    if chosen is not None:
        return chosen
    counts = target_words(graphs[columns[0]], options)
    looks = kind_of_words(counts)
    if looks == "classes" and columns[0] != "label" and all(is_number(word) for word in counts):
        looks = "number"
    strays = looks == "classes" and not all(is_number(word) for word in counts)
    if strays and meant_as_numbers(counts, options, f"{where}, {columns[0]}", problems):
        return "number"
    if looks != "classes":
        action = f"predicted as {'a number' if looks == 'number' else 'labels'} (predict={looks}; predict=class if not)"
        what = f"{len(counts):,} different values"
        problems.add(f"{where}, {columns[0]}", what, sum(counts.values()), action, "note")
    return looks
