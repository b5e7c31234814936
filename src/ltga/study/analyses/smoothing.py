r"""Over-smoothing: how alike the embeddings of neighbours, and of all nodes, become with depth.

Both measures look at directions only, :math:`\hat x = x / \|x\|`. The paper gives no formula for its
normalised Dirichlet energy; of seven candidates tried, the one here came nearest to its two-layer cells on Cora, so
that agreement is how it was chosen and no confirmation of it.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.utils import remove_self_loops

from ltga.data import Dataset
from ltga.errors import InputError
from ltga.kernels import SparseFeatures
from ltga.nn.interface import Network
from ltga.study.analyses.inputs import task_of
from ltga.study.analyses.similarity import edge_cosine
from ltga.train.finished import Run
from ltga.train.loop import Task


def dirichlet_energy(x: Tensor, edge_index: Tensor) -> float:
    r"""Mean over edges of :math:`\tfrac12\|\hat x_i - \hat x_j\|^2 = 1 - \cos(x_i, x_j)`, self-loops aside.

    0 if all neighbours point the same way. Edges at a node whose embedding is zero have no direction
    and are left out; NaN if no edge remains.

    >>> dirichlet_energy(torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([[0, 1], [1, 0]]))
    1.0
    """
    edges, _ = remove_self_loops(edge_index)
    return float(1 - edge_cosine(x, edges).nanmean())


def mean_average_distance(x: Tensor) -> float:
    r"""Mean of :math:`1 - \cos(x_i, x_j)` over all pairs of different nodes with a non-zero embedding.

    In closed form from :math:`s = \sum_i \hat x_i`: the mean cosine is
    :math:`(\|s\|^2 - n) / (n (n - 1))`. NaN with fewer than two such nodes.

    >>> mean_average_distance(torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]))
    0.6666666666666667
    """
    unit = F.normalize(x[(x != 0).any(dim=1)].double(), dim=1)
    n = len(unit)
    if n < 2:
        return float("nan")
    return float(1 - (unit.sum(0).square().sum() - n) / (n * (n - 1)))


def layer_embeddings(model: Network, task: Task) -> list[Tensor]:
    """What each layer reads, then the logits: features, hidden embeddings after ELU, ``[N, C]``; no dropout."""
    convs = getattr(model, "convs", None)
    if not isinstance(convs, nn.ModuleList):
        raise InputError(f"model: {type(model).__name__} is no stack of layers; take GCN, GAT, GATv2 or LTGA")
    seen: list[Tensor] = []

    def note(_: nn.Module, inputs: tuple[Any, ...]) -> None:
        x = inputs[0]
        seen.append(x.to_dense() if isinstance(x, SparseFeatures) else x)

    handles = [conv.register_forward_pre_hook(note) for conv in convs]
    try:
        model.eval()
        with torch.no_grad():
            logits = task.logits(model)
    finally:
        for handle in handles:
            handle.remove()
    return [*seen, logits]


def smoothing(run: Run, dataset: Dataset) -> pd.DataFrame:
    """Both measures for every stage of a run's model.

    Returns:
        One row per stage: ``layer`` (0 to L), ``stage`` (``features``, ``hidden``, ``logits``),
        ``dirichlet_energy``, ``mean_average_distance``. The paper reports the last ``hidden`` row; a
        network of one layer has none.

    >>> from ltga.data import csbm
    >>> from ltga.train import fit
    >>> graph = csbm(num_nodes=60)
    >>> run = fit(graph, "gcn", protocol={"epochs": 1, "hidden_channels": 2, "num_layers": 3})
    >>> smoothing(run, graph)["stage"].tolist()
    ['features', 'hidden', 'hidden', 'logits']
    """
    task = task_of(run, dataset)
    stages = layer_embeddings(run.model, task)
    names = ["features", *["hidden"] * (len(stages) - 2), "logits"]
    rows = [
        {
            "layer": layer,
            "stage": name,
            "dirichlet_energy": dirichlet_energy(x, task.edge_index),
            "mean_average_distance": mean_average_distance(x),
        }
        for layer, (name, x) in enumerate(zip(names, stages))
    ]
    return pd.DataFrame(rows)
