"""What the entropic index does from epoch to epoch: per layer and head, over edges where each has its own."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from ltga.nn.index import EdgeIndex
from ltga.nn.network import LTGA

LayerIndex = dict[str, list[float]]  # "mean" per head and, for an edge gate, "std" over its edges


class IndexWatch:
    """Reads every layer's q; inside ``with`` it also follows edge gates through evaluation passes.

    >>> with IndexWatch(LTGA(4, 2, heads=2, index="head")) as watch:
    ...     watch.read()
    [{'mean': [1.0, 1.0]}, {'mean': [1.0, 1.0]}]
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._seen: dict[int, LayerIndex] = {}
        self._handles: list[Any] = []

    def __enter__(self) -> IndexWatch:
        for module in self._model.modules():
            if isinstance(module, EdgeIndex):
                self._handles.append(module.register_forward_hook(self._note))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def read(self) -> list[LayerIndex]:
        """One entry per layer; none for a network without an index."""
        if not isinstance(self._model, LTGA):
            return []
        layers = zip(self._model.convs, self._model.index_values())
        return [
            self._seen.get(id(conv.index), {}) if values is None else {"mean": values.tolist()}
            for conv, values in layers
        ]

    def _note(self, module: nn.Module, inputs: Any, q: Tensor) -> None:
        if module.training:
            return
        std, mean = torch.std_mean(q.detach().double(), dim=0, correction=0)
        self._seen[id(module)] = {"mean": mean.tolist(), "std": std.tolist()}
