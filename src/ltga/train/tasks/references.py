"""What can be had without training a network: the rows that every other row of a table should beat."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ltga.data import GraphCollection, NodeDataset, Triples
from ltga.data.links import LinkSplit
from ltga.train.linear import class_logits, label_logits, numbers
from ltga.train.protocol import Protocol
from ltga.train.tasks.link_task import LinkTask
from ltga.train.tasks.objectives import Ranks, objective_for
from ltga.train.tasks.task_run import PlannedTask
from ltga.train.tasks.task_scores import link_scores, rank_scores, ranks_of
from ltga.train.tasks.typed_task import TypedTask

References = dict[str, dict[str, dict[str, float]]]


def references(planned: PlannedTask) -> References:
    """Per reference, metrics of the validation and the test part, as a run with this plan would measure them.

    =====================  ===========================================================================================
    nodes and graphs       ``constant``: the mean number, the most frequent class, each label at its frequency;
                           ``linear on features``: ridge or logistic regression, on graphs' mean features
    links                  ``common neighbours``, ``adamic-adar`` in the training graph; ``feature cosine``
    typed links            ``frequency``: how often a node is the answer to questions with this relation in training
    =====================  ===========================================================================================
    """
    data = planned.data
    if isinstance(data, LinkSplit):
        return _heuristics(data, planned)
    if isinstance(data, Triples):
        return _frequencies(data, planned)
    return _without_edges(data, planned)


def _without_edges(data: NodeDataset | GraphCollection, planned: PlannedTask) -> References:
    parts = [mask.nonzero().squeeze(1) for mask in data.split(planned.config["split"])]
    protocol = Protocol(metric="loss")
    objective, y, _ = objective_for(data.target, parts[0], data.metric, protocol, planned.options.log, data.task)
    metrics: Callable[..., dict[str, float]] = objective.metrics  # type: ignore[attr-defined]
    every, x = torch.cat(parts), _features(data)
    told = {"constant": _constant(data, y[parts[0]]).expand(len(every), -1)}
    if x.size(1):
        told["linear on features"] = _linear(data, x, y, parts[0], every)
    return {
        name: {
            part: metrics(found, y[rows])
            for part, rows, found in zip(("train", "val", "test"), parts, out.split(list(map(len, parts))))
            if len(rows)
        }
        for name, out in told.items()
    }


def _constant(data: NodeDataset | GraphCollection, known: Tensor) -> Tensor:
    if data.target.kind == "number":
        return torch.zeros(1)  # the mean, on the scale that is learned
    if data.target.kind == "labels":
        return known.nanmean(0).clamp(1e-6, 1 - 1e-6).logit()
    return known.bincount(minlength=data.target.outputs).clamp(min=1e-6).double().log()


def _features(data: NodeDataset | GraphCollection) -> Tensor:
    """Of every node; of every graph the means over its nodes, and how many it has."""
    if isinstance(data, NodeDataset):
        return data.data.x.float()
    sizes = torch.tensor([[float(graph.x.size(0))] for graph in data]).log1p()
    return torch.cat([torch.stack([graph.x.float().mean(0) for graph in data]), sizes], dim=1)


def _linear(data: NodeDataset | GraphCollection, x: Tensor, y: Tensor, train: Tensor, rows: Tensor) -> Tensor:
    if data.target.kind == "number":
        return numbers(x, y.numpy(), train, rows)
    if data.target.kind == "labels":
        return label_logits(x, y.numpy(), train, rows)
    return class_logits(x, y.numpy(), train, rows, data.target.outputs)


def _heuristics(links: LinkSplit, planned: PlannedTask) -> References:
    task = LinkTask((None, links.data.edge_index, None), links, Ranks("mrr", True), planned.options, 0)
    seen = links.seen.astype(np.float64)
    degree = np.asarray(seen.sum(axis=1)).ravel()
    # A neighbour of two nodes has a degree of at least two, so the logarithm is never zero where it counts.
    weight = 1 / np.log(np.maximum(degree, 2))
    direction = F.normalize(links.data.x.float(), dim=1)
    scorers: Mapping[str, Callable[[Tensor], Tensor]] = {
        "common neighbours": lambda pairs: _shared(seen, None, pairs),
        "adamic-adar": lambda pairs: _shared(seen, weight, pairs),
        "feature cosine": lambda pairs: (direction[pairs[0]] * direction[pairs[1]]).sum(-1),
    }
    return {
        name: {part: link_scores(scorer(task.ranked(part, planned.options.negatives))) for part in ("val", "test")}  # type: ignore[arg-type]
        for name, scorer in scorers.items()
    }


def _shared(seen: Any, weight: np.ndarray | None, pairs: Tensor) -> Tensor:
    """What the neighbours that both ends of ``pairs`` ``[2, ...]`` have in common weigh together."""
    first, second = (seen[end.flatten().numpy()] for end in pairs)
    common = first.multiply(second)
    sums = common.sum(axis=1) if weight is None else common @ weight
    return torch.from_numpy(np.asarray(sums, dtype=np.float64).ravel()).reshape(pairs.shape[1:])


def _frequencies(triples: Triples, planned: PlannedTask) -> References:
    task = TypedTask(triples, planned.config["split"], Ranks("mrr", pairwise=False))
    relations, answers = task.queries[1, task.train], task.y[task.train]
    counts = torch.zeros(2 * triples.num_relations, triples.num_nodes, dtype=torch.float64)
    counts.index_put_((relations, answers), torch.ones(len(answers), dtype=torch.float64), accumulate=True)
    found = {}
    for part in ("val", "test"):
        rows = task.parts[part]
        scores = counts[task.queries[1, rows]].masked_fill(task.others(part), -torch.inf)
        found[part] = rank_scores(ranks_of(scores, task.y[rows]))
    return {"frequency": found}
