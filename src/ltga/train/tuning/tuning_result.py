"""What a search came to: the settings that did best on the validation part, and every trial."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ltga.train.finished import Run, load_run
from ltga.train.planned import PlannedRun
from ltga.train.tasks.task_run import PlannedTask
from ltga.train.tuning.trials import LOWER_IS_BETTER, Candidates, Trial


@dataclass(frozen=True, eq=False, repr=False)
class Tuned:
    """The outcome of :func:`ltga.tune`.

    Attributes:
        metric: what settings were chosen by, on the validation part.
        trials: all of them, in order.
        best: the one that is chosen.
        store: the folder that has their runs.
    """

    metric: str
    trials: tuple[Trial, ...]
    best: Trial
    store: Path
    candidates: Candidates = field(repr=False)

    @property
    def method(self) -> str:
        return self.best.method

    @property
    def settings(self) -> dict[str, Any]:
        """The chosen settings, as ``fit(..., protocol=...)`` takes them beside those that were fixed."""
        return dict(self.best.settings)

    @cached_property
    def run(self) -> Run:
        """The run that is chosen; its ``metrics`` are the one look at the test part."""
        return load_run(self.store / f"{self.best.run}.json")

    @property
    def planned(self) -> PlannedRun | PlannedTask:
        """The chosen run as it was planned."""
        return self.candidates.plan(self.method, self.best.settings)

    def best_of(self, method: str) -> Trial | None:
        """The best finished trial of a method."""
        done = [trial for trial in self.trials if trial.method == method and trial.state == "done"]
        sign = -1 if self.metric in LOWER_IS_BETTER else 1
        return max(done, key=lambda trial: sign * float(trial.score or 0), default=None)

    def to_frame(self) -> Any:
        """A data frame with a row per trial, settings as columns."""
        import pandas as pd

        return pd.DataFrame([_row(trial) for trial in self.trials]).set_index("trial")

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in self.best.settings.items())
        return (
            f"Tuned({len(self.trials)} trials: {self.method} with {settings}; "
            f"validation {self.metric} {self.best.score:.4g}, trial {self.best.number})"
        )

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{self.to_frame().to_html()}"


def _row(trial: Trial) -> dict[str, Any]:
    return {
        "trial": trial.number,
        "method": trial.method,
        **trial.settings,
        "validation": trial.score,
        "state": trial.state,
        "seconds": trial.seconds,
        "run": trial.run[:8],
    }
