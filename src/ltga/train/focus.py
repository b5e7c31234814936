"""Full-batch training that computes only what the loss depends on."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ltga.nn.interface import Network
from ltga.nn.reach import Reach
from ltga.train.loop import Task
from ltga.train.protocol import Protocol

WORTH_IT = 0.9  # of the whole graph's rows; above that, picking rows costs what it saves


@dataclass(frozen=True, eq=False)
class FocusedTask(Task):
    """A task that looks at no more of the graph than its training, or its validation nodes read.

    The numbers are those of the full pass, dropout included, up to rounding.

    Attributes:
        train_reach, val_reach: what they read; ``None`` where the whole graph is looked at.
    """

    train_reach: Reach | None
    val_reach: Reach | None

    @classmethod
    def of(cls, task: Task, model: Network, protocol: Protocol) -> FocusedTask:
        """``task`` for ``model``. A prior over all edges' q, and the course of an edge gate's q, need every edge."""
        gated = bool(model.edge_gates())
        wanted = (task.train if not gated or protocol.prior == 0 else None, task.val if not gated else None)
        return cls(**vars(task), train_reach=_reach(task, model, wanted[0]), val_reach=_reach(task, model, wanted[1]))

    def train_logits(self, model: Network) -> Tensor:
        return super().train_logits(model) if self.train_reach is None else model.outputs(self.train_reach)

    def val_logits(self, model: Network) -> Tensor:
        return super().val_logits(model) if self.val_reach is None else model.outputs(self.val_reach)


def _reach(task: Task, model: Network, nodes: Tensor | None) -> Reach | None:
    if nodes is None or len(nodes) == 0:
        return None
    reach = Reach.of(nodes, task.x, task.edge_index, task.edge_attr, len(model.convs))
    return reach if reach.share < WORTH_IT else None
