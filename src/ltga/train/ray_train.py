"""One run by several workers of a Ray cluster: Ray Train's TorchTrainer over the same loop.

Every epoch ends with a checkpoint, so a worker or a node that dies costs at most the epoch it was in: Ray starts the
workers again, elsewhere if need be, and they go on from there. The run comes back as the files that the store keeps.
The driver may die too: the same command finds the checkpoints where they are.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ltga.errors import InputError, LTGAError, TrainingError
from ltga.train.checkpoint import FOLDER, Checkpoint
from ltga.train.crew import Crew
from ltga.train.loop import Callback, State
from ltga.train.planned import PlannedRun
from ltga.train.ray_connection import connected, load_ray

RETRIES = 3  # times that workers are started again after one of them, or its node, has died
_RUN, _ERROR = "run", ".error"  # the name of a finished run's files in the last checkpoint, or of what went wrong


@dataclass(frozen=True)
class RayWorkers:
    """Where a run is done.

    Args:
        workers: how many divide its batches, a core each.
        address: of the cluster (``"auto"``, ``"10.0.0.1:6379"``); one on this machine if left out.
        folder: where runs are stored. Checkpoints go there too, so all nodes must see it.
    """

    workers: int
    address: str | None
    folder: Path

    def files(self, planned: PlannedRun, callbacks: Iterable[Callback] = (), fresh: bool = False) -> dict[str, bytes]:
        """Do a run; its files by suffix, as :meth:`~ltga.train.Run.files` gives them.

        ``callbacks`` are called in the first worker; ``fresh`` throws away what an earlier command left.
        """
        ray = load_ray()
        place = (self.folder / FOLDER / "ray").absolute()
        if fresh:
            shutil.rmtree(place / planned.id, ignore_errors=True)
        with connected(ray, self.address):
            cores = int(ray.cluster_resources().get("CPU", 0))
            if cores < self.workers:
                raise InputError(f"--workers: {self.workers} need a core each, and the cluster has {cores}; take fewer")
            files = self._train(ray, planned, tuple(callbacks), place)
        shutil.rmtree(place / planned.id, ignore_errors=True)
        return files

    def _train(self, ray: Any, planned: PlannedRun, callbacks: tuple[Callback, ...], place: Path) -> dict[str, bytes]:
        from ray import train
        from ray.train.torch import TorchConfig, TorchTrainer

        trainer = TorchTrainer(
            _work,
            train_loop_config={"planned": ray.put(planned), "callbacks": callbacks},
            torch_config=TorchConfig(backend="gloo"),
            scaling_config=train.ScalingConfig(num_workers=self.workers, resources_per_worker={"CPU": 1}),
            run_config=train.RunConfig(
                name=planned.id,
                storage_path=str(place),
                failure_config=train.FailureConfig(max_failures=RETRIES),
                checkpoint_config=train.CheckpointConfig(num_to_keep=1),
            ),
        )
        try:
            result = trainer.fit()
        except Exception as error:  # Ray has many kinds, which differ from version to version
            raise TrainingError(f"{_fault(error)}; the same command goes on from the last checkpoint") from None
        with result.checkpoint.as_directory() as found:
            files = {path.suffix: path.read_bytes() for path in Path(found).glob(f"{_RUN}.*")}
        if _ERROR in files:
            raise TrainingError(files[_ERROR].decode())
        return files


class _EveryEpoch:
    """A keeper that hands the state to Ray after every epoch."""

    def __init__(self, run: str, crew: Crew) -> None:
        self._run, self._crew = run, crew

    def resume(self, state: State) -> None:
        from ray import train

        found = train.get_checkpoint()
        if found is not None:
            with found.as_directory() as folder:
                Checkpoint(folder, self._run, crew=self._crew).resume(state)

    def offer(self, state: State) -> None:
        with tempfile.TemporaryDirectory() as folder:
            written = Checkpoint(folder, self._run, crew=self._crew)
            written.write(state)
            _report({"epoch": len(state.history)}, folder if self._crew.rank == 0 and written.path.exists() else None)


def _report(metrics: Mapping[str, Any], folder: str | None) -> None:
    from ray import train

    train.report(dict(metrics), checkpoint=None if folder is None else train.Checkpoint.from_directory(folder))


def _work(config: dict[str, Any]) -> None:
    """What a worker does. An error of the run itself is reported, because trying again would not help."""
    import ray
    import torch.distributed as dist

    from ltga.train.distributed import Team
    from ltga.train.fitting import execute, take_part

    planned: PlannedRun = ray.get(config["planned"])
    crew = Team() if dist.get_world_size() > 1 else Crew()
    keeper = _EveryEpoch(planned.id, crew)
    if crew.rank:
        with suppress(LTGAError):  # which the first worker reports
            take_part(planned, (), keeper, crew)
        _report({}, None)
        return
    try:
        files = execute(planned, config["callbacks"], keeper=keeper, crew=crew).files()
    except LTGAError as error:
        files = {_ERROR: str(error).encode()}
    with tempfile.TemporaryDirectory() as folder:
        for suffix, content in files.items():
            Path(folder, _RUN).with_suffix(suffix).write_bytes(content)
        _report({}, folder)


def _fault(error: BaseException) -> str:
    """One line that names the worker, if the error says which."""
    failures = getattr(error, "worker_failures", None) or {}
    if not failures:
        return f"ray: {_last_line(error)}"
    rank = min(failures)
    return f"rank {rank}: {_last_line(failures[rank])}"


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:300]
