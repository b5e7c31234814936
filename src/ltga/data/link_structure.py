"""Features made from the edges, made anew where some of these are held out, which features must not have seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data.dataset import Dataset
from ltga.data.edges import pair_codes
from ltga.data.links import LinkSplit
from ltga.data.node_dataset import NodeDataset
from ltga.data.structure import places_nodes, structural_features
from ltga.data.table_features import mean_and_scale
from ltga.errors import InputError


def without_held_out(links: LinkSplit, graph: Dataset | NodeDataset) -> LinkSplit:
    """The links of a graph, with features that know of training edges alone, and their scales in its `reading`."""
    reading = graph.reading
    if _structure(graph.provenance.get("reading")):
        raise InputError(
            f"{links.name}: a graph folder with features that were made from all edges, those included that would be "
            "held out; give the tables it was made from"
        )
    names = _structure(reading)
    if not names:
        return replace(links, reading=reading)
    if places_nodes(names):
        raise InputError(
            f"structure: {', '.join(names)}: a Laplacian places every node by all edges, those included that are held "
            "out to be predicted; choose other features for links, for example structure=log-degree,core"
        )
    assert reading is not None
    table = reading["preparation"]["nodes"]
    values, _ = structural_features(_seen(graph.data.edge_index, links), links.data.x.shape[0], names)
    count = values.shape[1]
    mean, scale = np.zeros(count), np.ones(count)
    if reading["preparation"]["options"]["scale"] == "standard":
        mean, scale = mean_and_scale(values)
    before = links.data.x[:, :-count]
    x = torch.cat([before, torch.from_numpy((values - mean) / scale).to(before.dtype)], dim=1)
    scaled = {
        **table,
        "mean": [*table["mean"][:-count], *mean.tolist()],
        "scale": [*table["scale"][:-count], *scale.tolist()],
    }
    told = {**reading, "preparation": {**reading["preparation"], "nodes": scaled}}
    return replace(links, data=Data(x=x, edge_index=links.data.edge_index), reading=told)


def _structure(reading: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The features, the last ones, that were made from the edges."""
    preparation = (reading or {}).get("preparation")
    return () if preparation is None else tuple(preparation["nodes"]["structure"])


def _seen(edge_index: Tensor, links: LinkSplit) -> np.ndarray:
    """Rows `[E, 2]` of the edges that are not held out, in their directions."""
    rows, nodes = edge_index.t().numpy(), links.data.x.shape[0]
    held = np.concatenate([links.val.t().numpy(), links.test.t().numpy()])
    codes = pair_codes(rows, nodes, "undirected, once")
    return rows[~np.isin(codes, pair_codes(held, nodes, "undirected, once"))]
