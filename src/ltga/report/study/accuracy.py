"""Method by dataset: the accuracy tables, their tuned rows, averages and ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from ltga.report.study.runs import Study, accuracy, behind, label, original, reference_of
from ltga.report.study.tables import PERCENT, Behind, Cell, Column, Table, mark_best, mean_cell, number_cell, text_cell
from ltga.stats import average_ranks, critical_difference
from ltga.stats.paper.check import CELLS
from ltga.suite import Experiment
from ltga.suite.spec import STAND_INS
from ltga.suite.tuned import TUNED_ROWS, TunedRow, tuned
from ltga.train.record import Record

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

    def behind(self, method: str, datasets: Sequence[str]) -> tuple[Behind, ...]:
        """The runs of a method on these datasets, in percent."""
        runs = (run for dataset in datasets for run in self.runs[method, dataset])
        return tuple(replace(run, value=100 * run.value) for run in runs)

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
    beside, twin = _reference(study, experiment, rows)
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
    if averaged:
        columns.append(Column(f"mean of {len(averaged)}", note=", ".join(averaged)))
        for line, method in zip(lines, grid.methods):
            line.append(_average(grid, method, averaged, beside, twin))
    if averaged and ranks:
        columns.append(Column("average rank", note=f"over the same datasets: {', '.join(averaged)}"))
        for line, cell in zip(lines, _rank_cells(grid, experiment.methods, averaged, twin)):
            line.append(cell)
    marked = [tuple(line) for line in lines]
    for number in range(1, len(grid.datasets) + 1):
        marked[:plain] = mark_best(marked[:plain], number)
    return Table(
        experiment.name, experiment.title, tuple(columns), tuple(marked), _note(grid, averaged, rows, ranks),
        reference=reference_of(experiment),
    )  # fmt: skip


def _note(grid: Grid, averaged: Sequence[str], rows: Sequence[TunedRow], ranks: bool) -> str:
    said = ["Test accuracy in percent, mean ± sample s.d. over seeds; bold: best of the column."]
    if averaged:
        said.append(
            f"Averages{' and ranks' if ranks else ''} are over the datasets of the paper on which every method has the "
            f"same seeds ({', '.join(averaged)}); the reference's are recomputed for the same datasets."
        )
    else:
        said.append("No average yet: on no dataset of the paper has every method run.")
    if ranks and len(averaged) > 1:
        said.append("†: within the Nemenyi critical difference of the best rank.")
    if rows:
        said.append("Tuned rows choose per dataset on validation accuracy; an oracle chooses on test accuracy.")
    for row in rows:
        picks = (f"{label(pick)} on {dataset}" for (name, dataset), pick in grid.chosen.items() if name == row.name)
        if chosen := "; ".join(picks):
            said.append(f"{label(row.name)} chose: {chosen}.")
    return " ".join(said)


def _reference(study: Study, experiment: Experiment, rows: Sequence[TunedRow]) -> tuple[Cells, Grid | None]:
    """The cells that stand beside, and their numbers where these are ours."""
    twin = original(experiment)
    if twin is None:
        return CELLS, None
    grid = read_grid(study, twin, rows)
    cells = {key: PERCENT.show([run.value for run in runs]) for key, runs in grid.runs.items() if runs}
    return cells, grid


def _cell(grid: Grid, method: str, dataset: str, reference: str | None) -> Cell:
    cell = mean_cell(
        grid.runs[method, dataset], grid.wanted[method, dataset], PERCENT, reference, STAND_INS.get(dataset)
    )
    if (method, dataset) in grid.chosen:
        return replace(cell, note=f"chose {label(grid.chosen[method, dataset])}")
    return cell


def _average(grid: Grid, method: str, datasets: Sequence[str], beside: Cells, twin: Grid | None) -> Cell:
    if not datasets or not all(grid.runs[method, dataset] for dataset in datasets):
        return Cell("–")
    number = 100 * float(grid.means([method], datasets)[method].mean())
    printed = [beside.get((method, dataset)) for dataset in datasets]
    reference = None
    if all(printed) and twin is not None:
        reference = f"{100 * float(twin.means([method], datasets)[method].mean()):.1f}"
    elif all(printed):
        reference = f"{sum(float(str(cell).split('±')[0]) for cell in printed) / len(printed):.1f}"
    cell = number_cell(f"{number:.1f}", number, reference=reference)
    return replace(cell, runs=grid.behind(method, datasets))


def _rank_cells(grid: Grid, methods: Sequence[str], datasets: Sequence[str], twin: Grid | None) -> list[Cell]:
    ranks = average_ranks(grid.means(methods, datasets))
    if twin is None:
        printed = printed_ranks(methods, datasets)
    elif set(datasets) <= set(twin.complete(methods, stand_ins=True)):
        printed = {str(name): f"{rank:.2f}" for name, rank in average_ranks(twin.means(methods, datasets)).items()}
    else:
        printed = {}
    near = critical_difference(len(methods), len(datasets)) if len(datasets) > 1 else -1.0
    cells = []
    for method in methods:
        text = f"{ranks[method]:.2f}" + ("†" if ranks[method] - ranks.min() <= near else "")
        cell = number_cell(text, float(ranks[method]), reference=printed.get(method))
        cells.append(replace(cell, runs=grid.behind(method, datasets)))
    return cells


def printed_ranks(methods: Sequence[str], datasets: Sequence[str]) -> dict[str, str]:
    """The paper's average ranks over these datasets, from its printed cells; nothing if one is lacking."""
    if not datasets or any((method, dataset) not in CELLS for method in methods for dataset in datasets):
        return {}
    means = pd.DataFrame(
        {method: [float(CELLS[method, dataset].split("±")[0]) for dataset in datasets] for method in methods}
    )
    return {str(method): f"{rank:.2f}" for method, rank in average_ranks(means).items()}
