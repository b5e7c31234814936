"""The study as data: experiments, the runs they need, and what does them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ltga.study.experiment import Experiment
    from ltga.study.experiments import EXPERIMENTS, find_experiments, runs_of
    from ltga.study.lookup import find_records
    from ltga.study.runner import run_suite
    from ltga.study.spec import RunSpec, identify
    from ltga.train.store import Store

_HOME = {
    "EXPERIMENTS": "ltga.study.experiments",
    "Experiment": "ltga.study.experiment",
    "RunSpec": "ltga.study.spec",
    "Store": "ltga.train.store",
    "find_experiments": "ltga.study.experiments",
    "find_records": "ltga.study.lookup",
    "identify": "ltga.study.spec",
    "run_suite": "ltga.study.runner",
    "runs_of": "ltga.study.experiments",
}
__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "RunSpec",
    "Store",
    "find_experiments",
    "find_records",
    "identify",
    "run_suite",
    "runs_of",
]


def __getattr__(name: str) -> Any:
    """Imported when first used: the commands live in this package, and ``ltga --help`` is to be quick."""
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'ltga.study' has no attribute {name!r}")
