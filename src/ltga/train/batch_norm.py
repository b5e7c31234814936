"""Batch normalisation over the batches of all processes, on any device (torch's own is for GPUs)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


class _Sum(torch.autograd.Function):
    """The sum of all processes' tensors, in each of them; so each one's gradient is the sum of all gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = x.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total


def sum_of_all(x: Tensor) -> Tensor:
    """Differentiable ``all_reduce``."""
    total: Tensor = _Sum.apply(x)  # type: ignore[no-untyped-call]
    return total


class SharedBatchNorm(nn.BatchNorm1d):
    """``BatchNorm1d`` whose mean and variance are those of all processes' rows together.

    Attributes:
        idle: this process has nothing to add: its rows are normalised, but do not count.
    """

    idle = False

    @classmethod
    def of(cls, plain: nn.BatchNorm1d) -> SharedBatchNorm:
        """The same layer, parameters and running statistics included (they are shared, not copied)."""
        shared = cls(plain.num_features, plain.eps, plain.momentum, plain.affine, plain.track_running_stats)
        shared.weight, shared.bias = plain.weight, plain.bias
        shared.running_mean, shared.running_var = plain.running_mean, plain.running_var
        shared.num_batches_tracked = plain.num_batches_tracked
        return shared.train(plain.training)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        counted = x[:0] if self.idle else x
        rows = x.new_tensor(float(len(counted)))
        total = sum_of_all(torch.cat([counted.sum(0), rows.unsqueeze(0)]))
        count, mean = total[-1].detach(), total[:-1] / total[-1]
        var = sum_of_all((counted - mean).square().sum(0)) / count
        self._follow(mean.detach(), var.detach(), count)
        out = (x - mean) * torch.rsqrt(var + self.eps)
        return out if self.weight is None else out * self.weight + self.bias

    @torch.no_grad()
    def _follow(self, mean: Tensor, var: Tensor, count: Tensor) -> None:
        """Running statistics as torch keeps them: with the unbiased variance."""
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked.add_(1)
        weight = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean, weight)
        self.running_var.lerp_(var * count / (count - 1).clamp(min=1), weight)


@contextmanager
def shared_batch_norm(model: nn.Module) -> Iterator[list[SharedBatchNorm]]:
    """Inside, every ``BatchNorm1d`` of ``model`` is one over all processes; afterwards the model is what it was."""
    places = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, nn.BatchNorm1d)
    ]
    made = {id(child): SharedBatchNorm.of(child) for _, _, child in places}
    for parent, name, child in places:
        setattr(parent, name, made[id(child)])
    try:
        yield list(made.values())
    finally:
        for parent, name, child in places:
            child.train(parent.training)
            setattr(parent, name, child)
