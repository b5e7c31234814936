"""What the entropic index does from epoch to epoch: per layer and head, over edges where each has its own."""

from __future__ import annotations

from types import TracebackType

import torch
from torch import Tensor

from ltga.nn.index import GatedIndex
from ltga.nn.interface import Network

LayerIndex = dict[str, list[float]]  # "mean" per head and, for an edge gate, "std" over its edges


class IndexWatch:
    """Reads every layer's q; inside ``with`` it also follows edge gates through evaluation passes.

    >>> from ltga.nn import LTGA
    >>> with IndexWatch(LTGA(4, 2, heads=2, index="head")) as watch:
    ...     watch.read()
    [{'mean': [1.0, 1.0]}, {'mean': [1.0, 1.0]}]
    """

    def __init__(self, model: Network) -> None:
        self._model = model
        self._seen: dict[int, list[tuple[int, Tensor, Tensor]]] = {}  # edges, mean and std of every pass

    def __enter__(self) -> IndexWatch:
        for gate in self._model.edge_gates():
            gate.listener = self._note
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for gate in self._model.edge_gates():
            gate.listener = None

    def read(self) -> list[LayerIndex]:
        """One entry per layer, over the passes since the last reading; none for a network without an index."""
        layers = zip(self._model.layer_indices(), self._model.index_values())
        found = [
            _summary(self._seen.get(id(index), [])) if values is None else {"mean": values.tolist()}
            for index, values in layers
        ]
        self._seen.clear()
        return found

    def _note(self, gate: GatedIndex, q: Tensor) -> None:
        if gate.training:
            return
        std, mean = torch.std_mean(q.detach().double(), dim=0, correction=0)
        self._seen.setdefault(id(gate), []).append((len(q), mean, std))


def _summary(passes: list[tuple[int, Tensor, Tensor]]) -> LayerIndex:
    """Mean and standard deviation over all edges, from those of blocks of edges."""
    if not passes:
        return {}
    edges = sum(count for count, _, _ in passes)
    mean = torch.stack([count / edges * part for count, part, _ in passes]).sum(0)
    if len(passes) == 1:
        std = passes[0][2]
    else:
        spread = [count / edges * (std.square() + (part - mean).square()) for count, part, std in passes]
        std = torch.stack(spread).sum(0).sqrt()
    return {"mean": mean.tolist(), "std": std.tolist()}
