"""What ``ltga tune`` prints: the chosen settings as a command, their score, and what has to be beaten."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from ltga.cli.terminal import plain_table
from ltga.nn.methods import find_method
from ltga.train.planned import PlannedRun
from ltga.train.record import plain
from ltga.train.show import shown
from ltga.train.tasks.references import references
from ltga.train.tuning.trials import LOWER_IS_BETTER
from ltga.train.tuning.tuning_result import Tuned
from ltga.train.yardsticks import yardsticks


@dataclass(frozen=True)
class Request:
    """The command line, as it was given."""

    dataset: str | None
    method: str | None
    trials: int
    timeout: float | None
    seed: int
    jobs: int
    prune: bool
    search: tuple[str, ...]
    settings: tuple[str, ...]
    metric: str | None
    protocol: str | None
    config: Path | None
    task: str | None
    out: Path
    convention: str | None
    prepare: tuple[str, ...]
    batch_size: int | None
    fanout: str | None
    full_batch: bool
    data: Path | None
    engine: str | None = None
    address: str | None = None

    def words(self) -> list[str]:
        """The options that ``ltga train`` shares, as words of a command line."""
        said: list[tuple[str, Any]] = [
            ("--protocol", self.protocol), ("--config", self.config), ("--metric", self.metric), ("--task", self.task),
            ("--convention", self.convention), ("--batch-size", self.batch_size), ("--fanout", self.fanout),
            ("--data", self.data), *(("--prepare", word) for word in self.prepare),
            *(("--set", word) for word in self.settings),
        ]  # fmt: skip
        if str(self.out) != "runs":
            said.append(("--out", self.out))
        words = [str(word) for option, value in said if value is not None for word in (option, value)]
        return [
            *([] if self.dataset is None else [self.dataset]),
            *words,
            *(["--full-batch"] if self.full_batch else []),
        ]


def train_command(tuned: Tuned, asked: Request) -> str:
    """The command that trains the chosen settings; its first seed is the run that was chosen."""
    changes = [
        f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in tuned.settings.items()
    ]
    words = asked.words()
    first = words[:1] if asked.dataset is not None else []
    rest = words[len(first) :]
    sets = [word for change in changes for word in ("--set", change)]
    return shlex.join(["ltga", "train", *first, "--method", tuned.method, *rest, *sets])


def rows(tuned: Tuned) -> list[dict[str, Any]]:
    """What needs no training, the best trial of every method by validation, and the chosen one with its test score."""
    planned, metric = tuned.planned, tuned.metric
    if isinstance(planned, PlannedRun):
        parts = {part: yardsticks(planned.dataset, planned.split, part) for part in _parts(tuned)}
        simple = {
            one.label: {part: found[at].metrics for part, found in parts.items()} for at, one in enumerate(parts["val"])
        }
    else:
        simple = references(planned)
    name = "nll" if metric == "loss" and isinstance(planned, PlannedRun) else metric
    found: list[dict[str, Any]] = [
        {"label": label, "val": scores["val"].get(name), "test": scores.get("test", {}).get(name), "trained": False}
        for label, scores in simple.items()
    ]
    for method in dict.fromkeys(trial.method for trial in tuned.trials):
        best = tuned.best_of(method)
        if best is not None and best is not tuned.best:
            label = f"{find_method(method).label}, trial {best.number}"
            found.append({"label": label, "val": best.score, "test": None, "trained": True})
    label = f"{find_method(tuned.method).label}, trial {tuned.best.number} (chosen)"
    test = tuned.run.metrics.get(name)
    return [*found, {"label": label, "val": tuned.best.score, "test": test, "trained": True}]


def _parts(tuned: Tuned) -> list[str]:
    return ["val", *(["test"] if tuned.run.metrics else [])]


def table(tuned: Tuned) -> Table:
    made = plain_table("", f">val {tuned.metric}", f">test {tuned.metric}")
    for row in rows(tuned):
        made.add_row(escape(row["label"]), *(_shown(tuned.metric, row[part]) for part in ("val", "test")))
    return made


def _shown(metric: str, value: float | None) -> str:
    return "" if value is None else f"{value:.4f}" if metric == "loss" else shown(metric, value)


def sentences(tuned: Tuned, asked: Request) -> list[str]:
    """How much was tried and what came of it, whether that beats what needs no training, and the command."""
    states = [trial.state for trial in tuned.trials]
    lost = "".join(f", {states.count(state)} {state}" for state in ("failed", "cut short") if state in states)
    said = [
        f"{len(states)} trials{lost}. Settings were chosen on the validation part alone; the test score "
        "shown is that of the chosen run."
    ]
    usual = tuned.candidates.plan(tuned.method, {}).protocol
    if all(getattr(usual, name) == value for name, value in tuned.settings.items()):
        said.append(f"Nothing did better than {tuned.method} with its usual settings.")
    *others, chosen = rows(tuned)
    part = "val" if chosen["test"] is None else "test"
    sign = -1 if tuned.metric in LOWER_IS_BETTER else 1
    for row in others:
        if not row["trained"] and row[part] is not None and sign * chosen[part] <= sign * row[part]:
            score = _shown(tuned.metric, row[part])
            said.append(f"The chosen run does not beat {row['label']} ({part} {tuned.metric} {score}).")
    return [*said, "To train these settings with more seeds, the fairer estimate:", train_command(tuned, asked)]


def as_json(tuned: Tuned, asked: Request) -> dict[str, Any]:
    """The outcome for scripts; scores as they are."""
    listed = [
        {"trial": t.number, "method": t.method, "settings": dict(t.settings), "val": t.score, "state": t.state,
         "run": t.run, "reused": t.reused, "seconds": t.seconds} for t in tuned.trials
    ]  # fmt: skip
    record = {
        "metric": tuned.metric, "method": tuned.method, "settings": tuned.settings, "trial": tuned.best.number,
        "run": tuned.best.run, "rows": rows(tuned), "trials": listed, "command": train_command(tuned, asked),
        "store": str(tuned.store),
    }  # fmt: skip
    return plain(record)  # type: ignore[no-any-return]
