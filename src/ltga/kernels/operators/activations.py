"""ELU and ReLU whose large outputs come from the pool of buffers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ltga.kernels.operators.dispatch import is_observed, transformed, wants_definition
from ltga.kernels.runtime import buffers


def elu(x: Tensor) -> Tensor:
    """x where x > 0, else exp(x) - 1.

    >>> elu(torch.tensor([1.0, 0.0]))
    tensor([1., 0.])
    """
    return _Elu.apply(x) if _pays(x) else F.elu(x)


def relu(x: Tensor) -> Tensor:
    """x where x > 0, else 0.

    >>> relu(torch.tensor([1.0, -1.0]))
    tensor([1., 0.])
    """
    return _Relu.apply(x) if _pays(x) else F.relu(x)


def _pays(x: Tensor) -> bool:
    if is_observed() or transformed() or torch.jit.is_tracing() or type(x) not in (Tensor, torch.nn.Parameter):
        return False
    pooled = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64) and x.is_contiguous()
    return pooled and x.numel() * x.element_size() >= buffers.SMALLEST


class _Elu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        out = buffers.empty(tuple(x.shape), x.dtype)
        torch.ops.aten.elu.out(x, out=out)
        ctx.save_for_backward(x)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        if wants_definition(grad):
            return torch.ops.aten.elu_backward(grad, 1.0, 1.0, 1.0, False, x)  # type: ignore[no-any-return]
        into = buffers.empty(tuple(grad.shape), grad.dtype)
        return torch.ops.aten.elu_backward.grad_input(grad, 1.0, 1.0, 1.0, False, x, grad_input=into)  # type: ignore[no-any-return]


class _Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        out = torch.clamp_min(x, 0, out=buffers.empty(tuple(x.shape), x.dtype))
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
        (out,) = ctx.saved_tensors
        if wants_definition(grad):
            return torch.ops.aten.threshold_backward(grad, out, 0)  # type: ignore[no-any-return]
        into = buffers.empty(tuple(grad.shape), grad.dtype)
        return torch.ops.aten.threshold_backward.grad_input(grad, out, 0, grad_input=into)  # type: ignore[no-any-return]
