"""Looking inside runs on other tasks than node classification."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ltga.data import GraphCollection, LinkSplit, NodeDataset, Triples
from ltga.explanation.explain import attended, looked_into
from ltga.explanation.graphs import Graphs, joined
from ltga.explanation.node_values import NodeValues
from ltga.explanation.pairs_of_nodes import PlainLinks, TypedLinks
from ltga.explanation.result import Explanation
from ltga.nn.composed import Composed
from ltga.nn.decoders import TypedLinkNetwork
from ltga.train.assembly import inputs_of
from ltga.train.devices import device_of, moved
from ltga.train.finished import Run
from ltga.train.tasks.objectives import Scale
from ltga.train.tasks.run_data import data_of


@torch.no_grad()
def explain_task(run: Run, data: Any = None) -> Explanation:
    """What attention did in a run on another task; ``data`` is looked up if left out."""
    found = data_of(run, data)
    network = run.model.encoder if isinstance(run.model, Composed) else run.model
    model = looked_into(run, network, run.typed.config.as_protocol())
    if isinstance(found, GraphCollection):
        graph = joined(found)
        inputs: tuple[Any, ...] = (graph.x, graph.edge_index, graph.get("edge_attr"))
    elif isinstance(found, Triples):
        graph = found.graph(run.typed.config.split)
        assert isinstance(run.model, TypedLinkNetwork)
        inputs = (run.model.nodes, graph.edge_index, run.model.edge_types[graph.edge_type])
    else:
        assert isinstance(found, LinkSplit | NodeDataset)
        graph = found.data
        inputs = inputs_of(graph, network, run.typed.config.as_protocol())
    common = {"record": run.record, **attended(model.attend(*moved(inputs, device_of(model))), graph.edge_index, model)}
    if isinstance(found, LinkSplit):
        return PlainLinks(dataset=found, model=run.model, encoded=run.arrays["nodes"], **common)  # type: ignore[arg-type]
    if isinstance(found, Triples):
        return TypedLinks(dataset=found, model=run.model, encoded=run.arrays["nodes"], **common)  # type: ignore[arg-type]
    if isinstance(found, GraphCollection):
        return Graphs(dataset=found, predicted=_natural(run), joined=graph, **common)
    return NodeValues(dataset=found, predicted=_natural(run), **common)


def _natural(run: Run) -> np.ndarray:
    """The stored outputs as numbers in their units ``[n]``, or as probabilities ``[n, K]``."""
    said, out = run.record["target"], torch.from_numpy(run.arrays["outputs"])
    if said["kind"] == "number":
        return Scale.said(said).predicted(out.squeeze(-1)).numpy()
    return (out.sigmoid() if said["kind"] == "labels" else out.softmax(-1)).numpy()
