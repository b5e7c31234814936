"""From a catalogue entry for another task than node classification to its dataset."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from ltga.data.assemble import GraphArrays, assemble
from ltga.data.bounds import in_a_line
from ltga.data.collection import GraphCollection
from ltga.data.dataset import Dataset
from ltga.data.facts import Facts
from ltga.data.knobs import knob_name, parse_knobs
from ltga.data.molecules import read_molecules
from ltga.data.node_dataset import NodeDataset
from ltga.data.obtain import obtain
from ltga.data.target import make_target
from ltga.data.triples import Triples, read_triples
from ltga.data.tu import read_tu
from ltga.data.twitch import read_twitch
from ltga.errors import DataError, InputError

_SOLUBILITY = "measured log solubility in mols per litre"
_MOST_TEXT = 64 * 1024**2


def load_task_dataset(
    facts: Facts, root: str | Path | None, knobs: str
) -> Dataset | NodeDataset | GraphCollection | Triples:
    """The dataset of a catalogue entry whose reader is one of `TASK_READERS`."""
    return TASK_READERS[facts.reader](facts, root, knobs)


def _load_tu(facts: Facts, root: str | Path | None, knobs: str) -> GraphCollection:
    def make(attributes: int = 0, scale: int = 0) -> GraphCollection:
        for knob, value in (("attributes", attributes), ("scale", scale)):
            if value not in (0, 1):
                raise InputError(f"name: {facts.name}: {knob} must be 0 or 1, got {value}")
        if scale and not attributes:
            raise InputError(f"name: {facts.name}: scale is for attributes; write {facts.name}:attributes=1,scale=1")
        folder, paths = obtain(facts, root)
        stem = paths[0].name.removesuffix("A.txt")
        read = read_tu({path.stem.removeprefix(stem): path for path in paths}, bool(attributes), bool(scale))
        name = knob_name(facts.name, make, {"attributes": attributes, "scale": scale})
        target = make_target(read.y, name, "classes", read.class_names, item="graph")
        collection = GraphCollection(
            name, read.graphs, target, facts=facts, provenance={"folder": str(folder), "form": "raw"}
        )
        _check(collection, facts, read.stored_edges, paths[0].parent, any_features=bool(attributes))
        return collection

    return make(**parse_knobs(facts.name, make, knobs))  # type: ignore[arg-type]


def _load_molecules(facts: Facts, root: str | Path | None, knobs: str) -> GraphCollection:
    _refuse_knobs(facts, knobs)
    folder, (path,) = obtain(facts, root)
    frame = _read_csv(path)
    labels = [_SOLUBILITY] if facts.classes == 0 else list(frame.columns[: facts.classes])
    names = frame["Compound ID" if facts.classes == 0 else "mol_id"].astype(str).tolist()
    read = read_molecules(frame["smiles"].astype(str).tolist())
    values = frame[labels].to_numpy(dtype=np.float64)[read.positions]
    kind, y = ("number", values[:, 0]) if facts.classes == 0 else ("labels", values)
    collection = GraphCollection(
        facts.name,
        read.graphs,
        make_target(y, facts.name, kind, labels, item="graph"),  # type: ignore[arg-type]
        groups=read.canonical,
        graph_names=[names[position] for position in read.positions],
        left_out=[f"{names[position]}: {reason}" for position, reason in read.unparsable],
        facts=facts,
        provenance={"folder": str(folder), "form": "raw", "left_out": len(read.unparsable)},
    )
    # How many molecules parse, and into what, is rdkit's to say and may change with its version.
    if len(collection) + len(collection.left_out) != len(frame) or collection.num_features != facts.features:
        raise DataError(f"{path}: this is not {facts.name}: it gives {collection!r}")
    return collection


def _load_twitch(facts: Facts, root: str | Path | None, knobs: str) -> Dataset | NodeDataset:
    chosen = _chosen_target(facts, knobs)
    folder, paths = obtain(facts, root)
    arrays, where = read_twitch(paths), str(paths[0].parent)
    graph = GraphArrays(arrays.x, arrays.targets["mature"], arrays.edges, None, class_names=("not mature", "mature"))
    origin = {"folder": str(folder), "form": "raw", "target": chosen}
    dataset = assemble(graph, facts.name, facts.convention, where, facts, origin)
    if chosen == facts.targets[0]:
        return dataset
    name = f"{facts.name}:target={chosen}"
    target = make_target(arrays.targets[chosen].astype(np.float64), name, "number", [chosen])
    # The splits of the classes, so that one node is in one part whatever is predicted of it.
    masks = tuple(torch.stack(part) for part in zip(*map(dataset.split, range(dataset.num_splits))))
    return NodeDataset(name, dataset.data, target, masks, facts=facts, provenance=dataset.provenance)  # type: ignore[arg-type]


def _load_triples(facts: Facts, root: str | Path | None, knobs: str) -> Triples:
    _refuse_knobs(facts, knobs)
    folder, paths = obtain(facts, root)
    triples = read_triples(paths, facts.name, facts, {"folder": str(folder), "form": "raw", "splits": "as given"})
    found = (triples.num_nodes, triples.edge_type.shape[0], triples.num_relations)
    if found != (facts.nodes, facts.edges, facts.classes):
        raise DataError(f"{paths[0].parent}: this is not {facts.name}: it has {found} nodes, triples and relations")
    return triples


TASK_READERS: dict[str, Any] = {
    "tu": _load_tu,
    "molecules": _load_molecules,
    "twitch": _load_twitch,
    "triples": _load_triples,
}


def _refuse_knobs(facts: Facts, knobs: str) -> None:
    if knobs:
        raise InputError(f"name: {facts.name} is fixed and takes no settings, got {knobs!r}")


def _chosen_target(facts: Facts, knobs: str) -> str:
    """The target that `"target=views"` names; the first if nothing is named."""
    if not knobs:
        return facts.targets[0]
    key, _, value = (part.strip() for part in knobs.partition("="))
    if key != "target" or value not in facts.targets:
        raise InputError(f"name: {facts.name} has no {knobs!r}; use target={', target='.join(facts.targets)}")
    return value


def _check(collection: GraphCollection, facts: Facts, edges: int, where: Path, any_features: bool) -> None:
    found = {
        "graphs": len(collection),
        "nodes": sum(graph.x.shape[0] for graph in collection),
        "edges": edges,
        "features": facts.features if any_features else collection.num_features,
        "classes": collection.target.outputs,
    }
    wrong = [f"{count:,} {key} instead of {getattr(facts, key):,}" for key, count in found.items()
             if count != getattr(facts, key)]  # fmt: skip
    if wrong:
        raise DataError(f"{where}: this is not {facts.name}: it has {', '.join(wrong)}; remove or replace it")


def _read_csv(path: Path) -> pd.DataFrame:
    """A CSV file, packed or not, whose sha256 has been checked."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
                content = stream.read(_MOST_TEXT)
        return pd.read_csv(io.BytesIO(content))
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise DataError(f"{path}: cannot be read as a table ({in_a_line(error)}); fetch it again") from None
