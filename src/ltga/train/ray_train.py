"""One run by several workers of a Ray cluster: Ray Train's TorchTrainer over the same loop.

Every epoch ends with a checkpoint in the folder of the runs, so a worker or a node that dies costs at most the epoch it
was at: Ray starts the workers again, elsewhere if need be, and they go on from there. So does the same command, should
the driver die. The run comes back as the files that the store keeps.
"""

from __future__ import annotations

import json
import platform
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ltga.errors import InputError, LTGAError, TrainingError
from ltga.train.checkpoint import FOLDER, Checkpoint
from ltga.train.crew import Crew
from ltga.train.loop import Callback
from ltga.train.planned import PlannedRun
from ltga.train.ray_connection import connected, load_ray

RETRIES = 3  # times that workers are started again after one of them, or its node, has died
_RUN = "run"  # the name of what the first worker hands back, with these suffixes besides those of a run's files:
_ERROR, _SAID = ".error", ".said"


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

    def files(
        self,
        planned: PlannedRun,
        callbacks: Iterable[Callback] = (),
        fresh: bool = False,
        say: Callable[[str], Any] = lambda line: None,
    ) -> dict[str, bytes]:
        """Do a run; its files by suffix, as :meth:`~ltga.train.Run.files` gives them.

        ``callbacks`` are called in the first worker; ``fresh`` throws away what an earlier command left; ``say`` is
        told what checkpoints had to say.
        """
        ray = load_ray()
        checkpoint = Checkpoint((self.folder / FOLDER).absolute(), planned.id, say=say)
        if fresh:
            checkpoint.discard()
        with connected(ray, self.address):
            cores = int(ray.cluster_resources().get("CPU", 0))
            if cores < self.workers:
                raise InputError(f"--workers: {self.workers} need a core each, and the cluster has {cores}; take fewer")
            files = self._train(ray, planned, tuple(callbacks), checkpoint.path.parent)
        for line in json.loads(files.pop(_SAID, b"[]")):
            say(line)
        if _ERROR in files:
            raise TrainingError(files[_ERROR].decode())
        checkpoint.done()
        return files

    def _train(self, ray: Any, planned: PlannedRun, callbacks: tuple[Callback, ...], folder: Path) -> dict[str, bytes]:
        try:
            from ray import train
            from ray.train.torch import TorchConfig, TorchTrainer
        except ImportError as error:
            raise InputError(f"engine: Ray Train lacks a package ({error}); pip install 'ltga[ray]'") from None
        name = f"ray-{secrets.token_hex(8)}"  # nobody else's, and a sign for the workers that they see this folder
        (folder / name).mkdir(parents=True)
        trainer = TorchTrainer(
            _work,
            train_loop_config={"planned": ray.put(planned), "callbacks": callbacks, "place": str(folder / name)},
            torch_config=TorchConfig(backend="gloo"),
            scaling_config=train.ScalingConfig(num_workers=self.workers, resources_per_worker={"CPU": 1}),
            run_config=train.RunConfig(
                name=name, storage_path=str(folder), failure_config=train.FailureConfig(max_failures=RETRIES)
            ),
        )
        try:
            result = trainer.fit()
            with result.checkpoint.as_directory() as found:
                return {path.suffix: path.read_bytes() for path in Path(found).glob(f"{_RUN}.*")}
        except Exception as error:  # Ray has many kinds, which differ from version to version
            raise TrainingError(f"{_fault(error)}; the same command goes on from the last checkpoint") from None
        finally:
            shutil.rmtree(folder / name, ignore_errors=True)


def _work(config: dict[str, Any]) -> None:
    """What a worker does. An error of the run itself is handed back, because trying again would not help."""
    import ray
    import torch.distributed as dist

    from ltga.train.distributed import Team
    from ltga.train.fitting import execute, take_part

    planned: PlannedRun = ray.get(config["planned"])
    place, said = Path(config["place"]), list[str]()
    if not place.is_dir():
        raise OSError(f"--out: {platform.node()} does not see {place.parent}; give a folder that all nodes share")
    crew = Team() if dist.get_world_size() > 1 else Crew()
    keeper = Checkpoint(place.parent, planned.id, 0.0, said.append, crew)
    if crew.rank:
        with suppress(LTGAError):  # which the first worker hands back
            take_part(planned, (), keeper, crew)
        ray.train.report({})
        return
    try:
        files = execute(planned, config["callbacks"], keeper=keeper, crew=crew).files()
    except LTGAError as error:
        files = {_ERROR: str(error).encode()}
    with tempfile.TemporaryDirectory() as folder:
        for suffix, content in {**files, _SAID: json.dumps(said).encode()}.items():
            Path(folder, _RUN).with_suffix(suffix).write_bytes(content)
        ray.train.report({}, checkpoint=ray.train.Checkpoint.from_directory(folder))


def _fault(error: BaseException) -> str:
    """One line that names the worker, if the error says which."""
    failures = getattr(error, "worker_failures", None) or {}
    if not failures:
        return f"ray: {_last_line(error)}"
    from ltga.train.distributed import is_loss_of_another

    rank = min(failures, key=lambda rank: (is_loss_of_another(failures[rank]), rank))
    return f"rank {rank}: {_last_line(failures[rank])}"


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:300]
