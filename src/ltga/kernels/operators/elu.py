"""ELU whose large outputs come from the pool of buffers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ltga.kernels.operators.dispatch import wants_definition
from ltga.kernels.runtime import buffers


def elu(x: Tensor) -> Tensor:
    """x where x > 0, else exp(x) - 1.

    >>> elu(torch.tensor([1.0, 0.0]))
    tensor([1., 0.])
    """
    pooled = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64) and x.is_contiguous()
    if torch.compiler.is_compiling() or not pooled or x.numel() * x.element_size() < buffers.SMALLEST:
        return F.elu(x)
    return _Elu.apply(x)


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
            return grad * torch.where(x > 0, torch.ones_like(x), x.clamp(max=0).exp())
        into = buffers.empty(tuple(grad.shape), grad.dtype)
        return torch.ops.aten.elu_backward.grad_input(grad, 1.0, 1.0, 1.0, False, x, grad_input=into)  # type: ignore[no-any-return]
