"""New splits of a known graph, with a chosen share of the labels to learn from."""

from __future__ import annotations

import torch

from ltga.data.dataset import Dataset
from ltga.data.splits import stratified_masks
from ltga.errors import InputError

VALIDATION = 0.2  # of every class, whatever is left to learn from


def share_labels(dataset: Dataset, label_share: float) -> Dataset:
    """`dataset` with ten stratified splits of its own: `label_share` of every class train, a fifth validate.

    >>> from ltga.data import csbm
    >>> few = share_labels(csbm(num_nodes=100), 0.1)
    >>> few.name, [int(part.sum()) for part in few.split(0)]
    ('csbm:label_share=0.1,num_nodes=100', [10, 20, 70])
    """
    if not 0 < label_share < 1 - VALIDATION:
        raise InputError(f"label_share: got {label_share}; give a number above 0 and below {1 - VALIDATION:g}")
    masks = stratified_masks(dataset.data.y.numpy(), (label_share, VALIDATION))
    base, _, knobs = dataset.name.partition(":")
    named = sorted(filter(None, (*knobs.split(","), f"label_share={label_share:g}")))
    return Dataset(
        f"{base}:{','.join(named)}",
        dataset.data,
        *(torch.from_numpy(part) for part in masks),
        class_names=dataset.class_names,
        metric=dataset.metric,
        node_names=dataset.node_names,
        provenance={**dataset.provenance, "label_share": label_share},
    )
