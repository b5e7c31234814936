"""What pruning is worth: a trained model with its index or its support changed at inference, weights untouched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from ltga.data import Dataset
from ltga.errors import InputError
from ltga.nn.index import EntropicIndex, FrozenIndex
from ltga.nn.modifiers import Modifiers
from ltga.nn.network import LTGA
from ltga.study.analyses.inputs import indexed_model, task_of
from ltga.train.finished import Run
from ltga.train.loop import Task
from ltga.train.metrics import classification_metrics

_NEVER = -1e6  # a logit shift after which softmax is exactly zero; finite, as (q - 1) times infinity is not a number


class AtLeastSoftmax(EntropicIndex):
    """Another index, never below 1: no heavy tails."""

    def __init__(self, inner: EntropicIndex) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, source: Tensor, target: Tensor, edge_index: Tensor) -> Tensor:
        q: Tensor = self.inner(source, target, edge_index)
        return q.clamp(min=1.0)


class Without(nn.Module):
    """A logit modifier that takes given edges ``[E, H]`` out of the neighbourhoods, after another modifier."""

    def __init__(self, pruned: Tensor, inner: nn.Module | None) -> None:
        super().__init__()
        self.shift = torch.where(pruned, _NEVER, 0.0)
        self.inner = inner

    def forward(self, source: Tensor, target: Tensor, edge_index: Tensor) -> Modifiers:
        scale, shift = (None, None) if self.inner is None else self.inner(source, target, edge_index)
        own = self.shift.to(source.dtype)
        return scale, own if shift is None else shift + own


@contextmanager
def changed_layers(model: LTGA, change: Callable[[int, Any], None]) -> Iterator[None]:
    """Let ``change(layer, conv)`` set ``conv.index`` and ``conv.modifier``; both are put back afterwards."""
    before = [(conv.index, conv.modifier) for conv in model.convs]
    try:
        for layer, conv in enumerate(model.convs):
            change(layer, conv)
        yield
    finally:
        for conv, (index, modifier) in zip(model.convs, before):
            conv.index, conv.modifier = index, modifier


def restored(model: LTGA) -> AbstractContextManager[None]:
    """Every edge back: q = 1 in all layers.

    >>> model = LTGA(4, 2, heads=2, index=2.0)
    >>> with restored(model):
    ...     bool((model.attend(torch.randn(3, 4), torch.tensor([[0, 1], [2, 2]]))[0].weights > 0).all())
    True
    >>> model.index_values()
    [tensor([2.]), tensor([2.])]
    """

    def change(_: int, conv: Any) -> None:
        conv.index = FrozenIndex(1.0)

    return changed_layers(model, change)


def clamped(model: LTGA) -> AbstractContextManager[None]:
    """No heavy tails: q >= 1 in all layers."""

    def change(_: int, conv: Any) -> None:
        conv.index = AtLeastSoftmax(conv.index)

    return changed_layers(model, change)


def softmax_without(model: LTGA, pruned: Sequence[Tensor]) -> AbstractContextManager[None]:
    """Softmax over the edges that are not ``pruned``: per layer ``[E, H]`` boolean, in the order of ``attend``."""

    def change(layer: int, conv: Any) -> None:
        conv.index = FrozenIndex(1.0)
        conv.modifier = Without(pruned[layer], conv.modifier)

    return changed_layers(model, change)


def random_pruning(
    pruned: np.ndarray, target: np.ndarray, eligible: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """As many edges of every neighbourhood and head as ``pruned`` has there, drawn at random.

    Args:
        pruned: ``[E, H]`` boolean.
        target: ``[E]``: the neighbourhood of each edge.
        eligible: ``[E]`` boolean: edges among which to draw; the others stay as they are.

    >>> pruned = np.array([[True], [False], [False], [False]])
    >>> drawn = random_pruning(pruned, np.array([0, 0, 0, 1]), np.ones(4, bool), np.random.default_rng(0))
    >>> int(drawn[:3].sum()), int(drawn[3:].sum())
    (1, 0)
    """
    drawn = pruned.copy()
    edges = np.flatnonzero(eligible)
    if not len(edges):
        return drawn
    group = target[edges]
    first = np.concatenate([[0], np.bincount(group).cumsum()[:-1]])  # where each neighbourhood starts when sorted
    for head in range(pruned.shape[1]):
        wanted = np.bincount(group, pruned[edges, head])
        order = np.lexsort((rng.random(len(edges)), group))
        place = np.arange(len(edges)) - first[group[order]]
        drawn[edges[order], head] = place < wanted[group[order]]
    return drawn


@torch.no_grad()
def counterfactuals(run: Run, dataset: Dataset, draws: int = 5, seed: int = 0) -> pd.DataFrame:
    """Test metrics of a trained model under changes at inference.

    =====================  ===============================================================================
    ``learned``            the model as it is
    ``restore``            q = 1: softmax over all edges
    ``clamp``              q >= 1: no heavy tails
    ``selected``           softmax over the edges the model keeps: its selection without its weights
    ``random``             softmax after pruning as many edges of each neighbourhood and head at random
    ``random-neighbours``  the same, but self-loops are pruned where the model prunes them, and only there
    =====================  ===============================================================================

    ``selected`` and the two random ones differ only in *which* edges are pruned; ``random`` also takes
    away a node's view of itself, which the model may never do. How many edges to prune is read off the
    untouched model, layer by layer.

    Args:
        run: a finished run of a method with an entropic index.
        dataset: the graph it was made on.
        draws, seed: of random pruning.

    Returns:
        A row per change and ``draw`` (0 if nothing is random): the metrics on the test nodes,
        ``accuracy_change`` against ``learned``, ``changed`` (share of test predictions that differ from
        it) and ``zero_fraction`` over all layers, heads and edges, self-loops included.

    >>> from ltga.data import csbm
    >>> from ltga.train import fit
    >>> graph = csbm(num_nodes=60)
    >>> run = fit(graph, "frozen-q2.0", protocol={"epochs": 2, "hidden_channels": 4})
    >>> frame = counterfactuals(run, graph, draws=1)
    >>> dict(zip(frame["counterfactual"], frame["zero_fraction"] > 0))["restore"]
    False
    """
    if draws < 1:
        raise InputError(f"draws: expected at least 1, got {draws}")
    model, task = indexed_model(run), task_of(run, dataset)
    if not len(task.test):
        raise InputError(f"dataset: split {run.typed.config.split} of {dataset.name!r} has no test nodes")
    layers = model.attend(task.x, task.edge_index, task.edge_attr)
    pruned = [(layer.weights == 0).numpy() for layer in layers]
    source, target = layers[0].edge_index.numpy()
    rng = np.random.default_rng(seed)

    def at_random(eligible: np.ndarray) -> AbstractContextManager[None]:
        masks = [torch.from_numpy(random_pruning(layer, target, eligible, rng)) for layer in pruned]
        return softmax_without(model, masks)

    rows: list[dict[str, Any]] = []

    def note(name: str, draw: int, change: AbstractContextManager[None]) -> None:
        with change:
            log_probs = task.logits(model).log_softmax(-1)[task.test]
            # Further draws prune as many edges as the first one.
            zero_fraction = rows[-1]["zero_fraction"] if draw else _zero_fraction(model, task)
        predicted = log_probs.argmax(1)
        metrics = classification_metrics(log_probs, task.y[task.test])
        as_learned = rows[0]["predicted"] if rows else predicted
        extra = {"changed": float((predicted != as_learned).double().mean()), "zero_fraction": zero_fraction}
        rows.append({"counterfactual": name, "draw": draw, **metrics, **extra, "predicted": predicted})

    note("learned", 0, nullcontext())
    note("restore", 0, restored(model))
    note("clamp", 0, clamped(model))
    note("selected", 0, softmax_without(model, [torch.from_numpy(layer) for layer in pruned]))
    for draw in range(draws):
        note("random", draw, at_random(np.ones(len(target), dtype=bool)))
    for draw in range(draws):
        note("random-neighbours", draw, at_random(source != target))
    frame = pd.DataFrame(rows).drop(columns="predicted")
    frame["accuracy_change"] = frame["accuracy"] - frame["accuracy"].iloc[0]
    return frame


def _zero_fraction(model: LTGA, task: Task) -> float:
    layers = model.attend(task.x, task.edge_index, task.edge_attr)
    return float(torch.stack([(layer.weights == 0).double().mean() for layer in layers]).mean())
