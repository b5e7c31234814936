"""``ltga predict``: a stored run on the same graph, a grown one or another, as a table of classes and probabilities."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from rich.console import Console

from ltga.cli.output import check_output
from ltga.cli.terminal import say
from ltga.data.atomic import write_atomic
from ltga.data.dataset import Dataset
from ltga.errors import InputError
from ltga.train.find_run import find_run
from ltga.train.fit import Run, load_run
from ltga.train.reading import graph_for

SUFFIXES = (".csv", ".parquet")


def predict_to_file(
    console: Console, run: str, graph: str | None, out: Path, runs: Path, data: Path | None, batch_size: int | None
) -> None:
    """Write a row per node: its id, the most probable class, and every class's probability."""
    if out.suffix not in SUFFIXES:
        raise InputError(f"--out: {out.name}: predictions are written as {' or '.join(SUFFIXES)}")
    check_output(out, "--out")
    finished = load_run(find_run(run, runs))
    dataset = graph_for(finished, graph, data)
    frame = prediction_table(finished, dataset, batch_size)
    if out.suffix == ".csv":
        write_atomic(out, lambda stream: stream.write(frame.to_csv(index=False).encode()))
    else:
        write_atomic(out, lambda stream: frame.to_parquet(stream, index=False))
    say(console, f"{len(frame):,} predictions of {finished.typed.config.method} are in {out}.")


def prediction_table(run: Run, dataset: Dataset, batch_size: int | None = None) -> pd.DataFrame:
    """``node``, ``predicted`` and a column ``p_<class>`` for each class, in the order of the graph's nodes."""
    probabilities = run.predict_proba(dataset, batch_size).numpy()
    names = list(dataset.class_names) if len(dataset.class_names) == probabilities.shape[1] else None
    names = names or [str(number) for number in range(probabilities.shape[1])]
    nodes = dataset.node_names or range(len(probabilities))
    columns = {"node": nodes, "predicted": [names[best] for best in probabilities.argmax(1)]}
    return pd.DataFrame(columns | {f"p_{name}": probabilities[:, at] for at, name in enumerate(names)})
