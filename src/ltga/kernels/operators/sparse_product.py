"""Sparse node features (bags of words) and their product with a layer's weights."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ltga.errors import InputError
from ltga.kernels.operators.dispatch import differentiable_gradients, operator, wants_definition
from ltga.kernels.runtime import buffers
from ltga.kernels.runtime.threads import run_blocks

TILE = 32  # columns of the weights handled at once, so that a core's own cache holds them for all features
STRIP = 2 * TILE  # columns a thread takes at a time: calls cost, and so does waiting for a thread that took too much


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """Node features in CSR form.

    >>> SparseFeatures.from_dense(torch.eye(3)).to_dense().equal(torch.eye(3))
    True
    """

    values: Tensor  # [nnz]
    ptr: Tensor  # [N + 1] int64
    col: Tensor  # [nnz] int32
    shape: tuple[int, int]

    @classmethod
    def from_dense(cls, x: Tensor) -> SparseFeatures:
        """Collect the non-zeros of ``x`` [N, F]."""
        row, col = x.nonzero(as_tuple=True)
        ptr = F.pad(torch.bincount(row, minlength=x.size(0)).cumsum(0), (1, 0))
        return cls(x[row, col], ptr, col.int(), (x.size(0), x.size(1)))

    def size(self, dim: int) -> int:
        return self.shape[dim]

    def with_values(self, values: Tensor) -> SparseFeatures:
        """The same features with other values (dropout, scaling); on the CPU what became zero is left out."""
        if not values.is_cpu:  # elsewhere counting what is left would mean waiting for the device
            return SparseFeatures(values, self.ptr, self.col, self.shape)
        kept = values != 0
        ptr = F.pad(kept.cumsum(0), (1, 0))[self.ptr]
        return SparseFeatures(values[kept], ptr, self.col[kept], self.shape)

    def rows(self) -> Tensor:
        """Row number of every stored value, [nnz]."""
        numbers = torch.arange(self.shape[0], device=self.ptr.device)
        return torch.repeat_interleave(numbers, self.ptr.diff(), output_size=len(self.col))

    @cached_property
    def positions(self) -> Tensor:
        """Where every stored value stands in the dense matrix, counted along its rows, [nnz]."""
        return self.rows() * self.shape[1] + self.col

    def head(self, count: int) -> SparseFeatures:
        """The first rows."""
        stored = int(self.ptr[count])
        return SparseFeatures(self.values[:stored], self.ptr[: count + 1], self.col[:stored], (count, self.shape[1]))

    def to_dense(self) -> Tensor:
        places = (self.rows(), self.col.long())
        return self.values.new_zeros(self.shape).index_put(places, self.values, accumulate=True)


@dataclass(frozen=True, eq=False)
class SparseRows(SparseFeatures):
    """Some rows of sparse features, which dropout treats as it would treat them there.

    >>> SparseRows.of(SparseFeatures.from_dense(torch.eye(3)), torch.tensor([2, 0])).to_dense().tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    whole: SparseFeatures
    stored: Tensor  # [nnz] the place of every value among those of ``whole``

    @classmethod
    def of(cls, whole: SparseFeatures, rows: Tensor) -> SparseRows:
        start, length = whole.ptr[rows], whole.ptr.diff()[rows]
        ptr = F.pad(length.cumsum(0), (1, 0))
        stored = torch.arange(int(ptr[-1]), device=ptr.device) + torch.repeat_interleave(start - ptr[:-1], length)
        return cls(
            whole.values[stored], ptr, whole.col[stored], (len(rows), whole.shape[1]), whole=whole, stored=stored
        )


@operator("project_sparse")
def project_sparse(values: Tensor, ptr: Tensor, col: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Sparse features times a dense matrix: x W^T + b, [N, O], for W [O, F]."""
    from ltga.kernels.numba.sparse_rows import multiply_rows

    if values.dtype != weight.dtype or weight.dim() != 2 or (bias is not None and bias.shape != weight.shape[:1]):
        raise InputError("weight, bias: expected [O, F] and [O] of the features' type")
    _check(values, ptr, col, weight.size(1))
    out = buffers.empty((len(ptr) - 1, weight.size(0)), weight.dtype)
    start = (bias if bias is not None else weight.new_zeros(weight.size(0))).detach().contiguous().numpy()
    matrix = weight.detach().contiguous().numpy()
    if not np.isfinite(np.dot(matrix.ravel(), matrix.ravel())):
        # A zero times such a weight is not a number, which skipping zeros would hide.
        start = np.where(np.isfinite(matrix).all(1), start, np.nan).astype(start.dtype)
    inputs = (ptr.numpy(), col.numpy(), values.detach().numpy(), matrix, start, out.numpy())
    parts = max(1, 2 * torch.get_num_threads() * STRIP // max(out.size(1), STRIP))
    _run_strips(out.size(1), len(out), parts, lambda *job: multiply_rows(*job, TILE, *inputs))
    return out


@project_sparse.register_fake
def _(values, ptr, col, weight, bias):  # type: ignore[no-untyped-def]
    return weight.new_empty(ptr.size(0) - 1, weight.size(0))


@operator("project_sparse_backward")
def project_sparse_backward(
    grad: Tensor, values: Tensor, ptr: Tensor, col: Tensor, features: int
) -> tuple[Tensor, Tensor]:
    """Gradients of the weights [O, F] and of the bias [O], which comes along for next to nothing."""
    from ltga.kernels.numba.sparse_rows import weight_gradient

    _check(values, ptr, col, features)
    if grad.dim() != 2 or grad.dtype != values.dtype or len(grad) != len(ptr) - 1:
        raise InputError("grad: expected [N, O] of the features' type")
    out, bias = buffers.empty((grad.size(1), features), grad.dtype), grad.new_empty(grad.size(1))
    inputs = (ptr.numpy(), col.numpy(), values.detach().numpy(), grad.contiguous().numpy(), out.numpy(), bias.numpy())
    _run_strips(out.size(0), len(grad), 1, lambda first, last, *strip: weight_gradient(*strip, TILE, *inputs))
    return out, bias


@project_sparse_backward.register_fake
def _(grad, values, ptr, col, features):  # type: ignore[no-untyped-def]
    return grad.new_empty(grad.size(1), features), grad.new_empty(grad.size(1))


def _run_strips(columns: int, rows: int, parts: int, task: Callable[[int, int, int, int], None]) -> None:
    """Call ``task(first, last, begin, end)`` for every strip of columns and part of the rows."""
    width = STRIP if columns > STRIP else TILE
    strips = [(at, min(at + width, columns)) for at in range(0, columns, width)]
    bounds = [rows * part // parts for part in range(parts + 1)]
    jobs = [(a, b, *strip) for strip in strips for a, b in itertools.pairwise(bounds)]
    run_blocks(jobs, lambda _, *job: task(*job))


def _check(values: Tensor, ptr: Tensor, col: Tensor, columns: int) -> None:
    """Everything the compiled products rely on; raises before they run."""
    from ltga.kernels.numba.sparse_rows import check_sparse

    arrays = ((ptr, torch.int64), (col, torch.int32), (values, values.dtype))
    sound = all(a.dim() == 1 and a.dtype == dtype and a.is_contiguous() and a.is_cpu for a, dtype in arrays)
    sound = sound and values.dtype in (torch.float32, torch.float64)
    if not sound or check_sparse(ptr.numpy(), col.numpy(), columns, len(values)):
        raise InputError("x: not a valid sparse feature matrix for this layer; use SparseFeatures.from_dense")


def _setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
    values, ptr, col, weight, bias = inputs
    ctx.shape, ctx.with_bias = weight.shape, bias is not None
    ctx.save_for_backward(values, ptr, col, weight if values.requires_grad else None)


def _backward(ctx: Any, grad: Tensor) -> tuple:
    values, ptr, col, weight = ctx.saved_tensors
    need_values, _, _, need_weight, need_bias = ctx.needs_input_grad
    if need_values or wants_definition(grad):  # rare, so in plain torch
        # Where weights and bias are needed at all, it is for their shapes: the product is linear in them.
        weight = values.new_zeros(ctx.shape, requires_grad=need_weight) if weight is None else weight
        bias = values.new_zeros(ctx.shape[:1], requires_grad=need_bias) if ctx.with_bias else None

        def definition(*own: Tensor) -> tuple[Tensor]:
            return (plain_project_sparse(own[0], ptr, col, *own[1:]),)

        needs = (need_values, need_weight, need_bias)
        found = differentiable_gradients(definition, (values, weight, bias), needs, (grad,))
        return found[0], None, None, found[1], found[2]
    if not need_weight:
        return None, None, None, None, grad.sum(0) if need_bias else None
    weight_grad, bias_grad = project_sparse_backward(grad, values, ptr, col, ctx.shape[1])
    return None, None, None, weight_grad, bias_grad if need_bias else None


def plain_project_sparse(values: Tensor, ptr: Tensor, col: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """:func:`project_sparse` in plain torch."""
    row = torch.repeat_interleave(torch.arange(len(ptr) - 1, device=ptr.device), ptr.diff())
    terms = values.unsqueeze(1) * weight.t().index_select(0, col.long())
    out = terms.new_zeros(len(ptr) - 1, weight.size(0)).index_add(0, row, terms)
    return out if bias is None else out + bias


project_sparse.register_autograd(_backward, setup_context=_setup_context)
