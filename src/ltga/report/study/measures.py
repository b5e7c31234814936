"""Tables of what was learned besides accuracy: q, exact zeros, effective neighbours."""

from __future__ import annotations

import statistics
from dataclasses import replace

from ltga.report.study.printed import GRANULARITY_Q, Q_ANALYSIS
from ltga.report.study.runs import Study, Value, attention, behind, homophily, label, learned_q, original, reference_of
from ltga.report.study.tables import (
    PLAIN_PERCENT,
    THREE,
    TWO,
    Cell,
    Column,
    Table,
    Unit,
    mean_cell,
    number_cell,
    text_cell,
    with_reference,
)  # fmt: skip
from ltga.suite import Experiment
from ltga.suite.spec import STAND_INS

zeros = attention("zero_fraction")
neighbours = attention("effective_neighbors")
DATASET = Column("dataset", numeric=False)


def granularity_q_table(study: Study, experiment: Experiment) -> Table:
    """Per dataset and granularity the mean q and the share of attention that is exactly zero."""
    columns = [DATASET]
    for method in experiment.methods:
        columns += [Column(f"{label(method)} q"), Column(f"{label(method)} zeros (%)")]
    rows = []
    for dataset in experiment.datasets:
        cells = [dataset_cell(dataset)]
        for method in experiment.methods:
            q, share = GRANULARITY_Q.get((method, dataset), (None, None))
            cells.append(measure(study, experiment, dataset, method, learned_q, TWO, q))
            cells.append(measure(study, experiment, dataset, method, zeros, PLAIN_PERCENT, share))
        rows.append(tuple(cells))
    note = (
        "Mean over seeds, heads and layers (for LTGA-Edge over edges too, where the paper gives none) of the model "
        "that was kept; zeros: share of attention weights that are exactly 0."
    )
    reference = reference_of(experiment)
    return Table(experiment.name, experiment.title, tuple(columns), tuple(rows), note, reference=reference)


def q_analysis_table(study: Study, experiment: Experiment) -> Table:
    """Per dataset what LTGA-Head learns, and over how many neighbours its attention spreads."""
    (method,) = experiment.methods
    rows = []
    for dataset in experiment.datasets:
        printed: tuple[str | None, ...] = (None,) * 5
        if original(experiment) is None:
            printed = Q_ANALYSIS.get(dataset, printed)
        known = homophily(dataset)
        q = measure(study, experiment, dataset, method, learned_q, THREE, printed[1])
        homophilous = number_cell("–" if known is None else f"{known:.2f}", known, reference=printed[0])
        rows.append(
            (
                dataset_cell(dataset),
                homophilous,
                q,
                _deviation(q, printed[2]),
                measure(study, experiment, dataset, method, zeros, THREE, printed[3]),
                measure(study, experiment, dataset, method, neighbours, TWO, printed[4]),
            )
        )
    columns = (DATASET, *map(Column, ("homophily", "mean q", "s.d. of q", "exact zeros", "effective neighbours")))
    note = (
        "LTGA-Head; means over seeds, layers and heads; s.d. of the mean q over seeds. The paper's homophily of "
        "Cornell is that of the mislabelled copy of the dataset; its accuracies are on the corrected one."
    )
    return Table(experiment.name, experiment.title, columns, tuple(rows), note, reference=reference_of(experiment))


def _deviation(q: Cell, printed: str | None) -> Cell:
    """The s.d. over the runs of a cell."""
    if len(q.runs) < 2:
        return replace(q, text="", number=None, runs=(), reference=printed, difference=None)
    spread = statistics.stdev(run.value for run in q.runs)
    return with_reference(replace(q, text=f"{spread:.3f}", number=spread), printed)


def measure(
    study: Study,
    experiment: Experiment,
    dataset: str,
    method: str,
    value: Value,
    unit: Unit,
    reference: str | None = None,
) -> Cell:
    """The mean of a value over the runs of a method on a dataset.

    Under paired initialisation our own number under the paper's initialisation stands beside, not ``reference``.
    """
    twin = original(experiment)
    if twin is not None:
        beside = measure(study, twin, dataset, method, value, unit)
        reference = beside.text if beside.runs else None
    specs = [spec for spec in experiment.runs if (spec.dataset, spec.method) == (dataset, method)]
    found = behind(study.runs(experiment), specs, value)
    return mean_cell(found, len(specs), unit, reference, STAND_INS.get(dataset))


def dataset_cell(dataset: str) -> Cell:
    """A dataset's name at the head of a row."""
    return text_cell(dataset, STAND_INS.get(dataset))
