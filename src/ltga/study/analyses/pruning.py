"""Pruning validity: what the edges with a weight of exactly zero have in common, and whether they are noise.

Self-loops are left aside throughout: their ends agree by definition. Layers and heads are counted from
1; head ``"all"`` stands for the edges that every head of a layer prunes. What pruning is worth to the
model is asked in :mod:`ltga.study.analyses.counterfactual`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ltga.data import Dataset
from ltga.errors import InputError
from ltga.study.analyses.clusters import group_difference
from ltga.study.analyses.inputs import attention_of, task_of
from ltga.study.analyses.similarity import edge_cosine
from ltga.train.finished import Run

QUANTITIES = ("label_agreement", "feature_cosine", "source_degree", "target_degree")


def pruned_against_kept(run: Run, dataset: Dataset, resamples: int = 1000, seed: int = 0) -> pd.DataFrame:
    """Label agreement, feature similarity and degrees of pruned against kept edges.

    ===================  ================================================================
    ``label_agreement``  share of edges within one class, where both ends are training nodes
    ``feature_cosine``   cosine of the ends' input features, where neither is zero
    ``source_degree``    incoming edges of the neighbour, self-loops aside
    ``target_degree``    incoming edges of the attending node
    ===================  ================================================================

    Only training labels enter. The 95 % interval comes from a bootstrap over neighbourhoods, see
    :func:`~ltga.study.analyses.clusters.group_difference`; NaN where too few edges are known.

    Args:
        run: a finished run of an attention method.
        dataset: the graph it was made on.
        resamples, seed: of the bootstrap.

    Returns:
        A row per layer, head and quantity: ``pruned``, ``kept`` and ``every`` (means), ``difference``
        (pruned minus kept), ``low``, ``high``, ``pruned_edges``, ``kept_edges`` (with a known value).

    >>> from ltga.data import csbm
    >>> from ltga.train import fit
    >>> graph = csbm(num_nodes=60)
    >>> run = fit(graph, "frozen-q2.0", protocol={"epochs": 2, "hidden_channels": 4, "heads": 2})
    >>> frame = pruned_against_kept(run, graph, resamples=10)
    >>> len(frame), frame["head"].unique().tolist()  # 2 layers x (2 heads and all) x 4 quantities
    (24, ['1', '2', 'all'])
    """
    layers = [_without_loops(*layer) for layer in attention_of(run, task_of(run, dataset))]
    train, _, _ = dataset.split(run.typed.config.split)
    edges = layers[0][0]  # the same in all layers
    values = _edge_values(dataset.data.x, dataset.data.y, edges, train)
    groups = [_groups(weights) for _, weights in layers]
    pruned = np.concatenate([group for group, _ in groups], axis=1)  # [E, layers x (heads + 1)]
    compared = group_difference(values, pruned, edges[1].numpy(), resamples, seed=seed)
    known = compared.inside_count + compared.outside_count
    total = np.where(np.isnan(values), 0.0, values).sum(axis=0)[:, None]
    columns = {
        "pruned": compared.inside,
        "kept": compared.outside,
        "every": np.divide(total, known, out=np.full(known.shape, np.nan), where=known > 0),
        "difference": compared.difference,
        "low": compared.low,
        "high": compared.high,
        "pruned_edges": compared.inside_count,
        "kept_edges": compared.outside_count,
    }
    named = [(number, head) for number, (_, heads) in enumerate(groups, start=1) for head in heads]
    keys = [(*name, quantity) for name in named for quantity in QUANTITIES]
    frame = pd.DataFrame(keys, columns=["layer", "head", "quantity"])
    return frame.assign(**{name: array.T.reshape(-1) for name, array in columns.items()})


def planted_edges_found(run: Run, dataset: Dataset) -> pd.DataFrame:
    r"""Pruning as a detector of planted edges, where the truth is known (``digits-noise``).

    Returns:
        A row per layer and head: ``edges``, ``planted``, ``pruned`` and ``both`` (counts), ``precision``
        = both / pruned (NaN if nothing is pruned), ``recall`` = both / planted, and ``base_rate`` =
        planted / edges, the precision of pruning blindly.

    >>> from ltga.data import digits_noise
    >>> from ltga.train import fit
    >>> graph = digits_noise(k=1, planted_per_edge=1)
    >>> run = fit(graph, "gatv2", protocol={"epochs": 1, "hidden_channels": 2, "heads": 1})
    >>> planted_edges_found(run, graph)[["pruned", "precision", "recall", "base_rate"]].values.tolist()
    [[0.0, nan, 0.0, 0.5], [0.0, nan, 0.0, 0.5], [0.0, nan, 0.0, 0.5], [0.0, nan, 0.0, 0.5]]
    """
    flags = dataset.data.get("planted_edge")
    if flags is None:
        raise InputError(f"dataset: {dataset.name!r} does not know its noise (data.planted_edge); use digits-noise")
    proper = dataset.data.edge_index[0] != dataset.data.edge_index[1]
    planted = flags[proper].numpy()
    rows = []
    for number, layer in enumerate(attention_of(run, task_of(run, dataset)), start=1):
        edges, weights = _without_loops(*layer)
        assert torch.equal(edges, dataset.data.edge_index[:, proper])  # attention keeps the caller's order
        pruned, heads = _groups(weights)
        for head, group in zip(heads, pruned.T):
            both = int((group & planted).sum())
            rows.append(
                {
                    "layer": number,
                    "head": head,
                    "edges": len(planted),
                    "planted": int(planted.sum()),
                    "pruned": int(group.sum()),
                    "both": both,
                    "precision": _share(both, group.sum()),
                    "recall": _share(both, planted.sum()),
                    "base_rate": _share(planted.sum(), len(planted)),
                }
            )
    return pd.DataFrame(rows)


def _without_loops(edge_index: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    proper = edge_index[0] != edge_index[1]
    return edge_index[:, proper], weights[proper]


def _groups(weights: Tensor) -> tuple[np.ndarray, list[str]]:
    """Pruned edges ``[E, H + 1]``, head by head and unanimously, and the groups' names."""
    pruned = (weights == 0).numpy()
    names = [*map(str, range(1, pruned.shape[1] + 1)), "all"]
    return np.concatenate([pruned, pruned.all(axis=1, keepdims=True)], axis=1), names


def _edge_values(x: Tensor, y: Tensor, edges: Tensor, train: Tensor) -> np.ndarray:
    """The quantities of every edge, ``[E, 4]``; NaN where one is not known."""
    source, target = edges
    agreement = (y[source] == y[target]).double()
    agreement[~(train[source] & train[target])] = torch.nan
    degree = target.bincount(minlength=len(y)).double()
    return torch.stack([agreement, edge_cosine(x, edges), degree[source], degree[target]], dim=1).numpy()


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
