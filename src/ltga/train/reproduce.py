"""The reproduction table: many runs of the paper's protocol beside the cells the paper prints."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ltga.data import Dataset
from ltga.errors import InputError, RecordError
from ltga.train.fit import as_dataset, as_protocol, fit, run_configuration
from ltga.train.protocol import Protocol
from ltga.train.record import Record, imported_from, run_id
from ltga.train.storage import check_writable, read_record


@dataclass(frozen=True)
class Cell:
    """One method on one dataset over several seeds; accuracies are shares between 0 and 1.

    ``imported`` has the archive's name for every run that was not made here.

    >>> Cell("gcn", "texas", (1, 2), (0.5, 0.6)).printed
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


def draws_like_the_paper() -> bool:
    """Whether torch's dropout draws the same random numbers here as where the paper was run.

    On Intel processors torch fills dropout masks from MKL's generator, elsewhere from its own, which takes two words
    per element; the paper's cells come out with the latter only.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        torch.empty(1000).bernoulli_(0.6)
        after_mask = torch.rand(4)
        torch.manual_seed(0)
        torch.empty(2000).uniform_()
        return bool(torch.equal(after_mask, torch.rand(4)))


def reproduction_table(
    methods: Sequence[str],
    datasets: Sequence[Dataset | str],
    seeds: Iterable[int] = range(1, 11),
    init: str = "paper",
    store: str | Path = "runs",
    resume: bool = True,
    protocol: Protocol | Mapping[str, Any] | None = None,
    on_run: Callable[[Record], Any] | None = None,
) -> list[Cell]:
    """Run every method on every dataset with every seed, storing each run as soon as it is done.

    Args:
        methods, datasets: names (or loaded datasets).
        seeds: each uses its own split, as in :func:`~ltga.train.fit`.
        init: ``"paper"`` or ``"paired"``.
        store: folder of the records.
        resume: take runs already in ``store`` from there.
        protocol: other settings; its ``init`` is replaced by ``init``.
        on_run: called with the record of every run, stored or new.
    """
    protocol = as_protocol(protocol).with_overrides(init=init)
    seeds = tuple(seeds)
    check_writable(store)
    cells = []
    for dataset in map(as_dataset, datasets):
        for method in methods:
            records = []
            for seed in seeds:
                records.append(_run(dataset, method, seed, protocol, Path(store), resume))
                if on_run is not None:
                    on_run(records[-1])
            if not all("test" in record["metrics"] for record in records):
                raise InputError(f"{dataset.name}: has no test nodes, and the table compares test accuracies")
            accuracies = tuple(record["metrics"]["test"]["accuracy"] for record in records)
            imported = tuple(name for record in records if (name := imported_from(record)) is not None)
            cells.append(Cell(records[0]["config"]["method"], dataset.name, seeds, accuracies, imported))
    return cells


def _run(dataset: Dataset, method: str, seed: int, protocol: Protocol, store: Path, resume: bool) -> Record:
    config = run_configuration(dataset, method, seed, None, protocol)
    path = store / f"{run_id(config)}.json"
    if resume and path.exists():
        try:
            record = read_record(path)
            if not record["interrupted"]:
                return record
        except RecordError:
            pass  # damaged: run it again
    run = fit(dataset, method, seed, protocol=protocol)
    if run.record["interrupted"]:
        raise KeyboardInterrupt  # a cell of the table needs whole runs; those finished are in the store
    run.save(store)
    return run.record


def to_markdown(cells: Sequence[Cell], paper: Mapping[tuple[str, str], str]) -> str:
    """A table with a row per method: our cell, ticked if the paper prints the same, else with the paper's.

    >>> print(to_markdown([Cell("gcn", "texas", (1, 2), (0.5, 0.6))], {("gcn", "texas"): "55.0±7.1"}))
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


def to_csv(cells: Sequence[Cell], paper: Mapping[tuple[str, str], str]) -> str:
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


def _beside(cell: Cell, paper: Mapping[tuple[str, str], str]) -> str:
    printed = paper.get((cell.method, cell.dataset))
    if printed is None:
        return cell.printed
    return f"{cell.printed} ✓" if printed == cell.printed else f"{cell.printed} (paper {printed})"
