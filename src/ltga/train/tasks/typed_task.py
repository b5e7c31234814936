"""Typed links: of (head, relation, ?) and (?, relation, tail), the missing end is to be ranked first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ltga.data import Triples
from ltga.errors import InputError
from ltga.nn.decoders import TypedLinkNetwork
from ltga.nn.interface import Network
from ltga.train.assembly import make_model
from ltga.train.devices import CPU, device_of, moved
from ltga.train.minibatch import MiniBatch
from ltga.train.observe import attention_numbers
from ltga.train.protocol import Protocol
from ltga.train.tasks.objectives import Ranks, metric_for
from ltga.train.tasks.prepared import Observed, Prepared
from ltga.train.tasks.task_options import TaskOptions
from ltga.train.tasks.task_scores import rank_scores, ranks_of

_PARTS = ("train", "val", "test")


def shape(triples: Triples) -> dict[str, Any]:
    return {"num_nodes": triples.num_nodes, "num_relations": triples.num_relations, "edge_dim": None}


def build(method: str, protocol: Protocol, shape: Mapping[str, Any], options: TaskOptions) -> Network:
    channels, heads = protocol.size
    width = channels * heads
    sizes = {"in_channels": width, "num_classes": width, "edge_dim": width, "num_nodes": shape["num_nodes"]}
    encoder = make_model(method, protocol, sizes)
    return TypedLinkNetwork(encoder, shape["num_nodes"], shape["num_relations"], width, protocol.dropout)


@dataclass(frozen=True, eq=False)
class TypedTask:
    """Questions in both directions: the tail of (head, relation), and the head by the relation's way back."""

    triples: Triples
    number: int
    target: Ranks
    device: torch.device = CPU

    @cached_property
    def parts(self) -> dict[str, Tensor]:
        """The numbers of the questions of every part: triple t is question t and, backwards, question t + T."""
        count = self.triples.edge_type.shape[0]
        rows = [mask.nonzero().squeeze(1) for mask in self.triples.split(self.number)]
        found = {part: torch.cat([chosen, chosen + count]) for part, chosen in zip(_PARTS, rows)}
        return moved(found, self.device)

    @property
    def train(self) -> Tensor:
        return self.parts["train"]

    @property
    def val(self) -> Tensor:
        return self.parts["val"]

    @cached_property
    def queries(self) -> Tensor:
        """``[2, 2T]``: node and relation."""
        heads, tails = self.triples.edge_index
        relations = self.triples.edge_type
        back = torch.stack([tails, relations + self.triples.num_relations])
        return moved(torch.cat([torch.stack([heads, relations]), back], dim=1), self.device)

    @cached_property
    def y(self) -> Tensor:
        """The answers ``[2T]``."""
        heads, tails = self.triples.edge_index
        return moved(torch.cat([tails, heads]), self.device)

    @cached_property
    def graph(self) -> tuple[Tensor, Tensor]:
        data = self.triples.graph(self.number)
        return moved((data.edge_index, data.edge_type), self.device)

    def steps(self, epoch: int) -> Iterator[TypedTask]:
        yield self

    def train_logits(self, model: Network) -> Tensor:
        out: Tensor = model(*self.graph, self.queries[:, self.train])
        return out

    def val_logits(self, model: Network) -> Tensor:
        return self.filtered(model, "val")

    def filtered(self, model: Network, part: str) -> Tensor:
        """The logits of a part's questions; other right answers, of whatever part, do not take part."""
        out: Tensor = model(*self.graph, self.queries[:, self.parts[part]])
        return out.masked_fill(self.others(part), -torch.inf)

    def others(self, part: str) -> Tensor:
        """Right answers ``[Q, N]`` to a part's questions beside the one that is asked for."""
        if part not in self._others:
            rows = self.parts[part].cpu()
            forward = rows[: len(rows) // 2]
            heads, tails = self.triples.edge_index[:, forward]
            relations = self.triples.edge_type[forward]
            true = [self.triples.true_tails(heads, relations), self.triples.true_heads(tails, relations)]
            others = torch.cat(true).scatter_(1, self.y.cpu()[rows].unsqueeze(1), False)
            self._others[part] = moved(others, self.device)
        return self._others[part]

    @cached_property
    def _others(self) -> dict[str, Tensor]:
        return {}


def prepare(
    triples: Triples,
    split: int,
    model: Network,
    protocol: Protocol,
    options: TaskOptions,
    seed: int,
    minibatch: MiniBatch | None,
) -> Prepared:
    metric = metric_for("ranks", "mrr", protocol, triples.task)
    task = TypedTask(triples, split, Ranks(metric, pairwise=False), device_of(model))

    def observe(trained: Network) -> Observed:
        return _observe(trained, task)

    return Prepared(task, observe, {"kind": "typed link", "names": list(triples.relation_names)})


@torch.no_grad()
def _observe(model: Network, task: TypedTask) -> Observed:
    model.eval()
    assert isinstance(model, TypedLinkNetwork)
    metrics = {
        part: rank_scores(ranks_of(task.filtered(model, part), task.y[rows]))
        for part, rows in task.parts.items()
        if len(rows)
    }
    numbers: dict[str, Any] = {"metrics": metrics, "ranks": "filtered, both ends, ties at their mean"}
    edge_index, edge_type = task.graph
    layers = model.attention_weights(model.nodes, edge_index, model.edge_types[edge_type])
    if layers is not None:
        numbers["attention"] = attention_numbers(layers, task.triples.num_nodes, model)
    return numbers, {"nodes": model.embed(edge_index, edge_type).cpu().numpy()}


@torch.no_grad()
def answers(model: Network, shape: Mapping[str, int | None], data: Any, queries: Any) -> Tensor:
    """The scores of all nodes ``[Q, N]`` as tails of (head, relation) ``[2, Q]``; as heads, by relation + R."""
    if not isinstance(data, Triples):
        raise InputError(f"data: expected the Triples that the run was trained on, got {type(data).__name__}")
    if (data.num_nodes, data.num_relations) != (shape["num_nodes"], shape["num_relations"]):
        raise InputError("data: has other nodes or relations than the run was trained on")
    if not isinstance(queries, Tensor) or queries.dim() != 2 or queries.shape[0] != 2 or queries.is_floating_point():
        raise InputError("pairs: expected whole numbers of shape [2, questions], a node and a relation each")
    for row, most in ((0, data.num_nodes), (1, 2 * data.num_relations)):
        asked = queries[row]
        if asked.numel() and not 0 <= int(asked.min()) <= int(asked.max()) < most:
            raise InputError(f"pairs: row {row} must hold numbers from 0 to {most - 1}, got one outside")
    graph = data.graph()
    model.eval()
    out: Tensor = model(*moved((graph.edge_index, graph.edge_type, queries), device_of(model)))
    return out.cpu()
