"""What was worked out about a tensor, remembered for as long as the tensor lives and stays as it is."""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

from torch import Tensor

from ltga.kernels.runtime.fingerprint import content_of, is_assumed_constant
from ltga.kernels.runtime.locks import ForkSafeLock

T = TypeVar("T")


class _Entry(NamedTuple, Generic[T]):
    tensor: weakref.ref[Tensor]
    version: int
    address: int
    content: Hashable  # or a hash of it; None if what is remembered holds whatever the tensor contains
    value: T


class TensorMemo(Generic[T]):
    """Values by tensor object and a further key.

    A value comes back only if the tensor's content is what it was (:func:`.content_of`), or, for a tensor of
    :func:`~ltga.kernels.assume_constant`, if torch has seen no write to it. Inference tensors do not count writes;
    for them the content alone decides.

    >>> import torch
    >>> memo, x = TensorMemo(), torch.zeros(3)
    >>> memo.put(x, "sum", memo.content(x), 0.0)
    >>> memo.get(x, "sum")
    0.0
    >>> x.numpy()[0] = 1
    >>> memo.get(x, "sum") is None
    True
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[int, Hashable], _Entry[T]] = {}
        self._lock = ForkSafeLock()

    def __len__(self) -> int:
        return len(self._entries)

    @staticmethod
    def content(tensor: Tensor) -> Hashable:
        """The content, or a hash of it, to take before a value is worked out and to put beside it."""
        return content_of(tensor)

    def get(self, tensor: Tensor, key: Hashable) -> T | None:
        """What was put, if it still holds."""
        with self._lock:
            entry = self._entries.get((id(tensor), key))
        if entry is None or entry.tensor() is not tensor:
            return None
        if entry.version != _version(tensor) or entry.address != tensor.data_ptr():
            return None
        promised = is_assumed_constant(tensor) and not tensor.is_inference()
        if entry.content is not None and not promised and entry.content != content_of(tensor):
            return None
        return entry.value

    def put(self, tensor: Tensor, key: Hashable, content: Hashable, value: T) -> None:
        """Remember ``value`` until the tensor goes or changes."""
        place = (id(tensor), key)
        gone = weakref.ref(tensor, lambda _: self._entries.pop(place, None))
        entry = _Entry(gone, _version(tensor), tensor.data_ptr(), content, value)
        with self._lock:
            self._entries[place] = entry


def _version(tensor: Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version
