"""Linear projections of node features that do no more work than the features call for.

Bag-of-words features stay sparse; features whose rows repeat (word vectors, categories) are projected
once per distinct row; everything else is an ordinary product whose output reuses memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ltga.errors import InputError
from ltga.kernels.operators.dispatch import is_observed, wants_definition
from ltga.kernels.operators.sparse_product import SparseFeatures, project_sparse
from ltga.kernels.runtime import buffers
from ltga.kernels.runtime.backends import has_compiled_kernels
from ltga.kernels.runtime.memo import TensorMemo
from ltga.kernels.runtime.threads import row_blocks, run_blocks

DISTINCT_BELOW = 0.7  # share of distinct rows at which grouping them starts to pay
SPARSE_BELOW = 0.12  # density at which sparse and dense products cost about the same here
SMALLEST = 1 << 16  # elements; below this, or this many rows, the dense product is too quick to bother
FEWEST_ROWS = 512
_SAMPLE = 4096


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Node features as distinct rows and, for every node, which of them it has.

    >>> DistinctRows.from_dense(torch.tensor([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])).distinct.shape
    torch.Size([2, 2])
    """

    distinct: Tensor  # [U, F]
    which: Tensor  # [N] int64

    @classmethod
    def from_dense(cls, x: Tensor) -> DistinctRows | None:
        """Group equal rows of ``x`` [N, F]; ``None`` if two different rows share a hash."""
        words = x.detach().contiguous().numpy().view(np.uint32).astype(np.uint64)
        odd = np.random.default_rng(0).integers(1, 2**63, words.shape[1], dtype=np.uint64) | np.uint64(1)
        _, first, which = np.unique(words @ odd, return_index=True, return_inverse=True)
        rows = cls(x[torch.from_numpy(first)], torch.from_numpy(which))
        return rows if torch.equal(rows.to_dense(), x) else None

    @cached_property
    def members(self) -> tuple[Tensor, Tensor]:
        """The nodes of every distinct row, row by row: where each row's begin [U + 1], and their numbers [N] int32."""
        begin = F.pad(torch.bincount(self.which, minlength=len(self.distinct)).cumsum(0), (1, 0))
        return begin, self.which.sort(stable=True).indices.int()

    @property
    def values(self) -> Tensor:
        return self.distinct

    def size(self, dim: int) -> int:
        return (len(self.which), self.distinct.size(1))[dim]

    def head(self, count: int) -> DistinctRows:
        """The first nodes."""
        return DistinctRows(self.distinct, self.which[:count])

    def to_dense(self) -> Tensor:
        return self.distinct[self.which]


Compact = SparseFeatures | DistinctRows
_top_hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", lambda _: None)
_DENSE, _SEEN = "no cheaper form", "seen once"
_known: TensorMemo[Compact | str] = TensorMemo()


def compact_form(x: Tensor, search: bool = True) -> Compact | None:
    """A cheaper form of constant features ``x`` [N, F] if there is one, remembered while the tensor stays as it is.

    Without ``search`` a tensor that comes for the first time is only noted: activations come once and are not worth it.
    """
    if x.dim() != 2 or x.device.type != "cpu" or not may_be_compact(x):
        return None
    if x.dtype not in (torch.float32, torch.float64) or x.is_inference() or not has_compiled_kernels():
        return None
    if is_observed() or type(x) not in (Tensor, torch.nn.Parameter) or _top_hooks(True) is not None:
        return None  # a checkpoint's second pass must save what its first one did, not a form found since
    known = _known.get(x, "form")
    if known is None and not search:
        _known.put(x, "form", None, _SEEN)
    elif known is None or known == _SEEN:
        content = _known.content(x)
        with torch.inference_mode(False):  # what is kept must be usable in training later
            found = _search(x)
        # That nothing cheaper was found may be believed whatever the tensor holds by now: the dense product is right.
        _known.put(x, "form", None if found is None else content, _DENSE if found is None else found)
        return found
    return known if isinstance(known, Compact) else None


def may_be_compact(x: Tensor) -> bool:
    """Whether a cheaper form of features ``x`` [N, F] would be worth a look."""
    return not x.requires_grad and x.size(0) >= FEWEST_ROWS and x.numel() >= SMALLEST


def _search(x: Tensor) -> Compact | None:
    sparse = sparse_form(x)
    if sparse is not None or not _rows_seem_to_repeat(x):
        return sparse
    rows = DistinctRows.from_dense(x)
    return rows if rows is not None and len(rows.distinct) < DISTINCT_BELOW * len(x) else None


def sparse_form(x: Tensor) -> SparseFeatures | None:
    """``x`` as :class:`SparseFeatures` if few enough of its elements are non-zero."""
    sample = x.reshape(-1)[:: max(1, x.numel() // _SAMPLE)] if x.is_contiguous() else x[:: max(1, len(x) // 16)]
    if float((sample != 0).float().mean()) >= 1.5 * SPARSE_BELOW or x.count_nonzero() >= SPARSE_BELOW * x.numel():
        return None
    return SparseFeatures.from_dense(x)


def _rows_seem_to_repeat(x: Tensor) -> bool:
    """A glance at one number for each of some rows, so that ordinary features cost next to nothing.

    All columns count: after dropout a few of them often repeat, whole rows do not.
    """
    sample = x[:: max(1, len(x) // _SAMPLE)].double()
    numbers = sample @ torch.arange(1, x.size(1) + 1, dtype=torch.double, device=x.device).sqrt()
    return len(np.unique(numbers.numpy())) < DISTINCT_BELOW * len(sample)


def project(x: Tensor | Compact, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b for x ``[N, F]``, W ``[O, F]``, b ``[O]``."""
    if isinstance(x, SparseFeatures):
        if x.shape[1] != weight.size(1):
            raise InputError(f"x: has {x.shape[1]} features, the layer was built for {weight.size(1)}")
        return project_sparse(x.values, x.ptr, x.col, weight, bias)
    if isinstance(x, DistinctRows):
        return _Distinct.apply(x, weight, bias)
    large = max(weight.size(0), x.size(1) if x.requires_grad else 0)  # a wide input's gradient is large too
    if not _ordinary(x, weight) or x.size(0) * large * x.element_size() < buffers.SMALLEST:
        return F.linear(x, weight, bias)
    return _Dense.apply(x, weight, bias)


def project_both(
    x: Tensor, count: int, left: tuple[Tensor, Tensor | None], right: tuple[Tensor, Tensor | None]
) -> tuple[Tensor, Tensor]:
    """All rows of x times one weight and the first ``count`` times another; one gradient for x, not two to be added."""
    if not _ordinary(x, left[0]) or left[0].dtype != right[0].dtype:
        return F.linear(x, *left), F.linear(x[:count], *right)
    return _Both.apply(x, count, *left, *right)


def _ordinary(x: Tensor, weight: Tensor) -> bool:
    """Whether a product can write into memory of ours, unseen by compilers and autocast."""
    return not (
        torch.compiler.is_compiling()
        or torch.is_autocast_enabled("cpu")
        or x.device.type != "cpu"
        or x.dtype not in (torch.float32, torch.float64)
        or x.dtype != weight.dtype
    )


def product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """F.linear whose output memory comes from the pool, if it is large."""
    if x.size(0) * weight.size(0) * x.element_size() < buffers.SMALLEST:
        return F.linear(x, weight, bias)
    out = buffers.empty((x.size(0), weight.size(0)), x.dtype)
    return torch.mm(x, weight.t(), out=out) if bias is None else torch.addmm(bias, x, weight.t(), out=out)


class _Dense(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:  # type: ignore[override]
        x, weight = ctx.saved_tensors
        gx = None
        if ctx.needs_input_grad[0]:
            # Somebody who wants a second derivative needs a product that autograd can follow.
            into = None if wants_definition(grad) else buffers.empty(tuple(x.shape), x.dtype)
            gx = torch.mm(grad, weight, out=into)
        gw = grad.t() @ x if ctx.needs_input_grad[1] else None
        gb = grad.sum(0) if ctx.needs_input_grad[2] else None
        return gx, gw, gb


class _Both(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        count: int,
        left: Tensor,
        left_bias: Tensor | None,
        right: Tensor,
        right_bias: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x, left, right)
        ctx.count = count
        return product(x, left, left_bias), product(x[:count], right, right_bias)

    @staticmethod
    def backward(ctx: Any, grad_left: Tensor, grad_right: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, left, right = ctx.saved_tensors
        need_x, _, need_left, need_left_bias, need_right, need_right_bias = ctx.needs_input_grad
        gx = None
        if need_x and wants_definition(grad_left, grad_right):
            gx = grad_left @ left + F.pad(grad_right @ right, (0, 0, 0, len(x) - ctx.count))
        elif need_x:
            gx = torch.mm(grad_left, left, out=buffers.empty(tuple(x.shape), x.dtype))
            gx[: ctx.count].addmm_(grad_right, right)
        return (
            gx,
            None,
            grad_left.t() @ x if need_left else None,
            grad_left.sum(0) if need_left_bias else None,
            grad_right.t() @ x[: ctx.count] if need_right else None,
            grad_right.sum(0) if need_right_bias else None,
        )


class _Distinct(torch.autograd.Function):
    """Project the distinct rows and hand out copies; gradients are summed per distinct row first."""

    @staticmethod
    def forward(ctx: Any, x: DistinctRows, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.x = x
        out = buffers.empty((len(x.which), weight.size(0)), weight.dtype)
        return torch.index_select(F.linear(x.distinct, weight, bias), 0, x.which, out=out)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor | None, Tensor | None]:  # type: ignore[override]
        from ltga.kernels.numba.sparse_rows import sum_rows

        if wants_definition(grad):
            total = grad.new_zeros(len(ctx.x.distinct), grad.size(1)).index_add(0, ctx.x.which, grad)
            return None, total.t() @ ctx.x.distinct, total.sum(0) if ctx.needs_input_grad[2] else None
        summed = buffers.empty((len(ctx.x.distinct), grad.size(1)), grad.dtype)
        begin, nodes = ctx.x.members
        inputs = (begin.numpy(), nodes.numpy(), grad.contiguous().numpy(), summed.numpy())
        run_blocks(row_blocks(inputs[0]), lambda _, first, last: sum_rows(first, last, *inputs))
        gw = summed.t() @ ctx.x.distinct if ctx.needs_input_grad[1] else None
        return None, gw, summed.sum(0) if ctx.needs_input_grad[2] else None
