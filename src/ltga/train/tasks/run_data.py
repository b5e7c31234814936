"""The data of a finished run on another task, read as it was read then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from ltga.data import Dataset, GraphCollection, LinkSplit, NodeDataset, load_dataset, split_links
from ltga.data.dataset_names import looks_like_a_path
from ltga.data.link_structure import without_held_out
from ltga.data.prepare_collection import PreparedCollection, molecules_of
from ltga.data.readings import prepare_graphs_like
from ltga.errors import InputError
from ltga.train.finished import Run
from ltga.train.predict import check_preparation
from ltga.train.run_graph import read_for, refuse_changes
from ltga.train.tasks.choose import Anything, choose, fingerprint


def links_of(dataset: Dataset | NodeDataset, split: int) -> LinkSplit:
    """The links of a graph, divided by the number of a split; the nodes keep what people call them.

    Features that were made from the edges are made from the training edges alone.
    """
    links = split_links(dataset.data, dataset.name, seed=split)
    links = without_held_out(links, dataset)
    return replace(links, node_ids=getattr(dataset, "node_ids", None), node_names=dataset.node_names)


def data_of(run: Run, data: Any = None, root: str | Path | None = None) -> Anything:
    """What a run was made on, checked against the fingerprint in its record.

    Args:
        run: a finished run on another task than node classification.
        data: the data, or where it is now; looked up by its name or where the record says it was read if left out.
        root: folder to look for known datasets in.
    """
    config = run.typed.config
    found = choose(_read(run, data, root), "link" if config.task == "link prediction" else None)
    if config.task == "link prediction" and isinstance(found, Dataset | NodeDataset):
        found = links_of(found, config.split)
    if found.task != config.task:
        raise InputError(f"dataset: {found.name!r} is for {found.task}, but the run is for {config.task}")
    if fingerprint(found) != config.dataset.fingerprint:
        raise InputError(
            f"dataset: {found.name!r} is not what this run was made on ({config.dataset.name!r}, fingerprint "
            f"{config.dataset.fingerprint[:12]}); features, targets, edges or splits differ"
        )
    return found


def _read(run: Run, data: Any, root: str | Path | None) -> Any:
    if data is not None and not isinstance(data, str | Path):
        return data
    return read_for(run, data, root, load_dataset)


def graphs_to_predict(
    run: Run, source: Any = None, root: str | Path | None = None, changes: Mapping[str, Any] | None = None
) -> tuple[list[Data], Sequence[Any]]:
    """Graphs for ``run.predict``, prepared like the run's own, and what people call them; targets may be missing.

    Args:
        run: a finished run on whole graphs.
        source: a folder of graphs, a known dataset, a collection, a ``Data`` or several; the run's own graphs if left
            out.
        root: folder to look for known datasets in.
        changes: options of the preparation that are others for these tables.
    """
    if isinstance(source, Data | GraphCollection) or (isinstance(source, list | tuple) and source):
        refuse_changes(changes)
        check_preparation(run.typed, source)
        graphs = [source] if isinstance(source, Data) else list(source)
        return graphs, getattr(source, "graph_names", None) or range(len(graphs))
    if source is not None and not isinstance(source, str | Path):
        got = type(source).__name__
        raise InputError(f"graph: expected a folder of graphs, a collection, a Data or a list of them, got {got}")
    reading = run.typed.reading or {}
    prepared: PreparedCollection | None = None
    if reading.get("format") == "collection" and "preparation" in reading:
        prepared = prepare_graphs_like(reading, source, changes)
    elif source is not None and looks_like_a_path(str(source)):
        refuse_changes(changes)
        prepared = molecules_of(source)
    if prepared is not None:
        prepared.problems.warn(str(prepared.tables.folder), "the warning's notes")
        return prepared.graphs, prepared.graph_names
    refuse_changes(changes)
    found = read_for(run, None, root, load_dataset) if source is None else load_dataset(source, root)
    if not isinstance(found, GraphCollection):
        raise InputError(f"GRAPH: {found.name} is for {found.task}; give many graphs")
    return found.graphs, found.graph_names or range(len(found))
