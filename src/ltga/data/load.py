"""`load_dataset`: from a name or a path to a dataset."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ltga.data.assemble import GraphArrays, assemble
from ltga.data.catalogue import Facts
from ltga.data.collection_tables import is_collection, load_collection
from ltga.data.dataset import Dataset
from ltga.data.dataset_names import known_dataset, looks_like_a_path
from ltga.data.digits import digits_noise
from ltga.data.geom_gcn import read_geom_gcn
from ltga.data.knobs import parse_knobs, take_knob
from ltga.data.label_share import share_labels
from ltga.data.npz import read_npz
from ltga.data.obtain import obtain
from ltga.data.own_graph import load_own_graph
from ltga.data.planetoid import PARTS, read_planetoid
from ltga.data.planted import plant_edges
from ltga.data.preparation import Preparation
from ltga.data.synthetic import csbm
from ltga.data.task_datasets import TASK_READERS, load_task_dataset
from ltga.data.triples_table import load_triples, triples_file
from ltga.errors import InputError

_GENERATORS: dict[str, Callable[..., Dataset]] = {"csbm": csbm, "digits-noise": digits_noise}

_RAW_READERS: dict[str, Callable[[list[Path]], GraphArrays]] = {
    "planetoid": lambda paths: read_planetoid(dict(zip(PARTS, paths))),
    "geom-gcn": lambda paths: read_geom_gcn(paths[0], paths[1], paths[2:]),
}


def load_dataset(
    name: str | Path,
    root: str | Path | None = None,
    *,
    convention: str | None = None,
    preparation: Preparation | None = None,
) -> Any:
    """A known dataset by name, or your own graph or collection of graphs by path.

    What comes back has a `task`: a `Dataset` for node classification, a `NodeDataset` for a number or several labels
    per node, a `GraphCollection` for targets of whole graphs, or `Triples` for typed links.

    Args:
        name: a name of `ltga.data.CATALOGUE`, with settings where it has some (`"csbm:degree=20,snr=0.5"`,
            `"twitch-de:target=views"`, `"enzymes:attributes=1"`; any other graph may have noise planted,
            `"cora:planted_per_edge=3"`, and every graph with a class for each node other splits,
            `"cora:label_share=0.1"`), or the path of a graph of your own (`ltga.data.load_own_graph`) or of a
            folder of many (`ltga.data.load_collection`), or of triples (`ltga.data.load_triples`).
        root: folder to look in first; then come `$LTGA_DATA` and the user cache directory. What is in
            none of them is downloaded.
        convention: for your own graph only: what a stored edge means.
        preparation: for your own tables only: what is done to them, see `ltga.data.Preparation`.

    >>> load_dataset("csbm:num_nodes=100,snr=2,seed=3").provenance["snr"]
    2
    """
    if not isinstance(name, str | Path) or not str(name):
        hint = "; for a graph in memory there is ltga.data.as_graph" if not isinstance(name, str | Path) else ""
        raise InputError(f"name: got {str(name)[:60]!r}; give the name of a dataset or the path of a graph{hint}")
    if isinstance(name, Path) or looks_like_a_path(name):
        if triples_file(name) is not None:
            if convention is not None:
                raise InputError("convention: a triple says its direction itself; leave it out")
            return load_triples(name, preparation)
        if is_collection(name):
            options = preparation or Preparation()
            return load_collection(name, options if convention is None else options.with_convention(convention))
        return load_own_graph(name, convention, preparation)
    if convention is not None:
        raise InputError("convention: a known dataset has its own; give it only with the path of a graph")
    if preparation is not None:
        raise InputError("prepare: a known dataset is prepared already; give it only with the path of tables")
    dataset = _load_known(name, root)
    dataset.reading = {"format": "named", "name": name}
    return dataset


def _load_known(name: str, root: str | Path | None) -> Any:
    facts, knobs = known_dataset(name), name.partition(":")[2]
    if facts.reader in TASK_READERS:
        return load_task_dataset(facts, root, knobs)
    share, knobs = take_knob(facts.name, share_labels, knobs, "label_share")
    if facts.name in _GENERATORS:
        make = _GENERATORS[facts.name]
        dataset = make(**parse_knobs(facts.name, make, knobs, also="label_share"))
    else:
        noise = parse_knobs(facts.name, plant_edges, knobs, given=1, also="label_share")
        dataset = _load_files(facts, root)
        dataset = plant_edges(dataset, **noise) if noise else dataset  # type: ignore[arg-type]
    return dataset if share is None else share_labels(dataset, share)


def load_graph(
    name: str | Path,
    root: str | Path | None = None,
    *,
    convention: str | None = None,
    preparation: Preparation | None = None,
) -> Dataset:
    """As `load_dataset`, for what can only deal with node classification: anything else is refused by name."""
    dataset = load_dataset(name, root, convention=convention, preparation=preparation)
    if not isinstance(dataset, Dataset):
        raise InputError(f"dataset: {dataset.name} is for {dataset.task}; give a graph with a class for each node")
    return dataset


def _load_files(facts: Facts, root: str | Path | None) -> Dataset:
    def from_npz(path: Path, folder: Path) -> Dataset:
        provenance = {"folder": str(folder), "form": "packed"}
        return assemble(read_npz(path), facts.name, facts.convention, str(path), facts, provenance)

    folder, paths = obtain(facts, root, verify=lambda part: from_npz(part, part.parent))
    if len(paths) == 1:
        return from_npz(paths[0], folder)
    arrays = _RAW_READERS[facts.reader](paths)
    where = str(paths[0].parent)
    return assemble(arrays, facts.name, facts.convention, where, facts, {"folder": str(folder), "form": "raw"})
