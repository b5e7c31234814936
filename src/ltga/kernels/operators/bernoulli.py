"""torch's dropout with torch's random numbers, drawn several times faster.

torch draws Bernoulli numbers on the CPU one at a time, which for wide features costs more than the layer. Here its
generator's state is taken out, advanced in blocks, and put back where torch would have left it; masks and every number
drawn afterwards are the same. Whether that holds is tried once per process (on Intel processors torch draws
from MKL instead); where it does not, torch does the work.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ltga.errors import InputError
from ltga.kernels.operators.dispatch import wants_definition
from ltga.kernels.operators.dropout import Part, checked_rows
from ltga.kernels.operators.sparse_product import SparseFeatures
from ltga.kernels.runtime import buffers
from ltga.kernels.runtime.backends import has_compiled_kernels
from ltga.kernels.runtime.locks import ForkSafeLock
from ltga.kernels.runtime.threads import run_blocks

CHUNK = 1 << 18  # elements that a thread scales at a time
FEWEST = 4096  # draws; below that, moving the state costs more than it saves
WORDS = 624
_STATE_BYTES = 5056  # of what torch.get_rng_state gives; where its parts stand in there:
_LEFT, _NEXT, _STATE = slice(8, 12), slice(16, 24), slice(24, 24 + 8 * WORDS)
_lock = ForkSafeLock()


def torch_dropout(x: Tensor, p: float, training: bool = True, part: Part | None = None) -> Tensor:
    """``F.dropout(x, p, training)``: the same mask, the same numbers, the generator left in the same state.

    With ``part``, as if ``x`` [n, C] were those rows of the larger array: all of its numbers are drawn.

    >>> torch.manual_seed(1); ours = torch_dropout(torch.ones(100, 100), 0.4)  # doctest: +ELLIPSIS
    <torch...
    >>> torch.manual_seed(1); torch.equal(ours, F.dropout(torch.ones(100, 100), 0.4))  # doctest: +ELLIPSIS
    <torch...
    True
    """
    if not training or p == 0.0:
        return x
    if not 0.0 < p < 1.0:
        return F.dropout(x, p)
    ours = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64) and not torch.compiler.is_compiling()
    ours = ours and has_compiled_kernels()
    if part is not None:
        rows = checked_rows(part, x)
        kept = draw(part.total * x.size(1), 1 - p).view(part.total, -1)[rows]
        return _Dropout.apply(x, kept, 1 - p) if ours else x * kept.to(x.device, x.dtype).div_(1 - p)
    if not ours or not x.is_contiguous() or not _worth_it(x.numel()):
        return F.dropout(x, p)
    return _Dropout.apply(x, draw(x.numel(), 1 - p).view(x.shape), 1 - p)


def drop_stored(x: SparseFeatures, p: float) -> Tensor:
    """The stored values after dropout, by torch's numbers drawn as for the dense matrix: zeros have theirs too."""
    if p == 1.0:
        return torch.zeros_like(x.values)
    kept = draw(x.shape[0] * x.shape[1], 1 - p, x.positions)
    return x.values * kept.to(x.values.dtype).div_(1 - p)


@torch.compiler.disable
def draw(count: int, p: float, wanted: Tensor | None = None) -> Tensor:
    """``torch.empty(count).bernoulli_(p)`` as booleans; only the draws numbered ``wanted`` if given."""
    if wanted is not None and len(wanted):
        if bool((wanted.diff() < 0).any()):
            ascending, order = wanted.sort()
            return torch.empty_like(order, dtype=torch.bool).index_copy_(0, order, draw(count, p, ascending))
        if int(wanted[0]) < 0 or int(wanted[-1]) >= count:
            raise InputError(f"wanted: has numbers outside 0..{count - 1}")
    if not _worth_it(count):
        drawn = torch.empty(count, device="cpu").bernoulli_(p) != 0
        return drawn if wanted is None else drawn[wanted]
    with _lock:  # draws that another thread makes through torch itself meanwhile are lost
        return _draw(count, p, wanted)


def _worth_it(count: int) -> bool:
    # Inside torch.func even the generator's state is wrapped, and cannot be looked into.
    if count < FEWEST or torch._C._are_functorch_transforms_active() or not has_compiled_kernels():
        return False
    return _draws_as_torch_does()


@cache
def _draws_as_torch_does() -> bool:
    generator = torch.default_generator  # torch.manual_seed would reseed accelerators too
    before = generator.get_state()
    try:
        generator.manual_seed(1)
        torch.rand(1, device="cpu")  # an odd place to start
        start = generator.get_state()
        if start.numel() != _STATE_BYTES:
            return False
        wanted = torch.empty(3 * WORDS, device="cpu").bernoulli_(0.6) != 0
        after = generator.get_state()
        generator.set_state(start)
        return torch.equal(_draw(3 * WORDS, 0.6, None), wanted) and torch.equal(generator.get_state(), after)
    finally:
        generator.set_state(before)


def _draw(count: int, p: float, wanted: Tensor | None) -> Tensor:
    from ltga.kernels.numba.mersenne import draw_all, draw_some

    packed = torch.get_rng_state()
    raw = packed.numpy()
    state = raw[_STATE].view(np.uint64).astype(np.uint32)
    position = WORDS - (int(raw[_LEFT].view(np.int32)[0]) - 1)
    limit = np.int64(math.ceil(p * 2.0**53))
    if wanted is None:
        kept = np.empty(count, np.bool_)
        position = draw_all(state, position, limit, kept)
    else:
        kept = np.empty(len(wanted), np.bool_)
        position = draw_some(state, position, limit, count, wanted.numpy(), kept)
    raw[_STATE].view(np.uint64)[:] = state
    raw[_LEFT].view(np.int32)[0] = WORDS - position + 1
    raw[_NEXT].view(np.uint64)[0] = position
    torch.set_rng_state(packed)
    return torch.from_numpy(kept)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, kept: Tensor, share: float) -> Tensor:
        return _scaled(x, kept, share)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, float], output: Tensor) -> None:
        _, kept, ctx.share = inputs
        ctx.save_for_backward(kept)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        (kept,) = ctx.saved_tensors
        if wants_definition(grad):
            return grad * kept.to(grad.dtype).div(ctx.share), None, None
        return _scaled(grad, kept, ctx.share), None, None


def _scaled(x: Tensor, kept: Tensor, share: float) -> Tensor:
    """x times 0 or 1 / share."""
    from ltga.kernels.numba.mersenne import scale_kept

    out = buffers.empty(tuple(x.shape), x.dtype)
    factor = torch.ones((), dtype=x.dtype, device="cpu").div(share).numpy()[()]  # rounded as torch rounds it
    arrays = (x.detach().contiguous().view(-1).numpy(), kept.view(-1).numpy(), factor, out.view(-1).numpy())
    blocks = [(at, min(at + CHUNK, x.numel())) for at in range(0, x.numel(), CHUNK)]
    run_blocks(blocks, lambda _, first, last: scale_kept(first, last, *arrays))
    return out


def draws_like_the_paper() -> bool:
    """Whether torch's dropout draws the same random numbers here as where the paper was run.

    On Intel processors torch fills dropout masks from MKL's generator, elsewhere from its own, which takes two words
    per element; the paper's cells come out with the latter only.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        torch.empty(1000).bernoulli_(0.6)
        after_mask = torch.rand(4)
        torch.manual_seed(0)
        torch.empty(2000).uniform_()
        return bool(torch.equal(after_mask, torch.rand(4)))
