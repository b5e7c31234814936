"""The training loop: one full-batch step (or several batches) and one evaluation per epoch, the best epoch kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from typing import Protocol as Interface

import torch
from torch import Tensor

from ltga.errors import InputError, TrainingError
from ltga.kernels import SparseFeatures
from ltga.nn.attention_inputs import Attention
from ltga.nn.attention_statistics import attention_statistics
from ltga.nn.interface import LayerWeights, Network
from ltga.train.best_epoch import BestEpoch
from ltga.train.crew import Crew, Learnable, Step, StepLoss
from ltga.train.optimizer import DecoupledAdam
from ltga.train.protocol import Protocol
from ltga.train.targets import Classes, Objective
from ltga.train.trajectory import IndexWatch, LayerIndex


@dataclass(frozen=True, eq=False)
class Task:
    """A graph with labels and one split, as the loop wants it.

    Attributes:
        x: ``[N, F]``, dense or sparse.
        edge_index: ``[2, E]``; edge_attr ``[E, D]`` or ``None``.
        y: ``[N]`` labels.
        train, val, test: node numbers of the split.
        target: what a node is to be given: the loss, and the metric that chooses the best epoch.
    """

    x: Tensor | SparseFeatures
    edge_index: Tensor
    edge_attr: Tensor | None
    y: Tensor
    train: Tensor
    val: Tensor
    test: Tensor
    target: Objective = field(default_factory=Classes, kw_only=True)

    @property
    def on_disk(self) -> bool:
        """Whether features and edges are in files, so that there is no ``edge_index`` and nothing of that size."""
        return False

    def steps(self, epoch: int) -> Iterator[Task]:
        """What an epoch's gradient steps are taken on: here, once the whole graph."""
        yield self

    def logits(self, model: Network) -> Tensor:
        out: Tensor = model(self.x, self.edge_index, self.edge_attr)
        return out

    def train_logits(self, model: Network) -> Tensor:
        """The logits of the training nodes, in their order."""
        return self.logits(model)[self.train]

    def val_logits(self, model: Network) -> Tensor:
        """The logits of the validation nodes, in their order."""
        return self.logits(model)[self.val]

    def hidden(self, model: Network) -> Tensor:
        return model.hidden(self.x, self.edge_index, self.edge_attr)

    def attend(self, model: Network) -> list[Attention]:
        return model.attend(self.x, self.edge_index, self.edge_attr)

    def attention_weights(self, model: Network) -> LayerWeights | None:
        """Per layer ``edge_index`` and weights ``[E, H]`` without dropout; ``None`` for a network without attention."""
        return model.attention_weights(self.x, self.edge_index, self.edge_attr)

    def observed(self, model: Network) -> tuple[Tensor, list[dict[str, Tensor]] | None]:
        """Logits ``[N, C]``, and what attention looks like per layer and head; ``None`` for a network without."""
        logits, layers = self.logits(model), self.attention_weights(model)
        if layers is None:
            return logits, None
        return logits, [attention_statistics(weights, edges[1], len(self.y)) for edges, weights in layers]


@dataclass(frozen=True)
class EpochInfo:
    """What is known after an epoch (counted from 1).

    ``q`` has an entry per layer; ``val_score`` is the metric that chooses the best epoch, ``None`` if the loss does.
    """

    epoch: int
    train_loss: float
    val_loss: float
    val_accuracy: float
    val_score: float | None
    best_epoch: int
    q: list[LayerIndex]
    index_gradient_norm: float
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """How training went; the model holds the weights of ``best_epoch``.

    Attributes:
        stopped: ``"patience"``, ``"epochs"`` or ``"interrupted"``.
        resumed: for every time that a process went on with what an earlier one had left, after which epoch, and what
            had changed meanwhile (versions, threads).
        seconds_before: what the earlier processes spent.
    """

    history: list[EpochInfo]
    best_epoch: int
    stopped: str
    resumed: list[dict[str, Any]] = field(default_factory=list)
    seconds_before: float = 0.0

    @property
    def interrupted(self) -> bool:
        return self.stopped == "interrupted"


Callback = Callable[[EpochInfo], Any]


@dataclass(eq=False)
class State:
    """All that changes from epoch to epoch, torch's generator aside."""

    model: Network
    optimizer: DecoupledAdam
    best: BestEpoch
    history: list[EpochInfo] = field(default_factory=list)
    resumed: list[dict[str, Any]] = field(default_factory=list)
    seconds_before: float = 0.0


class Keeper(Interface):
    """Somebody who keeps the state of a run for the case that its process dies (:mod:`ltga.train.checkpoint`)."""

    def resume(self, state: State) -> None: ...
    def offer(self, state: State) -> None: ...


def train(
    model: Network,
    task: Learnable,
    protocol: Protocol,
    seed: int,
    callbacks: Iterable[Callback] = (),
    keeper: Keeper | None = None,
    crew: Crew | None = None,
) -> Outcome:
    """Train ``model`` on ``task`` and leave it with the weights of its best epoch on the validation part.

    That is the epoch with the lowest loss, or with the highest metric if the task has one; among equals the one with
    the lower loss.

    A ``keeper`` is offered the state after every epoch, and may bring it to where an earlier process left off; the
    outcome is then what it would have been, and callbacks hear of the remaining epochs only. A ``crew`` of several
    processes divides the steps; each of them calls this and has the same outcome.

    Ctrl-C ends training early and keeps the best epoch so far. A loss that is no longer finite raises
    :class:`~ltga.errors.TrainingError`.
    """
    if len(task.val) == 0:
        raise InputError("split: has no validation nodes, and they choose the best epoch")
    callbacks, crew = tuple(callbacks), crew or Crew()
    optimizer = DecoupledAdam(model, protocol)
    losses = crew.losses(StepLoss(model, protocol.prior))
    mine = crew.share(task, seed)
    best = BestEpoch(model)
    state = State(model, optimizer, best)
    if keeper is not None:
        keeper.resume(state)
    history, stopped = state.history, "epochs"
    for gate in model.edge_gates():
        gate.keep_q = protocol.prior > 0
    with IndexWatch(model) as watch:
        try:
            for epoch in range(len(history) + 1, protocol.epochs + 1):
                start = time.perf_counter()
                steps = _Epoch(state, protocol, losses, crew, seed, epoch)
                train_loss, gradient_norm = steps.over(mine, len(task.train))
                val_loss, val_accuracy, val_score, q = crew.from_first(partial(_evaluate, model, task, epoch, watch))
                merit = (-math.inf if val_score is None or math.isnan(val_score) else val_score, -val_loss)
                info = EpochInfo(
                    epoch, train_loss, val_loss, val_accuracy, val_score, epoch if merit > best.merit else best.epoch,
                    q, gradient_norm, time.perf_counter() - start,
                )  # fmt: skip
                history.append(info)
                best.offer(merit, epoch)
                for callback in callbacks:
                    callback(info)
                if epoch - best.epoch >= protocol.patience:
                    stopped = "patience"
                    break
                if keeper is not None:
                    keeper.offer(state)
        except KeyboardInterrupt:
            if best.epoch == 0:
                raise
            stopped = "interrupted"
    best.restore()
    model.eval()
    return Outcome(history, best.epoch, stopped, state.resumed, state.seconds_before)


@dataclass(frozen=True, eq=False)
class _Epoch:
    """An epoch's gradient steps."""

    state: State
    protocol: Protocol
    losses: Callable[[Step], Tensor]
    crew: Crew
    seed: int
    epoch: int

    def over(self, task: Learnable, nodes: int) -> tuple[float, float]:
        """Loss and norm of the gradient at the index, averaged over all ``nodes`` to learn from."""
        train_loss = gradient_norm = 0.0
        for number, batch in enumerate(self.crew.steps(task, self.epoch)):
            if self.protocol.init == "paired":
                own = number * self.crew.size + self.crew.rank  # every process has masks of its own
                self.state.model.dropout_key = (self.seed, self.epoch, own) if own else (self.seed, self.epoch)
            loss, norm, count = self._step(batch)
            share = count / nodes
            train_loss += share * loss
            gradient_norm += share * norm
        return train_loss, gradient_norm

    def _step(self, batch: Step) -> tuple[float, float, int]:
        """One gradient step: the loss before it, the norm of the gradient at the index, and over how many nodes."""
        optimizer = self.state.optimizer
        self.state.model.train()
        optimizer.zero_grad()
        loss, value, count = self.crew.weigh(self.losses(batch), batch)
        if not math.isfinite(value):
            raise TrainingError(
                f"the training loss is {value} at epoch {self.epoch}; a lower learning rate may help, "
                f"for example lr={self.protocol.lr / 10:g}"
            )
        loss.backward()
        norm = optimizer.index_gradient_norm()
        optimizer.step(self.epoch)
        return value, norm, count


@torch.no_grad()
def _evaluate(
    model: Network, task: Learnable, epoch: int, watch: IndexWatch
) -> tuple[float, float, float | None, list[LayerIndex]]:
    """Loss, accuracy and the metric that chooses the best epoch, on the validation nodes; and what q was."""
    model.eval()
    logits, labels = task.val_logits(model), task.y[task.val]
    loss = task.target.loss(logits, labels).item()
    if not math.isfinite(loss):
        raise TrainingError(f"the validation loss is {loss} at epoch {epoch}; a lower learning rate may help")
    return loss, task.target.accuracy(logits, labels), task.target.score(logits, labels), watch.read()
