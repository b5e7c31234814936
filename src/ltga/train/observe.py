"""What is measured on a trained model: test metrics, attention statistics and, for edge gates, covariates."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.utils import degree, scatter

from ltga.kernels import SparseFeatures
from ltga.nn.attention_inputs import Attention
from ltga.nn.attention_statistics import attention_statistics
from ltga.nn.interface import LayerWeights, Network
from ltga.train.devices import CPU, moved
from ltga.train.loop import Task
from ltga.train.metrics import classification_metrics
from ltga.train.targets import Classes

Arrays = dict[str, np.ndarray]
_CHUNK = 1 << 14  # edges whose endpoint features are held at once


@torch.no_grad()
def observe(model: Network, task: Task) -> tuple[dict[str, Any], Arrays]:
    """Everything a record says about the trained model: numbers for the JSON, arrays beside it."""
    model.eval()
    logits, statistics = task.observed(model)
    log_probs = logits.log_softmax(-1).cpu()
    y = task.y.cpu()
    parts = {"train": task.train, "val": task.val, "test": task.test}
    parts = {part: nodes.cpu() for part, nodes in parts.items() if len(nodes)}
    positive = task.target.positive if isinstance(task.target, Classes) else 1

    def measured(nodes: Tensor) -> dict[str, float]:
        return classification_metrics(log_probs[nodes], y[nodes], positive=positive)

    numbers: dict[str, Any] = {
        "metrics": {part: measured(nodes) for part, nodes in parts.items()},
        "predicted_share": {part: _shares(log_probs[nodes]) for part, nodes in parts.items()},
    }
    arrays: Arrays = {"log_probs": log_probs.numpy()}
    if statistics is not None:
        numbers["attention"] = statistics_numbers(statistics, model)
    if at_bound := model.heads_at_bound():
        numbers["heads_at_bound"] = at_bound
    if model.edge_gates() and not task.on_disk:  # a row for each edge
        arrays.update(edge_covariates(model, task))
    return numbers, arrays


def attention_numbers(layers: LayerWeights, nodes: int, model: Network) -> list[dict[str, list[float]]]:
    """Statistics of each layer's weights, a number per head, as a record has them."""
    return statistics_numbers([attention_statistics(weights, edges[1], nodes) for edges, weights in layers], model)


def statistics_numbers(statistics: list[dict[str, Tensor]], model: Network) -> list[dict[str, list[float]]]:
    """Statistics of each layer's weights as a record has them."""
    statistics = [moved(layer, CPU) for layer in statistics]
    for layer, sparse in zip(statistics, _can_be_sparse(model, len(statistics))):
        layer["zero_fraction"] = layer["zero_fraction"] * sparse
    return [{name: heads.tolist() for name, heads in layer.items()} for layer in statistics]


def _can_be_sparse(model: Network, layers: int) -> list[Tensor]:
    """Per layer 1 where a head can give exact zeros: a zero of softmax, or of q up to 1, is an underflow."""
    if model.normalizer in (None, "softmax"):
        return [torch.zeros(1, dtype=torch.float64)] * layers
    return [torch.ones(1).double() if q is None else (q > 1).double().cpu() for q in model.index_values()]


def edge_covariates(model: Network, task: Task) -> Arrays:
    """What a gate could have looked at, and what it did, for every edge (self-loops included).

    ======================================  =====================================================
    ``edge_index``                          ``[2, E]``, source and target
    ``source_degree``, ``target_degree``    ``[E]``: incoming edges of the endpoints, self-loops aside
    ``feature_cosine``                      ``[E]``: similarity of the endpoints' input features
    ``embedding_cosine``                    ``[E]``: similarity of what the last layer reads
    ``layer<k>_logit_magnitude``            ``[E, H]``: absolute attention logit
    ``layer<k>_score_gap``                  ``[E, H]``: the neighbourhood's largest logit minus this one
    ``layer<k>_q``, ``layer<k>_weight``     ``[E, H]``: index and attention weight
    ======================================  =====================================================
    """
    layers = task.attend(model)
    edges, nodes = layers[0].edge_index, len(task.y)
    source, target = task.edge_index
    degrees = degree(target[source != target], nodes)
    features = task.x.to_dense() if isinstance(task.x, SparseFeatures) else task.x
    embedding = task.hidden(model)
    arrays = {
        "edge_index": edges,
        "source_degree": degrees[edges[0]],
        "target_degree": degrees[edges[1]],
        "feature_cosine": _cosine(features, edges),
        "embedding_cosine": _cosine(embedding, edges),
    }
    for number, layer in enumerate(layers, start=1):
        arrays |= {
            f"layer{number}_logit_magnitude": layer.logits.abs(),
            f"layer{number}_score_gap": _score_gap(layer, nodes),
            f"layer{number}_q": layer.q,
            f"layer{number}_weight": layer.weights,
        }
    return {name: values.contiguous().cpu().numpy() for name, values in arrays.items()}


def _score_gap(layer: Attention, nodes: int) -> Tensor:
    highest = scatter(layer.logits, layer.edge_index[1], dim_size=nodes, reduce="max")
    return highest[layer.edge_index[1]] - layer.logits


def _cosine(x: Tensor, edge_index: Tensor) -> Tensor:
    x = F.normalize(x, dim=1)
    parts = [(x[chunk[0]] * x[chunk[1]]).sum(1) for chunk in edge_index.split(_CHUNK, dim=1)]
    return torch.cat(parts) if parts else x.new_zeros(0)


def _shares(log_probs: Tensor) -> list[float]:
    """How often each class is predicted."""
    counts = log_probs.argmax(1).bincount(minlength=log_probs.size(1))
    return (counts.double() / len(log_probs)).tolist()
