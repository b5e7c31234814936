"""Reductions over rows: one dimension of a dense tensor, or the segments of a ragged one.

Every normaliser is written once against this small interface, so the dense and the ragged form
cannot drift apart, and nothing is ever padded to the longest segment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ltga.errors import InputError


class Rows(Protocol):
    """What a normaliser needs to know about how elements group into rows."""

    def sum(self, values: Tensor) -> Tensor:
        """Sum of each row, repeated for every element of the row."""

    def max(self, values: Tensor) -> Tensor:
        """Maximum of each row, repeated for every element; ties share the gradient evenly."""

    def sorted_prefixes(self, values: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(values, 1-based rank from the top, sum of the values down to it, sum of their squares).

        In any order within a row, the same for all four.
        """


@dataclass(frozen=True)
class DenseRows:
    """Rows along one dimension of a dense tensor."""

    dim: int

    def sum(self, values: Tensor) -> Tensor:
        return values.sum(self.dim, keepdim=True).expand_as(values)

    def max(self, values: Tensor) -> Tensor:
        if values.shape[self.dim] == 0:
            return values
        return values.amax(self.dim, keepdim=True).expand_as(values)

    def sorted_prefixes(self, values: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        ordered = values.sort(self.dim, descending=True).values
        rank = torch.ones_like(ordered).cumsum(self.dim)
        return ordered, rank, ordered.cumsum(self.dim), (ordered * ordered).cumsum(self.dim)


@dataclass(frozen=True)
class RaggedRows:
    """Segments of the first dimension, given by the segment number of each element."""

    index: Tensor  # [E]
    count: int

    @classmethod
    def make(cls, values: Tensor, index: Tensor | None, ptr: Tensor | None, num_segments: int | None) -> RaggedRows:
        """Validate ``index`` or ``ptr`` (exactly one) against ``values`` of shape [E] or [E, H]."""
        if values.dim() not in (1, 2):
            raise InputError(f"z: expected shape [E] or [E, H], got {list(values.shape)}")
        if (index is None) == (ptr is None):
            raise InputError("index, ptr: pass exactly one of them to say which segment each element is in")
        if ptr is not None:
            _integers(ptr, "ptr")
            sizes = ptr[1:] - ptr[:-1]
            if not torch.compiler.is_compiling() and (
                ptr.numel() == 0 or int(ptr[0]) != 0 or int(ptr[-1]) != len(values) or bool((sizes < 0).any())
            ):
                raise InputError(f"ptr: expected to rise from 0 to {len(values)}; got {ptr.tolist()[:8]}...")
            if num_segments is not None and num_segments != len(sizes):
                raise InputError(f"num_segments: is {num_segments}, but ptr has {len(sizes)} segments")
            index = torch.repeat_interleave(torch.arange(len(sizes), device=ptr.device), sizes.long())
            return cls(index, len(sizes))
        assert index is not None
        _integers(index, "index")
        if index.size(0) != values.size(0):
            raise InputError(f"index: has {len(index)} entries for {len(values)} elements of z")
        index = index.long()  # scatter and gather take no other
        if (torch.compiler.is_compiling() or index.is_meta) and num_segments is not None:
            return cls(index, num_segments)
        low, high = (int(index.min()), int(index.max())) if len(index) else (0, -1)
        count = high + 1 if num_segments is None else num_segments
        if low < 0 or high >= count:
            raise InputError(f"index: values must lie in [0, {count}), found {low if low < 0 else high}")
        return cls(index, count)

    def _reduce(self, values: Tensor, how: str) -> Tensor:
        shape = (self.count, *values.shape[1:])
        where = self.index.view(-1, *[1] * (values.dim() - 1)).expand_as(values)
        # Not zero for a maximum: torch would hand a share of the gradient to a start that equals the result.
        start = values.new_full(shape, 0.0 if how == "sum" else -torch.inf)
        return start.scatter_reduce(0, where, values, how, include_self=how == "sum").index_select(0, self.index)

    def sum(self, values: Tensor) -> Tensor:
        return self._reduce(values, "sum")

    def max(self, values: Tensor) -> Tensor:
        return self._reduce(values, "amax")

    def sorted_prefixes(self, values: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        flat = values if values.dim() == 2 else values.unsqueeze(1)
        order = flat.sort(dim=0, descending=True, stable=True).indices
        segment = self.index[order]
        order = order.gather(0, segment.sort(dim=0, stable=True).indices)
        ordered = flat.gather(0, order)
        sizes = torch.bincount(self.index, minlength=self.count)
        first = (sizes.cumsum(0) - sizes)[self.index.sort(stable=True).values]  # start of each element's segment
        rank = (torch.arange(len(flat), device=flat.device) - first + 1).unsqueeze(1).expand_as(flat)

        def running(terms: Tensor) -> Tensor:
            total = torch.cat([terms.new_zeros(1, terms.shape[1]), terms.cumsum(0)])
            return total[1:] - total[first]

        # A running sum over everything and a difference would lose small rows behind large ones in
        # single precision; callers pass float64 values clamped to the few units that matter.
        back = torch.empty_like(order).scatter_(
            0, order, torch.arange(len(flat), device=flat.device).unsqueeze(1).expand_as(order)
        )

        def beside_elements(part: Tensor) -> Tensor:
            return part.gather(0, back).view_as(values)

        return (
            values,
            beside_elements(rank.to(flat.dtype)),
            beside_elements(running(ordered)),
            beside_elements(running(ordered * ordered)),
        )


def _integers(values: Tensor, name: str) -> None:
    if values.dim() != 1 or values.dtype not in (torch.int64, torch.int32):
        raise InputError(f"{name}: expected a 1-D integer tensor, got {values.dtype} of shape {list(values.shape)}")
