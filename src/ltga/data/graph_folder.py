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
from ltga.data.incoming import Incoming, as_times, as_weights
from ltga.data.obtain import sha256_of
from ltga.errors import DataError, InputError

MANIFEST = "manifest.json"
FORMAT, VERSION = "ltga-graph", 1
PARTS = {"train": 1, "val": 2, "test": 3}
KINDS = {
    "ptr": ("int64",),
    "source": ("int32", "int64"),
    "x": ("float16", "float32"),
    "y": ("int32",),
    "splits": ("uint8",),
    "edge_attr": ("float32",),
    "edge_time": ("float64",),
    "ids_ptr": ("int64",),
    "ids_utf8": ("uint8",),
}
OPTIONAL = ("edge_attr", "edge_time", "ids_ptr", "ids_utf8")
_AGAIN = "make it again with `ltga convert`"


class GraphFolder:
    """A graph that stays on disk.

    Made by :func:`open_graph_folder`. Arrays are attributes (``x``, ``y``, ``ptr``, ``source``, ``splits``,
    ``edge_attr``, ``edge_time``; ``None`` if the graph has none) and mapped read-only. Edges are numbered as they
    stand: by target, then by source or time.
    """

    def __init__(self, path: Path, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.path = path
        self.manifest = manifest
        self.name: str = manifest["name"]
        self.class_names: tuple[str, ...] = tuple(manifest["class_names"])
        self.edge_columns: tuple[str, ...] = tuple(manifest["edge_columns"])
        self._arrays = arrays
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
        train, val, test = (torch.from_numpy(self.splits[number] == part) for part in PARTS.values())
        return train, val, test

    def node_names(self, nodes: Any) -> list[str]:
        """The names of nodes, their numbers if they have none."""
        if self.ids_ptr is None or self.ids_utf8 is None:
            return [str(node) for node in np.asarray(nodes).tolist()]
        bounds = ((int(self.ids_ptr[node]), int(self.ids_ptr[node + 1])) for node in np.asarray(nodes).tolist())
        return [self.ids_utf8[first:last].tobytes().decode("utf-8", "replace") for first, last in bounds]

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

    def features(self, nodes: np.ndarray) -> Tensor:
        """Rows of the features ``[n, F]`` as float32."""
        return torch.from_numpy(np.take(self.x, nodes, axis=0).astype(np.float32, copy=False))

    def attributes(self, nodes: np.ndarray, edges: np.ndarray) -> dict[str, Tensor]:
        """What a batch carries of these nodes and edges."""
        cut = {"x": self.features(nodes), "y": torch.from_numpy(np.take(self.y, nodes).astype(np.int64))}
        for name in ("edge_attr", "edge_time"):
            if self._arrays.get(name) is not None:
                cut[name] = torch.from_numpy(np.take(self._arrays[name], edges, axis=0))
        return cut

    def verify(self) -> None:
        """Read all of it and compare it with its checksums."""
        for name, entry in self.manifest["arrays"].items():
            if sha256_of(self.path / f"{name}.npy") != entry["sha256"]:
                raise DataError(f"{self.path}: {name}.npy is not what was written (its checksum differs); {_AGAIN}")

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the graph, from the checksums of its files."""
        told = {name: entry["sha256"] for name, entry in self.manifest["arrays"].items()}
        return hashlib.sha256(json.dumps([self.class_names, told], sort_keys=True).encode()).hexdigest()

    def dataset(self) -> Dataset:
        """The graph read into memory, checked as any other."""
        degrees = np.diff(self.ptr)
        if (degrees < 0).any() or self.ptr[0] != 0 or self.ptr[-1] != self.num_edges:
            raise DataError(f"{self.path}: ptr.npy is damaged; {_AGAIN}")
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
                self.name, data, *masks, class_names=self.class_names, node_names=names, provenance=provenance
            )
        except DataError as error:
            raise DataError(f"{self.path}: {error}") from None

    def __repr__(self) -> str:
        return (
            f"GraphFolder({str(self.path)!r}, {self.num_nodes:,} nodes, {self.num_edges:,} edges, "
            f"{self.num_features} features of {self.x.dtype}, {self.num_classes} classes, {self.num_splits} splits)"
        )


def is_graph_folder(path: Path) -> bool:
    """Whether a folder says that it is such a graph."""
    return (path / MANIFEST).is_file()


def open_graph_folder(path: str | Path) -> GraphFolder:
    """The graph in a folder that ``ltga convert`` wrote; nothing but headers is read."""
    path = Path(path).expanduser()
    manifest = _read_manifest(path)
    arrays = {name: _mapped(path, name, entry) for name, entry in manifest["arrays"].items()}
    _check_shapes(path, manifest, arrays)
    return GraphFolder(path, manifest, arrays)


def _read_manifest(path: Path) -> dict[str, Any]:
    if not path.is_dir():
        raise DataError(f"{path}: no such folder; check the path")
    try:
        manifest = json.loads((path / MANIFEST).read_text("utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: has no {MANIFEST}: not a graph folder, or one that was never finished") from None
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: its {MANIFEST} is damaged ({in_a_line(error)}); {_AGAIN}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise DataError(f"{path}: its {MANIFEST} is not that of a graph folder written by `ltga convert`")
    if manifest.get("version") != VERSION:
        raise DataError(f"{path}: of version {manifest.get('version')!r}, this ltga reads {VERSION}; {_AGAIN}")
    arrays, texts = manifest.get("arrays"), (manifest.get("class_names"), manifest.get("edge_columns"))
    sound = (
        isinstance(arrays, dict)
        and set(KINDS) - set(OPTIONAL) <= set(arrays) <= set(KINDS)
        and all(isinstance(entry, dict) and {"dtype", "shape", "sha256"} <= set(entry) for entry in arrays.values())
        and all(isinstance(given, list) and all(isinstance(name, str) for name in given) for given in texts)
        and isinstance(manifest.get("name"), str)
        and isinstance(manifest.get("provenance"), dict)
    )
    if not sound:
        raise DataError(f"{path}: its {MANIFEST} does not describe a graph; {_AGAIN}")
    return manifest


def _mapped(path: Path, name: str, entry: dict[str, Any]) -> np.ndarray:
    """An array of the folder, mapped, if it is what the manifest says."""
    file = path / f"{name}.npy"
    try:
        # Maps of nothing are refused by the system.
        array = np.load(file, mmap_mode=None if 0 in entry["shape"] else "r", allow_pickle=False)
    except FileNotFoundError:
        raise DataError(f"{path}: {file.name} is missing; {_AGAIN}") from None
    except (OSError, ValueError, TypeError, EOFError, SyntaxError, OverflowError, MemoryError) as error:
        raise DataError(f"{path}: {file.name} is damaged or cut short ({in_a_line(error)}); {_AGAIN}") from None
    if str(array.dtype) != entry["dtype"] or list(array.shape) != entry["shape"] or entry["dtype"] not in KINDS[name]:
        raise DataError(
            f"{path}: {file.name} holds {array.dtype} {list(array.shape)}, but {MANIFEST} says "
            f"{in_a_line(entry['dtype'], 40)} {in_a_line(entry['shape'], 60)}; {_AGAIN}"
        )
    if array.ndim == 2 and not array.flags.c_contiguous:
        raise DataError(f"{path}: {file.name} is stored by columns; {_AGAIN}")
    return array


def _check_shapes(path: Path, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """The files must be about one graph."""
    nodes, edges = len(arrays["y"]), len(arrays["source"])
    expected: dict[str, tuple[int | None, ...]] = {
        "ptr": (nodes + 1,), "source": (edges,), "x": (nodes, None), "y": (nodes,), "splits": (None, nodes),
        "edge_attr": (edges, len(manifest["edge_columns"])), "edge_time": (edges,), "ids_ptr": (nodes + 1,),
        "ids_utf8": (None,),
    }  # fmt: skip
    for name, array in arrays.items():
        wanted = expected[name]
        if len(wanted) != array.ndim or any(want not in (None, size) for want, size in zip(wanted, array.shape)):
            sizes = f"{nodes} nodes and {edges} edges"
            raise DataError(f"{path}: {name}.npy has shape {list(array.shape)} in a graph of {sizes}; {_AGAIN}")
    ptr = arrays["ptr"]
    if nodes == 0 or int(ptr[0]) != 0 or int(ptr[-1]) != edges:
        raise DataError(f"{path}: ptr.npy does not fit {nodes} nodes and {edges} edges; {_AGAIN}")
