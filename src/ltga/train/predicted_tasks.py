"""Predictions of a run on another task than classes of nodes, as a table: numbers, labels, graphs, pairs of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from ltga.data import Triples
from ltga.data.table_cells import text_of
from ltga.data.table_files import SUFFIXES, read_frame
from ltga.data.table_leftovers import blank_rows
from ltga.data.table_targets import SEPARATOR
from ltga.errors import DataError, InputError
from ltga.train.known_truth import known_columns
from ltga.train.run_graph import graph_to_predict, refuse_changes
from ltga.train.tasks.run_data import data_of, graphs_to_predict
from ltga.train.tasks.task_run import TaskRun

_ABOUT_NODES = ("node regression", "multi-label nodes")
_ROWS = 4096  # typed links that are answered at a time, with a probability for every node each


def task_table(run: TaskRun, graph: Any, root: Any, changes: Mapping[str, Any] | None, pairs: Any) -> pd.DataFrame:
    """A row per node, per graph, or per pair of a table of pairs or of the file that has one."""
    about_links = "link" in run.task
    if about_links != (pairs is not None):
        columns = "head, relation" if run.task == "typed link prediction" else "source, target"
        wanted = f"give a table with columns {columns}, one row for each question" if about_links else "leave it out"
        raise InputError(f"pairs: the run is for {run.task}; {wanted}")
    if run.task == "typed link prediction":
        refuse_changes(changes)
        return _tails(run, graph, root, pairs)
    if about_links:
        return _links(run, graph, root, changes, pairs)
    if run.task in _ABOUT_NODES:
        given = graph_to_predict(run, graph, root, changes)
        target = run.record["target"]
        known = known_columns(run, given, target["names"], target["kind"])
        return _items(run, "node", given.data, given.ids).assign(**known)
    graphs, names = graphs_to_predict(run, graph, root, changes)
    return _items(run, "graph", graphs, names)


def _items(run: TaskRun, item: str, given: Any, ids: Sequence[Any]) -> pd.DataFrame:
    """A number for each node or graph; the class, or the labels with semicolons between, and every probability."""
    target, found = run.record["target"], run.predict_proba(given).numpy()
    if target["kind"] == "number":
        return pd.DataFrame({item: list(ids), "predicted": found})
    names = target["names"]
    if target["kind"] == "classes":
        chosen = [names[best] for best in found.argmax(1)]
    else:
        each = ([name for name, share in zip(names, row) if share > 0.5] for row in found)
        chosen = [SEPARATOR.join(some) or SEPARATOR for some in each]  # a blank would be read as not known
    shares = {f"p_{name}": found[:, at] for at, name in enumerate(names)}
    return pd.DataFrame({item: list(ids), "predicted": chosen, **shares})


def _links(run: TaskRun, graph: Any, root: Any, changes: Mapping[str, Any] | None, pairs: Any) -> pd.DataFrame:
    given = graph_to_predict(run, graph, root, changes)
    asked, where = _read(pairs, ("source", "target")), _name_of(pairs)
    at = {str(name): number for number, name in enumerate(given.ids)}
    ends = np.stack([_numbers(asked[column], at, where, "node") for column in asked])
    same = np.flatnonzero(ends[0] == ends[1])
    if same.size:
        raise DataError(
            f"{where}: row {asked.index[same[0]] + 1}: a link of a node to itself is not predicted; leave it out"
        )
    found = run.predict_proba(given.data, torch.from_numpy(ends)).numpy()
    return asked.reset_index(drop=True).assign(predicted=(found > 0.5).astype(int), p_edge=found)


def _tails(run: TaskRun, graph: Any, root: Any, pairs: Any) -> pd.DataFrame:
    triples = data_of(run, graph, root)
    assert isinstance(triples, Triples)
    asked, where = _read(pairs, ("head", "relation")), _name_of(pairs)
    nodes = {name: number for number, name in enumerate(triples.node_names)}
    relations = {name: number for number, name in enumerate(triples.relation_names)}
    heads = _numbers(asked["head"], nodes, where, "node")
    kinds = _numbers(asked["relation"], relations, where, "relation")
    questions = torch.from_numpy(np.stack([heads, kinds]))
    best = [run.predict_proba(triples, some).max(1) for some in questions.split(_ROWS, dim=1)]
    tails = torch.cat([part.indices for part in best]).tolist()
    shares = torch.cat([part.values for part in best]).numpy()
    return asked.reset_index(drop=True).assign(predicted=[triples.node_names[tail] for tail in tails], p_tail=shares)


def _read(pairs: Any, columns: tuple[str, ...]) -> pd.DataFrame:
    if isinstance(pairs, pd.DataFrame):
        frame = pairs.reset_index(drop=True)
    elif isinstance(pairs, str | Path) and Path(pairs).suffix in SUFFIXES:
        frame = read_frame(Path(pairs), option=False)
    else:
        raise InputError(f"pairs: {pairs}: pairs are read from {' or '.join(SUFFIXES)}, or from a data frame")
    missing = [name for name in columns if name not in frame]
    twice = [name for name in columns if list(frame.columns).count(name) > 1]
    if twice:
        raise DataError(f"{_name_of(pairs)}: column {twice[0]!r} is there twice; rename one of them")
    if missing or not len(frame):
        fault = f"column {missing[0]!r} is missing" if missing else "there are no rows below the header"
        raise DataError(f"{_name_of(pairs)}: {fault}; give columns {', '.join(columns)}")
    words = pd.DataFrame({name: text_of(frame[name]).to_pylist() for name in columns})
    # Their numbers stay, for what is said of a row.
    return words.drop(blank_rows(frame.loc[:, ~frame.columns.duplicated()], columns[0]))


def _name_of(pairs: Any) -> str:
    return "pairs" if isinstance(pairs, pd.DataFrame) else str(pairs)


def _numbers(series: pd.Series, at: Mapping[str, int], where: str, what: str) -> np.ndarray:
    found = np.array([at.get(name, -1) for name in series], dtype=np.int64)
    strange = np.flatnonzero(found < 0)
    if strange.size:
        row = int(series.index[strange[0]])
        shown, more = series[row][:40], f" ({strange.size:,} rows)" if strange.size > 1 else ""
        raise DataError(f"{where}: row {row + 1}: the graph has no {what} {shown!r}{more}; mend or leave out")
    return found
