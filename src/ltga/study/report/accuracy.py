"""Method by dataset: the accuracy tables, their tuned rows, averages and ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from ltga.study import Experiment
from ltga.study.paper import PRINTED_MEANS
from ltga.study.paper import printed_tables as paper
from ltga.study.report.names import label
from ltga.study.report.pivot import METHOD, Measure, Pivot, behind
from ltga.study.report.run_table import complete_datasets, grouped, mean_accuracies, tuned_runs
from ltga.study.report.runs import Study, original
from ltga.study.report.tables import PERCENT, Behind, Cell, Column, Table, mark_best, parse_mean
from ltga.study.spec import STAND_INS
from ltga.study.stats import average_ranks, critical_difference

_ACCURACIES = Pivot(
    rows=(METHOD,),
    across="dataset",
    across_head=lambda dataset, _: str(dataset),
    measures=(Measure("accuracy (%)", "accuracy", PERCENT),),
    runs=tuned_runs,
    printed=paper.ACCURACY,
    note="Test accuracy in percent, mean ± sample s.d. over seeds; bold: best of the column.",
)


def accuracy_table(study: Study, experiment: Experiment, ranks: bool = False) -> Table:
    """Mean and s.d. of test accuracy, with averages and perhaps ranks over datasets that every method has run."""
    table, runs, twin = _ACCURACIES(study, experiment), tuned_runs(study, experiment), original(experiment)
    beside = None if twin is None else tuned_runs(study, twin)
    plain, columns = len(experiment.methods), list(table.columns)
    chosen = {name: _choices(here) for name, here in grouped(runs[runs["tuned"]], "method").items()}
    tuned = [
        (head, *(replace(cell, note=said.get(column.label, "")) for cell, column in zip(cells, columns[1:])))
        for (head, *cells), said in zip(table.rows[plain:], chosen.values())
    ]
    rows = [*mark_best(table.rows[:plain], first=1), *tuned]
    averaged = complete_datasets(runs, experiment.methods, without=STAND_INS)
    if averaged:
        places = [k for k, column in enumerate(columns) if column.label in averaged]
        columns.append(Column(f"mean of {len(averaged)}", note=", ".join(averaged)))
        averages = (
            _average(method, [row[k] for k in places], runs, beside, averaged)
            for method, row in zip(runs["method"].unique(), rows)
        )
        rows = [(*row, cell) for row, cell in zip(rows, averages)]
    if averaged and ranks:
        columns.append(Column("average rank", note=f"over the same datasets: {', '.join(averaged)}"))
        cells = _rank_cells(runs, experiment.methods, averaged, beside)
        rows = [*((*row, cell) for row, cell in zip(rows, cells)), *rows[plain:]]
    note = _note(averaged, ranks, chosen)
    return replace(table, columns=tuple(columns), rows=tuple(rows), note=note)


def headline_table(study: Study, experiment: Experiment) -> Table:
    """The same with ranks."""
    return accuracy_table(study, experiment, ranks=True)


def _choices(runs: pd.DataFrame) -> dict[str, str]:
    """Dataset -> what a tuned row chose there, in words."""
    found = runs.dropna(subset="chosen")
    return {dataset: f"chose {label(method)}" for dataset, method in zip(found["dataset"], found["chosen"])}


def _note(averaged: Sequence[str], ranks: bool, chosen: Mapping[str, Mapping[str, str]]) -> str:
    said = [_ACCURACIES.note]
    if averaged:
        said.append(
            f"Averages{' and ranks' if ranks else ''} are over the datasets of the paper on which every method has the "
            f"same seeds ({', '.join(averaged)}); the reference's are recomputed for the same datasets."
        )
    else:
        said.append("No average yet: on no dataset of the paper has every method run.")
    if ranks and len(averaged) > 1:
        said.append("†: within the Nemenyi critical difference of the best rank.")
    if chosen:
        said.append("Tuned rows choose per dataset on validation accuracy; an oracle chooses on test accuracy.")
    for name, choices in chosen.items():
        picks = "; ".join(f"{pick.removeprefix('chose ')} on {dataset}" for dataset, pick in choices.items())
        if picks:
            said.append(f"{label(name)} chose: {picks}.")
    return " ".join(said)


def accuracies_behind(runs: pd.DataFrame, methods: Iterable[str], datasets: Sequence[str]) -> tuple[Behind, ...]:
    """The runs of one method after the other on these datasets, in percent."""
    here = runs[runs["dataset"].isin(datasets)]
    found = (run for method in methods for run in behind(here[here["method"] == method], "accuracy"))
    return tuple(replace(run, value=100 * run.value) for run in found)


def _average(
    method: str, cells: Sequence[Cell], runs: pd.DataFrame, twin: pd.DataFrame | None, datasets: Sequence[str]
) -> Cell:
    """The mean over datasets; beside it the paper's over its printed cells, or our own under its initialisation."""
    if not all(cell.runs for cell in cells):
        return Cell("–")

    def mean(of: pd.DataFrame) -> float:
        return 100 * float(mean_accuracies(of, [method], datasets)[method].mean())

    reference = None
    printed = [said for cell in cells if (said := parse_mean(cell.reference or "")) is not None]
    if len(printed) == len(cells):
        reference = f"{sum(printed) / len(printed) if twin is None else mean(twin):.1f}"
    return Cell(f"{mean(runs):.1f}", mean(runs), accuracies_behind(runs, [method], datasets), reference=reference)


def _rank_cells(
    runs: pd.DataFrame, methods: Sequence[str], datasets: Sequence[str], twin: pd.DataFrame | None
) -> list[Cell]:
    ranks = average_ranks(mean_accuracies(runs, methods, datasets))
    printed: dict[str, str] = {}
    if twin is None:
        printed = printed_ranks(methods, datasets)
    elif set(datasets) <= set(complete_datasets(twin, methods)):
        printed = _as_printed(mean_accuracies(twin, methods, datasets))
    near = critical_difference(len(methods), len(datasets)) if len(datasets) > 1 else -1.0
    cells = []
    for method in methods:
        text = f"{ranks[method]:.2f}" + ("†" if ranks[method] - ranks.min() <= near else "")
        own = accuracies_behind(runs, [method], datasets)
        cells.append(Cell(text, float(ranks[method]), own, reference=printed.get(method)))
    return cells


def printed_ranks(methods: Sequence[str], datasets: Sequence[str]) -> dict[str, str]:
    """The paper's average ranks over these datasets, from its printed cells; nothing if one is lacking."""
    if not set(methods) <= set(PRINTED_MEANS.columns) or not set(datasets) <= set(PRINTED_MEANS.index):
        return {}
    return _as_printed(PRINTED_MEANS.loc[list(datasets), list(methods)])


def _as_printed(means: pd.DataFrame) -> dict[str, str]:
    return {str(method): f"{rank:.2f}" for method, rank in average_ranks(means).items()}
