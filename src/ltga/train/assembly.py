"""From a graph, a method and a protocol to a network and the task it is trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from ltga.data import Dataset, GraphFolder
from ltga.kernels import SparseFeatures, assume_constant, compact_form
from ltga.nn.build import accepted_arguments, build_model, form
from ltga.nn.interface import Network
from ltga.nn.methods import find_method
from ltga.train.devices import device_of, moved
from ltga.train.focus import FocusedTask
from ltga.train.loop import Task
from ltga.train.minibatch import BatchedTask
from ltga.train.planned import PlannedRun
from ltga.train.protocol import Protocol
from ltga.train.targets import Classes


def make_model(method: str, protocol: Protocol, shape: Mapping[str, Any]) -> Network:
    """The network of a method for a graph of this shape, under a protocol."""
    known = accepted_arguments(form(find_method(method), protocol.init)[0])
    channels, heads = protocol.size
    settings: dict[str, Any] = {
        "hidden_channels": channels, "heads": heads, "num_layers": protocol.num_layers, "dropout": protocol.dropout,
    }  # fmt: skip
    optional = {
        "delta": protocol.delta,
        "index_form": protocol.index_form,
        "index_start": protocol.index_start,
        "norm": protocol.norm,
        "backend": protocol.backend,
        "edge_dim": shape["edge_dim"],
        "num_nodes": shape["num_nodes"],
    }
    settings |= {name: value for name, value in optional.items() if name in known}
    if protocol.residual:  # build_model objects where there is no such thing
        settings["residual"] = True
    return build_model(method, shape["in_channels"], shape["num_classes"], init=protocol.init, **settings)


def task_of(planned: PlannedRun, model: Network) -> Task:
    """What a planned run trains ``model`` on."""
    dataset, batches, protocol = planned.dataset, planned.minibatch, planned.protocol
    if isinstance(dataset, GraphFolder):
        assert batches is not None
        target = Classes.of(dataset, planned.split, protocol)
        return BatchedTask.of_folder(dataset, planned.split, target, batches, model, planned.seed)
    task = make_task(dataset, planned.split, model, protocol)
    if batches is not None:
        return BatchedTask.of(replace(task, x=dataset.data.x.contiguous()), batches, model, planned.seed)
    return moved(FocusedTask.of(task, model, protocol) if model.computes_parts else task, device_of(model))


def make_task(dataset: Dataset, split: int, model: Network, protocol: Protocol) -> Task:
    """The graph and a split as the loop wants them."""
    nodes = (mask.nonzero().squeeze(1) for mask in dataset.split(split))
    target = Classes.of(dataset, split, protocol)
    return Task(*inputs_of(dataset.data, model, protocol), dataset.data.y, *nodes, target=target)


def inputs_of(data: Data, model: Network, protocol: Protocol) -> tuple[Tensor | SparseFeatures, Tensor, Tensor | None]:
    """Features, edges and edge attributes of a graph as ``model`` takes them."""
    # dropout draws in the order of memory, which must not decide a run
    dense = assume_constant(data.x.detach().contiguous())
    edge_attr = data.get("edge_attr")
    if edge_attr is not None:
        edge_attr = edge_attr.to(data.x.dtype).reshape(data.edge_index.size(1), -1)
    # The paper's dropout draws a number for zeros too, so under its initialisation features stay dense.
    compact = compact_form(dense) if protocol.init == "paired" and model.reads_sparse else None
    x = compact if isinstance(compact, SparseFeatures) else dense
    return x, assume_constant(data.edge_index), edge_attr


def shape_for(dataset: Dataset | GraphFolder) -> dict[str, Any]:
    """The sizes that a network for the classes of a graph needs."""
    if isinstance(dataset, Dataset):
        return shape_of(dataset.data, dataset.num_classes)
    sizes = {"in_channels": dataset.num_features, "num_classes": dataset.num_classes, "num_nodes": dataset.num_nodes}
    return {**sizes, "edge_dim": len(dataset.edge_columns) or None}


def shape_of(data: Data, outputs: int) -> dict[str, Any]:
    """The sizes that a network for this graph needs."""
    edge_attr = data.get("edge_attr")
    return {
        "in_channels": data.x.size(1),
        "num_classes": outputs,
        "num_nodes": data.x.size(0),
        "edge_dim": None if edge_attr is None else (edge_attr.size(1) if edge_attr.dim() == 2 else 1),
    }
