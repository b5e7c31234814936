"""Dropout from a counter-based generator: parallel, and a function of (key, position) alone.

torch's CPU generator is serial and its numbers depend on everything drawn before. Here the mask of an
element is a hash of a key and the element's position, so two models given the same key see the same
dropout whatever else they do, and the backward pass recomputes the mask instead of storing it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ltga.errors import InputError
from ltga.kernels import buffers
from ltga.kernels.dispatch import operator
from ltga.kernels.threads import run_blocks

CHUNK = 1024  # elements that share one row key
_MASK64 = (1 << 64) - 1


def counter_dropout(x: Tensor, p: float, key: tuple[int, ...]) -> Tensor:
    """Zero each element with probability ``p`` and scale the rest by 1/(1-p), as told by ``key``.

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
    if x.device.type != "cpu":
        raise InputError("counter_dropout: only CPU tensors are supported; use torch's dropout elsewhere")
    wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
    return _counter_dropout(wide, p, mix_key(key)).to(x.dtype)


def mix_key(key: tuple[int, ...]) -> int:
    """A signed 64-bit hash of a tuple of integers."""
    state = 0x9E3779B97F4A7C15
    for part in key:
        state = (state ^ (part & _MASK64)) * 0xBF58476D1CE4E5B9 & _MASK64
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB & _MASK64
        state ^= state >> 31
    return state - (1 << 64) if state >> 63 else state


@operator("counter_dropout")
def _counter_dropout(x: Tensor, p: float, key: int) -> Tensor:
    from ltga.kernels.hashing import dropout_chunks

    out = buffers.empty(tuple(x.shape), x.dtype)
    scale = 0.0 if p == 1.0 else 1.0 / (1.0 - p)
    flat, target = x.detach().contiguous().view(-1).numpy(), out.view(-1).numpy()
    threshold = min(round(p * 2**32), 2**32 - 1)
    factor = flat.dtype.type(scale)
    chunks = -(-len(flat) // CHUNK)
    blocks = [(a, min(a + 64, chunks)) for a in range(0, chunks, 64)]
    run_blocks(blocks, lambda _, first, last: dropout_chunks(first, last, flat, threshold, factor, key, target))
    return out


@_counter_dropout.register_fake
def _(x, p, key):  # type: ignore[no-untyped-def]
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
    _, ctx.p, ctx.key = inputs


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
    return _counter_dropout(grad, ctx.p, ctx.key), None, None


_counter_dropout.register_autograd(_backward, setup_context=_setup_context)
