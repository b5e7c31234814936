"""A trial of a search: the run it is, and how good that run was on the validation part."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ltga.data import Dataset
from ltga.data.atomic import write_atomic
from ltga.errors import InputError
from ltga.train.finished import Run
from ltga.train.fitting import execute
from ltga.train.loop import Callback
from ltga.train.minibatch import MiniBatch
from ltga.train.planned import PlannedRun, plan_run
from ltga.train.protocol import Protocol
from ltga.train.record import Record
from ltga.train.tasks.choose import Anything, fingerprint
from ltga.train.tasks.task_run import PlannedTask, execute_task, plan_task

SEED = 1  # of every trial: settings are compared on the same split, weights and dropout
LOWER_IS_BETTER = ("loss", "mae", "rmse", "log_mae", "log_rmse")

State = Literal["done", "cut short", "failed"]


@dataclass(frozen=True)
class Trial:
    """What became of one set of settings.

    Attributes:
        number: from 1.
        run: the id of its run in the store.
        score: the metric on the validation part, at the best epoch; ``None`` if the run failed.
        state: ``"done"``, ``"cut short"`` (pruned: there is no run in the store), or ``"failed"`` (it diverged).
        reused: whether the store had it.
    """

    number: int
    method: str
    settings: Mapping[str, Any]
    run: str
    score: float | None
    state: State
    reused: bool
    seconds: float | None = None


@dataclass(frozen=True, eq=False)
class Candidates:
    """What all trials of a search share: the data, and the settings that are not searched.

    ``protocol`` is a base whose settings a trial changes, or a mapping of settings over the task's own defaults.
    """

    data: Anything
    protocol: Protocol | Mapping[str, Any]
    options: Mapping[str, Any] | None
    minibatch: MiniBatch | None
    fingerprint: str

    @classmethod
    def of(
        cls,
        data: Anything,
        link: bool,
        protocol: Protocol | Mapping[str, Any],
        options: Mapping[str, Any] | None,
        minibatch: MiniBatch | None,
    ) -> Candidates:
        """``link``: a graph is asked for its links, of which the same are held out in all trials."""
        if link and isinstance(data, Dataset):
            data = plan_task(data, "gatv2", SEED).data
        elif isinstance(data, Dataset) and options is not None:
            raise InputError("options: node classification has none")
        return cls(data, protocol, options, minibatch, fingerprint(data))

    def plan(self, method: str, settings: Mapping[str, Any]) -> PlannedRun | PlannedTask:
        """The run of these settings, as ``fit`` and ``ltga train`` would plan it for the first seed."""
        given = self.protocol
        if isinstance(given, Protocol):
            given = given.with_overrides(**settings)
        else:
            given = {**given, **settings}
        if isinstance(self.data, Dataset):
            protocol = given if isinstance(given, Protocol) else Protocol.recommended(**given)
            return plan_run(self.data, method, SEED, None, protocol, self.minibatch, self.fingerprint)
        return plan_task(self.data, method, SEED, None, given, self.options, self.minibatch)


def do(planned: PlannedRun | PlannedTask, callbacks: Iterable[Callback]) -> Run:
    """The run; Ctrl-C keeps nothing of it, as a search compares whole runs."""
    run = execute_task(planned, callbacks) if isinstance(planned, PlannedTask) else execute(planned, callbacks)
    if run.record["interrupted"]:
        raise KeyboardInterrupt
    return run


def metric_of_run(record: Record) -> str:
    """What chose the run's best epoch, and chooses among runs."""
    return str(record.get("metric") or "loss")


def merits(record: Record) -> list[float]:
    """Per epoch what a search maximises: the metric on the validation part, errors and losses with a minus.

    What is not a number (a metric that its nodes do not allow) is minus infinity.

    >>> merits({"metric": "accuracy", "best_epoch": 2, "trajectory": {"val_loss": [1, 2], "val_score": [0.5, None]}})
    [0.5, -inf]
    >>> merits({"best_epoch": 2, "trajectory": {"val_loss": [1.0, 2.0]}})
    [-1.0, -2.0]
    """
    course = record["trajectory"]
    scores = course.get("val_score")
    if scores is None:
        scores = [None if loss is None else -loss for loss in course["val_loss"]]
    return [-math.inf if score is None else float(score) for score in scores]


def merit(record: Record) -> float:
    """What a search maximises, at the epoch that was kept."""
    return merits(record)[record["best_epoch"] - 1]


def shown_score(metric: str, worth: float) -> float | None:
    """A merit in the metric's own terms; ``None`` if there is none.

    >>> shown_score("mae", -3.5), shown_score("accuracy", 0.5)
    (3.5, 0.5)
    """
    if not math.isfinite(worth):
        return None
    return -worth if metric in LOWER_IS_BETTER else worth


def note_cut(folder: Path, run: str, course: list[float]) -> None:
    """Remember that a search cut this run short, and what it had seen by then."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / f"{run}.json", lambda stream: stream.write(json.dumps({"merits": course}).encode()))


def cut_before(folder: Path, run: str) -> list[float] | None:
    """What :func:`note_cut` noted; ``None`` if there is nothing of the kind."""
    try:
        course = json.loads((folder / f"{run}.json").read_text(encoding="utf-8"))["merits"]
        return [float(value) for value in course] or None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
