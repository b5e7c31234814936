"""Dropout from a counter-based generator: parallel, and a function of (key, position) alone.

torch's CPU generator is serial and its numbers depend on everything drawn before. Here the mask of an
element is a hash of a key and the element's position, so two models given the same key see the same
dropout whatever else they do, and the backward pass recomputes the mask instead of storing it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ltga.errors import InputError
from ltga.kernels.operators.dispatch import operator
from ltga.kernels.operators.operands import Kind, Operands
from ltga.kernels.runtime import buffers
from ltga.kernels.runtime.backends import has_compiled_kernels, runs_triton
from ltga.kernels.runtime.fingerprint import mix_key
from ltga.kernels.runtime.threads import run_blocks

CHUNK = 1024  # elements that share one row key


@dataclass(frozen=True, eq=False)
class Part:
    """Which rows of a larger array an array holds, so that dropout can treat them as it would there."""

    rows: Tensor  # [n] their numbers, int64
    total: int  # rows of the larger array


def counter_dropout(x: Tensor, p: float, key: tuple[int, ...], part: Part | None = None) -> Tensor:
    """Zero each element with probability ``p`` and scale the rest by 1/(1-p), as told by ``key``.

    With ``part``, ``x`` gets the mask that those rows of the larger array would get.

    >>> x = torch.ones(4, 1000)
    >>> torch.equal(counter_dropout(x, 0.4, (1, 2)), counter_dropout(x, 0.4, (1, 2)))
    True
    >>> torch.equal(counter_dropout(x, 0.4, (1, 2)), counter_dropout(x, 0.4, (1, 3)))
    False
    """
    if not 0.0 <= p <= 1.0:
        raise InputError(f"p: must lie in [0, 1], got {p!r}")
    if p == 0.0:
        return x
    wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
    rows = None if part is None else checked_rows(part, x)
    return _counter_dropout(wide, p, mix_key(key), rows).to(x.dtype)


def checked_rows(part: Part, x: Tensor) -> Tensor:
    """The rows of ``part``, found to be those of ``x`` [n, C]."""
    rows = part.rows
    if x.dim() != 2 or rows.shape != x.shape[:1] or rows.dtype != torch.int64:
        raise InputError(f"part: expected the number of each of the {len(x)} rows of x [n, C], int64")
    if rows.is_cpu and len(rows) and (int(rows.min()) < 0 or int(rows.max()) >= part.total):
        raise InputError(f"part: has rows outside 0..{part.total - 1}")
    return rows


@operator("counter_dropout")
def _counter_dropout(x: Tensor, p: float, key: int, rows: Tensor | None = None) -> Tensor:
    if not x.is_cpu and runs_triton(x.device):
        from ltga.kernels.operators.attention_triton import dropped

        return dropped(x, p, key, rows)
    if not x.is_cpu or not has_compiled_kernels():
        return x * plain_mask(tuple(x.shape), p, key, rows, x.device).to(x.dtype)
    from ltga.kernels.numba.hashing import dropout_chunks, dropout_rows

    out = buffers.empty(tuple(x.shape), x.dtype)
    given = x.detach().contiguous().numpy()
    limit, factor = threshold(p)
    mask = (limit, given.dtype.type(factor), key)
    if rows is None:
        chunks = -(-x.numel() // CHUNK)
        blocks = [(a, min(a + 64, chunks)) for a in range(0, chunks, 64)]
        flat, target = given.reshape(-1), out.view(-1).numpy()
        run_blocks(blocks, lambda _, first, last: dropout_chunks(first, last, flat, *mask, target))
    else:
        step = max(1, 64 * CHUNK // max(x.size(1), 1))
        blocks = [(a, min(a + step, len(x))) for a in range(0, len(x), step)]
        numbers, target = rows.numpy(), out.numpy()
        run_blocks(blocks, lambda _, first, last: dropout_rows(first, last, given, numbers, *mask, target))
    return out


def threshold(p: float) -> tuple[int, float]:
    """(the smallest 32-bit hash that is kept, what the kept are multiplied with)."""
    return min(round(p * 2**32), 2**32 - 1), 0.0 if p == 1.0 else 1.0 / (1.0 - p)


def with_mask(operands: Operands, edges: int, kind: Kind) -> Operands:
    """The operands of attention with the mask that ``kind`` asks for made, for backends that do not hash on the way."""
    if kind.dropout == 0.0:
        return operands
    ones = operands.x.new_ones(edges, operands.x.size(1), dtype=torch.promote_types(operands.x.dtype, torch.float32))
    return operands._replace(keep=_counter_dropout(ones, kind.dropout, kind.key))


def plain_mask(
    shape: tuple[int, ...], p: float, key: int, rows: Tensor | None = None, device: torch.device | str = "cpu"
) -> Tensor:
    """0 or 1/(1-p) for every element in float64, by the compiled loops' arithmetic on whole tensors of any device.

    Unsigned numbers are held in signed ones: products wrap around alike, and what a shift draws in is masked out.
    """
    position = torch.arange(math.prod(shape), device=device).view(shape)
    if rows is not None:
        position = rows.unsqueeze(1) * shape[1] + torch.arange(shape[1], device=device)
    z = key + (position // CHUNK + 1) * _signed(0x9E3779B97F4A7C15)
    z = (z ^ _shifted(z, 30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ _shifted(z, 27)) * _signed(0x94D049BB133111EB)
    z = z ^ _shifted(z, 31)
    hashed = _mixed(_mixed((position % CHUNK + z) & _WORD) ^ _shifted(z, 32))
    limit, factor = threshold(p)
    return (hashed >= limit).double() * factor


_WORD = (1 << 32) - 1


def _mixed(h: Tensor) -> Tensor:
    h = (h ^ (h >> 16)) * 0x7FEB352D & _WORD
    h = (h ^ (h >> 15)) * 0x846CA68B & _WORD
    return h ^ (h >> 16)


def _shifted(z: Tensor, bits: int) -> Tensor:
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


@_counter_dropout.register_fake
def _(x, p, key, rows=None):  # type: ignore[no-untyped-def]
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
    _, ctx.p, ctx.key, rows = inputs
    ctx.save_for_backward(rows)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
    return _counter_dropout(grad, ctx.p, ctx.key, *ctx.saved_tensors), None, None, None


_counter_dropout.register_autograd(_backward, setup_context=_setup_context)
