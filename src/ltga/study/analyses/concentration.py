"""How unequally attention is spread: Lorenz curves and Gini coefficients of the weights.

Over all edges of a graph the weights are unequal even if every node spreads its attention evenly,
because neighbourhoods differ in size; the summary therefore gives, beside the pooled Gini of the
paper, what even attention would score on the same graph, and the mean Gini within neighbourhoods.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from torch import Tensor

from ltga.data import Dataset
from ltga.errors import InputError
from ltga.nn.attention_statistics import attention_statistics
from ltga.study.analyses.inputs import attention_of, task_of
from ltga.train.finished import Run

POINTS = 201


@dataclass(frozen=True, eq=False)
class LorenzCurve:
    """Share of the total weight (``share``) that the lightest ``population`` of edges holds, both ``[P]``."""

    population: np.ndarray
    share: np.ndarray
    gini: float


def gini(weights: np.ndarray) -> float:
    r"""Gini coefficient :math:`\sum_{ij} |w_i - w_j| / (2 n \sum_i w_i)`: 0 if all weights are equal.

    NaN without weights, or if all are zero.

    >>> round(gini(np.array([0.0, 0.0, 0.0, 1.0])), 2)
    0.75
    """
    flat = _checked(weights)
    return float(_segment_gini(flat, np.zeros(len(flat)))[0]) if len(flat) else float("nan")


def lorenz_curve(weights: np.ndarray, points: int = POINTS) -> LorenzCurve:
    """The Lorenz curve of non-negative weights of any shape, at ``points`` equidistant places.

    The curve is piecewise linear, so nothing but its resolution is lost. NaN where :func:`gini` is.

    >>> lorenz_curve(np.array([1.0, 3.0]), points=3).share.tolist()
    [0.0, 0.25, 1.0]
    """
    weights = np.sort(_checked(weights))
    total = weights.sum()
    population = np.linspace(0.0, 1.0, points)
    if not total > 0:
        return LorenzCurve(population, np.full(points, np.nan), float("nan"))
    held = np.concatenate([[0.0], weights.cumsum()]) / total
    share = np.interp(population, np.linspace(0.0, 1.0, len(held)), held)
    return LorenzCurve(population, share, gini(weights))


def lorenz_curves(run: Run, dataset: Dataset, self_loops: bool = True) -> dict[tuple[int, str], LorenzCurve]:
    """Lorenz curves of a run's attention by (layer, head), both from 1; head ``"all"`` pools them.

    Args:
        run: a finished run of an attention method.
        dataset: the graph it was made on.
        self_loops: whether the self-loops that attention adds count as edges.

    >>> from ltga.data import csbm
    >>> from ltga.train import fit
    >>> graph = csbm(num_nodes=60)
    >>> curves = lorenz_curves(fit(graph, "gat", protocol={"epochs": 1, "heads": 2}), graph)
    >>> list(curves)
    [(1, '1'), (1, '2'), (1, 'all'), (2, '1'), (2, '2'), (2, 'all')]
    """
    curves = {}
    for layer, (edges, weights) in enumerate(attention_of(run, task_of(run, dataset)), start=1):
        counted = (weights if self_loops else weights[edges[0] != edges[1]]).numpy()
        for head, column in enumerate(counted.T, start=1):
            curves[layer, str(head)] = lorenz_curve(column)
        curves[layer, "all"] = lorenz_curve(counted)
    return curves


def concentration(run: Run, dataset: Dataset) -> pd.DataFrame:
    """:func:`describe_concentration` for every ``layer`` of a run (from 1)."""
    task = task_of(run, dataset)
    layers = attention_of(run, task)
    frames = [describe_concentration(edges, weights, len(task.y)) for edges, weights in layers]
    return pd.concat(frames, keys=range(1, len(frames) + 1), names=["layer", None]).reset_index("layer")


def describe_concentration(edge_index: Tensor, weights: Tensor, num_nodes: int) -> pd.DataFrame:
    """How concentrated the attention of every head of a layer is.

    Args:
        edge_index: ``[2, E]``, self-loops included.
        weights: ``[E, H]``, summing to 1 over each node's edges.
        num_nodes: number of nodes N.

    Returns:
        A row per ``head`` (from 1) and one for ``"all"``, where ``gini``, ``gini_even`` and
        ``gini_neighbours`` pool the heads and the rest is their mean; NaN where there are no such edges:

        ===================  ================================================================================
        ``gini``             over all edges (the paper's)
        ``gini_even``        the same if every node spread its attention evenly: what the graph alone gives
        ``gini_neighbours``  over all edges but self-loops
        ``gini_within``      mean Gini within neighbourhoods of at least two edges
        ``loop_weight``      mean weight of a self-loop
        and                  the four of :func:`~ltga.nn.attention_statistics.attention_statistics`
        ===================  ================================================================================

    >>> import torch
    >>> edges = torch.tensor([[1, 2, 0, 1], [0, 0, 0, 1]])  # node 0 attends to 1, 2 and itself, node 1 to itself
    >>> frame = describe_concentration(edges, torch.tensor([[0.0], [0.5], [0.5], [1.0]]), num_nodes=3)
    >>> frame.iloc[0][["gini", "gini_even", "gini_within", "loop_weight"]].astype(float).round(3).tolist()
    [0.375, 0.25, 0.333, 0.75]
    """
    target, loop = edge_index[1].numpy(), (edge_index[0] == edge_index[1]).numpy()
    size = np.bincount(target, minlength=num_nodes)[target]
    heads = weights.numpy().T  # [H, E]
    per_head = {
        "gini": [gini(head) for head in heads],
        "gini_even": gini(1.0 / size),
        "gini_neighbours": [gini(head[~loop]) for head in heads],
        "gini_within": [_mean(_segment_gini(head[size > 1], target[size > 1])) for head in heads],
        "loop_weight": [_mean(head[loop]) for head in heads],
        **{name: values.numpy() for name, values in attention_statistics(weights, edge_index[1], num_nodes).items()},
    }
    frame = pd.DataFrame(per_head)
    pooled = {**frame.mean(skipna=False), "gini": gini(heads), "gini_neighbours": gini(heads[:, ~loop])}
    names = [*map(str, range(1, len(heads) + 1)), "all"]
    frame = pd.concat([frame, pd.DataFrame([pooled])], ignore_index=True)
    frame.insert(0, "head", names)
    return frame


def _segment_gini(weights: np.ndarray, segment: np.ndarray) -> np.ndarray:
    r"""Gini within each segment that occurs: :math:`2 \sum_r r\, w_{(r)} / (n \sum w) - (n + 1) / n`, ranks r."""
    _, number, count = np.unique(segment, return_inverse=True, return_counts=True)
    order = np.lexsort((weights, number))
    rank = np.arange(1, len(order) + 1) - (count.cumsum() - count)[number[order]]
    ranked = np.bincount(number[order], rank * weights[order], len(count))
    total = np.bincount(number, weights, len(count))
    mean_rank = np.divide(ranked, total, out=np.full(len(count), np.nan), where=total > 0)
    return (2 * mean_rank - count - 1) / count


def _checked(weights: np.ndarray) -> np.ndarray:
    flat = np.asarray(weights, dtype=np.float64).reshape(-1)
    if not (flat >= 0).all():
        raise InputError("weights: expected non-negative numbers, got a negative one or NaN")
    return flat


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")
