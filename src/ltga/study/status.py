"""How far the study is: per experiment the runs done, missing, failed and impossible, and the time still needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ltga.study.durations import Durations
from ltga.study.experiment import Experiment
from ltga.study.experiments import runs_of
from ltga.study.lookup import find_records
from ltga.study.spec import RunSpec, identify
from ltga.train.store import Store

State = Literal["done", "missing", "failed", "impossible"]


@dataclass(frozen=True)
class Standing:
    """Runs by state, and the time the missing ones need one after the other.

    Attributes:
        seconds: the part of that time that can be estimated.
        unknown: missing runs about whose time nothing is known.
    """

    done: int
    missing: int
    failed: int
    impossible: int
    seconds: float
    unknown: int


@dataclass(frozen=True)
class Status:
    """The standing of each experiment, and of all of them with shared runs counted once."""

    experiments: dict[str, Standing]
    total: Standing
    absent: dict[str, str]

    def as_json(self, experiments: Sequence[Experiment]) -> dict[str, Any]:
        """Plain values: the standing beside what each experiment is."""
        described = [
            {
                "name": experiment.name,
                "title": experiment.title,
                "label": experiment.label,
                "shows": experiment.shows,
                "stand_ins": experiment.stand_ins,
                **asdict(self.experiments[experiment.name]),
            }
            for experiment in experiments
        ]
        return {"experiments": described, "total": asdict(self.total), "absent": self.absent}


def status(experiments: Sequence[Experiment], store: Store, root: str | Path | None = None) -> Status:
    """Where the experiments stand; nothing is downloaded and nothing is run."""
    specs = runs_of(experiments)
    states, absent = run_states(specs, store, root)
    durations = Durations(store.records())
    standing = {experiment.name: _standing(experiment.runs, states, durations) for experiment in experiments}
    return Status(standing, _standing(specs, states, durations), absent)


def run_states(
    specs: Iterable[RunSpec], store: Store, root: str | Path | None = None
) -> tuple[dict[RunSpec, State], dict[str, str]]:
    """The state of every run, and why datasets are absent.

    A run counts as done if its record is there, even where its data is not, and as missing, not failed, if the
    process that was at it died.
    """
    specs = list(dict.fromkeys(specs))
    identified = identify(specs, root)
    without_data = [spec for spec in specs if spec not in identified.ids]
    found = find_records(without_data, store.records()) if without_data else {}

    def state(spec: RunSpec) -> State:
        run = identified.ids.get(spec)
        if run is None:
            return "done" if spec in found else "impossible"
        if store.record(run) is not None:
            return "done"
        failure = store.failure(run)
        return "missing" if failure is None or failure.get("died") else "failed"

    return {spec: state(spec) for spec in specs}, dict(identified.absent)


def _standing(specs: Sequence[RunSpec], states: dict[RunSpec, State], durations: Durations) -> Standing:
    counts = Counter(states[spec] for spec in specs)
    seconds, unknown = durations.total(spec for spec in specs if states[spec] == "missing")
    return Standing(counts["done"], counts["missing"], counts["failed"], counts["impossible"], seconds, unknown)


def duration_text(seconds: float, unknown: int = 0) -> str:
    """A time for people; ``unknown`` runs are not in it.

    >>> duration_text(40), duration_text(5000), duration_text(200_000)
    ('40 s', '1 h 23 min', '2 d 8 h')
    >>> duration_text(90, 3), duration_text(0, 3), duration_text(0)
    ('more than 2 min', 'unknown', '')
    """
    if seconds <= 0:
        return "unknown" if unknown else ""
    minutes = round(seconds / 60)
    if seconds < 60:
        text = f"{max(round(seconds), 1)} s"
    elif minutes < 60:
        text = f"{minutes} min"
    elif minutes < 48 * 60:
        text = f"{minutes // 60} h {minutes % 60} min"
    else:
        text = f"{minutes // 1440} d {round(minutes % 1440 / 60)} h"
    return f"more than {text}" if unknown else text
