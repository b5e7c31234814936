"""Method by dataset: the accuracy tables, their tuned rows, averages and ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from ltga.report.study.runs import Study, accuracy, behind, label
from ltga.report.study.tables import PERCENT, Behind, Cell, Column, Table, mark_best, mean_cell, number_cell, text_cell
from ltga.stats import average_ranks, critical_difference
from ltga.stats.paper.check import CELLS
from ltga.suite import EXPERIMENTS, Experiment
from ltga.suite.spec import STAND_INS
from ltga.suite.tuned import TUNED_ROWS, TunedRow, tuned
from ltga.train.record import Record

PAIRED = "-paired"
Cells = Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class Grid:
    """The accuracies of an experiment by (method, dataset), the tuned rows among them.

    Attributes:
        wanted: how many runs each should have.
        chosen: for a tuned row, the method it chose.
    """

    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    runs: Mapping[tuple[str, str], tuple[Behind, ...]]
    wanted: Mapping[tuple[str, str], int]
    chosen: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def complete(self, methods: Sequence[str], stand_ins: bool) -> tuple[str, ...]:
        """Datasets on which all of these methods have runs, and over the same seeds."""
        found = []
        for dataset in self.datasets:
            seeds = {frozenset(run.seed for run in self.runs[method, dataset]) for method in methods}
            if len(seeds) == 1 and seeds != {frozenset()} and (stand_ins or dataset not in STAND_INS):
                found.append(dataset)
        return tuple(found)

    def means(self, methods: Sequence[str], datasets: Sequence[str]) -> pd.DataFrame:
        """Mean accuracies ``[datasets, methods]``."""
        return pd.DataFrame(
            {
                method: [
                    sum(run.value for run in self.runs[method, dataset]) / len(self.runs[method, dataset])
                    for dataset in datasets
                ]
                for method in methods
            },
            index=list(datasets),
        )


def read_grid(study: Study, experiment: Experiment, rows: Sequence[TunedRow] = ()) -> Grid:
    """The accuracies of an experiment, with these tuned rows."""
    found = study.runs(experiment)
    runs: dict[tuple[str, str], tuple[Behind, ...]] = {}
    wanted: dict[tuple[str, str], int] = {}
    chosen: dict[tuple[str, str], str] = {}
    for dataset in experiment.datasets:
        for method in experiment.methods:
            specs = [spec for spec in experiment.runs if (spec.dataset, spec.method) == (dataset, method)]
            runs[method, dataset] = tuple(behind(found, specs, accuracy))
            wanted[method, dataset] = len(specs)
    for row in rows:
        picks = tuned(found.values(), row)
        for dataset in experiment.datasets:
            wanted[row.name, dataset] = wanted[row.candidates[0], dataset]
            pick = picks.get(dataset)
            runs[row.name, dataset] = () if pick is None else tuple(_behind(pick.records))
            if pick is not None:
                chosen[row.name, dataset] = pick.method
    methods = (*experiment.methods, *(row.name for row in rows))
    return Grid(methods, experiment.datasets, runs, wanted, chosen)


def _behind(records: Sequence[Record]) -> list[Behind]:
    return [Behind(record["id"], record["config"]["seed"], record["metrics"]["test"]["accuracy"]) for record in records]


def tuned_rows(experiment: Experiment) -> tuple[TunedRow, ...]:
    """The tuned rows whose candidates the experiment runs."""
    return tuple(row for row in TUNED_ROWS if set(row.candidates) <= set(experiment.methods))


def accuracy_table(study: Study, experiment: Experiment, ranks: bool = False) -> Table:
    """Mean and s.d. of test accuracy, the paper's cell beside ours.

    Under paired initialisation, which the paper does not have, our own cell under the paper's
    initialisation stands beside instead.
    """
    rows = tuned_rows(experiment)
    grid = read_grid(study, experiment, rows)
    reference, beside = _reference(study, experiment, rows)
    lines = [
        [
            text_cell(label(method)),
            *(_cell(grid, method, dataset, beside.get((method, dataset))) for dataset in grid.datasets),
        ]
        for method in grid.methods
    ]
    plain = len(experiment.methods)
    averaged = grid.complete(experiment.methods, stand_ins=False)
    columns = [Column("method", numeric=False), *(Column(name, stand_in=STAND_INS.get(name)) for name in grid.datasets)]
    columns.append(Column(f"mean of {len(averaged)}", note=", ".join(averaged)))
    for line, method in zip(lines, grid.methods):
        line.append(_average(grid, method, averaged, beside))
    if ranks:
        columns.append(Column("average rank", note=f"over the same datasets: {', '.join(averaged)}"))
        for line, cell in zip(lines, _rank_cells(grid, experiment.methods, averaged, beside)):
            line.append(cell)
    marked = [tuple(line) for line in lines]
    for number in range(1, len(grid.datasets) + 1):
        marked[:plain] = mark_best(marked[:plain], number)
    return Table(
        experiment.name, experiment.title, tuple(columns), tuple(marked), _note(averaged, rows, ranks),
        reference=reference,
    )  # fmt: skip


def _note(averaged: Sequence[str], rows: Sequence[TunedRow], ranks: bool) -> str:
    said = ["Test accuracy in percent, mean ± sample s.d. over seeds; bold: best of the column."]
    if averaged:
        said.append(
            f"Averages{' and ranks' if ranks else ''} are over the datasets of the paper on which every method has the "
            f"same seeds ({', '.join(averaged)}); the reference's are recomputed from its cells for the same datasets."
        )
    else:
        said.append("No average yet: on no dataset of the paper has every method run.")
    if ranks and len(averaged) > 1:
        said.append("†: within the Nemenyi critical difference of the best rank.")
    if rows:
        said.append("Tuned rows choose per dataset on validation accuracy; an oracle chooses on test accuracy.")
    return " ".join(said)


def _reference(study: Study, experiment: Experiment, rows: Sequence[TunedRow]) -> tuple[str, Cells]:
    twin = EXPERIMENTS.get(experiment.name.removesuffix(PAIRED))
    if not experiment.name.endswith(PAIRED) or twin is None:
        return "paper", CELLS
    grid = read_grid(study, twin, rows)
    return "paper's init", {key: PERCENT.show([run.value for run in runs]) for key, runs in grid.runs.items() if runs}


def _cell(grid: Grid, method: str, dataset: str, reference: str | None) -> Cell:
    cell = mean_cell(
        grid.runs[method, dataset], grid.wanted[method, dataset], PERCENT, reference, STAND_INS.get(dataset)
    )
    if (method, dataset) in grid.chosen:
        return replace(cell, note=f"chose {label(grid.chosen[method, dataset])}")
    return cell


def _average(grid: Grid, method: str, datasets: Sequence[str], beside: Cells) -> Cell:
    if not datasets or not all(grid.runs[method, dataset] for dataset in datasets):
        return Cell("–")
    number = 100 * float(grid.means([method], datasets)[method].mean())
    printed = [beside.get((method, dataset)) for dataset in datasets]
    reference = None
    if all(printed):
        reference = f"{sum(float(str(cell).split('±')[0]) for cell in printed) / len(printed):.1f}"
    return number_cell(f"{number:.1f}", number, reference=reference)


def _rank_cells(grid: Grid, methods: Sequence[str], datasets: Sequence[str], beside: Cells) -> list[Cell]:
    if not datasets:
        return [Cell("–") for _ in grid.methods]
    ranks = average_ranks(grid.means(methods, datasets))
    printed = printed_ranks(methods, datasets, beside)
    near = critical_difference(len(methods), len(datasets)) if len(datasets) > 1 else -1.0
    cells = []
    for method in methods:
        text = f"{ranks[method]:.2f}" + ("†" if ranks[method] - ranks.min() <= near else "")
        cells.append(number_cell(text, float(ranks[method]), reference=printed.get(method)))
    return cells


def printed_ranks(methods: Sequence[str], datasets: Sequence[str], cells: Cells = CELLS) -> dict[str, str]:
    """The reference's average ranks over these datasets, from its printed cells; nothing if one is lacking."""
    if not datasets or any((method, dataset) not in cells for method in methods for dataset in datasets):
        return {}
    means = pd.DataFrame(
        {method: [float(cells[method, dataset].split("±")[0]) for dataset in datasets] for method in methods}
    )
    return {str(method): f"{rank:.2f}" for method, rank in average_ranks(means).items()}
