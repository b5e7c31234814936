"""Several processes that train one network: torch's DistributedDataParallel, on gloo or NCCL, over the same loop.

Every process has the network and the graph, a part of the training nodes, and a stream of samples of its own. A step
is taken on the batches of all of them: the loss is the mean over all their nodes, however many each has. A process that
has run out of batches goes along on its last one with a weight of zero, which is exact and keeps everybody in step.
Validation, and everything that is written, is the first process's; the others are told what it found.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ltga.errors import InputError, LTGAError, TrainingError
from ltga.train.batch_norm import SharedBatchNorm, shared_batch_norm
from ltga.train.crew import Crew, Learnable, Result, Step, StepLoss

PATIENCE = timedelta(hours=12)  # of a process that waits for others, who may be at an evaluation; the dead are noticed


@dataclass(frozen=True, eq=False)
class Idle:
    """A step of a process that has run out of its own: gone along with, not counted."""

    step: Step


class Team(Crew):
    """The processes of torch's default process group, which must be up; ``ends`` if it ends with the work."""

    def __init__(self, ends: bool = False) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self._ends = ends
        self._inside = ExitStack()

    def share(self, task: Learnable, seed: int) -> Learnable:
        if not hasattr(task, "share"):
            raise InputError(
                "workers: several processes divide batches, and this task is learned all at once; for a class, a "
                "number or labels of nodes give --batch-size, else train in one process"
            )
        if len(task.train) < self.size:
            raise InputError(f"workers: {self.size} processes for {len(task.train)} to learn from; take fewer")
        if self.rank:  # dropout that torch's generator draws must differ from process to process
            torch.manual_seed(int(np.random.SeedSequence((seed, self.rank)).generate_state(1)[0]))
        mine: Learnable = task.share(self.rank, self.size)
        return mine

    def losses(self, loss: StepLoss) -> Callable[[Step], Tensor]:
        norms = self._inside.enter_context(shared_batch_norm(loss.model))
        device = next(loss.model.parameters()).device
        # Every parameter of our networks takes part in every step, those of an index in its warm-up too (their gradient
        # is thrown away by the optimiser, later), so there is no need to look for unused ones.
        return DistributedDataParallel(_Together(loss, norms), device_ids=None if device.type == "cpu" else [device])

    def steps(self, task: Learnable, epoch: int) -> Iterator[Step]:
        steps, last = iter(task.steps(epoch)), None
        while True:
            step = next(steps, None)
            if self._sum([float(step is not None)])[0] == 0:
                return
            if step is not None:
                last = step
            assert last is not None
            yield Idle(last) if step is None else step  # type: ignore[misc]

    def weigh(self, loss: Tensor, step: Step | Idle) -> tuple[Tensor, float, int]:
        """The loss, scaled so that the mean over processes, which DDP takes, is the mean over all their nodes."""
        mass, count = 0.0, 0
        if not isinstance(step, Idle):
            mass, count = step.target.mass(step.y[step.train]), len(step.train)
        total, weighed, nodes = self._sum([mass, mass * loss.item(), count])
        if total == 0:
            raise TrainingError("the classes of a batch all have a weight of 0; give larger batches")
        return loss * (self.size * mass / total), weighed / total, int(nodes)

    def from_first(self, work: Callable[[], Result]) -> Result:
        found: list[Any] = [None, None]
        if self.rank == 0:
            try:
                found[0] = work()
            except LTGAError as error:
                found[1] = error
        dist.broadcast_object_list(found, src=0)
        if found[1] is not None:
            raise found[1]
        result: Result = found[0]
        return result

    def gathered(self, value: Result) -> list[Result]:
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, value)
        return found

    @contextmanager
    def at_work(self) -> Iterator[Team]:
        """Around what the processes do together: whatever ends it becomes one line."""
        try:
            with self._inside:
                yield self
        except LTGAError:
            raise
        except (RuntimeError, MemoryError, OSError) as error:
            raise TrainingError(f"{_fault(error)}; the same command goes on from the last checkpoint") from error
        finally:
            if self._ends:
                dist.destroy_process_group()

    def _sum(self, values: list[float]) -> list[float]:
        numbers = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(numbers)
        found: list[float] = numbers.tolist()
        return found


class _Together(nn.Module):
    """The loss of a step, and whether this process's rows count in batch normalisation."""

    def __init__(self, loss: StepLoss, norms: list[SharedBatchNorm]) -> None:
        super().__init__()
        self.loss, self._norms = loss, norms

    def forward(self, step: Step | Idle) -> Tensor:
        for norm in self._norms:
            norm.idle = isinstance(step, Idle)
        out: Tensor = self.loss(step.step if isinstance(step, Idle) else step)
        return out


def join() -> Team:
    """The team that ``torchrun`` started this process for."""
    if not dist.is_available():
        raise InputError("torchrun: this build of torch has no torch.distributed; install another")
    if torch.cuda.is_available():  # each process of a machine has a GPU of its own, as far as there are enough
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
    if not dist.is_initialized():
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        try:
            dist.init_process_group(backend, timeout=PATIENCE)
        except (RuntimeError, ValueError) as error:
            raise TrainingError(f"cannot reach the other processes ({_line(error)})") from None
    return Team(ends=True)


def _fault(error: BaseException) -> str:
    where = f"on {platform.node()}"
    said = _line(error)
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "not enough memory" in said:
        return f"out of memory {where} ({said})"
    if is_loss_of_another(error):
        return f"lost another process ({said})"
    return f"failed {where} ({type(error).__name__}: {said})"


def is_loss_of_another(error: BaseException) -> bool:
    """Whether an error only says that another process is gone."""
    words = ("gloo", "NCCL", "Connection closed", "Connection reset", "Broken pipe", "Socket")
    return isinstance(error, dist.DistError) or any(word in str(error) for word in words)


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].strip()[:200] if lines else type(error).__name__
