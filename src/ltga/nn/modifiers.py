"""Controls that change the logits instead of the index: an edge gate added or multiplied, or a learned temperature."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ltga.errors import InputError
from ltga.nn.edge_mlp import EdgeMLP
from ltga.nn.entitlement import know

Modifiers = tuple[Tensor | None, Tensor | None]


class EdgeBias(nn.Module):
    """Capacity-matched control: the edge MLP added to the logits (``[E, H]``), q left at 1."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.gate = EdgeMLP(channels, heads)

    def reset_parameters(self) -> None:
        self.gate.reset_parameters()

    def forward(self, source: Tensor, target: Tensor, edge_index: Tensor) -> Modifiers:
        return self.modifiers(self.gate(source, target, edge_index))

    def modifiers(self, gate: Tensor) -> Modifiers:
        """(factor, summand) of the logits from the MLP's output ``[E, H]``."""
        return None, gate


class EdgeScale(EdgeBias):
    """Capacity-matched control: logits times exp of the edge MLP (``[E, H]``), q left at 1."""

    def modifiers(self, gate: Tensor) -> Modifiers:
        return torch.exp(gate), None


class Temperature(nn.Module):
    """Capacity-matched control: logits times exp of one number per head, q left at 1."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.raw = nn.Parameter(torch.zeros(heads))

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.raw)

    def forward(self, source: Tensor, target: Tensor, edge_index: Tensor) -> Modifiers:
        return torch.exp(self.raw).unsqueeze(0), None


def make_modifier(modifier: str | None, channels: int, heads: int) -> nn.Module | None:
    """The logit modifier for what a caller may pass as ``modifier``."""
    if modifier is None:
        return None
    if modifier == "edge-bias":
        return EdgeBias(channels, heads)
    if modifier == "edge-scale":
        return EdgeScale(channels, heads)
    if modifier == "temperature":
        return Temperature(heads)
    raise InputError(f"modifier: expected 'edge-bias', 'edge-scale', 'temperature' or None, got {modifier!r}")


know(EdgeBias, EdgeScale)
