"""From the plain arrays that every reader gives to a validated `Dataset`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ltga.data.catalogue import Facts
from ltga.data.cornell import refuse_texas_under_cornells_links
from ltga.data.edges import arrange_edges
from ltga.data.splits import Masks, stratified_masks
from ltga.errors import DataError

if TYPE_CHECKING:
    from ltga.data.dataset import Dataset


@dataclass(frozen=True)
class GraphArrays:
    """One graph as numpy arrays: x `[N, F]`, y `[N]`, edges `[E, 2]`, masks `[S, N]` each."""

    x: np.ndarray
    y: np.ndarray
    edges: np.ndarray
    masks: Masks | None
    edge_attr: np.ndarray | None = None
    class_names: tuple[str, ...] | None = None
    node_names: tuple[str, ...] | None = None
    convention: str | None = None
    node_ids: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None


def assemble(
    arrays: GraphArrays,
    name: str,
    convention: str,
    where: str,
    facts: Facts | None = None,
    provenance: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> Dataset:
    """The dataset that `arrays` describe; `where` (a file or folder) opens every error message."""
    import torch  # now: tables are checked without it
    from torch_geometric.data import Data

    from ltga.data.dataset import Dataset

    refuse_texas_under_cornells_links(
        arrays.x, arrays.edges, where, called_cornell=facts is not None and facts.name == "cornell"
    )
    x = torch.from_numpy(np.ascontiguousarray(arrays.x, dtype=np.float32))
    y = torch.from_numpy(np.ascontiguousarray(arrays.y, dtype=np.int64))
    edge_index, edge_attr = arrange_edges(arrays.edges, convention, x.shape[0], arrays.edge_attr, where)
    data = Data(x=x, y=y, edge_index=edge_index)
    if edge_attr is not None:
        data.edge_attr = edge_attr
    masks = arrays.masks if arrays.masks is not None else stratified_masks(arrays.y)
    try:
        dataset = Dataset(
            name,
            data,
            *(torch.from_numpy(np.ascontiguousarray(mask)) for mask in masks),
            class_names=arrays.class_names,
            metric=facts.metric if facts is not None else "accuracy",
            node_names=arrays.node_names,
            node_ids=arrays.node_ids,
            feature_names=arrays.feature_names,
            facts=facts,
            provenance={
                "convention": convention,
                "splits": "as given" if arrays.masks is not None else "stratified 60/20/20, seed 0",
                **(provenance or {}),
            },
            reading=reading,
            notes=notes,
        )
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    if facts is not None:
        check_facts(dataset, arrays.edges.shape[0], facts, where)
    return dataset


def check_facts(dataset: Dataset, stored_edges: int, facts: Facts, where: str) -> None:
    """Refuse a file whose contents are not those of the dataset it is named after."""
    nodes, features = dataset.data.x.shape
    found = {
        "nodes": nodes,
        "edges": stored_edges,
        "features": features,
        "classes": dataset.num_classes,
        "splits": dataset.num_splits,
    }
    wrong = [
        f"{found[key]:,} {key} instead of {expected:,}"
        for key in found
        if (expected := getattr(facts, key)) is not None and found[key] != expected
    ]
    if facts.split_sizes is not None:
        sizes = tuple(int(mask.sum()) for mask in dataset.split(0))
        if sizes != facts.split_sizes:
            wrong.append(f"a first split of {sizes} instead of {facts.split_sizes}")
    if wrong:
        raise DataError(f"{where}: this is not {facts.name}: it has {', '.join(wrong)}; remove or replace it")
