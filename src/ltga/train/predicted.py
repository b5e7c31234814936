"""What a run predicts, as a table with people's ids: of its own graph, a grown one or another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, TypeAlias

import numpy as np
import pandas as pd

from ltga.data.catalogue import CATALOGUE
from ltga.errors import InputError
from ltga.train.finished import Run
from ltga.train.known_truth import known_columns
from ltga.train.predicted_tasks import task_table
from ltga.train.run_graph import GraphToPredict, graph_of, graph_to_predict
from ltga.train.tasks.task_run import TaskRun

ROWS = 200_000  # of the table that are made at a time


def predicted(
    run: Run,
    graph: Any = None,
    root: Any = None,
    *,
    pairs: Any = None,
    changes: Mapping[str, Any] | None = None,
    batch_size: int | None = None,
    fanout: int | Sequence[int] | None = None,
) -> Table:
    """See :meth:`ltga.train.finished.Run.predict_table`."""
    if isinstance(run, TaskRun):
        if batch_size is not None or fanout is not None:
            fault = f"are for classes of nodes so far, not {run.task}"
            raise InputError(f"batch_size, fanout: {fault}; leave them out")
        return WholeTable(task_table(run, graph, root, changes, pairs))
    if pairs is not None:
        raise InputError("pairs: the run is for node classification; leave it out")
    given = graph_to_predict(run, graph, root, changes)
    return Predictions.of(run, given, class_names_of(run, root), batch_size, fanout)


@dataclass(frozen=True, eq=False)
class Predictions:
    """``node``, ``predicted`` and a column ``p_<class>`` for each class, in the order of the graph's nodes.

    What is known already comes last: ``label``, where there are labels, and on the run's own graph the ``part`` of the
    split, train, val or test.

    Attributes:
        ids: of the nodes; probabilities ``[N, C]``; names of the classes; known: further columns.
    """

    ids: Sequence[Any]
    probabilities: np.ndarray
    names: Sequence[str]
    known: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        run: Run,
        given: GraphToPredict,
        names: Sequence[str] | None,
        batch_size: int | None = None,
        fanout: int | Sequence[int] | None = None,
    ) -> Predictions:
        probabilities = run.predict_proba(given.data, batch_size, fanout).numpy()
        called = names or [str(number) for number in range(probabilities.shape[1])]
        return cls(given.ids, probabilities, called, known_columns(run, given, called))

    def table(self, first: int = 0, last: int | None = None) -> pd.DataFrame:
        """The rows from ``first`` to ``last``."""
        part = self.probabilities[first:last]
        chosen = [self.names[best] for best in part.argmax(1)]
        columns: dict[str, Any] = {"node": list(self.ids[first:last]), "predicted": chosen}
        columns |= {f"p_{name}": part[:, at] for at, name in enumerate(self.names)}
        return pd.DataFrame(columns | {name: values[first:last] for name, values in self.known.items()})

    def __len__(self) -> int:
        return len(self.ids)

    def frame(self) -> pd.DataFrame:
        return self.table()

    def write_csv(self, stream: IO[bytes]) -> None:
        for number, part in enumerate(self._parts()):
            stream.write(part.to_csv(index=False, header=number == 0).encode())

    def write_parquet(self, stream: IO[bytes]) -> None:
        import pyarrow  # type: ignore[import-untyped]
        from pyarrow.parquet import ParquetWriter  # type: ignore[import-untyped]

        writer = None
        for part in self._parts():
            if writer is None:
                schema = pyarrow.Schema.from_pandas(part, preserve_index=False)
                for at, column in enumerate(schema):  # empty so far, and perhaps not further down
                    if pyarrow.types.is_null(column.type):
                        schema = schema.set(at, column.with_type(pyarrow.string()))
                writer = ParquetWriter(stream, schema)
            writer.write_table(pyarrow.Table.from_pandas(part, schema, preserve_index=False))
        if writer is not None:
            writer.close()

    def _parts(self) -> Iterator[pd.DataFrame]:
        return (self.table(first, first + ROWS) for first in range(0, len(self.ids), ROWS))


@dataclass(frozen=True, eq=False)
class WholeTable:
    """Predictions that are a table already."""

    made: pd.DataFrame

    def __len__(self) -> int:
        return len(self.made)

    def frame(self) -> pd.DataFrame:
        return self.made

    def write_csv(self, stream: IO[bytes]) -> None:
        stream.write(self.made.to_csv(index=False).encode())

    def write_parquet(self, stream: IO[bytes]) -> None:
        self.made.to_parquet(stream, index=False)


Table: TypeAlias = Predictions | WholeTable


def class_names_of(run: Run, root: Any) -> Sequence[str] | None:
    """What the run's classes are called, as far as its record or the catalogue knows."""
    names = run.typed.class_names
    if names is None and run.typed.config.dataset.name.partition(":")[0] in CATALOGUE:
        names = list(graph_of(run, None, root).class_names)
    return names
