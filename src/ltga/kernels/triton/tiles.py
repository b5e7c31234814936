"""How much a program takes at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

TILE = 1024  # elements of edges x heads x channels in registers
WIDTH = 256  # channels of all heads of a block together
STATISTICS = 256  # elements of edges x heads where there are no channels
WARPS = 4
# Left to itself, NVIDIA's assembler spills a few registers to have one more block in flight.
OPTIONS: dict[str, dict[str, int]] = {"cuda": {"num_warps": WARPS, "maxnreg": 192}, "hip": {"num_warps": WARPS}}
PROGRAMS = 4096  # that share the rows where partial sums are kept for each


class Tiles(NamedTuple):
    """Edges, edges without channels, heads and channels of a block, and the type of sums; as kernels name them."""

    BE: int
    SE: int
    HB: int
    CP: int
    ACC: Any

    @property
    def without_statistics(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if name != "SE"}


def tiles(heads: int, channels: int, dtype: torch.dtype) -> Tiles:
    """Blocks for features ``[N, heads, channels]``.

    >>> tiles(8, 64, torch.float32)[:4]
    (4, 64, 4, 64)
    """
    wide = triton.next_power_of_2(max(channels, 1))
    block = min(triton.next_power_of_2(max(heads, 1)), max(WIDTH // wide, 1))
    acc = tl.float64 if dtype == torch.float64 else tl.float32
    room = TILE // 2 if dtype == torch.float64 else TILE
    return Tiles(max(min(room // (block * wide), 64), 1), max(STATISTICS // block, 16), block, wide, acc)
