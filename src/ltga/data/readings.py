"""`read_again`: the graph of a run, or another one prepared as that one was, from what the run's record says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ltga.data.load import load_dataset
from ltga.data.preparation import Preparation
from ltga.data.prepare import FittedPreparation, PreparedGraph
from ltga.errors import InputError, LTGAError, RecordError


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
    if "preparation" in reading:
        prepared = prepare_like(reading, _place(reading, source))
        return replace(prepared, tables=replace(prepared.tables, name=name)).dataset()
    if kind == "named":
        return load_dataset(name if source is None else source, root)
    return load_dataset(_place(reading, source), root, convention=reading.get("convention"))


def prepare_like(reading: Mapping[str, Any], source: Any, new_category: str | None = None) -> PreparedGraph:
    """Another graph, or the same one grown, prepared as the graph of `reading` was; labels may be missing there.

    `new_category` as in `Preparation`, if it is not to be as it was then.
    """
    if "preparation" not in reading:
        raise InputError("reading: this graph was not made from tables, so there is no preparation to repeat")
    try:
        fitted = FittedPreparation.model_validate(reading["preparation"])
    except (ValidationError, LTGAError) as error:
        raise RecordError(f"reading: its preparation is damaged or of another version ({error})") from None
    if new_category is not None:
        options = Preparation(**{**fitted.options.model_dump(), "new_category": new_category})
        fitted = fitted.model_copy(update={"options": options})
    return fitted.apply(source)


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
