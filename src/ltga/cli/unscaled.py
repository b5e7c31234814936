"""A warning about features of very different sizes, which spoil training and are easily mended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ltga.data import GraphCollection, GraphFolder

UNSCALED = 20.0  # standard deviation from which attention scores grow out of hand; enzymes has 45 and loses by it
LOOKED_AT = 10_000  # nodes of a graph on disk


def warnings_about(data: Any) -> list[str]:
    """What to tell somebody who is about to train on a graph, a collection of graphs or links."""
    x = _features(data)
    if x is None or len(x) < 2 or x.size(1) == 0:
        return []
    spread = x.std(0)
    largest = int(spread.argmax())
    if float(spread[largest]) < UNSCALED:
        return []
    names: Sequence[str] | None = getattr(data, "feature_names", None)
    name = f"{names[largest]!r}" if names is not None else f"number {largest}"
    facts = getattr(data, "facts", None)
    advice = f"use {data.name},scale=1" if facts is not None and facts.reader == "tu" else "scale the features"
    return [f"warning: feature {name} has a standard deviation of {float(spread[largest]):,.0f}; {advice}"]


def _features(data: Any) -> Tensor | None:
    """``[N, F]``; of a graph on disk a sample of its rows."""
    if isinstance(data, GraphFolder):
        nodes = torch.linspace(0, data.num_nodes - 1, min(LOOKED_AT, data.num_nodes), dtype=torch.float64).long()
        rows: Tensor = data.feature_rows[nodes]
        return rows
    if isinstance(data, GraphCollection):
        return torch.cat([graph.x for graph in data.graphs]).float()
    x = getattr(getattr(data, "data", None), "x", None)
    return x.float() if isinstance(x, Tensor) else None
