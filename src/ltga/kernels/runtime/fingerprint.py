"""Whether a tensor still holds what it held: its content or a hash of it, and a promise that makes both unnecessary.

torch counts the writes that go through a tensor, but not those through an array that shares its memory or through
``.data``. What is remembered about a tensor is therefore used again only if its content is still the same, by its hash
if it is large.
Reading a graph's edges once costs next to nothing beside attention over them (docs/reliability.md has the numbers).
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Hashable

import numpy as np
import torch
from torch import Tensor

from ltga.errors import InputError
from ltga.kernels.runtime.backends import has_compiled_kernels
from ltga.kernels.runtime.threads import run_blocks

BLOCK = 1 << 16  # words hashed by one thread at a time; the hash depends on it, not on the threads

COPIED = 1 << 18  # bytes; below this a copy of the content costs less than its hash, to make and to compare
_PLAIN = (torch.int64, torch.int32, torch.float32, torch.float64)

_MASK64 = (1 << 64) - 1

_constant: dict[int, weakref.ref[Tensor]] = {}


def assume_constant(tensor: Tensor) -> Tensor:
    """The same values under a promise: nobody changes them but through torch's in-place operations.

    Layers check on every call whether the edges and features they remember are still the same. For the tensor
    returned here, which shares memory with the one given, they believe it.

    >>> edge_index = torch.tensor([[0, 1], [1, 2]])
    >>> is_assumed_constant(edge_index), is_assumed_constant(assume_constant(edge_index))
    (False, True)
    """
    if tensor.requires_grad:
        raise InputError("tensor: wants gradients, so it is not constant; give x.detach() if that is what you mean")
    promised = tensor.detach()
    key = id(promised)
    _constant[key] = weakref.ref(promised, lambda _: _constant.pop(key, None))
    return promised


def is_assumed_constant(tensor: Tensor) -> bool:
    """Whether ``tensor`` came from :func:`assume_constant`."""
    mark = _constant.get(id(tensor))
    return mark is not None and mark() is tensor


def content_of(tensor: Tensor) -> Hashable:
    """What tells a CPU tensor's content from any other: a copy of it if it is small, else its hash.

    >>> content_of(torch.zeros(2)) == content_of(torch.zeros(2))
    True
    >>> content_of(torch.zeros(2)) == content_of(torch.zeros(1, 2))
    False
    """
    if tensor.numel() * tensor.element_size() > COPIED or tensor.dtype not in _PLAIN:
        return fingerprint(tensor)
    return tensor.dtype, tensor.shape, tensor.detach().as_subclass(Tensor).numpy().tobytes()


def fingerprint(tensor: Tensor) -> int:
    """A 64-bit hash of the type, shape and content of a CPU tensor.

    >>> x = torch.arange(6.0)
    >>> before = fingerprint(x)
    >>> x.numpy()[3] = 7
    >>> fingerprint(x) == before
    False
    """
    kind = int.from_bytes(str(tensor.dtype).encode()[-8:])
    raw = tensor.detach().as_subclass(Tensor).contiguous().view(-1).view(torch.uint8).numpy()
    if not has_compiled_kernels():
        plain = hashlib.blake2b(raw.tobytes(), digest_size=8).digest()
        return mix_key((kind, *tensor.shape, int.from_bytes(plain)))
    from ltga.kernels.numba.hashing import hash_words

    whole = raw[: raw.size // 64 * 64]
    words = (whole if whole.ctypes.data % 8 == 0 else whole.copy()).view(np.uint64)
    rest = np.zeros(8, np.uint64)
    rest.view(np.uint8)[: raw.size - whole.size] = raw[whole.size :]
    blocks = [(at, min(at + BLOCK, words.size)) for at in range(0, words.size, BLOCK)]
    parts = np.zeros(len(blocks) + 1, np.uint64)
    run_blocks(blocks, lambda number, first, last: hash_words(number, first, last, words, parts))
    hash_words(len(blocks), 0, 8, rest, parts)
    return mix_key((kind, *tensor.shape, *parts.tolist()))


def mix_key(key: tuple[int, ...]) -> int:
    """A signed 64-bit hash of a tuple of integers."""
    state = 0x9E3779B97F4A7C15
    for part in key:
        state = (state ^ (part & _MASK64)) * 0xBF58476D1CE4E5B9 & _MASK64
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB & _MASK64
        state ^= state >> 31
    return state - (1 << 64) if state >> 63 else state
