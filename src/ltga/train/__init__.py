"""Training: the protocol, one run, and its record."""

from ltga.train.fit import Run, fit, load_run
from ltga.train.loop import EpochInfo
from ltga.train.protocol import Protocol

__all__ = ["EpochInfo", "Protocol", "Run", "fit", "load_run"]
