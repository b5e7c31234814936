"""The engine for a cluster: Ray.

The driver holds the claims and writes the store; a node needs the package and nothing else, as graphs are
sent to it and runs come back as bytes. A run whose node dies is done again elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from ltga.data import Dataset, load_dataset
from ltga.study.engines.engine import Ended, Job, Results, attempt
from ltga.train.ray_connection import connected, load_ray

RETRIES = 3  # of a run whose worker or node died; an error of the run itself is not tried again
POLL_SECONDS = 5.0  # how often to look for nodes that have joined


class RayCluster:
    """Runs on a Ray cluster, as many at once as it has cores for.

    Args:
        address: of the cluster (``"auto"``, ``"10.0.0.1:6379"``); a cluster on this machine if left out.
        threads: cores a run gets.
        root: folder with datasets, on this machine.
    """

    def __init__(self, address: str | None = None, threads: int = 1, root: str | Path | None = None) -> None:
        self._ray: Any = load_ray()
        self._address, self._threads, self._root = address, threads, root

    def results(self, jobs: Iterator[Job]) -> Results:
        first = next(jobs, None)
        if first is None:  # not worth a connection
            return
        jobs = chain([first], jobs)
        ray = self._ray
        with connected(ray, self._address):
            task = ray.remote(num_cpus=self._threads, max_retries=RETRIES)(_task)
            graphs: dict[str, Any] = {}
            running: dict[Any, Job] = {}
            try:
                while True:
                    while len(running) < self._room() and (job := next(jobs, None)) is not None:
                        name = job.spec.dataset
                        if name not in graphs:
                            graphs[name] = ray.put(load_dataset(name, self._root))
                        running[task.remote(job, graphs[name], self._threads)] = job
                    if not running:
                        return
                    ended, _ = ray.wait(list(running), num_returns=1, timeout=POLL_SECONDS)
                    for reference in ended:
                        yield self._outcome(running.pop(reference), reference)
            finally:
                for reference in running:
                    ray.cancel(reference, force=True)

    def _room(self) -> int:
        cores = self._ray.cluster_resources().get("CPU", 0)
        return max(int(cores) // self._threads, 1)  # at least one waits for a node to come

    def _outcome(self, job: Job, reference: Any) -> Ended:
        try:
            finished: Ended = self._ray.get(reference)
            return finished
        except self._ray.exceptions.RayError as error:
            return Ended(job, error=f"{type(error).__name__}: {error}", died=True)


def _task(job: Job, dataset: Dataset, threads: int) -> Ended:
    import torch

    torch.set_num_threads(threads)
    return attempt(job, dataset)
