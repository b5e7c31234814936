"""``ltga predict``: a stored run on the same graph, a grown one or another, as a table of classes and probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from rich.console import Console

from ltga.cli.output import check_output
from ltga.cli.terminal import say
from ltga.data.atomic import write_atomic
from ltga.data.catalogue import CATALOGUE
from ltga.errors import InputError
from ltga.train.fitting import Run, load_run
from ltga.train.run_graph import graph_of, graph_to_predict

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
) -> None:
    """Write a row per node: its id, the most probable class, and every class's probability."""
    if out.suffix not in SUFFIXES:
        raise InputError(f"--out: {out.name}: predictions are written as {' or '.join(SUFFIXES)}")
    check_output(out, "--out")
    finished = load_run(record, device)
    predicted = Predictions.of(finished, graph, data, batch_size, fanout)
    write_atomic(out, predicted.write_csv if out.suffix == ".csv" else predicted.write_parquet)
    say(console, f"{len(predicted.ids):,} predictions of {finished.typed.config.method} are in {out}.")


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
        graph: Any = None,
        data: Path | None = None,
        batch_size: int | None = None,
        fanout: int | Sequence[int] | None = None,
    ) -> Predictions:
        given, ids = graph_to_predict(run, graph, data)
        sampled = {} if fanout is None else {"fanout": fanout}  # runs of other tasks have no such thing
        probabilities = run.predict_proba(given, batch_size, **sampled).numpy()
        names = run.typed.class_names
        if names is None and run.typed.config.dataset.name.partition(":")[0] in CATALOGUE:
            names = list(graph_of(run, None, data).class_names)
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
