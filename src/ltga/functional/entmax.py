r"""alpha-entmax and sparsemax, dense and ragged, and the exact bridge to the q-softmax.

With x = z - max(z), alpha-entmax is :math:`p_i = \exp_\alpha(x_i + \nu)` where one number nu per row
makes the row sum to one. In this form nothing is special at alpha = 1 (softmax), alpha below 1 is
heavy-tailed, and alpha may differ between the elements of a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ltga.functional.entmax_root import entmax_value, log_alpha
from ltga.functional.rows import DenseRows, RaggedRows
from ltga.functional.softmax import _scores, check_broadcast
from ltga.functional.tsallis import Index, curvature, index_minus_one, reduce_to

STEEPEST = 700.0  # of the logarithm of p^(2 - alpha), which would overflow above alpha = 8


def entmax(z: Tensor, alpha: Index, dim: int = -1) -> Tensor:
    r"""alpha-entmax: :math:`\arg\max_{p\in\Delta}\ p^\top z + S_\alpha(p)/\alpha` along ``dim``.

    Softmax at alpha = 1, sparsemax at alpha = 2, heavy-tailed below 1. The problem is concave for every
    alpha: at 0, where a learned index may saturate, its entropy is the sum of logarithms. Differentiable in
    ``z`` and ``alpha`` by the exact formulas (the Jacobian in z is
    :math:`\mathrm{diag}(s) - ss^\top/\sum s`, :math:`s_i = p_i^{2-\alpha}`). alpha = 1.5 and 2 are
    solved exactly by sorting, other values by a safeguarded Newton iteration.

    Args:
        z: scores, any shape.
        alpha: a number, or a tensor broadcastable to ``z``.

    >>> entmax(torch.tensor([1.0, 0.5]), 2.0)
    tensor([0.7500, 0.2500])
    """
    return _entmax(_scores(z), alpha, DenseRows(dim))


def sparsemax(z: Tensor, dim: int = -1) -> Tensor:
    r"""Euclidean projection of the scores onto the simplex, :math:`\arg\min_{p\in\Delta} \|p - z\|^2`.

    >>> sparsemax(torch.tensor([1.0, 0.5, -2.0]))
    tensor([0.7500, 0.2500, 0.0000])
    """
    return entmax(z, 2.0, dim)


def segment_entmax(
    z: Tensor,
    alpha: Index,
    index: Tensor | None = None,
    ptr: Tensor | None = None,
    num_segments: int | None = None,
) -> Tensor:
    """alpha-entmax of every segment of ``z`` ([E] or [E, H]) at once, without padding.

    Arguments as in :func:`ltga.functional.segment_q_softmax`.

    >>> segment_entmax(torch.tensor([1.0, 0.5, 7.0]), 2.0, ptr=torch.tensor([0, 2, 3]))
    tensor([0.7500, 0.2500, 1.0000])
    """
    return _entmax(_scores(z), alpha, RaggedRows.make(z, index, ptr, num_segments))


def segment_sparsemax(
    z: Tensor, index: Tensor | None = None, ptr: Tensor | None = None, num_segments: int | None = None
) -> Tensor:
    """Sparsemax of every segment of ``z``; arguments as in :func:`ltga.functional.segment_q_softmax`.

    >>> segment_sparsemax(torch.tensor([3.0, 0.0]), index=torch.tensor([0, 1]))
    tensor([1., 1.])
    """
    return segment_entmax(z, 2.0, index, ptr, num_segments)


def bridge_scale(z: Tensor, alpha: Index, dim: int = -1) -> Tensor:
    r"""The factor beta for which entmax is a q-softmax: ``entmax(z, a) == q_softmax(beta * z, a)``.

    For every alpha, :math:`\beta = p_{\max}^{1-\alpha}` with p_max the largest entmax probability.

    Returns:
        beta with ``dim`` kept as size 1.

    >>> bridge_scale(torch.tensor([1.0, 0.5]), 2.0)
    tensor([1.3333])
    """
    p_max = entmax(z, alpha, dim).amax(dim, keepdim=True)
    d = index_minus_one(alpha, z, "alpha")
    return torch.exp(-d * torch.log(p_max.to(d.dtype))).to(z.dtype)


def _entmax(z: Tensor, alpha: Index, rows: DenseRows | RaggedRows) -> Tensor:
    d = index_minus_one(alpha, z, "alpha")
    check_broadcast(d, z, "alpha")
    return (_Entmax if torch.compiler.is_compiling() else _TransformableEntmax).apply(z, d, rows)[0]


class _Entmax(torch.autograd.Function):
    """(p, p in float64): forward by root finding, derivatives by the implicit function theorem."""

    @staticmethod
    def forward(z: Tensor, d: Tensor, rows: DenseRows | RaggedRows) -> tuple[Tensor, Tensor]:
        if isinstance(rows, DenseRows):
            p = _dense_entmax(z.double(), d.double(), rows.dim)
        else:
            p = _ragged_entmax(z.double(), d.double(), rows.index, rows.count)
        return p.to(z.dtype, copy=True), p

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Any], output: tuple[Tensor, Tensor]) -> None:
        z, d, ctx.rows = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(z, d, output[1])
        ctx.save_for_forward(z, d, output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, _: None) -> tuple[Tensor | None, Tensor | None, None]:  # type: ignore[override]
        z, d, p = ctx.saved_tensors
        if grad is None:
            return None, None, None
        slopes = _EntmaxSlopes.of(z, d, p, ctx.rows)
        slack = slopes.centred(grad.double())
        gz = (slopes.s * slack).to(grad.dtype) if ctx.needs_input_grad[0] else None
        gd = reduce_to(slack * slopes.by_alpha(), d.shape).to(d.dtype) if ctx.needs_input_grad[1] else None
        return gz, gd, None


class _TransformableEntmax(_Entmax):
    """The same for torch.func and forward-mode differentiation, which torch.compile cannot trace."""

    @staticmethod
    def jvp(ctx: Any, z_tangent: Tensor | None, d_tangent: Tensor | None, _: None) -> tuple[Tensor, None]:  # type: ignore[override]
        z, d, p = ctx.saved_tensors
        slopes = _EntmaxSlopes.of(z, d, p, ctx.rows)
        moved = torch.zeros_like(p)
        if z_tangent is not None:
            moved = moved + slopes.s * z_tangent.double()
        if d_tangent is not None:
            moved = moved + slopes.by_alpha() * d_tangent.double()
        # The row keeps its sum: nu moves so that all of it together adds up to nothing.
        return (moved - slopes.s * slopes.share(moved)).to(z.dtype), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple, z: Tensor, d: Tensor, rows: DenseRows | RaggedRows) -> tuple:
        logical = z.dim() - (in_dims[0] is not None)
        z, d = (_batch_first(info.batch_size, value, dim, logical) for value, dim in ((z, in_dims[0]), (d, in_dims[1])))
        if isinstance(rows, DenseRows):
            return _TransformableEntmax.apply(z, d, DenseRows(rows.dim % logical + 1)), (0, 0)
        # Segments run along the first dimension, so the batch goes beside the heads.
        flat, wide = (value.movedim(0, 1).reshape(z.size(1), -1) for value in (z, d.expand_as(z)))
        shape = z.movedim(0, 1).shape
        return tuple(p.view(shape) for p in _TransformableEntmax.apply(flat, wide, rows)), (1, 1)


@dataclass(frozen=True)
class _EntmaxSlopes:
    """What the derivatives of entmax are made of: p, alpha - 1, s = p^(2 - alpha), in float64."""

    p: Tensor
    d: Tensor
    s: Tensor
    rows: DenseRows | RaggedRows

    @classmethod
    def of(cls, z: Tensor, d: Tensor, p: Tensor, rows: DenseRows | RaggedRows) -> _EntmaxSlopes:
        if torch.is_grad_enabled():  # somebody wants a second derivative: p must be seen to depend on z and alpha
            p = _entmax(z.double(), d.double() + 1, rows)
        log_p = torch.log(torch.where(p > 0, p, torch.ones_like(p)))
        s = torch.where(p > 0, torch.exp(((1 - d.double()) * log_p).clamp(max=STEEPEST)), torch.zeros_like(p))
        return cls(p, d.double(), s, rows)

    def share(self, values: Tensor) -> Tensor:
        """Sum over the row, as a share of that of s."""
        return self.rows.sum(values) / self.rows.sum(self.s).clamp(min=torch.finfo(torch.double).tiny)

    def centred(self, grad: Tensor) -> Tensor:
        slack = grad - self.share(grad * self.s)
        # Above alpha = 2 an s may exceed all others by far, and what is left of its gradient would be rounding.
        return slack - self.share(slack * self.s)

    def by_alpha(self) -> Tensor:
        """dp/dalpha with nu held."""
        inside = self.p > 0
        log_p = torch.log(torch.where(inside, self.p, torch.ones_like(self.p)))
        t = self.d * log_p
        near = t > -1  # beyond it 1 + d x, which is p^d, has lost it to rounding
        argument = log_alpha(torch.where(near, log_p, torch.zeros_like(log_p)), self.d)  # x + nu, from p alone
        far_d = torch.where(near, torch.ones_like(t), self.d.expand_as(t))
        far = (self.p * (1 - t) - self.s) / (far_d * far_d)
        found = torch.where(near, self.p * curvature(argument, self.d), far)
        return torch.where(inside, found, torch.zeros_like(self.p))


# Opaque to torch.compile: the root finder stops when it is done, which a captured graph cannot.
@torch.library.custom_op("ltga::dense_entmax", mutates_args=())
def _dense_entmax(z: Tensor, d: Tensor, dim: int) -> Tensor:
    return entmax_value(z, d, DenseRows(dim))


@torch.library.custom_op("ltga::ragged_entmax", mutates_args=())
def _ragged_entmax(z: Tensor, d: Tensor, index: Tensor, count: int) -> Tensor:
    return entmax_value(z, d, RaggedRows(index, count))


@_dense_entmax.register_fake
@_ragged_entmax.register_fake
def _(z, *_):  # type: ignore[no-untyped-def]
    return torch.empty_like(z)


def _batch_first(size: int, value: Tensor, dim: int | None, logical: int) -> Tensor:
    """``value`` with its batch in front and as many dimensions behind it as the scores have."""
    value = value.unsqueeze(0) if dim is None else value.movedim(dim, 0)
    value = value.view(value.size(0), *[1] * (logical + 1 - value.dim()), *value.shape[1:])
    return value.expand(size, *value.shape[1:])
