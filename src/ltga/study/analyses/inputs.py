"""From a finished run and its graph to what an analysis looks at."""

from __future__ import annotations

import torch
from torch import Tensor

from ltga.data import Dataset
from ltga.errors import InputError
from ltga.nn.network import LTGA
from ltga.train.assembly import make_task
from ltga.train.finished import Run
from ltga.train.loop import Task


def check_graph(run: Run, dataset: Dataset) -> None:
    """Refuse a graph on which the run was not made."""
    known = run.typed.config.dataset
    if dataset.fingerprint != known.fingerprint:
        raise InputError(f"dataset: {dataset.name!r} is not the graph of this run, {known.name!r}; pass that")


def task_of(run: Run, dataset: Dataset) -> Task:
    """The graph and the split of a run; an error if the run was made on another graph.

    >>> from ltga.data import csbm
    >>> from ltga.train import fit
    >>> run = fit(csbm(num_nodes=40), "gat", protocol={"epochs": 1, "hidden_channels": 2})
    >>> len(task_of(run, csbm(num_nodes=40)).y)
    40
    >>> task_of(run, csbm(num_nodes=50))
    Traceback (most recent call last):
    ...
    ltga.errors.InputError: dataset: 'csbm:num_nodes=50' is not the graph of this run, 'csbm:num_nodes=40'; pass that
    """
    check_graph(run, dataset)
    config = run.typed.config
    return make_task(dataset, config.split, run.model, config.as_protocol())


@torch.no_grad()
def attention_of(run: Run, task: Task) -> list[tuple[Tensor, Tensor]]:
    """Per layer ``edge_index`` ``[2, E]`` (self-loops last) and weights ``[E, H]``, without dropout."""
    run.model.eval()
    layers = task.attention_weights(run.model)
    if layers is None:
        raise InputError(f"run: {run.typed.config.method} has no attention; take for example ltga-head")
    return layers


def indexed_model(run: Run) -> LTGA:
    """The run's network, if its attention has an entropic index that can be changed."""
    if not isinstance(run.model, LTGA):
        raise InputError(f"run: {run.typed.config.method} has no entropic index to change; take for example ltga-head")
    return run.model.eval()
