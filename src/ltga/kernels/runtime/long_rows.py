"""Rows with more edges than one program should take, cut into parts: planned on the device, without waiting for it."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ltga.kernels.runtime.memo import TensorMemo

SPLIT = 1024  # edges of a part


class LongRows(NamedTuple):
    """Parts of long rows, row by row; whole rows have none."""

    part_row: Tensor  # [count] the row of every part; the number of rows where there is no such part
    first_part: Tensor  # [rows + 1]
    parts: int  # as many parts as a graph with that many edges can have
    split: int


_known: TensorMemo[LongRows] = TensorMemo()


def long_rows(ptr: Tensor, edges: int, split: int | None = None) -> LongRows:
    """The parts of rows with more than ``split`` edges (:data:`SPLIT`); remembered while ``ptr`` lives.

    >>> plan = long_rows(torch.tensor([0, 1, 6]), 6, split=2)
    >>> plan.part_row.tolist(), plan.first_part.tolist()
    ([1, 1, 1, 2, 2, 2], [0, 0, 3])
    """
    split = SPLIT if split is None else split
    # A long row has at least split + 1 edges and at most one part that is not full.
    count = 0 if edges <= split else edges // split + edges // (split + 1) + 1
    watched = torch.compiler.is_compiling()
    known = None if watched else _known.get(ptr, (edges, split))
    if known is None:
        length = ptr.diff()
        parts = torch.where(length > split, (length + split - 1) // split, 0)
        first = F.pad(parts.cumsum(0), (1, 0))
        numbers = torch.arange(count, device=ptr.device)
        known = LongRows(torch.searchsorted(first[1:].contiguous(), numbers, right=True), first, count, split)
        if not watched:
            _known.put(ptr, (edges, split), None, known)
    return known
