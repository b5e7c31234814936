"""Random edges planted into a known graph, so that what is noise is known."""

from __future__ import annotations

import numpy as np
import torch

from ltga.data.dataset import Dataset
from ltga.data.knobs import knob_name
from ltga.errors import InputError


def plant_edges(dataset: Dataset, planted_per_edge: float = 1.0, seed: int = 0) -> Dataset:
    """`dataset` with random edges besides its own, `planted_per_edge` for each of them.

    Pairs of nodes are counted, not directions: a planted pair is joined in both directions if the graph's own are.
    Pairs that are joined already, and nodes with themselves, are left out. `data.planted_edge` `[E]` marks the planted.

    >>> from ltga.data import csbm
    >>> noisy = plant_edges(csbm(num_nodes=100), 2.0)
    >>> round(float(noisy.data.planted_edge.float().mean()), 2), noisy.name
    (0.67, 'csbm:num_nodes=100,planted_per_edge=2')
    """
    if not 0 <= planted_per_edge <= 100:
        raise InputError(f"planted_per_edge: got {planted_per_edge}; give a number from 0 to 100")
    if dataset.data.get("edge_attr") is not None:
        raise InputError(f"planted_per_edge: {dataset.name} has edge attributes, and a planted edge would have none")
    source, target = dataset.data.edge_index.numpy()
    nodes = dataset.data.num_nodes
    own = np.unique((np.minimum(source, target) * nodes + np.maximum(source, target))[source != target])
    planted = random_pairs(own, round(planted_per_edge * own.size), nodes, np.random.default_rng(seed))
    low, high = planted // nodes, planted % nodes
    given = np.unique(source * nodes + target)
    if np.isin(target * nodes + source, given).all():
        low, high = np.concatenate([low, high]), np.concatenate([high, low])
    data = dataset.data.clone()
    data.edge_index = torch.cat([data.edge_index, torch.from_numpy(np.stack([low, high]))], dim=1)
    data.planted_edge = torch.arange(data.edge_index.size(1)) >= source.size
    base, _, knobs = dataset.name.partition(":")
    share = knob_name("", lambda planted_per_edge=None: None, {"planted_per_edge": planted_per_edge})
    added = ",".join((share.removeprefix(":"), *([f"seed={seed}"] if seed else [])))  # always said, even if it is 1
    masks = zip(*(dataset.split(number) for number in range(dataset.num_splits)))
    return Dataset(
        f"{base}:{','.join(filter(None, (knobs, added)))}".rstrip(":"),
        data,
        *(torch.stack(part) for part in masks),
        class_names=dataset.class_names,
        metric=dataset.metric,
        node_names=dataset.node_names,
        provenance={**dataset.provenance, "planted_per_edge": planted_per_edge, "planted_seed": seed},
    )


def random_pairs(taken: np.ndarray, count: int, num_nodes: int, rng: np.random.Generator) -> np.ndarray:
    """`count` distinct random pairs i < j, none of them in `taken`, as codes i * N + j."""
    if count > (num_nodes * (num_nodes - 1) // 2 - taken.size) // 2:
        raise InputError(f"planted_per_edge: {count} edges would fill the graph; give a smaller number")
    planted = np.empty(0, dtype=np.int64)
    while planted.size < count:
        pairs = rng.integers(0, num_nodes, size=(2 * (count - planted.size) + 16, 2))
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        codes = pairs.min(axis=1) * num_nodes + pairs.max(axis=1)
        fresh = np.concatenate([planted, codes[~np.isin(codes, taken)]])
        _, first = np.unique(fresh, return_index=True)
        planted = fresh[np.sort(first)][:count]
    return planted
