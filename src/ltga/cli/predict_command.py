"""``ltga predict``: a stored run on the same graph, a grown one or another, as a table of classes and probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from rich.console import Console
from torch_geometric.data import Data

from ltga.cli.output import check_output
from ltga.cli.predict_tasks import task_table
from ltga.cli.terminal import say
from ltga.data import GraphFolder
from ltga.data.atomic import write_atomic
from ltga.data.catalogue import CATALOGUE
from ltga.errors import InputError
from ltga.train.finished import Run, load_run
from ltga.train.run_graph import graph_of, graph_to_predict
from ltga.train.tasks.task_run import TaskRun

SUFFIXES = (".csv", ".parquet")


ROWS = 200_000  # of the table that are made at a time


def predict_to_file(
    console: Console,
    record: Path,
    graph: str | None,
    out: Path,
    data: Path | None,
    batch_size: int | None,
    device: str = "cpu",
    fanout: int | Sequence[int] | None = None,
    new_category: str | None = None,
    pairs: Path | None = None,
) -> None:
    """Write a row per node (graph, pair): its id, what is predicted, and every class's probability."""
    if out.suffix not in SUFFIXES:
        raise InputError(f"--out: {out.name}: predictions are written as {' or '.join(SUFFIXES)}")
    check_output(out, "--out")
    finished = load_run(record, device)
    if isinstance(finished, TaskRun):
        if batch_size is not None or fanout is not None:
            fault = f"are for classes of nodes so far, not {finished.task}"
            raise InputError(f"--batch-size, --fanout: {fault}; leave them out")
        frame = task_table(finished, graph, data, new_category, pairs)
        predicted: Predictions | WholeTable = WholeTable(frame)
        ids: Sequence[Any] = range(len(frame))
    elif pairs is not None:
        raise InputError("--pairs: the run is for node classification; leave it out")
    else:
        given, ids = graph_to_predict(finished, graph, data, new_category)
        names = class_names_of(finished, data)
        predicted = Predictions.of(finished, given, ids, names, batch_size, fanout)
    write_atomic(out, predicted.write_csv if out.suffix == ".csv" else predicted.write_parquet)
    if isinstance(finished, TaskRun) and finished.task == "link prediction":
        meant = "p_edge was learned where one of three pairs is an edge"
        say(console, f"{meant}: rank pairs by it; among all pairs edges are rarer.")
    say(console, f"{len(ids):,} predictions of {finished.typed.config.method} are in {out}.")


@dataclass(frozen=True, eq=False)
class Predictions:
    """``node``, ``predicted`` and a column ``p_<class>`` for each class, in the order of the graph's nodes.

    Attributes:
        ids: of the nodes; probabilities ``[N, C]``; names of the classes.
    """

    ids: Sequence[Any]
    probabilities: np.ndarray
    names: Sequence[str]

    @classmethod
    def of(
        cls,
        run: Run,
        given: Data | GraphFolder,
        ids: Sequence[Any],
        names: Sequence[str] | None,
        batch_size: int | None = None,
        fanout: int | Sequence[int] | None = None,
    ) -> Predictions:
        probabilities = run.predict_proba(given, batch_size, fanout).numpy()
        return cls(ids, probabilities, names or [str(number) for number in range(probabilities.shape[1])])

    def table(self, first: int = 0, last: int | None = None) -> pd.DataFrame:
        """The rows from ``first`` to ``last``."""
        part = self.probabilities[first:last]
        columns = {"node": list(self.ids[first:last]), "predicted": [self.names[best] for best in part.argmax(1)]}
        return pd.DataFrame(columns | {f"p_{name}": part[:, at] for at, name in enumerate(self.names)})

    def write_csv(self, stream: IO[bytes]) -> None:
        for number, part in enumerate(self._parts()):
            stream.write(part.to_csv(index=False, header=number == 0).encode())

    def write_parquet(self, stream: IO[bytes]) -> None:
        import pyarrow  # type: ignore[import-untyped]
        from pyarrow.parquet import ParquetWriter  # type: ignore[import-untyped]

        writer = None
        for part in self._parts():
            rows = pyarrow.Table.from_pandas(part, preserve_index=False)
            writer = writer or ParquetWriter(stream, rows.schema)
            writer.write_table(rows)
        if writer is not None:
            writer.close()

    def _parts(self) -> Iterator[pd.DataFrame]:
        return (self.table(first, first + ROWS) for first in range(0, len(self.ids), ROWS))


@dataclass(frozen=True, eq=False)
class WholeTable:
    """Predictions that are a table already."""

    frame: pd.DataFrame

    def write_csv(self, stream: IO[bytes]) -> None:
        stream.write(self.frame.to_csv(index=False).encode())

    def write_parquet(self, stream: IO[bytes]) -> None:
        self.frame.to_parquet(stream, index=False)


def class_names_of(run: Run, data: Path | None) -> Sequence[str] | None:
    """What the run's classes are called, as far as its record or the catalogue knows."""
    names = run.typed.class_names
    if names is None and run.typed.config.dataset.name.partition(":")[0] in CATALOGUE:
        names = list(graph_of(run, None, data).class_names)
    return names
