"""The study as data: experiments, the runs they need, and what does them."""

from ltga.suite.catalogue import EXPERIMENTS, find_experiments, runs_of
from ltga.suite.experiment import Experiment
from ltga.suite.lookup import find_records
from ltga.suite.runner import run_suite
from ltga.suite.spec import RunSpec, identify
from ltga.train.store import Store

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
