"""`read_again`: the graph of a run, or another one prepared as that one was, from what the run's record says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from ltga.data.collection_tables import SMILES, is_collection, read_collection
from ltga.data.load import load_dataset
from ltga.data.prepare import FittedPreparation, PreparedGraph
from ltga.data.prepare_collection import FittedCollection, PreparedCollection, accepted_collection
from ltga.errors import InputError, LTGAError, RecordError

_Kept = TypeVar("_Kept", FittedPreparation, FittedCollection)


def read_again(reading: Mapping[str, Any], source: Any = None, root: str | Path | None = None) -> Any:
    """The dataset that a `Dataset.reading` tells of.

    Args:
        reading: as in the record of a run.
        source: where the graph is now (a path, a networkx graph, ...), if it has moved or never was a file.
        root: folder to look for known datasets in.

    >>> from ltga.data import load_dataset
    >>> graph = load_dataset("csbm:num_nodes=80")
    >>> read_again(graph.reading).fingerprint == graph.fingerprint
    True
    """
    kind, name = _told(reading, "format"), _told(reading, "name")
    if kind == "collection" and "preparation" in reading:
        return prepare_graphs_like(reading, source).collection(name)
    if "preparation" in reading:
        prepared = prepare_like(reading, source)
        return replace(prepared, tables=replace(prepared.tables, name=name)).dataset()
    if kind == "named":
        return load_dataset(name if source is None else source, root)
    return load_dataset(_place(reading, source), root, convention=reading.get("convention"))


def prepare_like(reading: Mapping[str, Any], source: Any, changes: Mapping[str, Any] | None = None) -> PreparedGraph:
    """Another graph, or the same one grown, prepared as the graph of `reading` was; labels may be missing there.

    Without a `source` it is the graph of `reading`, as it is now.
    `changes`: options of `Preparation` about how this table is written, or its odd rows, that differ from then.
    """
    if "preparation" not in reading:
        raise InputError("reading: this graph was not made from tables, so there is no preparation to repeat")
    return _fitted(FittedPreparation, reading, changes).apply(_place(reading, source))


def prepare_graphs_like(
    reading: Mapping[str, Any], folder: Any, changes: Mapping[str, Any] | None = None
) -> PreparedCollection:
    """The graphs of another folder, prepared as the collection of `reading` was; targets may be missing there."""
    folder = _place(reading, folder)
    if not isinstance(folder, str | Path) or not is_collection(folder):
        raise InputError(f"GRAPH: {folder} is no folder with graphs.csv (or .parquet), as the run's was")
    fitted = _fitted(FittedCollection, reading, changes)
    tables = read_collection(folder, fitted.options)
    if tables.of_molecules != (fitted.graph is None):
        has, wants = f"has no column {SMILES!r}", "molecules; add it"
        if tables.of_molecules:
            has, wants = f"has molecules, in column {SMILES!r}", "graphs of a node and an edge table; give both"
        raise InputError(f"GRAPH: {tables.paths['graphs']}: {has}, and the run is on {wants}")
    return accepted_collection(tables, fitted.options, fitted)


def _fitted(kind: type[_Kept], reading: Mapping[str, Any], changes: Mapping[str, Any] | None) -> _Kept:
    try:
        fitted = kind.model_validate(reading["preparation"])
    except (ValidationError, LTGAError) as error:
        raise RecordError(f"reading: its preparation is damaged or of another version ({error})") from None
    return fitted.model_copy(update={"options": fitted.options.for_another(changes)}) if changes else fitted


def _told(reading: Mapping[str, Any], key: str) -> str:
    told = reading.get(key)
    if not isinstance(told, str):
        raise RecordError(f"reading: does not say its {key}; pass the graph itself")
    return told


def _place(reading: Mapping[str, Any], source: Any) -> Any:
    if source is not None:
        return source
    if not isinstance(reading.get("path"), str):
        raise InputError(f"dataset: was made in memory ({_told(reading, 'format')}); pass the graph itself")
    return Path(reading["path"])
