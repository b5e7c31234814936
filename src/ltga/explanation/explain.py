"""``explain``: look inside a finished run, edge by edge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data import Dataset, open_graph_folder
from ltga.data.graph_folder_files import is_graph_folder
from ltga.errors import InputError
from ltga.explanation.result import Explanation
from ltga.nn.attention_inputs import Attention
from ltga.nn.interface import Network
from ltga.train.devices import device_of, moved
from ltga.train.fitting import Run, load_run, make_model, make_task
from ltga.train.planned import as_dataset
from ltga.train.protocol import Protocol
from ltga.train.run_graph import graph_of


def explain(run: Run | str | Path, dataset: Dataset | Data | str | None = None) -> Explanation:
    """What attention did on every edge: weight, q and logit by layer and head, and what was ignored.

    Args:
        run: a finished run, or the path of a stored record.
        dataset: the graph it was trained on; looked up by the name in the record if left out (needed for
            a graph of your own).

    >>> from ltga.data import csbm
    >>> from ltga.train import fit
    >>> graph = csbm(num_nodes=60)
    >>> inside = explain(fit(graph, "frozen-q2.0", protocol={"epochs": 2, "hidden_channels": 4}), graph)
    >>> inside.weights.shape == (2, graph.data.num_edges + 60, 8)  # layers, edges and self-loops, heads
    True
    >>> bool((inside.ignored_by[0] > 0).any())  # edges that some of the 8 heads of the first layer ignore
    True
    >>> pruned = inside.pruned()  # a Data without the edges that nobody looks at
    """
    if isinstance(run, str | Path):
        run = load_run(run)
    if not isinstance(run, Run):
        raise InputError(f"run: expected a Run or the path of a record, got {type(run).__name__}")
    graph = _graph_of(run, dataset)
    layers, normalizer = _attend(run, graph)
    edge_index = layers[0].edge_index.cpu().numpy()

    def stacked(name: str) -> np.ndarray:
        return torch.stack([getattr(layer, name) for layer in layers]).cpu().numpy()

    return Explanation(
        record=run.record,
        dataset=graph,
        log_probs=run.arrays["log_probs"],
        edge_index=edge_index,
        position=_positions(graph.data.edge_index, edge_index.shape[1]),
        logits=stacked("logits"),
        q=stacked("q"),
        weights=stacked("weights"),
        normalizer=normalizer,
    )


def _graph_of(run: Run, dataset: Dataset | Data | str | None) -> Dataset:
    """The graph of the run, checked against the fingerprint in its record."""
    known = run.typed.config.dataset
    if run.typed.config.task is not None:
        raise InputError(f"run: is for {run.typed.config.task}; only runs with a class for each node can be explained")
    if dataset is not None:
        graph = as_dataset(dataset)
    else:
        graph = graph_of(run)
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


def _attend(run: Run, graph: Dataset) -> tuple[list[Attention], str]:
    config = run.typed.config
    protocol = config.as_protocol()
    model = run.model if run.model.attends else _as_ltga(run, protocol)
    task = make_task(graph, config.split, run.model, protocol)
    return model.attend(*moved((task.x, task.edge_index, task.edge_attr), device_of(model))), str(model.normalizer)


def _as_ltga(run: Run, protocol: Protocol) -> Network:
    """A network of PyG's GAT or GATv2 layers as the same network of ours, which can be looked into."""
    method, weights = run.typed.config.method, run.model.weights_for_ltga()
    if weights is None:
        raise InputError(f"run: {method} has no attention to explain; train for example gatv2 or ltga-head")
    if method == "gat" and run.typed.model["edge_dim"] is not None:
        raise InputError("run: gat with edge attributes cannot be explained; train it with init='paired'")
    with torch.random.fork_rng(devices=[]):
        model = make_model(method, protocol.with_overrides(init="paired"), run.typed.model)
    model.load_state_dict(weights)
    return model.to(device_of(run.model)).eval()


def _positions(edge_index: Tensor, attended: int) -> np.ndarray:
    """``[E]``: where each attended edge stands in the caller's ``edge_index``; -1 for the self-loops at the end."""
    kept = (edge_index[0] != edge_index[1]).nonzero().squeeze(1).cpu().numpy()
    return np.concatenate([kept, np.full(attended - len(kept), -1)])
