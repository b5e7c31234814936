"""Predictions on any graph, the one trained on or another with the same kind of features."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data import Dataset
from ltga.data.dataset import check_graph
from ltga.errors import InputError
from ltga.nn.interface import Network
from ltga.train.devices import device_of, moved
from ltga.train.layerwise import Layerwise
from ltga.train.record_schema import RunRecord


@torch.no_grad()
def predict_log_probs(model: Network, record: RunRecord, data: Data | Dataset, batch_size: int | None = None) -> Tensor:
    """Log-probabilities ``[N, C]`` of a trained network on ``data``, checked against what it was trained on.

    They are computed where the network is, and come back to the CPU.
    """
    graph = data.data if isinstance(data, Dataset) else data
    if not isinstance(graph, Data):
        raise InputError(f"data: expected a PyG Data or a Dataset, got {type(graph).__name__}")
    if model.transductive:
        raise InputError(
            f"data: {record.config.method} has a weight for every node it was trained on and cannot predict "
            "on another graph; its predictions there are run.arrays['log_probs']"
        )
    graph = as_trained(graph, record.model)
    inputs = graph.x, graph.edge_index, graph.get("edge_attr")
    model.eval()
    if batch_size is not None:
        return Layerwise(*inputs, batch_size).logits(model).log_softmax(-1).cpu()
    logits: Tensor = model(*moved(inputs, device_of(model)))
    return logits.log_softmax(-1).cpu()


def as_trained(data: Data, described: Mapping[str, int | None]) -> Data:
    """The graph's features in the form the network knows, or an error that says what differs."""
    graph = Data(edge_index=data.get("edge_index"))
    x, edge_attr, width = data.get("x"), data.get("edge_attr"), described["edge_dim"]
    graph.x = x.to(torch.float32) if isinstance(x, Tensor) else x
    if edge_attr is not None:
        graph.edge_attr = edge_attr.to(torch.float32)
    check_graph(graph, "data", needs=("x", "edge_index"))
    if graph.x.size(1) != described["in_channels"]:
        raise InputError(f"data: has {graph.x.size(1)} features, the network was trained on {described['in_channels']}")
    found = None if edge_attr is None else edge_attr.size(1) if edge_attr.dim() == 2 else 1
    if found != width:
        raise InputError(
            f"data: has {found or 'no'} edge attributes, the network was trained with {width or 'none'}; "
            f"{'set data.edge_attr' if width else 'delete data.edge_attr'}"
        )
    if edge_attr is not None:
        graph.edge_attr = graph.edge_attr.reshape(len(edge_attr), -1)
    return graph
