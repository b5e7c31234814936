"""The reproduction table: many runs of the paper's protocol beside the cells the paper prints."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ltga.data import Dataset
from ltga.errors import InputError
from ltga.train.fitting import execute_and_store
from ltga.train.planned import PlannedRun, as_dataset, as_protocol, plan_run
from ltga.train.protocol import Protocol
from ltga.train.record import Record
from ltga.train.record_schema import typed
from ltga.train.store import Store


@dataclass(frozen=True)
class Reproduced:
    """One method on one dataset over several seeds; accuracies are shares between 0 and 1.

    ``imported`` has the archive's name for every run that was not made here.

    >>> Reproduced("gcn", "texas", (1, 2), (0.5, 0.6)).printed
    '55.0±7.1'
    """

    method: str
    dataset: str
    seeds: tuple[int, ...]
    accuracies: tuple[float, ...]
    imported: tuple[str, ...] = ()

    @property
    def mean(self) -> float:
        return statistics.fmean(self.accuracies)

    @property
    def spread(self) -> float:
        """Sample standard deviation; NaN for a single seed."""
        return statistics.stdev(self.accuracies) if len(self.accuracies) > 1 else float("nan")

    @property
    def printed(self) -> str:
        """As the paper prints it."""
        return f"{100 * self.mean:.1f}±{100 * self.spread:.1f}"


def reproduction_table(
    methods: Sequence[str],
    datasets: Sequence[Dataset | str],
    seeds: Iterable[int] = range(1, 11),
    init: str = "paper",
    store: Store | str | Path = "runs",
    protocol: Protocol | Mapping[str, Any] | None = None,
    on_run: Callable[[Record], Any] | None = None,
) -> list[Reproduced]:
    """Run every method on every dataset with every seed, storing each run as soon as it is done.

    Args:
        methods, datasets: names (or loaded datasets).
        seeds: each uses its own split, as in :func:`~ltga.train.fit`.
        init: ``"paper"`` or ``"paired"``.
        store: where the runs are kept; those already there are not done again.
        protocol: other settings; its ``init`` is replaced by ``init``.
        on_run: called with the record of every run, stored or new.
    """
    protocol = as_protocol(protocol).with_overrides(init=init)
    seeds = tuple(seeds)
    folder = store if isinstance(store, Store) else Store(store)
    folder.check_writable()
    cells = []
    for dataset in map(as_dataset, datasets):
        plans = _plans(dataset, methods, seeds, protocol)
        records: dict[str, Record] = {}
        planned = {run.id: run for row in plans for run in row}

        def make(run: str, planned: Mapping[str, PlannedRun] = planned) -> Record:
            return execute_and_store(planned[run], folder).record

        for run, record, _ in folder.each_once(planned, folder.record, make):
            records[run] = record
            if on_run is not None:
                on_run(record)
        cells += [_cell(dataset.name, seeds, [records[run.id] for run in row]) for row in plans]
    return cells


def _plans(
    dataset: Dataset, methods: Sequence[str], seeds: Sequence[int], protocol: Protocol
) -> list[list[PlannedRun]]:
    """The runs of every cell of a dataset's column."""
    fingerprint = dataset.fingerprint
    plans = [
        [plan_run(dataset, method, seed, protocol=protocol, fingerprint=fingerprint) for seed in seeds]
        for method in methods
    ]
    for split in {run.split for row in plans for run in row}:
        if not dataset.split(split)[2].any():
            raise InputError(f"{dataset.name}: has no test nodes, and the table compares test accuracies")
    return plans


def _cell(dataset: str, seeds: tuple[int, ...], records: Sequence[Record]) -> Reproduced:
    runs = [typed(record) for record in records]
    imported = tuple(run.imported.name for run in runs if run.imported is not None)
    return Reproduced(
        runs[0].config.method, dataset, seeds, tuple(run.metrics["test"].accuracy for run in runs), imported
    )


def to_markdown(cells: Sequence[Reproduced], paper: Mapping[tuple[str, str], str]) -> str:
    """A table with a row per method: our cell, ticked if the paper prints the same, else with the paper's.

    >>> print(to_markdown([Reproduced("gcn", "texas", (1, 2), (0.5, 0.6))], {("gcn", "texas"): "55.0±7.1"}))
    | | texas |
    | --- | --- |
    | gcn | 55.0±7.1 ✓ |
    <BLANKLINE>
    1 of 1 cells match the paper in mean and s.d. to the printed digit.
    <BLANKLINE>
    """
    methods, datasets = (list(dict.fromkeys(getattr(c, key) for c in cells)) for key in ("method", "dataset"))
    text = {(cell.method, cell.dataset): _beside(cell, paper) for cell in cells}
    lines = [f"| | {' | '.join(datasets)} |", "| --- " * (len(datasets) + 1) + "|"]
    for method in methods:
        row = " | ".join(text.get((method, dataset), "") for dataset in datasets)
        lines.append(f"| {method} | {row} |")
    known = [cell for cell in cells if (cell.method, cell.dataset) in paper]
    exact = sum(cell.printed == paper[cell.method, cell.dataset] for cell in known)
    lines += ["", f"{exact} of {len(known)} cells match the paper in mean and s.d. to the printed digit.", ""]
    imported = [name for cell in cells for name in cell.imported]
    if imported:
        total = sum(len(cell.seeds) for cell in cells)
        lines += [f"{len(imported)} of {total} runs imported from {', '.join(dict.fromkeys(imported))}.", ""]
    return "\n".join(lines)


def to_csv(cells: Sequence[Reproduced], paper: Mapping[tuple[str, str], str]) -> str:
    """The same as CSV, a line per cell, with every seed's accuracy."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    marked = any(cell.imported for cell in cells)
    head = ["method", "dataset", "ours", "paper", "exact", "seeds", "accuracies"]
    writer.writerow([*head, "imported"] if marked else head)
    for cell in cells:
        printed = paper.get((cell.method, cell.dataset), "")
        exact = "" if not printed else str(printed == cell.printed).lower()
        seeds = " ".join(map(str, cell.seeds))
        accuracies = " ".join(f"{100 * value:.4f}" for value in cell.accuracies)
        row = [cell.method, cell.dataset, cell.printed, printed, exact, seeds, accuracies]
        source = ", ".join(dict.fromkeys(cell.imported))
        note = f"{len(cell.imported)} of {len(cell.seeds)} from {source}" if cell.imported else ""
        writer.writerow([*row, note] if marked else row)
    return stream.getvalue()


def _beside(cell: Reproduced, paper: Mapping[tuple[str, str], str]) -> str:
    printed = paper.get((cell.method, cell.dataset))
    if printed is None:
        return cell.printed
    return f"{cell.printed} ✓" if printed == cell.printed else f"{cell.printed} (paper {printed})"
