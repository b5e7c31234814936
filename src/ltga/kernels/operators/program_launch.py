"""Starting GPU programs: over whole rows and over parts of long ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from ltga.kernels.runtime.long_rows import LongRows
from ltga.kernels.triton.tiles import OPTIONS

Arguments = dict[str, Any]


def whole_rows(ptr: Tensor, rows: int, plan: LongRows) -> Arguments:
    """A program for each row that is not long."""
    return {"ptr": ptr, "part_row": None, "first_part": None, "rows": rows, "SPLIT": plan.split}


def row_parts(ptr: Tensor, rows: int, plan: LongRows) -> Arguments:
    """A program for each part of a long row."""
    return whole_rows(ptr, rows, plan) | {"part_row": plan.part_row, "first_part": plan.first_part}


def launch(kernel: Any, grid: tuple[int, int], arguments: Arguments, by_heads: bool = True) -> None:
    """Start programs, so many times blocks of so many heads (or as many); a kernel gets what it names."""
    blocks = -(-grid[1] // arguments["HB"]) if by_heads else grid[1]
    if grid[0] == 0 or blocks == 0:
        return
    own = {name: arguments[name] for name in kernel.arg_names}
    if _written_down is not None:
        _written_down.append((kernel, own))
        return
    _start(kernel, (grid[0], blocks), own)


def _start(kernel: Any, grid: tuple[int, int], own: Arguments) -> None:
    with torch.cuda.device_of(own["ptr"]):
        kernel[grid](**own, **OPTIONS["cuda" if torch.version.cuda else "hip"])


_written_down: list[tuple[Any, Arguments]] | None = None


@contextmanager
def written_down() -> Iterator[list[tuple[Any, Arguments]]]:
    """Write down which kernels would be started with what, and start none."""
    global _written_down
    _written_down = []
    try:
        yield _written_down
    finally:
        _written_down = None
