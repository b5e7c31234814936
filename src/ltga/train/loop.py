"""The training loop: one full-batch step (or several batches) and one evaluation per epoch, the best epoch kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from typing import Protocol as Interface

import torch
from torch import Tensor

from ltga.errors import InputError, TrainingError
from ltga.kernels import SparseFeatures
from ltga.nn.attention_inputs import Attention
from ltga.nn.attention_statistics import attention_statistics
from ltga.nn.interface import LayerWeights, Network
from ltga.train.optimizer import DecoupledAdam
from ltga.train.protocol import Protocol
from ltga.train.targets import Classes, Objective
from ltga.train.trajectory import IndexWatch, LayerIndex


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
    """

    history: list[EpochInfo]
    best_epoch: int
    stopped: str

    @property
    def interrupted(self) -> bool:
        return self.stopped == "interrupted"


Callback = Callable[[EpochInfo], Any]


def train(
    model: Network, task: Learnable, protocol: Protocol, seed: int, callbacks: Iterable[Callback] = ()
) -> Outcome:
    """Train ``model`` on ``task`` and leave it with the weights of its best epoch on the validation part.

    That is the epoch with the lowest loss, or with the highest metric if the task has one; among equals the one with
    the lower loss.

    Ctrl-C ends training early and keeps the best epoch so far. A loss that is no longer finite raises
    :class:`~ltga.errors.TrainingError`.
    """
    if len(task.val) == 0:
        raise InputError("split: has no validation nodes, and they choose the best epoch")
    callbacks = tuple(callbacks)
    optimizer = DecoupledAdam(model, protocol)
    best = _Best(model)
    history: list[EpochInfo] = []
    stopped = "epochs"
    for gate in model.edge_gates():
        gate.keep_q = protocol.prior > 0
    with IndexWatch(model) as watch:
        try:
            for epoch in range(1, protocol.epochs + 1):
                start = time.perf_counter()
                train_loss, gradient_norm = _epoch(model, task, protocol, optimizer, seed, epoch)
                val_loss, val_accuracy, val_score = _evaluate(model, task, epoch)
                merit = (-math.inf if val_score is None or math.isnan(val_score) else val_score, -val_loss)
                info = EpochInfo(
                    epoch, train_loss, val_loss, val_accuracy, val_score, epoch if merit > best.merit else best.epoch,
                    watch.read(), gradient_norm, time.perf_counter() - start,
                )  # fmt: skip
                history.append(info)
                best.offer(merit, epoch)
                for callback in callbacks:
                    callback(info)
                if epoch - best.epoch >= protocol.patience:
                    stopped = "patience"
                    break
        except KeyboardInterrupt:
            if best.epoch == 0:
                raise
            stopped = "interrupted"
    best.restore()
    model.eval()
    return Outcome(history, best.epoch, stopped)


def _epoch(
    model: Network, task: Learnable, protocol: Protocol, optimizer: DecoupledAdam, seed: int, epoch: int
) -> tuple[float, float]:
    """An epoch's gradient steps: loss and norm of the gradient at the index, averaged over training nodes."""
    train_loss = gradient_norm = 0.0
    for number, batch in enumerate(task.steps(epoch)):
        if protocol.init == "paired":
            model.dropout_key = (seed, epoch, number) if number else (seed, epoch)
        loss, norm = _step(model, batch, protocol, optimizer, epoch)
        share = len(batch.train) / len(task.train)
        train_loss += share * loss
        gradient_norm += share * norm
    return train_loss, gradient_norm


def _step(model: Network, task: Step, protocol: Protocol, optimizer: DecoupledAdam, epoch: int) -> tuple[float, float]:
    """One gradient step: the loss before it, and the norm of the gradient at the index."""
    model.train()
    optimizer.zero_grad()
    loss = task.target.loss(task.train_logits(model), task.y[task.train])
    if protocol.prior > 0:
        loss = loss + protocol.prior * model.shannon_penalty()
    value = loss.item()
    if not math.isfinite(value):
        raise TrainingError(
            f"the training loss is {value} at epoch {epoch}; a lower learning rate may help, "
            f"for example lr={protocol.lr / 10:g}"
        )
    loss.backward()
    norm = optimizer.index_gradient_norm()
    optimizer.step(epoch)
    return value, norm


@torch.no_grad()
def _evaluate(model: Network, task: Learnable, epoch: int) -> tuple[float, float, float | None]:
    """Loss, accuracy and the metric that chooses the best epoch, on the validation nodes."""
    model.eval()
    logits, labels = task.val_logits(model), task.y[task.val]
    loss = task.target.loss(logits, labels).item()
    if not math.isfinite(loss):
        raise TrainingError(f"the validation loss is {loss} at epoch {epoch}; a lower learning rate may help")
    return loss, task.target.accuracy(logits, labels), task.target.score(logits, labels)


class _Best:
    """A copy of the parameters at the best epoch."""

    def __init__(self, model: Network) -> None:
        self._live = {name: value for name, value in model.state_dict().items() if isinstance(value, Tensor)}
        self._kept = {name: torch.empty_like(value) for name, value in self._live.items()}
        self._copying = False
        self.merit = (-math.inf, -math.inf)
        self.epoch = 0

    def offer(self, merit: tuple[float, float], epoch: int) -> None:
        if merit > self.merit:
            self._copying = True
            self.merit, self.epoch = merit, epoch
            for name, value in self._live.items():
                self._kept[name].copy_(value)
            self._copying = False

    @torch.no_grad()
    def restore(self) -> None:
        if self._copying:  # interrupted halfway: the parameters themselves are still those of the best epoch
            return
        for name, value in self._live.items():
            value.copy_(self._kept[name])
