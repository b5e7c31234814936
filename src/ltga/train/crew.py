"""Who takes the gradient steps, and what is asked of whatever they are taken on; here a process alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from typing import Protocol as Interface

from torch import Tensor, nn

from ltga.nn.interface import Network
from ltga.train.targets import Objective

Result = TypeVar("Result")


class Step(Interface):
    """What a gradient step is taken on."""

    @property
    def y(self) -> Tensor: ...
    @property
    def train(self) -> Tensor: ...
    @property
    def target(self) -> Objective: ...
    def train_logits(self, model: Any) -> Tensor: ...


class Learnable(Step, Interface):
    """What the loop asks of a task: steps to learn by, and a validation part to choose by."""

    @property
    def val(self) -> Tensor: ...
    def steps(self, epoch: int) -> Iterator[Step]: ...
    def val_logits(self, model: Any) -> Tensor: ...


class StepLoss(nn.Module):
    """What a gradient step makes small, as a module: that is what torch's DistributedDataParallel takes."""

    def __init__(self, model: Network, prior: float) -> None:
        super().__init__()
        self.model, self.prior = model, prior

    def forward(self, step: Step) -> Tensor:
        loss = step.target.loss(step.train_logits(self.model), step.y[step.train])
        return loss + self.prior * self.model.shannon_penalty() if self.prior > 0 else loss


class Crew:
    """Who trains: here one process alone. :class:`~ltga.train.distributed.Team` is several."""

    rank, size = 0, 1

    def share(self, task: Learnable, seed: int) -> Learnable:
        """The part of a task that this process learns from."""
        return task

    def losses(self, loss: StepLoss) -> Callable[[Step], Tensor]:
        """The loss of a step, differentiated for all processes together."""
        return loss

    def steps(self, task: Learnable, epoch: int) -> Iterator[Step]:
        return task.steps(epoch)

    def weigh(self, loss: Tensor, step: Step) -> tuple[Tensor, float, int]:
        """What to differentiate, the loss of the step of all processes, and how many training nodes it had."""
        return loss, loss.item(), len(step.train)

    def from_first(self, work: Callable[[], Result]) -> Result:
        """What ``work`` gives the first process, for all of them."""
        return work()

    def announce(self, run: str | None) -> None:
        """Tell the others which run comes next; ``None`` for no more."""
        self.from_first(lambda: run)

    def follow(self, take_part: Callable[[str], Any]) -> None:
        """What all but the first do: take part in the runs that it announces."""
        while (run := self.from_first(lambda: "")) is not None:
            take_part(run)

    @contextmanager
    def at_work(self) -> Iterator[Crew]:
        """Around what processes do together."""
        yield self

    def gathered(self, value: Result) -> list[Result]:
        """The ``value`` of every process, for the first one."""
        return [value]


def started_processes() -> int:
    """How many processes ``torchrun`` has started, this one among them; 1 without it.

    >>> started_processes()
    1
    """
    return int(os.environ.get("WORLD_SIZE", 1)) if "RANK" in os.environ else 1


def crew_here() -> Crew:
    """The crew of this process: the team that ``torchrun`` started, or itself alone."""
    if started_processes() == 1:
        return Crew()
    from ltga.train.distributed import join

    return join()
