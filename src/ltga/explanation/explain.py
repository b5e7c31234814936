"""``explain``: look inside a finished run, edge by edge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ltga.data import Dataset, open_graph_folder
from ltga.data.graph_folder_files import is_graph_folder
from ltga.errors import InputError
from ltga.explanation.node_classes import NodeClasses
from ltga.explanation.result import Explanation
from ltga.nn.attention_inputs import Attention
from ltga.nn.interface import Network
from ltga.train.assembly import make_model, make_task
from ltga.train.devices import device_of, moved
from ltga.train.finished import Run, load_run
from ltga.train.planned import as_dataset
from ltga.train.protocol import Protocol
from ltga.train.run_graph import graph_of


def explain(run: Run | str | Path, dataset: Any = None) -> Explanation:
    """What attention did on every edge: weight, q and logit by layer and head, and what was ignored.

    What comes back depends on the task of the run: see :class:`~ltga.explanation.result.Explanation`.

    Args:
        run: a finished run, or the path of a stored record.
        dataset: what it was trained on; looked up by the name in the record if left out (needed for data of your own
            that was made in memory).

    >>> from ltga.data import csbm
    >>> from ltga.train import fit
    >>> graph = csbm(num_nodes=60)
    >>> inside = explain(fit(graph, "frozen-q2.0", protocol={"epochs": 2, "hidden_channels": 4}), graph)
    >>> inside.weights.shape == (2, graph.data.num_edges + 60, 4)  # layers, edges and self-loops, heads
    True
    >>> bool((inside.ignored_by[0] > 0).any())  # edges that some of the 8 heads of the first layer ignore
    True
    >>> pruned = inside.pruned()  # a Data without the edges that nobody looks at
    """
    if isinstance(run, str | Path):
        run = load_run(run)
    if not isinstance(run, Run):
        raise InputError(f"run: expected a Run or the path of a record, got {type(run).__name__}")
    if run.typed.config.task is not None:
        from ltga.explanation.task_explain import explain_task  # which stands on what is here

        return explain_task(run, dataset)
    graph = _graph_of(run, dataset)
    config = run.typed.config
    protocol = config.as_protocol()
    model = looked_into(run, run.model, protocol)
    task = make_task(graph, config.split, run.model, protocol)
    layers = model.attend(*moved((task.x, task.edge_index, task.edge_attr), device_of(model)))
    numbers = attended(layers, graph.data.edge_index, model)
    return NodeClasses(record=run.record, dataset=graph, log_probs=run.arrays["log_probs"], **numbers)


def attended(layers: list[Attention], edge_index: Tensor, model: Network) -> dict[str, Any]:
    """The fields that every explanation has, from what the layers did on a graph."""
    edges = layers[0].edge_index.cpu().numpy()

    def stacked(name: str) -> np.ndarray:
        return torch.stack([getattr(layer, name) for layer in layers]).detach().cpu().numpy()

    return {
        "edge_index": edges,
        "position": _positions(edge_index, edges.shape[1]),
        "logits": stacked("logits"),
        "q": stacked("q"),
        "weights": stacked("weights"),
        "normalizer": str(model.normalizer),
    }


def _graph_of(run: Run, dataset: Any) -> Dataset:
    """The graph of the run, checked against the fingerprint in its record."""
    known = run.typed.config.dataset
    graph = graph_of(run) if dataset is None else as_dataset(dataset)
    if known.fingerprint not in _known_by(graph):
        raise InputError(
            f"dataset: {graph.name!r} is not the graph of this run ({known.name!r}, fingerprint "
            f"{known.fingerprint[:12]}); features, labels, edges or splits differ"
        )
    return graph


def _known_by(graph: Dataset) -> list[str]:
    """The fingerprint of the graph, and that of the folder it was loaded from, by which a run on disk knows it."""
    found, reading = graph.fingerprint, graph.reading or {}
    if reading.get("format") == "graph folder" and is_graph_folder(Path(reading["path"])):
        folder = open_graph_folder(reading["path"])
        if folder.dataset().fingerprint == found:
            return [found, folder.fingerprint]
    return [found]


def looked_into(run: Run, model: Network, protocol: Protocol) -> Network:
    """The run's network of nodes, or the same network of our layers, which can be looked into."""
    if model.attends:
        return model
    method, weights = run.typed.config.method, model.weights_for_ltga()
    if weights is None:
        raise InputError(f"run: {method} has no attention to explain; train for example gatv2 or ltga-head")
    if model is not run.model or (method == "gat" and run.typed.model["edge_dim"] is not None):
        edges = "with edge attributes " if model is run.model else ""
        raise InputError(f"run: {method} {edges}cannot be explained; train it with init='paired'")
    with torch.random.fork_rng(devices=[]):
        model = make_model(method, protocol.with_overrides(init="paired"), run.typed.model)
    model.load_state_dict(weights)
    return model.to(device_of(run.model)).eval()


def _positions(edge_index: Tensor, attended: int) -> np.ndarray:
    """``[E]``: where each attended edge stands in the caller's ``edge_index``; -1 for the self-loops at the end."""
    kept = (edge_index[0] != edge_index[1]).nonzero().squeeze(1).cpu().numpy()
    return np.concatenate([kept, np.full(attended - len(kept), -1)])
