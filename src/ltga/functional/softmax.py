"""The q-softmax, dense and ragged: softmax whose exponential is the Tsallis one."""

from __future__ import annotations

import torch
from torch import Tensor

from ltga.errors import InputError
from ltga.functional.rows import DenseRows, RaggedRows, Rows
from ltga.functional.tsallis import Index, exp_q


def q_softmax(z: Tensor, q: Index, dim: int = -1) -> Tensor:
    r"""Tsallis softmax :math:`p_i = \exp_q(z_i-c)/\sum_j \exp_q(z_j-c)`, :math:`c = \max_j z_j`.

    Softmax at q = 1, heavy-tailed for q < 1, exactly zero where :math:`z_i \le c - 1/(q-1)` for q > 1.
    The map is not shift-invariant in its exponential, so the gradient through c is kept. A score of
    :math:`-\infty` is masked; a row with nothing but masked scores is all zero.

    Args:
        z: scores, any shape.
        q: a number, or a tensor broadcastable to ``z``.

    >>> q_softmax(torch.tensor([1.0, 0.5, -3.0]), 2.0)
    tensor([0.6667, 0.3333, 0.0000])
    """
    return _q_softmax(_scores(z), q, DenseRows(dim))


def segment_q_softmax(
    z: Tensor,
    q: Index,
    index: Tensor | None = None,
    ptr: Tensor | None = None,
    num_segments: int | None = None,
) -> Tensor:
    r"""The q-softmax of every segment of ``z`` at once, without padding.

    Args:
        z: scores ``[E]`` or ``[E, H]``.
        q: a number, or a tensor broadcastable to ``z``.
        index: segment of each element ``[E]``, in any order; or
        ptr: boundaries ``[S + 1]`` of consecutive segments.
        num_segments: how many segments there are, if ``index`` may not reach the last.

    >>> segment_q_softmax(torch.tensor([1.0, 0.5, 7.0]), 2.0, index=torch.tensor([0, 0, 1]))
    tensor([0.6667, 0.3333, 1.0000])
    """
    return _q_softmax(_scores(z), q, RaggedRows.make(z, index, ptr, num_segments))


def _q_softmax(z: Tensor, q: Index, rows: Rows) -> Tensor:
    top = rows.max(z)
    top = torch.where(top == -torch.inf, torch.zeros_like(top), top)
    if isinstance(q, Tensor):
        check_broadcast(q, z, "q")
    y = exp_q(z - top, q)
    # The largest element contributes exactly 1, so the sum is at least 1 unless the row is masked.
    return y / rows.sum(y).clamp(min=1)


def check_broadcast(index: Tensor, z: Tensor, name: str) -> None:
    """Raise unless ``index`` broadcasts to the shape of ``z``."""
    if torch.compiler.is_compiling():
        return
    padded = (1,) * (z.dim() - index.dim()) + tuple(index.shape)
    if len(padded) != z.dim() or any(a not in (1, b) for a, b in zip(padded, z.shape)):
        raise InputError(f"{name}: shape {list(index.shape)} does not broadcast to z {list(z.shape)}")


def _scores(z: Tensor) -> Tensor:
    if not isinstance(z, Tensor) or not z.is_floating_point():
        kind = z.dtype if isinstance(z, Tensor) else type(z).__name__
        raise InputError(f"z: expected a floating-point tensor of scores, got {kind}; call z.float() first")
    return z
