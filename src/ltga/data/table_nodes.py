"""The node table: whether it and the edge table have what the options name, and every node once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ltga.data.graph_tables import Tables
from ltga.data.preparation import Preparation
from ltga.data.problems import Problems
from ltga.data.table_cells import padded, text_of
from ltga.data.table_edges import merge_of
from ltga.data.table_leftovers import blank_rows, note_blank_rows
from ltga.data.table_targets import label_columns
from ltga.errors import did_you_mean


def has_columns(frame: pd.DataFrame, wanted: tuple[str, ...], where: str, kind: str, problems: Problems) -> bool:
    """Whether a table has rows and the columns that it needs, each once."""
    columns = list(frame.columns)
    before = len(problems.errors)
    if not columns:
        problems.add(where, "is empty", 1, f"give a header and a row for each {kind}", "error")
        return False
    listed = ", ".join(columns)
    for name in wanted:
        if name not in columns:
            named = name in ("id", "label", "source", "target")
            action = f"rename one, or say which it is with {name}=COLUMN" if named else "give the name of one of them"
            action += "; links need none (predict=links)" if name == "label" else ""
            problems.add(where, f"column {name!r} is missing; found {listed}", 1, action, "error")
    note_repeated_names(columns, where, problems)
    if len(frame) == 0 and len(problems.errors) == before:
        problems.add(where, "there are no rows below the header", 1, f"give at least one {kind}", "error")
    return len(problems.errors) == before


def check_names(tables: Tables, options: Preparation, problems: Problems) -> None:
    """Add an error for each column that an option names and no table has."""
    nodes = [] if tables.nodes is None else list(tables.nodes.columns)
    edges = list(tables.edges.columns)
    named = [
        (option, name, [*nodes, *edges]) for option in ("drop", "categorical") for name in getattr(options, option)
    ]
    chosen = options.changed
    if "bad_smiles" in chosen and tables.parts is None:
        what = f"bad_smiles={options.bad_smiles}: there are no molecules in one graph"
        problems.add(tables.where, what, 1, "leave the option out", "error")
    named += [
        (option, chosen[option], there) for option, there in (("split", nodes), ("weight", edges)) if option in chosen
    ]
    needed = {options.id: "ids", options.source: "ends of edges", options.target: "ends of edges"}
    if options.predict != "links":
        needed |= dict.fromkeys(label_columns(options, nodes), "labels")
    for option, name, there in named:
        if name not in there:
            hint = did_you_mean(name, there, f"found {', '.join(there)}")
            problems.add(tables.where, f"{option}={name}: there is no such column", 1, hint, "error")
        elif option in ("drop", "categorical") and name in needed:
            what = f"{option}={name}: the column has the {needed[name]} and is no feature"
            problems.add(tables.where, what, 1, "leave the option out", "error")


def named_once(tables: Tables, options: Preparation, problems: Problems) -> tuple[pd.DataFrame, np.ndarray]:
    """The node table, each node once, and which rows these are; made from the edges where there is none."""
    if tables.nodes is None:
        ends = [text_of(tables.edges[name]) for name in (options.source, options.target)]
        named = pa.chunked_array(ends).unique()
        named = named.filter(pc.not_equal(named, ""))
        made = pd.DataFrame({options.id: pd.Series(named.to_numpy(zero_copy_only=False), dtype=object)})
        return made, np.arange(len(made))
    nodes = tables.nodes
    rows = np.arange(len(nodes))
    # Graphs of a collection are joined to one, their graph's id in that of the node: no row is blank there.
    blank = blank_rows(nodes, options.id) if tables.parts is None else rows[:0]
    if blank.size:
        note_blank_rows(blank, tables.node_table, problems)
        rows = np.delete(rows, blank)
        nodes, problems = nodes.iloc[rows], problems.of_rows(rows)
    text = text_of(nodes[options.id])
    spaced = padded(nodes[options.id])
    if spaced.size:
        what = f"{options.id} {nodes[options.id].iloc[spaced[0]]!r} has spaces around it"
        problems.add(tables.node_table, what, spaced, "the spaces are taken off, in predictions too", "mended")
    codes = text.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    blank = np.flatnonzero(pc.equal(text, "").to_numpy(zero_copy_only=False))
    problems.add(tables.node_table, f"{options.id} is blank", blank, "every node needs an id", "error")
    repeated = pd.Series(codes).duplicated().to_numpy()
    if not repeated.any():
        return nodes, rows
    again = np.flatnonzero(repeated)
    first = int(np.flatnonzero(codes == codes[again[0]])[0])
    what = f"{options.id} {text[int(again[0])].as_py()!r} repeats row {int(rows[first]) + 1}"
    merge = merge_of(codes)
    labels = [nodes[name] for name in label_columns(options, nodes.columns) if name in nodes]
    if merge is not None and (other := merge.unlike_the_first(labels)).size:
        contradicted = f"{options.id} {text[int(other[0])].as_py()!r} has two different labels"
        problems.add(tables.node_table, contradicted, other, "one of them must be wrong", "note")
    if options.repeated_ids == "error":
        problems.add(tables.node_table, what, again, "keep one of them, or choose repeated_ids=first", "error")
        return nodes, rows
    problems.add(tables.node_table, what, again, "the first kept (repeated_ids=first)", "mended")
    return nodes[~repeated], rows[~repeated]


def note_repeated_names(columns: list[str], where: str, problems: Problems) -> None:
    """Add an error about column names that are there several times."""
    repeated = [name for name in dict.fromkeys(columns) if columns.count(name) > 1]
    if repeated:
        named = " and ".join(repr(name) for name in repeated[:3])
        what = f"column names repeat: {named}, among {', '.join(columns)}"
        problems.add(where, what, len(repeated), "rename them, or delete all but one of a name", "error")
