"""A number or several labels for each node of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data import Dataset, NodeDataset
from ltga.errors import InputError
from ltga.nn.interface import Network
from ltga.train.assembly import inputs_of, make_model, shape_of
from ltga.train.devices import device_of, moved
from ltga.train.focus import FocusedTask
from ltga.train.loop import Task
from ltga.train.minibatch import BatchedTask, MiniBatch
from ltga.train.observe import statistics_numbers
from ltga.train.predict import as_trained
from ltga.train.protocol import Protocol
from ltga.train.tasks.objectives import objective_for
from ltga.train.tasks.prepared import Observed, Prepared
from ltga.train.tasks.task_options import TaskOptions


def shape(dataset: NodeDataset) -> dict[str, Any]:
    return shape_of(dataset.data, dataset.target.outputs)


def build(method: str, protocol: Protocol, shape: Mapping[str, Any], options: TaskOptions) -> Network:
    return make_model(method, protocol, shape)


def prepare(
    dataset: NodeDataset,
    split: int,
    model: Network,
    protocol: Protocol,
    options: TaskOptions,
    seed: int,
    minibatch: MiniBatch | None,
) -> Prepared:
    parts = [mask.nonzero().squeeze(1) for mask in dataset.split(split)]
    target, y, said = objective_for(dataset.target, parts[0], dataset.metric, protocol, options.log, dataset.task)
    task = Task(*inputs_of(dataset.data, model, protocol), y, *parts, target=target)
    if minibatch is not None:
        task = BatchedTask.of(replace(task, x=dataset.data.x.contiguous()), minibatch, model, seed)
    else:
        task = moved(FocusedTask.of(task, model, protocol) if model.computes_parts else task, device_of(model))

    def observe(trained: Network) -> Observed:
        return _observe(trained, task)

    return Prepared(task, observe, said)


@torch.no_grad()
def _observe(model: Network, task: Task) -> Observed:
    model.eval()
    given, statistics = task.observed(model)
    logits, y = given.cpu(), task.y.cpu()
    parts = {part: getattr(task, part).cpu() for part in ("train", "val", "test")}
    metrics = {
        part: task.target.metrics(logits[nodes], y[nodes])  # type: ignore[attr-defined]
        for part, nodes in parts.items()
        if len(nodes)
    }
    numbers: dict[str, Any] = {"metrics": metrics}
    if statistics is not None:
        numbers["attention"] = statistics_numbers(statistics, model)
    return numbers, {"outputs": logits.numpy()}


@torch.no_grad()
def outputs(model: Network, shape: Mapping[str, int | None], data: Data | Dataset | NodeDataset) -> Tensor:
    """What the network gives for every node ``[N, outputs]`` of a graph like the one it was trained on."""
    graph = data.data if isinstance(data, Dataset | NodeDataset) else data
    if not isinstance(graph, Data):
        raise InputError(f"data: expected a PyG Data or a dataset of nodes, got {type(graph).__name__}")
    if model.transductive:
        raise InputError("data: the network has a weight for every node it was trained on and fits no other graph")
    graph = as_trained(graph, shape)
    out: Tensor = model.eval()(*moved((graph.x, graph.edge_index, graph.get("edge_attr")), device_of(model)))
    return out.cpu()
