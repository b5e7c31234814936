"""Which task data is for: from what ``fit`` and ``ltga train`` are given to a dataset whose ``task`` says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data import (
    Dataset,
    GraphCollection,
    GraphFolder,
    LinkSplit,
    NodeDataset,
    Triples,
    collection_from_data,
    dataset_from_data,
    load_dataset,
    make_target,
    open_graph_folder,
)
from ltga.data.dataset_names import TASKS, looks_like_a_path
from ltga.data.graph_folder_files import is_graph_folder
from ltga.data.own_graph import is_for_links, preparation_for
from ltga.data.sources import as_graph, is_graph_object
from ltga.data.split_masks import fingerprint_of
from ltga.errors import InputError

Anything = Dataset | GraphFolder | NodeDataset | GraphCollection | Triples | LinkSplit
_FEW = 20  # whole numbers stored as fractions with no more values than this may be classes or numbers


def choose(data: Any, task: str | None = None) -> Anything:
    """The dataset that ``data`` is or names, checked to be for ``task`` if one is named.

    A graph with ``task="link"`` comes back as it is: which edges are held out is a matter of the split.
    """
    if task is not None and task not in TASKS:
        raise InputError(f"task: got {task!r}; use one of {', '.join(map(repr, TASKS))}, or leave it out")
    chosen = _as_dataset(data, task)
    if is_for_links(chosen) and task != "link":
        raise InputError(f"task: {chosen.name} was read for its links (predict=links); use task='link'")
    fits = {
        Dataset: ("node", "link"),
        GraphFolder: ("node",),
        NodeDataset: ("node",),  # for its links give the PyG Data without y
        GraphCollection: ("graph",),
        Triples: ("link",),
        LinkSplit: ("link",),
    }[type(chosen)]
    if task is not None and task not in fits:
        raise InputError(f"task: {chosen.name} is for {chosen.task}; use task={' or '.join(map(repr, fits))}")
    return chosen


def fingerprint(data: Any) -> str:
    """A sha256 of all that a run on ``data`` depends on."""
    if isinstance(data, LinkSplit):
        return fingerprint_of((data.data.x, data.data.edge_index, data.train, data.val, data.test))
    return str(data.fingerprint)


def _as_dataset(data: Any, task: str | None) -> Anything:
    if isinstance(data, str | Path) and looks_like_a_path(str(data)) and is_graph_folder(Path(data).expanduser()):
        data = open_graph_folder(data)
    if isinstance(data, GraphFolder):
        return data.dataset() if task == "link" else data  # which edges are held out is drawn in memory
    if isinstance(data, Dataset | NodeDataset | GraphCollection | Triples | LinkSplit):
        return data
    if isinstance(data, str | Path):
        return load_dataset(data, preparation=preparation_for(data, None, task))  # type: ignore[no-any-return]
    if is_graph_object(data):
        return as_graph(data, predict="links") if task == "link" else as_graph(data)  # type: ignore[no-any-return]
    if isinstance(data, list | tuple):
        return collection_from_data(list(data))
    if isinstance(data, Data):
        return _from_data(data, task)
    raise InputError(
        "dataset: expected a Dataset, a PyG Data or a list of them, a name, or what ltga.data.as_graph takes "
        f"(networkx, igraph, scipy, data frames), got {type(data).__name__}"
    )


def _from_data(data: Data, task: str | None) -> Dataset | NodeDataset:
    y = data.get("y")
    if task == "link" and not isinstance(y, Tensor):
        nodes = int(data.x.shape[0]) if isinstance(data.get("x"), Tensor) else 0
        data = data.__copy__()
        y = data.y = torch.arange(nodes) % 2  # labels are of no use to links, but a dataset has some
    if not isinstance(y, Tensor) or y.is_complex():
        return dataset_from_data(data)
    several = y.dim() > 2 or (y.dim() == 2 and y.shape[1] > 1)
    if not several and not y.is_floating_point():
        return dataset_from_data(data)
    if not several:
        known = y[~y.isnan()]
        if known.numel() and bool((known == known.round()).all()) and int(known.unique().numel()) <= _FEW:
            raise InputError(
                f"data: data.y holds a few whole numbers as {y.dtype}; for classes give y.long(), for a number "
                "NodeDataset(name, data, make_target(y, name, 'number'))"
            )
    return _number_or_labels(data, y)


def _number_or_labels(data: Data, y: Tensor) -> NodeDataset:
    """The graph with its masks checked and its features as float32, as for classes, and ``y`` as the target."""
    target = make_target(y, "data: data.y")
    plain = data.__copy__()
    known = target.known
    # Classes that only say who has a target: the rest of the graph is checked as every graph is.
    plain.y = torch.where(known, torch.arange(len(known)) % 2, -1)
    if plain.y.unique().numel() < 2 or len(known) != len(data.x):
        raise InputError(f"data: {len(data.x)} nodes but {int(known.sum())} with a target; give one for each")
    checked = dataset_from_data(plain)
    given = isinstance(data.get("train_mask"), Tensor)
    masks = tuple(torch.stack(part) for part in zip(*map(checked.split, range(checked.num_splits))))
    return NodeDataset(checked.name, checked.data, target, masks if given else None)  # type: ignore[arg-type]
