"""A graph on disk, of which only what is asked for is read: memory-mapped arrays and a manifest.

======================  =========================  =====================================================
file                    shape and kind             what it holds
======================  =========================  =====================================================
``manifest.json``                                  what the graph is, and of every file kind, shape and sha256
``ptr.npy``             [N + 1] int64              the edges into node v stand from ptr[v] to ptr[v + 1]
``source.npy``          [E] int32 or int64         where each edge comes from
``x.npy``               [N, F] float16 or float32  features
``y.npy``               [N] int32                  labels, -1 where not known
``splits.npy``          [S, N] uint8               0 in no part, 1 training, 2 validation, 3 test
``edge_attr.npy``       [E, D] float32             edge attributes, if there are some
``edge_time.npy``       [E] float64                times, if edges have them; then ascending for every node
``ids_ptr.npy``         [N + 1] int64              the name of node v is ids_utf8[ids_ptr[v] : ids_ptr[v + 1]],
``ids_utf8.npy``        [B] uint8                  if nodes have names
======================  =========================  =====================================================

The manifest is written last and the folder gets its name when all of it is there.
"""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data.bounds import in_a_line
from ltga.data.dataset import Dataset
from ltga.data.facts import Facts, Task
from ltga.data.graph_folder_files import AGAIN, KINDS, PARTS, open_files, verify
from ltga.data.incoming import Incoming, as_times, as_weights
from ltga.data.mapped_rows import MappedRows, Residency
from ltga.data.target import Target
from ltga.errors import DataError, InputError


class GraphFolder:
    """A graph that stays on disk.

    Made by :func:`open_graph_folder`. Arrays are attributes (``x``, ``y``, ``ptr``, ``source``, ``splits``,
    ``edge_attr``, ``edge_time``; ``None`` if the graph has none) and mapped read-only. Edges are numbered as they
    stand: by target, then by source or time.

    It can be trained on as a :class:`~ltga.data.Dataset` is, by batches, and has what that has of ``name``,
    ``class_names``, ``target``, splits and ``fingerprint``.
    """

    task: Task = "node classification"
    metric = "accuracy"
    facts: Facts | None = None
    notes: tuple[str, ...] = ()
    feature_names = None

    def __init__(self, path: Path, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.path = path
        self.manifest = manifest
        self.name: str = in_a_line(manifest["name"])
        self.class_names: tuple[str, ...] = tuple(manifest["class_names"])
        self.edge_columns: tuple[str, ...] = tuple(manifest["edge_columns"])
        self._arrays = arrays
        self._residency = Residency(arrays.values())
        for name in KINDS:
            setattr(self, name, arrays.get(name))

    x: np.ndarray
    y: np.ndarray
    ptr: np.ndarray
    source: np.ndarray
    splits: np.ndarray
    edge_attr: np.ndarray | None
    edge_time: np.ndarray | None
    ids_ptr: np.ndarray | None
    ids_utf8: np.ndarray | None

    @property
    def num_nodes(self) -> int:
        return len(self.y)

    @property
    def num_edges(self) -> int:
        return len(self.source)

    @property
    def num_features(self) -> int:
        return self.x.shape[1]

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    @property
    def num_splits(self) -> int:
        return len(self.splits)

    def split(self, number: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """Masks ``[N]`` of training, validation and test nodes."""
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < self.num_splits:
            raise InputError(f"split: {self.name} has splits 0 to {self.num_splits - 1}, got {number!r}")
        given = np.array(self.splits[number])
        if int(given.max()) > max(PARTS.values()):
            raise DataError(f"{self.path}: splits.npy puts a node into part {int(given.max())}; {AGAIN}")
        train, val, test = (torch.from_numpy(given == part) for part in PARTS.values())
        unlabelled = np.flatnonzero((given > 0) & (self.y < 0))
        if unlabelled.size or not bool(train.any()):
            fault = f"node {unlabelled[0]} without a label" if unlabelled.size else "no training nodes"
            raise DataError(f"{self.path}: split {number} has {fault}; {AGAIN}")
        return train, val, test

    @cached_property
    def target(self) -> Target:
        """The labels, read into memory and checked."""
        labels = torch.from_numpy(self.y.astype(np.int64))
        bad = ((labels < -1) | (labels >= self.num_classes)).nonzero()
        if len(bad):
            at = int(bad[0])
            raise DataError(f"{self.path}: node {at} has label {int(labels[at])} of {self.num_classes}; {AGAIN}")
        return Target("classes", labels, self.class_names)

    def node_names(self, nodes: Any) -> list[str]:
        """The names of nodes, their numbers if they have none."""
        if self.ids_ptr is None or self.ids_utf8 is None:
            return [str(node) for node in np.asarray(nodes).tolist()]
        names = []
        for node in np.asarray(nodes).tolist():
            first, last = int(self.ids_ptr[node]), int(self.ids_ptr[node + 1])
            if not 0 <= first <= last <= len(self.ids_utf8):
                raise DataError(f"{self.path}: ids_ptr.npy leads out of the names at node {node}; {AGAIN}")
            names.append(self.ids_utf8[first:last].tobytes().decode("utf-8", "replace"))
        return names

    def incoming(self, weight_attr: str | None = None, time_attr: str | None = None) -> Incoming:
        """What a sampler draws from, mapped; weights, an edge column by its name, are read into memory."""
        weight = time = None
        if weight_attr is not None:
            if weight_attr not in self.edge_columns or self.edge_attr is None:
                columns = ", ".join(self.edge_columns) or "none"
                raise InputError(f"weight_attr: {self.path} has no edge column {weight_attr!r}; it has {columns}")
            weight = as_weights(self.edge_attr[:, self.edge_columns.index(weight_attr)], "weight_attr")
        if time_attr is not None:
            if time_attr not in ("time", "edge_time") or self.edge_time is None:
                raise InputError(f"time_attr: {self.path} has no times {time_attr!r}; convert edges with a column time")
            time = as_times(self.edge_time, "time_attr")
        return Incoming(self.ptr, self.source, None, weight, time, where=str(self.path))

    @cached_property
    def feature_rows(self) -> MappedRows:
        """The features ``[N, F]``, of which rows are read as float32."""
        return MappedRows(self.x, self._residency, f"{self.path}: features of node")

    @cached_property
    def attribute_rows(self) -> MappedRows | None:
        """The edge attributes ``[E, D]``, likewise."""
        if self.edge_attr is None:
            return None
        return MappedRows(self.edge_attr, self._residency, f"{self.path}: attributes of edge")

    def features(self, nodes: np.ndarray) -> Tensor:
        """Rows of the features ``[n, F]`` as float32."""
        return self.feature_rows[torch.from_numpy(nodes)]

    def attributes(self, nodes: np.ndarray, edges: np.ndarray) -> dict[str, Tensor]:
        """What a batch carries of these nodes and edges."""
        cut = {"x": self.features(nodes), "y": torch.from_numpy(np.take(self.y, nodes).astype(np.int64))}
        if self.attribute_rows is not None:
            cut["edge_attr"] = self.attribute_rows[torch.from_numpy(edges)]
        if self.edge_time is not None:
            cut["edge_time"] = torch.from_numpy(np.array(np.take(self.edge_time, edges)))
        return cut

    def verify(self) -> None:
        """Read all of it and compare it with its checksums."""
        verify(self.path, self.manifest, self._arrays)

    @property
    def reading(self) -> dict[str, Any]:
        """How to find it again, as a record says it."""
        return {"format": "graph folder", "path": str(self.path.resolve()), "name": self.name}

    @property
    def preparation(self) -> dict[str, Any] | None:
        """How tables became its numbers, if it was written from prepared ones."""
        told = self.manifest["provenance"].get("reading")
        return told.get("preparation") if isinstance(told, dict) else None

    @property
    def bytes_in_memory(self) -> int:
        """What :meth:`dataset` would take."""
        split, edge = 3 * self.num_splits, 16 + 4 * len(self.edge_columns) + 8 * (self.edge_time is not None)
        return self.num_nodes * (4 * self.num_features + 8 + split) + self.num_edges * edge

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the graph, from the checksums of its files."""
        told = {name: entry["sha256"] for name, entry in self.manifest["arrays"].items()}
        return hashlib.sha256(json.dumps([self.class_names, told], sort_keys=True).encode()).hexdigest()

    def dataset(self) -> Dataset:
        """The graph read into memory, checked as any other."""
        degrees = np.diff(self.ptr)
        if (degrees < 0).any() or self.ptr[0] != 0 or self.ptr[-1] != self.num_edges:
            raise DataError(f"{self.path}: ptr.npy is damaged; {AGAIN}")
        target = np.repeat(np.arange(self.num_nodes), degrees)
        data = Data(
            x=torch.from_numpy(self.x.astype(np.float32)),
            y=torch.from_numpy(self.y.astype(np.int64)),
            edge_index=torch.from_numpy(np.stack([self.source.astype(np.int64), target])),
        )
        for name in ("edge_attr", "edge_time"):
            if self._arrays.get(name) is not None:
                data[name] = torch.from_numpy(np.array(self._arrays[name]))
        masks = (torch.from_numpy(np.asarray(self.splits == part)) for part in PARTS.values())
        names = None if self.ids_ptr is None else tuple(self.node_names(np.arange(self.num_nodes)))
        provenance = {"path": str(self.path), **self.manifest["provenance"]}
        try:
            return Dataset(
                self.name, data, *masks, class_names=self.class_names, node_names=names, provenance=provenance,
                reading=self.reading,
            )  # fmt: skip
        except DataError as error:
            raise DataError(f"{self.path}: {error}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the folder itself; nothing of it is sent."""
        return open_graph_folder, (self.path.resolve(),), {"name": self.name}

    def __repr__(self) -> str:
        return (
            f"GraphFolder({str(self.path)!r}, {self.num_nodes:,} nodes, {self.num_edges:,} edges, "
            f"{self.num_features} features of {self.x.dtype}, {self.num_classes} classes, {self.num_splits} splits)"
        )


def open_graph_folder(path: str | Path) -> GraphFolder:
    """The graph in a folder that ``ltga convert`` wrote; nothing but headers is read.

    Only a file that is newer than the manifest, as after copying, is read once and compared with its checksum.
    """
    path = Path(path).expanduser()
    return GraphFolder(path, *open_files(path))
