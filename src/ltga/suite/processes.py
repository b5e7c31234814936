"""The engine for one machine: worker processes with a fixed share of the cores each."""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import cast

import torch

from ltga.errors import InputError
from ltga.suite.engine import Finished, Job, Results, attempt, available_cores


class Processes:
    """``jobs`` runs at once, each with ``threads`` threads; cores / jobs of them if left out.

    A worker that dies takes its run with it, which counts as failed until the suite is started again; the next job
    gets a new worker.
    """

    def __init__(self, jobs: int, threads: int | None = None, root: str | Path | None = None) -> None:
        if jobs < 1:
            raise InputError(f"jobs: got {jobs}; give at least 1")
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
        context = mp.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, threads, root), daemon=True)
        self._process.start()
        theirs.close()  # so that the worker's death ends the connection
        self._job: Job

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def start(self, job: Job) -> None:
        self._job = job
        with suppress(OSError):  # a worker that has just died: its connection is at an end, which `wait` reports
            self.connection.send(job)

    def outcome(self) -> Finished:
        try:
            finished: Finished = self.connection.recv()
            return finished
        except (EOFError, OSError):
            self._process.join()
            return Finished(self._job, error=_last_words(self._process.exitcode), died=True)

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self.connection.close()


def _last_words(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        hint = "; out of memory?" if -exitcode == signal.SIGKILL else ""
        return f"the worker process was killed by {signal.Signals(-exitcode).name}{hint}"
    return f"the worker process ended with exit code {exitcode}"


def _work(connection: Connection, threads: int, root: str | Path | None) -> None:
    """What a worker process does, until the connection ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair
    threading.Thread(target=_die_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        connection.send(attempt(job, root))


def _die_with_parent() -> None:
    parent = mp.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
