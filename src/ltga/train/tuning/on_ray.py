"""Trials on a Ray cluster: the driver asks, keeps and tells; a node computes a run and sends it back as bytes."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ltga.errors import TrainingError
from ltga.train.ray_connection import connected, load_ray
from ltga.train.tuning.trials import Candidates, do

RETRIES = 3  # of a run whose worker or node died

Sent = tuple[Any, Mapping[str, bytes] | None, str]  # the record and files of a run, or why it failed


class RayTrials:
    """Runs of trials that are under way on a cluster.

    Args:
        address: of the cluster; one on this machine if left out.
    """

    def __init__(self, address: str | None = None) -> None:
        self._ray, self._address = load_ray(), address
        self._under_way: dict[str, Any] = {}

    @contextmanager
    def at_work(self, candidates: Candidates) -> Iterator[None]:
        """Connected, with what all trials share sent once; what is under way at the end is stopped."""
        with connected(self._ray, self._address):
            self._shared = self._ray.put(candidates)
            self._task = self._ray.remote(num_cpus=1, max_retries=RETRIES)(_run)
            try:
                yield
            finally:
                for reference in self._under_way.values():
                    self._ray.cancel(reference, force=True)
                self._under_way.clear()

    def begin(self, trials: Sequence[tuple[str, str, Mapping[str, Any]]]) -> None:
        """Start runs, each by its id, method and settings."""
        for run, method, settings in trials:
            if run not in self._under_way:
                self._under_way[run] = self._task.remote(self._shared, method, dict(settings))

    def wait(self, run: str, method: str, settings: Mapping[str, Any]) -> Sent:
        """What became of a run, which is started now if it was not."""
        self.begin([(run, method, settings)])
        reference = self._under_way.pop(run)
        try:
            sent: Sent = self._ray.get(reference)
            return sent
        except self._ray.exceptions.RayError as error:
            raise TrainingError(f"engine: a worker died at run {run[:8]} ({type(error).__name__}); try again") from None


def _run(candidates: Candidates, method: str, settings: Mapping[str, Any]) -> Sent:
    """On a node: do one run."""
    import torch

    torch.set_num_threads(1)
    try:
        run = do(candidates.plan(method, settings), ())
    except TrainingError:
        return None, None, traceback.format_exc()
    return run.record, run.files(), ""
