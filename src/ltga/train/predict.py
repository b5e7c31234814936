"""Predictions on any graph, the one trained on or another with the same kind of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data import Dataset, GraphFolder, NeighborSampler
from ltga.data.dataset import check_graph, refuse_edge_weight
from ltga.data.mapped_rows import MappedRows
from ltga.errors import InputError
from ltga.nn.interface import Network
from ltga.train.devices import device_of, moved
from ltga.train.layerwise import BLOCK, Layerwise, check_layered
from ltga.train.minibatch import MiniBatch
from ltga.train.record_schema import RunRecord

Graph: TypeAlias = Data | Dataset | GraphFolder


@torch.no_grad()
def predict_log_probs(
    model: Network,
    record: RunRecord,
    data: Graph,
    batch_size: int | None = None,
    fanout: int | Sequence[int] | None = None,
) -> Tensor:
    """Log-probabilities ``[N, C]`` of a trained network on ``data``, checked against what it was trained on.

    They are computed where the network is, and come back to the CPU.

    Args:
        batch_size: nodes computed at a time, layer by layer; a graph on disk has no other way.
        fanout: estimate instead from so many sampled neighbours of every node, for all layers or one number per layer.
    """
    check_preparation(record, data)
    graph = data.data if isinstance(data, Dataset) else data
    if not isinstance(graph, Data | GraphFolder):
        hint = "; run.predict_table takes a path" if isinstance(graph, str | Path) else ""
        raise InputError(f"data: expected a PyG Data, a Dataset or a graph folder, got {type(graph).__name__}{hint}")
    if model.transductive:
        raise InputError(
            f"data: {record.config.method} has a weight for every node it was trained on and cannot predict "
            "on another graph; its predictions there are run.arrays['log_probs']"
        )
    model.eval()
    structure: Tensor | GraphFolder
    x: Tensor | MappedRows
    if isinstance(graph, GraphFolder):
        _check_widths(graph.num_features, len(graph.edge_columns) or None, record.model)
        x, structure, edge_attr = graph.feature_rows, graph, graph.attribute_rows
    else:
        graph = as_trained(graph, record.model)
        x, structure, edge_attr = graph.x, graph.edge_index, graph.get("edge_attr")
    if fanout is not None:
        return _sampled(model, graph, batch_size, fanout).log_softmax(-1)
    if batch_size is not None or isinstance(graph, GraphFolder):
        return (
            Layerwise(x, structure, edge_attr, BLOCK if batch_size is None else batch_size)
            .logits(model)
            .log_softmax(-1)
            .cpu()
        )
    logits: Tensor = model(*moved((x, structure, edge_attr), device_of(model)))
    return logits.log_softmax(-1).cpu()


def _sampled(model: Network, graph: Data | GraphFolder, batch_size: int | None, fanout: int | Sequence[int]) -> Tensor:
    """Logits from sampled neighbourhoods, the same every time."""
    given = tuple(fanout) if isinstance(fanout, Sequence) else fanout
    settings = MiniBatch(fanout=given) if batch_size is None else MiniBatch(batch_size, given)
    hops = settings.per_layer(len(check_layered(model)))
    sampler = NeighborSampler(graph, hops, batch_size=settings.batch_size, shuffle=False)
    parts = []
    for batch in sampler:
        inputs = moved((batch.x, batch.edge_index, batch.get("edge_attr")), device_of(model))
        parts.append(model(*inputs)[: batch.batch_size].cpu())
    return torch.cat(parts)


def check_preparation(record: RunRecord, data: Any) -> None:
    """Raise for a graph whose tables were scaled, filled and encoded otherwise than those of the run's own graph.

    Columns of one number of features would fit, and every prediction be of something else.
    """
    ours, theirs = ((reading or {}).get("preparation") for reading in (record.reading, getattr(data, "reading", None)))
    if not (isinstance(ours, Mapping) and isinstance(theirs, Mapping)):
        return
    if any(ours.get(part) != theirs.get(part) for part in ("graph", "nodes", "edges")):
        raise InputError(
            "data: its tables were prepared by what is in them (scales, categories, fillings), not as the run's graph "
            "was; give their path to run.predict_table, which repeats the run's preparation"
        )


def as_trained(data: Data, described: Mapping[str, int | None]) -> Data:
    """The graph's features in the form the network knows, or an error that says what differs."""
    refuse_edge_weight(data, "data")
    graph = Data(edge_index=data.get("edge_index"))
    x, edge_attr = data.get("x"), data.get("edge_attr")
    graph.x = x.to(torch.float32) if isinstance(x, Tensor) else x
    if edge_attr is not None:
        graph.edge_attr = edge_attr.to(torch.float32)
    check_graph(graph, "data", needs=("x", "edge_index"))
    found = None if edge_attr is None else edge_attr.size(1) if edge_attr.dim() == 2 else 1
    _check_widths(graph.x.size(1), found, described)
    if edge_attr is not None:
        graph.edge_attr = graph.edge_attr.reshape(len(edge_attr), found)
    return graph


def _check_widths(features: int, attributes: int | None, described: Mapping[str, int | None]) -> None:
    width = described["edge_dim"]
    if features != described["in_channels"]:
        raise InputError(f"data: has {features} features, the network was trained on {described['in_channels']}")
    if attributes != width:
        raise InputError(
            f"data: has {attributes or 'no'} edge attributes, the network was trained with {width or 'none'}; "
            f"{'set data.edge_attr' if width else 'delete data.edge_attr'}"
        )
