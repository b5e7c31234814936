"""A copy of the parameters at the best epoch so far."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class BestEpoch:
    """Which epoch was the best, by what merit, and what the parameters were then."""

    def __init__(self, model: nn.Module) -> None:
        self._live = {name: value for name, value in model.state_dict().items() if isinstance(value, Tensor)}
        self.kept = {name: torch.empty_like(value) for name, value in self._live.items()}
        self._copying = False
        self.merit = (-math.inf, -math.inf)
        self.epoch = 0

    def offer(self, merit: tuple[float, float], epoch: int) -> None:
        if merit > self.merit:
            self._copying = True
            self.merit, self.epoch = merit, epoch
            for name, value in self._live.items():
                self.kept[name].copy_(value)
            self._copying = False

    @torch.no_grad()
    def restore(self) -> None:
        """Give the model the parameters of the best epoch."""
        if self._copying:  # interrupted halfway: the parameters themselves are still those of the best epoch
            return
        for name, value in self._live.items():
            value.copy_(self.kept[name])
