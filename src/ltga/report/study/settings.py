"""Tables over settings of the protocol: sweeps, granularity, synthetic graphs."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from ltga.data import csbm
from ltga.data.knobs import parse_knobs
from ltga.report.study.tables import Column
from ltga.suite import RunSpec

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


def synthetic_points(specs: Iterable[RunSpec]) -> dict[tuple[float, float, str], list[RunSpec]]:
    """(degree, snr, method) -> the runs there, whatever graph each seed has."""
    points: dict[tuple[float, float, str], list[RunSpec]] = {}
    for spec in specs:
        base, _, text = spec.dataset.partition(":")
        knobs = parse_knobs(base, csbm, text)
        degree, snr = (float(knobs.get(key, _DEFAULTS[key].default)) for key in ("degree", "snr"))
        points.setdefault((degree, snr, spec.method), []).append(spec)
    return points
