"""A class, a number or several labels for each of many graphs, learned a few graphs at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data import GraphCollection
from ltga.errors import InputError
from ltga.nn.interface import Network
from ltga.nn.readout import GraphNetwork
from ltga.train.assembly import make_model
from ltga.train.devices import device_of, moved, pinned
from ltga.train.minibatch import MiniBatch
from ltga.train.observe import attention_numbers
from ltga.train.predict import as_trained
from ltga.train.protocol import Protocol
from ltga.train.targets import Objective
from ltga.train.tasks.objectives import objective_for
from ltga.train.tasks.packed_graphs import GraphBatch, PackedGraphs
from ltga.train.tasks.prepared import Observed, Prepared
from ltga.train.tasks.task_options import TaskOptions

MOST = 256  # graphs computed at a time where no gradient is needed


def shape(dataset: GraphCollection) -> dict[str, Any]:
    return {
        "in_channels": dataset.num_features,
        "num_classes": dataset.target.outputs,
        "num_nodes": None,
        "edge_dim": dataset.edge_dim,
    }


def build(method: str, protocol: Protocol, shape: Mapping[str, Any], options: TaskOptions) -> Network:
    width, _ = protocol.size
    encoder = make_model(method, protocol, {**shape, "num_classes": width})
    return GraphNetwork(encoder, width, shape["num_classes"], protocol.dropout, options.readout)


@dataclass(frozen=True, eq=False)
class GraphStep:
    """A few training graphs."""

    batch: GraphBatch
    y: Tensor
    train: Tensor
    target: Objective

    def train_logits(self, model: Network) -> Tensor:
        return _outputs_of(model, self.batch)


@dataclass(frozen=True, eq=False)
class GraphTask:
    """Graphs and one split; an epoch shuffles the training graphs by seed and number.

    The graphs stay on the CPU, where they are put together; batches are sent to ``device``, as are ``y`` and ``val``.
    """

    graphs: PackedGraphs
    y: Tensor
    train: Tensor
    val: Tensor
    test: Tensor
    target: Objective
    batch_size: int
    seed: int
    device: torch.device

    def share(self, rank: int, size: int) -> GraphTask:
        """The part of one of ``size`` processes: every so many-th training graph."""
        return replace(self, train=self.train[rank::size])

    def steps(self, epoch: int) -> Iterator[GraphStep]:
        generator = torch.Generator().manual_seed((self.seed << 20) + epoch)
        order = self.train[torch.randperm(len(self.train), generator=generator)]
        for chosen in order.split(self.batch_size):
            yield GraphStep(self._sent(chosen), self.y, moved(pinned(chosen, self.device), self.device), self.target)

    def train_logits(self, model: Network) -> Tensor:
        return self.outputs(model, self.batches(self.train))

    def val_logits(self, model: Network) -> Tensor:
        return self.outputs(model, self._val_batches)

    def batches(self, chosen: Tensor) -> list[GraphBatch]:
        return [self._sent(some) for some in chosen.split(MOST)]

    def outputs(self, model: Network, batches: Sequence[GraphBatch]) -> Tensor:
        return torch.cat([_outputs_of(model, batch) for batch in batches])

    def _sent(self, chosen: Tensor) -> GraphBatch:
        """Some graphs as one, on the device."""
        return moved(pinned(self.graphs.chosen(chosen), self.device), self.device)

    @cached_property
    def _val_batches(self) -> list[GraphBatch]:
        return self.batches(self.val)


def prepare(
    dataset: GraphCollection,
    split: int,
    model: Network,
    protocol: Protocol,
    options: TaskOptions,
    seed: int,
    minibatch: MiniBatch | None,
) -> Prepared:
    train, val, test = (mask.nonzero().squeeze(1) for mask in dataset.split(split))
    target, y, said = objective_for(dataset.target, train, dataset.metric, protocol, options.log, dataset.task)
    device = device_of(model)
    y, val = moved((y, val), device)
    task = GraphTask(_packed(dataset.graphs), y, train, val, test, target, options.batch_size, seed, device)

    def observe(trained: Network) -> Observed:
        return _observe(trained, task)

    return Prepared(task, observe, said)


@torch.no_grad()
def _observe(model: Network, task: GraphTask) -> Observed:
    model.eval()
    batches = task.batches(torch.arange(len(task.graphs)))
    logits, y = task.outputs(model, batches).cpu(), task.y.cpu()
    parts = {part: getattr(task, part).cpu() for part in ("train", "val", "test")}
    metrics = {
        part: task.target.metrics(logits[graphs], y[graphs])  # type: ignore[attr-defined]
        for part, graphs in parts.items()
        if len(graphs)
    }
    numbers: dict[str, Any] = {"metrics": metrics}
    looked_at = batches[0]  # a few hundred graphs say enough about attention
    layers = model.attention_weights(looked_at.x, looked_at.edge_index, looked_at.edge_attr)
    if layers is not None:
        numbers["attention"] = attention_numbers(layers, len(looked_at.x), model)
    return numbers, {"outputs": logits.numpy()}


@torch.no_grad()
def outputs(model: Network, shape: Mapping[str, int | None], data: Any) -> Tensor:
    """What the network gives for every graph ``[G, outputs]`` of a collection, of a list, or for a single one."""
    graphs = (
        [data] if isinstance(data, Data) else list(data) if isinstance(data, GraphCollection | list | tuple) else None
    )
    if not graphs or not all(isinstance(graph, Data) for graph in graphs):
        raise InputError("data: expected a GraphCollection, a PyG Data or a list of them, at least one")
    sound = []
    for number, graph in enumerate(graphs):
        try:
            sound.append(as_trained(graph, shape))
        except InputError as error:
            raise InputError(f"data: graph {number}: {str(error).removeprefix('data: ')}") from None
    model.eval()
    packed = _packed(sound)
    batches = (moved(packed.chosen(some), device_of(model)) for some in torch.arange(len(sound)).split(MOST))
    return torch.cat([_outputs_of(model, batch).cpu() for batch in batches])


def _packed(graphs: Sequence[Data]) -> PackedGraphs:
    """What a network reads of the graphs."""
    packed = PackedGraphs.of(graphs)
    return replace(packed, x=packed.x.to(torch.float32))


def _outputs_of(model: Network, batch: GraphBatch) -> Tensor:
    out: Tensor = model(*batch)
    return out
