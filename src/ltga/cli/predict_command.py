"""``ltga predict``: a stored run on the same graph, a grown one or another, as a table of classes and probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from ltga.cli.output import check_output
from ltga.cli.terminal import say
from ltga.data.atomic import write_atomic
from ltga.data.catalogue import CATALOGUE
from ltga.data.table_targets import SEPARATOR
from ltga.errors import InputError
from ltga.train.fitting import Run, load_run
from ltga.train.run_graph import graph_of, graph_to_predict
from ltga.train.tasks.task_run import TaskRun

SUFFIXES = (".csv", ".parquet")


def predict_to_file(
    console: Console,
    record: Path,
    graph: str | None,
    out: Path,
    data: Path | None,
    batch_size: int | None,
    device: str = "cpu",
    new_category: str | None = None,
) -> None:
    """Write a row per node: its id, the most probable class, and every class's probability."""
    if out.suffix not in SUFFIXES:
        raise InputError(f"--out: {out.name}: predictions are written as {' or '.join(SUFFIXES)}")
    check_output(out, "--out")
    finished = load_run(record, device)
    frame = prediction_table(finished, graph, data, batch_size, new_category)
    if out.suffix == ".csv":
        write_atomic(out, lambda stream: stream.write(frame.to_csv(index=False).encode()))
    else:
        write_atomic(out, lambda stream: frame.to_parquet(stream, index=False))
    say(console, f"{len(frame):,} predictions of {finished.typed.config.method} are in {out}.")


def prediction_table(
    run: Run,
    graph: Any = None,
    data: Path | None = None,
    batch_size: int | None = None,
    new_category: str | None = None,
) -> pd.DataFrame:
    """``node``, ``predicted`` and a column ``p_<class>`` for each class, in the order of the graph's nodes."""
    given, ids = graph_to_predict(run, graph, data, new_category)
    if isinstance(run, TaskRun):
        return _of_another_task(run, given, ids)
    probabilities = run.predict_proba(given, batch_size).numpy()
    names = run.typed.class_names
    if names is None and run.typed.config.dataset.name.partition(":")[0] in CATALOGUE:
        names = list(graph_of(run, None, data).class_names)
    names = names or [str(number) for number in range(probabilities.shape[1])]
    columns = {"node": list(ids), "predicted": [names[best] for best in probabilities.argmax(1)]}
    return pd.DataFrame(columns | {f"p_{name}": probabilities[:, at] for at, name in enumerate(names)})


def _of_another_task(run: TaskRun, given: Any, ids: Sequence[Any]) -> pd.DataFrame:
    """A number for each node; or the labels it has, separated by semicolons, and the probability of each."""
    if run.task not in ("node regression", "multi-label nodes"):
        raise InputError(f"RUN: is for {run.task}; predict from Python, ltga.load_run(...).predict(...)")
    target, found = run.record["target"], run.predict_proba(given).numpy()
    if target["kind"] == "number":
        return pd.DataFrame({"node": list(ids), "predicted": found})
    names = target["names"]
    chosen = [SEPARATOR.join(name for name, share in zip(names, row) if share > 0.5) for row in found]
    shares = {f"p_{name}": found[:, at] for at, name in enumerate(names)}
    return pd.DataFrame({"node": list(ids), "predicted": chosen, **shares})
