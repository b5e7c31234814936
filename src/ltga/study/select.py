"""A part of the study: some datasets, some methods, the first seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ltga.errors import InputError
from ltga.study.spec import RunSpec


def select(
    specs: Iterable[RunSpec],
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    seeds: int | None = None,
) -> list[RunSpec]:
    """The specs with one of these datasets, one of these methods and a seed up to ``seeds``.

    A generated graph goes by its kind: ``"csbm"`` means it with any knobs.

    >>> specs = [RunSpec("csbm:degree=20", "gcn", seed) for seed in (1, 2)]
    >>> len(select(specs, ["csbm"], seeds=1))
    1
    >>> select(specs, ["cora"])
    Traceback (most recent call last):
    ...
    ltga.errors.InputError: datasets: no chosen experiment uses 'cora'; they use csbm
    """
    specs = list(specs)
    kinds = [spec.dataset.partition(":")[0] for spec in specs]
    _check("datasets", datasets, kinds)
    _check("methods", methods, [spec.method for spec in specs])
    return [
        spec
        for spec, kind in zip(specs, kinds)
        if (datasets is None or kind in datasets)
        and (methods is None or spec.method in methods)
        and (seeds is None or spec.seed <= seeds)
    ]


def _check(argument: str, wanted: Sequence[str] | None, used: Iterable[str]) -> None:
    known = dict.fromkeys(used)
    for name in wanted or ():
        if name not in known:
            raise InputError(f"{argument}: no chosen experiment uses {name!r}; they use {', '.join(known)}")
