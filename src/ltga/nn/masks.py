"""Where dropout takes its random numbers from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ltga.kernels import Part, SparseFeatures, compact_form, counter_dropout, torch_dropout
from ltga.kernels.operators.bernoulli import drop_stored


@dataclass(frozen=True, eq=False)
class Draws:
    """Random numbers of one dropout: torch's, or a function of a key and the position alone.

    Args:
        key: what the mask depends on; ``None`` for torch's generator.
        part: which rows of a larger array the values are, if they are to get the mask that they would get there.
    """

    key: tuple[int, ...] | None = None
    part: Part | None = None

    def drop(self, x: Tensor, p: float) -> Tensor:
        """``x`` with each element zeroed with probability ``p`` and the rest scaled by 1/(1-p)."""
        if self.key is not None:
            return counter_dropout(x, p, self.key, self.part)
        return torch_dropout(x, p, part=self.part)

    def mask(self, edges: int, heads: int, p: float, dtype: torch.dtype, device: torch.device) -> Tensor:
        """0 or 1/(1-p) per edge and head, drawn exactly as dropout on such weights would."""
        return self.drop(torch.ones(edges, heads, dtype=dtype, device=device), p)


def drop_input(x: Tensor, p: float, training: bool) -> Tensor | SparseFeatures:
    """``torch_dropout(x, p, training)`` with the same mask, but sparse where ``x`` came before and is mostly zeros."""
    if not training or p == 0.0:
        return x
    compact = compact_form(x, search=False) if x.is_contiguous() else None
    if not isinstance(compact, SparseFeatures):
        return torch_dropout(x, p)
    return compact.with_values(drop_stored(compact, p))
