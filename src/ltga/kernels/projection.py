"""Linear projections of node features that do no more work than the features call for.

Bag-of-words features stay sparse; features whose rows repeat (word vectors, categories) are projected
once per distinct row; everything else is an ordinary product whose output reuses memory.
"""

from __future__ import annotations

import os
import threading
import weakref
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ltga.errors import InputError
from ltga.kernels import buffers
from ltga.kernels.threads import row_blocks, run_blocks

DISTINCT_BELOW = 0.7  # share of distinct rows at which grouping them starts to pay
SPARSE_BELOW = 0.12  # density at which sparse and dense products cost about the same here
SMALLEST = 1 << 16  # elements; below this, or this many rows, the dense product is too quick to bother
FEWEST_ROWS = 512
_SAMPLE = 4096


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """Node features in CSR form, with the column order needed for the gradient of the weights.

    >>> SparseFeatures.from_dense(torch.eye(3)).to_dense().equal(torch.eye(3))
    True
    """

    values: Tensor  # [nnz]
    ptr: Tensor  # [N + 1] int64
    col: Tensor  # [nnz] int32
    tptr: Tensor  # [F + 1] int64
    trow: Tensor  # [nnz] int32: rows, column by column
    tpos: Tensor  # [nnz] int32: their positions in values
    shape: tuple[int, int]

    @classmethod
    def from_dense(cls, x: Tensor) -> SparseFeatures:
        """Collect the non-zeros of ``x`` [N, F]."""
        row, col = x.nonzero(as_tuple=True)
        tpos = col.sort(stable=True).indices
        counts = (torch.bincount(row, minlength=x.size(0)), torch.bincount(col, minlength=x.size(1)))
        ptr, tptr = (F.pad(count.cumsum(0), (1, 0)) for count in counts)
        return cls(x[row, col], ptr, col.int(), tptr, row[tpos].int(), tpos.int(), (x.size(0), x.size(1)))

    def size(self, dim: int) -> int:
        return self.shape[dim]

    def with_values(self, values: Tensor) -> SparseFeatures:
        """The same pattern with other values (dropout, scaling)."""
        return replace(self, values=values)

    def rows(self) -> Tensor:
        """Row number of every stored value, [nnz]."""
        return torch.repeat_interleave(torch.arange(self.shape[0]), self.ptr.diff())

    def to_dense(self) -> Tensor:
        dense = self.values.new_zeros(self.shape)
        dense[self.rows(), self.col.long()] = self.values
        return dense


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Node features as distinct rows and, for every node, which of them it has.

    >>> DistinctRows.from_dense(torch.tensor([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])).distinct.shape
    torch.Size([2, 2])
    """

    distinct: Tensor  # [U, F]
    which: Tensor  # [N] int64
    tptr: Tensor  # [U + 1] int64
    trow: Tensor  # [N] int32: nodes, distinct row by distinct row

    @classmethod
    def from_dense(cls, x: Tensor) -> DistinctRows | None:
        """Group equal rows of ``x`` [N, F]; ``None`` if two different rows share a hash."""
        words = x.detach().contiguous().numpy().view(np.uint32).astype(np.uint64)
        odd = np.random.default_rng(0).integers(1, 2**63, words.shape[1], dtype=np.uint64) | np.uint64(1)
        _, first, which = np.unique(words @ odd, return_index=True, return_inverse=True)
        distinct, inverse = x[torch.from_numpy(first)], torch.from_numpy(which)
        if not torch.equal(distinct[inverse], x):
            return None
        tptr = F.pad(torch.bincount(inverse, minlength=len(first)).cumsum(0), (1, 0))
        return cls(distinct, inverse, tptr, inverse.sort(stable=True).indices.int())


Compact = SparseFeatures | DistinctRows
_cache: dict[int, tuple[weakref.ref[Tensor], int, Compact | None]] = {}
_lock = threading.Lock()


def _new_lock() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_new_lock)  # another thread may have held it


def compact_form(x: Tensor) -> Compact | None:
    """A cheaper form of constant features ``x`` [N, F] if there is one, remembered per tensor and version."""
    if x.requires_grad or x.dim() != 2 or len(x) < FEWEST_ROWS or x.numel() < SMALLEST or x.device.type != "cpu":
        return None
    if x.dtype not in (torch.float32, torch.float64) or x.is_inference():
        return None
    key = id(x)
    with _lock:
        hit = _cache.get(key)
    if hit is not None and hit[0]() is x and hit[1] == x._version:
        return hit[2]
    version = x._version
    with torch.inference_mode(False):  # what is kept must be usable in training later
        found: Compact | None = sparse_form(x)
        if found is None and _rows_seem_to_repeat(x):
            rows = DistinctRows.from_dense(x)
            found = rows if rows is not None and len(rows.distinct) < DISTINCT_BELOW * len(x) else None
    reference = weakref.ref(x, lambda _: _cache.pop(key, None))
    with _lock:
        _cache[key] = (reference, version, found)
    return found


def sparse_form(x: Tensor) -> SparseFeatures | None:
    """``x`` as :class:`SparseFeatures` if few enough of its elements are non-zero."""
    sample = x.reshape(-1)[:: max(1, x.numel() // _SAMPLE)] if x.is_contiguous() else x[:: max(1, len(x) // 16)]
    if float((sample != 0).float().mean()) >= 1.5 * SPARSE_BELOW or x.count_nonzero() >= SPARSE_BELOW * x.numel():
        return None
    return SparseFeatures.from_dense(x)


def _rows_seem_to_repeat(x: Tensor) -> bool:
    """A glance at a few columns of some rows, so that ordinary features cost next to nothing."""
    if x.size(1) < 2:
        return False
    sample = x[:: max(1, len(x) // _SAMPLE), :2].double().contiguous().numpy().view(np.complex128)
    return len(np.unique(sample)) < DISTINCT_BELOW * len(sample)


def project(x: Tensor | Compact, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b for x ``[N, F]``, W ``[O, F]``, b ``[O]``."""
    if isinstance(x, SparseFeatures):
        if x.shape[1] != weight.size(1):
            raise InputError(f"x: has {x.shape[1]} features, the layer was built for {weight.size(1)}")
        return project_sparse(x.values, x.ptr, x.col, x.tptr, x.trow, x.tpos, weight, bias)
    if isinstance(x, DistinctRows):
        return _Distinct.apply(x, weight, bias)
    plain = (
        torch.compiler.is_compiling()
        or torch.is_autocast_enabled("cpu")
        or x.device.type != "cpu"
        or x.dtype not in (torch.float32, torch.float64)
        or x.dtype != weight.dtype
        or x.size(0) * weight.size(0) * x.element_size() < buffers.SMALLEST
    )
    if plain:
        return F.linear(x, weight, bias)
    return _Dense.apply(x, weight, bias)


class _Dense(torch.autograd.Function):
    """F.linear whose output memory comes from the pool."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        out = buffers.empty((x.size(0), weight.size(0)), x.dtype)
        return torch.mm(x, weight.t(), out=out) if bias is None else torch.addmm(bias, x, weight.t(), out=out)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:  # type: ignore[override]
        x, weight = ctx.saved_tensors
        gx = None
        if ctx.needs_input_grad[0]:
            gx = grad @ weight
        gw = grad.t() @ x if ctx.needs_input_grad[1] else None
        gb = grad.sum(0) if ctx.needs_input_grad[2] else None
        return gx, gw, gb


class _Distinct(torch.autograd.Function):
    """Project the distinct rows and hand out copies; gradients are summed per distinct row first."""

    @staticmethod
    def forward(ctx: Any, x: DistinctRows, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.x = x
        out = buffers.empty((len(x.which), weight.size(0)), weight.dtype)
        return torch.index_select(F.linear(x.distinct, weight, bias), 0, x.which, out=out)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor | None, Tensor | None]:  # type: ignore[override]
        from ltga.kernels.sparse_rows import sum_rows

        summed = buffers.empty((len(ctx.x.distinct), grad.size(1)), grad.dtype)
        inputs = (ctx.x.tptr.numpy(), ctx.x.trow.numpy(), grad.contiguous().numpy(), summed.numpy())
        run_blocks(row_blocks(inputs[0]), lambda _, first, last: sum_rows(first, last, *inputs))
        gw = summed.t() @ ctx.x.distinct if ctx.needs_input_grad[1] else None
        return None, gw, summed.sum(0) if ctx.needs_input_grad[2] else None


def _check_sparse(values: Tensor, ptr: Tensor, col: Tensor, pos: Tensor | None, columns: int) -> None:
    """Everything the compiled products rely on; raises before they run."""
    from ltga.kernels.sparse_rows import check_sparse

    arrays = ((ptr, torch.int64), (col, torch.int32), *(() if pos is None else ((pos, torch.int32),)))
    sound = all(a.dim() == 1 and a.dtype == dtype and a.is_contiguous() and a.is_cpu for a, dtype in arrays)
    sound = sound and values.dim() == 1 and values.is_contiguous() and values.dtype in (torch.float32, torch.float64)
    if sound:
        sound = not check_sparse(ptr.numpy(), col.numpy(), columns, len(values))
    if sound and pos is not None and len(pos):
        sound = len(pos) == len(values) and int(pos.min()) >= 0 and int(pos.max()) < len(values)
    if not sound:
        raise InputError("x: not a valid sparse feature matrix for this layer; use SparseFeatures.from_dense")


@torch.library.custom_op("ltga::project_sparse", mutates_args=())
def project_sparse(
    values: Tensor,
    ptr: Tensor,
    col: Tensor,
    tptr: Tensor,
    trow: Tensor,
    tpos: Tensor,
    weight: Tensor,
    bias: Tensor | None,
) -> Tensor:
    """Sparse features times a dense matrix, [N, O]."""
    from ltga.kernels.sparse_rows import multiply_rows

    _check_sparse(values, ptr, col, None, weight.size(1))
    if values.dtype != weight.dtype or weight.dim() != 2 or (bias is not None and bias.shape != weight.shape[:1]):
        raise InputError("weight, bias: expected [O, F] and [O] of the features' type")
    out = buffers.empty((len(ptr) - 1, weight.size(0)), weight.dtype)
    start = (bias if bias is not None else weight.new_zeros(weight.size(0))).detach().numpy()
    inputs = (
        ptr.numpy(),
        col.numpy(),
        values.detach().numpy(),
        _transposed(weight.detach()).numpy(),
        start,
        out.numpy(),
    )
    run_blocks(row_blocks(ptr.numpy()), lambda _, first, last: multiply_rows(first, last, *inputs))
    return out


def _transposed(matrix: Tensor) -> Tensor:
    """A contiguous transpose."""
    from ltga.kernels.sparse_rows import transpose_rows

    matrix = matrix.contiguous()
    out = buffers.empty((matrix.size(1), matrix.size(0)), matrix.dtype)
    blocks = [(a, min(a + 128, matrix.size(1))) for a in range(0, matrix.size(1), 128)]
    inputs = (matrix.numpy(), out.numpy())
    run_blocks(blocks, lambda _, first, last: transpose_rows(first, last, *inputs))
    return out


@project_sparse.register_fake
def _(values, ptr, col, tptr, trow, tpos, weight, bias):  # type: ignore[no-untyped-def]
    return weight.new_empty(ptr.size(0) - 1, weight.size(0))


@torch.library.custom_op("ltga::project_sparse_backward", mutates_args=())
def project_sparse_backward(grad: Tensor, values: Tensor, tptr: Tensor, trow: Tensor, tpos: Tensor) -> Tensor:
    """Gradient of the weights, [O, F]."""
    from ltga.kernels.sparse_rows import gather_rows

    _check_sparse(values, tptr, trow, tpos, len(grad))
    if grad.dim() != 2 or grad.dtype != values.dtype:
        raise InputError("grad: expected [N, O] of the features' type")
    out = buffers.empty((len(tptr) - 1, grad.size(1)), grad.dtype)
    inputs = (
        tptr.numpy(),
        trow.numpy(),
        tpos.numpy(),
        values.detach().numpy(),
        grad.contiguous().numpy(),
        out.numpy(),
    )
    run_blocks(row_blocks(tptr.numpy()), lambda _, first, last: gather_rows(first, last, *inputs))
    return _transposed(out)


@project_sparse_backward.register_fake
def _(grad, values, tptr, trow, tpos):  # type: ignore[no-untyped-def]
    return grad.new_empty(grad.size(1), tptr.size(0) - 1)


def _setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
    values, _, _, tptr, trow, tpos, _, _ = inputs
    ctx.save_for_backward(values, tptr, trow, tpos)


def _backward(ctx: Any, grad: Tensor) -> tuple:
    weight_grad = project_sparse_backward(grad, *ctx.saved_tensors) if ctx.needs_input_grad[6] else None
    return None, None, None, None, None, None, weight_grad, grad.sum(0) if ctx.needs_input_grad[7] else None


project_sparse.register_autograd(_backward, setup_context=_setup_context)
