"""The graph of a finished run, read as it was read then; and other graphs, prepared as that one was."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from ltga.data import (
    Dataset,
    GraphFolder,
    MendedWarning,
    NodeDataset,
    dataset_from_data,
    load_dataset,
    load_graph,
    open_graph_folder,
)
from ltga.data.collection_tables import is_collection
from ltga.data.dataset_names import looks_like_a_path
from ltga.data.graph_files import is_table_source
from ltga.data.graph_folder_files import is_graph_folder
from ltga.data.readings import prepare_like, read_again
from ltga.errors import InputError
from ltga.train.finished import Run
from ltga.train.predict import check_preparation


def graph_of(run: Run, source: Any = None, root: str | Path | None = None) -> Dataset:
    """The graph a run was made on, looked up by its name or where its record says it was read.

    Args:
        run: a finished run.
        source: where the graph is now, if it has moved.
        root: folder to look for known datasets in.
    """
    found: Dataset = read_for(run, source, root, load_graph)
    return found


def read_for(run: Run, source: Any, root: str | Path | None, load: Callable[[Any, Any], Any]) -> Any:
    """What a run was made on, as its record says; ``load`` reads what has a name or a path only."""
    name, reading = run.typed.config.dataset.name, run.typed.reading
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MendedWarning)  # it was said when the run was made
        if reading is not None:
            return read_again(reading, source, root)
        if source is not None:
            return load(source, root)
        try:
            return load(name, root)
        except InputError:
            raise InputError(
                f"dataset: the run was made on {name!r}, which is not a known dataset; pass the data itself"
            ) from None


@dataclass(frozen=True)
class GraphToPredict:
    """A graph for ``run.predict``.

    Attributes:
        data: prepared like the run's own; labels may be missing.
        ids: what people call its nodes.
        names: of its classes or labels, where it has its own.
        dataset: the same with targets and splits; ``None``, or an error, where too little is known.
    """

    data: Data | GraphFolder
    ids: Sequence[Any]
    names: Sequence[str] | None = None
    dataset: Callable[[], Any] = lambda: None


def graph_to_predict(
    run: Run, source: Any = None, root: str | Path | None = None, changes: Mapping[str, Any] | None = None
) -> GraphToPredict:
    """A graph for ``run.predict``, prepared like the run's own, and its nodes' ids; labels may be missing.

    A graph folder is opened, not loaded, if the network can be computed from there. ``changes``: options of the
    preparation that are others for this table, see :meth:`~ltga.data.Preparation.for_another`.
    """
    if isinstance(source, Data | Dataset | NodeDataset):
        refuse_changes(changes)
    if isinstance(source, Data):
        return GraphToPredict(source, range(source.num_nodes or 0), None, lambda: _with_splits(run, source))
    if isinstance(source, Dataset | NodeDataset):
        check_preparation(run.typed, source)
        return _of_dataset(source)
    reading = run.typed.reading
    folder = (reading or {}).get("path") if source is None else source
    if isinstance(folder, str | Path) and is_graph_folder(Path(folder).expanduser()) and run.model.layered:
        refuse_changes(changes)
        opened = open_graph_folder(folder)
        _check_prepared_alike(reading or {}, opened)
        return GraphToPredict(opened, FolderNames(opened), opened.class_names, lambda: opened)
    if isinstance(source, str | Path) and looks_like_a_path(str(source)) and is_collection(source):
        raise InputError(f"GRAPH: {source} holds many graphs, and the run is on the nodes of one; give one graph")
    if reading is not None and "preparation" in reading:
        prepared = prepare_like(reading, source, changes)
        prepared.problems.warn(prepared.tables.where, "the warning's notes")
        return GraphToPredict(prepared.data(), prepared.node_ids, prepared.fitted.classes, prepared.dataset)
    refuse_changes(changes)
    if run.typed.config.task is not None:
        dataset = graph_of(run) if reading is not None and source is None else _any_graph(run, source, root)
    else:
        if (reading or {}).get("format") == "graph folder":
            _refuse_tables(source)
        dataset = graph_of(run) if source is None else load_graph(source, root)
    return _of_dataset(dataset)


def refuse_changes(changes: Mapping[str, Any] | None) -> None:
    """Raise for options of a preparation where no tables are prepared."""
    if changes:
        raise InputError(f"prepare: {next(iter(changes))}: no tables are prepared for this prediction; leave it out")


def _of_dataset(dataset: Dataset | NodeDataset) -> GraphToPredict:
    return GraphToPredict(dataset.data, ids_of(dataset), dataset.target.names, lambda: dataset)


def _with_splits(run: Run, data: Data) -> Any:
    if run.typed.config.task is None:
        return dataset_from_data(data)
    from ltga.train.tasks.choose import choose  # it stands on this file's package

    return choose(data, "node")


def _check_prepared_alike(reading: Mapping[str, Any], folder: GraphFolder) -> None:
    """Raise if a run on prepared tables (scaled ones, for example) would be shown features that are not."""
    wanted = reading.get("preparation")
    if wanted is not None and wanted != folder.preparation:
        raise InputError(
            f"GRAPH: {folder.path} was not prepared as the run's graph was; give its tables, which then are"
        )


def _refuse_tables(source: Any) -> None:
    """Raise for tables where the run was made on a graph folder."""
    path = Path(source).expanduser() if isinstance(source, str | Path) and looks_like_a_path(str(source)) else None
    if path is not None and path.exists() and is_table_source(path) and not is_graph_folder(path):
        raise InputError(
            f"GRAPH: {source} would be prepared anew (scaled, for example), and the run was made on a graph "
            "folder; write it to one with `ltga convert`, as the run's graph was, and give that"
        )


class FolderNames(Sequence[str]):
    """What the nodes of a graph on disk are called, read as they are asked for."""

    def __init__(self, folder: GraphFolder) -> None:
        self._folder = folder

    def __len__(self) -> int:
        return self._folder.num_nodes

    def __getitem__(self, at: Any) -> Any:
        numbers = range(len(self))[at]
        return self._folder.node_names(numbers) if isinstance(at, slice) else self._folder.node_names([numbers])[0]


def _any_graph(run: Run, source: Any, root: str | Path | None) -> Any:
    """The graph of a run of another task than node classification, which may be a graph with classes."""
    dataset = load_dataset(run.typed.config.dataset.name if source is None else source, root)
    if not isinstance(dataset, Dataset | NodeDataset):
        raise InputError(f"GRAPH: {dataset.name} is for {dataset.task}; give one graph with nodes to predict")
    return dataset


def ids_of(dataset: Dataset | NodeDataset) -> Sequence[Any]:
    """What people call the nodes: their ids, else their numbers."""
    return dataset.node_ids if dataset.node_ids is not None else range(dataset.data.num_nodes)
