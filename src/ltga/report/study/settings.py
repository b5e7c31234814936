"""Tables over settings of the protocol: sweeps, granularity, synthetic graphs."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ltga.data import csbm
from ltga.data.knobs import parse_knobs
from ltga.report.study.printed import GRANULARITY, SWEEPS
from ltga.report.study.runs import Study, accuracy, behind, label, learned_q, metric, original, reference_of
from ltga.report.study.tables import PERCENT, THREE, Cell, Column, Table, mean_cell, number_cell, text_cell
from ltga.suite import Experiment, RunSpec
from ltga.suite.spec import STAND_INS
from ltga.train.record import Record

Points = dict[tuple[str, str, float], list[RunSpec]]

SWEPT = {"prior": "λ", "warmup": "T_w", "kappa": "κ", "delta": "δ"}
"""Settings that are swept -> what the paper calls them."""

_DEFAULTS = inspect.signature(csbm).parameters
_MEASURED = (Column("accuracy (%)"), Column("mean q"), Column("ECE"))


def sweep_points(specs: Iterable[RunSpec]) -> Points:
    """(dataset, setting, value) -> the runs there; the default's runs belong to every setting that is swept.

    A setting counts as swept if some run departs from its default.
    """
    specs = list(specs)
    swept = [setting for setting in SWEPT if any(setting in spec.overrides for spec in specs)]
    points: Points = {}
    for setting in swept:
        values = sorted({getattr(spec.protocol, setting) for spec in specs if _alone(spec, setting)})
        for dataset in dict.fromkeys(spec.dataset for spec in specs):
            for value in values:
                here = [
                    spec
                    for spec in specs
                    if spec.dataset == dataset and getattr(spec.protocol, setting) == value and _alone(spec, setting)
                ]
                if here:
                    points[dataset, setting, float(value)] = here
    return points


def on_common_seeds(points: Points) -> Points:
    """The same without seeds that not every value of a setting has: means over other seeds do not compare."""
    seeds: dict[tuple[str, str], set[int]] = {}
    for (dataset, setting, _), specs in points.items():
        seeds.setdefault((dataset, setting), {spec.seed for spec in specs}).intersection_update(
            spec.seed for spec in specs
        )
    kept = {
        (dataset, setting, value): [spec for spec in specs if spec.seed in seeds[dataset, setting]]
        for (dataset, setting, value), specs in points.items()
    }
    return {point: specs for point, specs in kept.items() if specs}


def _alone(spec: RunSpec, setting: str) -> bool:
    return set(spec.overrides) <= {setting, "init"}


def sweep_table(study: Study, experiment: Experiment) -> Table:
    """Accuracy, mean q and ECE at every value of the settings that the experiment sweeps."""
    found = study.runs(experiment)
    rows = []
    for (dataset, setting, value), specs in sweep_points(experiment.runs).items():
        printed = _beside(study, experiment, specs, SWEEPS.get((dataset, setting, value), ()))
        point = number_cell(f"{value:g}", value)
        rows.append((_dataset(dataset), text_cell(SWEPT[setting]), point, *_measured(found, specs, printed)))
    columns = (Column("dataset", numeric=False), Column("setting", numeric=False), Column("value"), *_MEASURED)
    note = "LTGA-Head, one setting changed at a time; mean q is that of the model that was kept."
    return Table(experiment.name, experiment.title, columns, tuple(rows), note, reference=reference_of(experiment))


def granularity_table(study: Study, experiment: Experiment) -> Table:
    """The same for the granularities of q."""
    found = study.runs(experiment)
    rows = []
    for dataset in experiment.datasets:
        for method in experiment.methods:
            specs = [spec for spec in experiment.runs if (spec.dataset, spec.method) == (dataset, method)]
            printed = _beside(study, experiment, specs, GRANULARITY[method] if dataset == "roman-empire" else ())
            rows.append((_dataset(dataset), text_cell(label(method)), *_measured(found, specs, printed)))
    columns = (Column("dataset", numeric=False), Column("method", numeric=False), *_MEASURED)
    note = "Mean q of LTGA-Edge is over edges, heads and layers; the paper prints another quantity in its place."
    return Table(experiment.name, experiment.title, columns, tuple(rows), note, reference=reference_of(experiment))


def _beside(
    study: Study, experiment: Experiment, specs: Sequence[RunSpec], printed: Sequence[str | None]
) -> Sequence[str | None]:
    """What the paper prints or, under paired initialisation, what we have under the paper's."""
    twin = original(experiment)
    if twin is None:
        return printed
    plain = [replace(spec, protocol=spec.protocol.with_overrides(init="paper")) for spec in specs]
    return [cell.text or None for cell in _measured(study.runs(twin), plain, ())]


def _measured(found: dict[RunSpec, Record], specs: Sequence[RunSpec], printed: Sequence[str | None]) -> list[Cell]:
    printed = (*printed, None, None, None)[:3]
    kinds = ((accuracy, PERCENT), (learned_q, THREE), (metric("ece"), THREE))
    stand_in = STAND_INS.get(specs[0].dataset)
    return [
        mean_cell(behind(found, specs, value), len(specs), unit, reference, stand_in)
        for (value, unit), reference in zip(kinds, printed)
    ]


def synthetic_points(specs: Iterable[RunSpec]) -> dict[tuple[float, float, str], list[RunSpec]]:
    """(degree, snr, method) -> the runs there, whatever graph each seed has."""
    points: dict[tuple[float, float, str], list[RunSpec]] = {}
    for spec in specs:
        base, _, text = spec.dataset.partition(":")
        knobs = parse_knobs(base, csbm, text)
        degree, snr = (float(knobs.get(key, _DEFAULTS[key].default)) for key in ("degree", "snr"))
        points.setdefault((degree, snr, spec.method), []).append(spec)
    return points


def synthetic_table(study: Study, experiment: Experiment) -> Table:
    """Accuracy on the contextual stochastic block model: a row per degree and method, a column per signal."""
    found = study.runs(experiment)
    points = synthetic_points(experiment.runs)
    signals = sorted({snr for _, snr, _ in points})
    rows = []
    for degree in sorted({degree for degree, _, _ in points}):
        for method in experiment.methods:
            cells = []
            for snr in signals:
                specs = points.get((degree, snr, method), [])
                cells.append(mean_cell(behind(found, specs, accuracy), len(specs), PERCENT))
            rows.append((number_cell(f"{degree:g}", degree), text_cell(label(method)), *cells))
    columns = (
        Column("degree"),
        Column("method", numeric=False),
        *(Column(f"signal {snr:g}") for snr in signals),
    )
    note = "Test accuracy in percent; homophily 0.5, a fresh graph per seed. The paper gives no table of this."
    return Table(experiment.name, experiment.title, columns, tuple(rows), note)


def _dataset(name: str) -> Cell:
    return text_cell(name, STAND_INS.get(name))
