"""The engine for one machine: worker processes with a fixed share of the cores each."""

from __future__ import annotations

import json
import multiprocessing as mp
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import cast

import torch

from ltga.errors import InputError
from ltga.study.engines import worker as worker_script
from ltga.study.engines.engine import Ended, Job, Results, attempt, available_cores


class Processes:
    """``jobs`` runs at once, each with ``threads`` threads; cores / jobs of them if left out.

    A worker that dies takes its run with it, which counts as failed until the suite is started again; the next job
    gets a new worker.
    """

    def __init__(self, jobs: int, threads: int | None = None, root: str | Path | None = None) -> None:
        if jobs < 1:
            raise InputError(f"jobs: got {jobs}; give at least 1")
        if sys.platform == "win32":
            raise InputError("engine: worker processes need Linux or macOS; use --jobs 1, or --engine ray")
        self._jobs = jobs
        self._threads = threads or max(available_cores() // jobs, 1)
        self._root = root

    def results(self, jobs: Iterator[Job]) -> Results:
        idle: list[_Worker] = []
        busy: dict[Connection, _Worker] = {}
        try:
            while True:
                while len(busy) < self._jobs and (job := next(jobs, None)) is not None:
                    idle = [worker for worker in idle if worker.alive]
                    worker = idle.pop() if idle else _Worker(self._threads, self._root)
                    busy[worker.connection] = worker
                    worker.start(job)
                if not busy:
                    return
                for ready in wait(list(busy)):
                    worker = busy.pop(cast(Connection, ready))
                    finished = worker.outcome()
                    if worker.alive:
                        idle.append(worker)
                    yield finished
        finally:
            for worker in (*idle, *busy.values()):
                worker.stop()


class _Worker:
    """The parent's end of a worker process."""

    def __init__(self, threads: int, root: str | Path | None) -> None:
        self.connection, theirs = mp.Pipe()
        settings = {"path": sys.path, "threads": threads, "root": None if root is None else str(root)}
        script = Path(worker_script.__file__).resolve()
        # -P: the script's folder is not for import, or its neighbours would hide modules of Python's.
        command = [sys.executable, "-P", str(script), str(os.getpid()), str(theirs.fileno()), json.dumps(settings)]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        theirs.close()  # so that the worker's death ends the connection
        self._job: Job

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def start(self, job: Job) -> None:
        self._job = job
        with suppress(OSError):  # a worker that has just died: its connection is at an end, which `wait` reports
            self.connection.send(job)

    def outcome(self) -> Ended:
        try:
            finished: Ended = self.connection.recv()
            return finished
        except (EOFError, OSError):
            return Ended(self._job, error=_last_words(self._process.wait()), died=True)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self.connection.close()


def _last_words(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        hint = "; out of memory?" if -exitcode == signal.SIGKILL else ""
        return f"the worker process was killed by {signal.Signals(-exitcode).name}{hint}"
    return f"the worker process ended with exit code {exitcode}"


def work(connection: Connection, threads: int, root: str | None) -> None:
    """What a worker does once it is up, until the connection ends (see :mod:`ltga.study.engines.worker`)."""
    torch.set_num_threads(threads)
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        connection.send(attempt(job, root))
