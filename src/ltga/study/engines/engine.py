"""What an engine is: something that turns jobs into finished runs, in this process or elsewhere."""

from __future__ import annotations

import os
import traceback
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol as Interface

from ltga.data import Dataset, load_dataset
from ltga.errors import RecordError
from ltga.study.spec import RunSpec
from ltga.train.fitting import fit


@dataclass(frozen=True)
class Job:
    """A run to be done, with the id its record will have."""

    id: str
    spec: RunSpec


@dataclass(frozen=True)
class Ended:
    """How a job ended: ``files`` as :meth:`~ltga.train.Run.files` makes them, or the error's traceback.

    ``died`` says that the process which was at it died, for which the run itself may not be to blame.
    """

    job: Job
    files: Mapping[str, bytes] | None = None
    error: str | None = None
    died: bool = False


Results = Generator[Ended, None, None]


class Engine(Interface):
    """Does jobs: takes one from the iterator only when it has room for it, and yields each as it ends.

    Closing the generator ends what is under way.
    """

    def results(self, jobs: Iterator[Job]) -> Results: ...


class InProcess:
    """One job after the other, in this process and with its threads."""

    def __init__(self, root: str | Path | None = None) -> None:
        self._root = root

    def results(self, jobs: Iterator[Job]) -> Results:
        for job in jobs:
            yield attempt(job, self._root)


def attempt(job: Job, source: Dataset | str | Path | None) -> Ended:
    """Do a job; an error becomes part of the outcome, Ctrl-C does not.

    Args:
        source: the graph itself, or the folder to look for it.
    """
    try:
        dataset = source if isinstance(source, Dataset) else _load(job.spec.dataset, source)
        run = fit(dataset, job.spec.method, job.spec.seed, split=job.spec.split, protocol=job.spec.protocol)
        if run.typed.interrupted:
            raise KeyboardInterrupt
        if run.typed.id != job.id:
            raise RecordError(f"{job.spec.dataset}: the graph here is not the one the suite was started with")
        return Ended(job, run.files())
    except Exception:
        return Ended(job, error=traceback.format_exc())


@lru_cache(maxsize=2)  # jobs come ordered by dataset
def _load(name: str, root: str | Path | None) -> Dataset:
    return load_dataset(name, root)


def available_cores() -> int:
    """The cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1
