"""Writing a graph folder from a stream of nodes and edges, with bounded memory; it appears whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch_geometric.data import Data

from ltga.data.conventions import CONVENTIONS
from ltga.data.dataset import Dataset
from ltga.data.graph_folder import GraphFolder, open_graph_folder
from ltga.data.graph_folder_files import FORMAT, MANIFEST, VERSION, sealed
from ltga.data.graph_folder_sort import MOST_NODES, EdgeSorter, Symmetry, without_repeats
from ltga.data.npy_writer import NpyWriter
from ltga.data.obtain import sha256_of
from ltga.data.splits import stratified_masks
from ltga.errors import DataError, InputError

MEMORY = 1024**3
# Bytes for every node: degrees and labels; what a split needs while it is drawn and checked; finding nodes by name.
_NODE, _SPLIT, _NAME = 40, 9, 48


@dataclass(frozen=True, eq=False)
class NodeBlock:
    """Some nodes: features ``[n, F]``, labels ``[n]`` (-1: not known), and their names as UTF-8, if they have any."""

    x: np.ndarray
    y: np.ndarray
    names: list[bytes] | None = None


@dataclass(frozen=True, eq=False)
class EdgeBlock:
    """Some edges: ``[m]`` numbers of nodes, attributes ``[m, D]`` and times ``[m]``."""

    source: np.ndarray
    target: np.ndarray
    attributes: np.ndarray | None = None
    times: np.ndarray | None = None


class GraphStream(Protocol):
    """A graph that is read once from beginning to end, first its nodes, then its edges.

    Attributes:
        where: opens error messages.
        convention: what an edge means (:mod:`ltga.data.edges`), or "as it stands": neither turned round nor checked.
        repeats: "keep", "drop" or "refuse" an edge that is there twice.
        edge_columns: names of the edge attributes.
        timed: whether edges have times.
    """

    name: str
    where: str
    convention: str
    repeats: str
    edge_columns: tuple[str, ...]
    timed: bool
    provenance: dict[str, Any]

    def nodes(self) -> Iterator[NodeBlock]: ...

    def edges(self) -> Iterator[EdgeBlock]: ...

    def classes(self) -> tuple[tuple[str, ...], np.ndarray | None]:
        """After the nodes: class names, and the class of every provisional label if labels are to be renumbered."""
        ...

    def splits(self) -> np.ndarray | None:
        """After the nodes: ``[S, N]`` uint8, 1 to 3 for training, validation and test; ``None``: to be drawn."""
        ...


def write_graph_folder(
    stream: GraphStream,
    folder: str | Path,
    features: str = "float32",
    memory: int = MEMORY,
    say: Callable[[str], Any] = lambda line: None,
) -> GraphFolder:
    """Write the graph of ``stream`` to a new folder and open it.

    Args:
        features: "float32" or "float16", which takes half the room.
        memory: bytes to sort edges in; beside it some 50 to 180 for every node, which ``say`` tells.
        say: called with a line about what happens now.
    """
    folder = Path(folder).expanduser()
    if features not in ("float16", "float32"):
        raise InputError(f"features: got {features!r}; use float32 or float16")
    if memory < 1024**2:
        raise InputError(f"memory: got {memory} bytes; give at least one MiB")
    if folder.exists():
        raise InputError(f"folder: {folder} is there already; choose another name, or remove it")
    part = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        part.mkdir()
        _Conversion(stream, part, features, memory, say).run()
        part.rename(folder)
    except OSError as error:
        raise DataError(f"{folder}: cannot be written ({error.strerror or error})") from None
    except MemoryError:
        raise DataError(f"{stream.where}: needs more memory than there is; give less to sort in") from None
    finally:
        with suppress(OSError):
            shutil.rmtree(part, ignore_errors=True)
    return open_graph_folder(folder)


class _Conversion:
    """One graph on its way to disk."""

    def __init__(self, stream: GraphStream, part: Path, features: str, memory: int, say: Callable[[str], Any]) -> None:
        self.stream, self.part, self.memory, self.say = stream, part, memory, say
        self.features = np.dtype(features)
        self.arrays: dict[str, dict[str, Any]] = {}

    def run(self) -> None:
        self.say("reading nodes")
        num_nodes = self._nodes()
        class_names, splits = self._labels_and_splits()
        self._tell_memory(num_nodes)
        dropped = self._edges(num_nodes)
        self.say("computing checksums")
        for name, entry in self.arrays.items():
            entry["sha256"] = sha256_of(self.part / f"{name}.npy")
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "name": self.stream.name,
            "class_names": list(class_names),
            "edge_columns": list(self.stream.edge_columns),
            "provenance": {
                **self.stream.provenance, "convention": self.stream.convention, "repeats_dropped": dropped,
                "splits": splits,
            },
            "arrays": self.arrays,
        }  # fmt: skip
        with (self.part / MANIFEST).open("x", encoding="utf-8") as stream:
            stream.write(json.dumps(sealed(manifest), indent=1, allow_nan=False) + "\n")
            stream.flush()
            os.fsync(stream.fileno())

    def _tell_memory(self, num_nodes: int) -> None:
        per_node = _NODE + _SPLIT * self.arrays["splits"]["shape"][0] + _NAME * ("ids_ptr" in self.arrays)
        sort, nodes = self.memory / 1024**2, num_nodes * per_node / 1024**2
        self.say(
            f"reading edges; memory: up to {sort + nodes:,.0f} MiB beside the program's own, "
            f"{sort:,.0f} to sort in and {per_node} bytes for each of {num_nodes:,} nodes"
        )

    def _new(self, name: str, dtype: Any, columns: int | None = None) -> NpyWriter:
        return NpyWriter(self.part / f"{name}.npy", np.dtype(dtype), columns)

    def _close(self, *writers: NpyWriter) -> None:
        for writer in writers:
            shape = writer.close()
            self.arrays[writer.path.stem] = {"dtype": str(writer.dtype), "shape": shape}

    def _nodes(self) -> int:
        """Features, labels and names as they come; how many nodes."""
        x: NpyWriter | None = None
        y, ids, ids_ptr, count, end = self._new("y", np.int32), None, None, 0, 0
        for block in self.stream.nodes():
            if x is None:
                x = self._new("x", self.features, block.x.shape[1])
                if block.names is not None:
                    ids, ids_ptr = self._new("ids_utf8", np.uint8), self._new("ids_ptr", np.int64)
                    ids_ptr.write(np.zeros(1, np.int64))
            with np.errstate(over="ignore"):
                rows = block.x.astype(self.features)
            if not np.isfinite(rows).all():
                node, column = np.argwhere(~np.isfinite(rows))[0].tolist()
                value = block.x[node, column]
                fault = f"does not fit {self.features}" if np.isfinite(value) else "is not finite"
                where = f"{self.stream.where}: feature {column} of node {count + node}"
                raise DataError(f"{where} is {value}, which {fault}")
            x.write(rows)
            y.write(block.y.astype(np.int32))
            if ids is not None and ids_ptr is not None and block.names is not None:
                ids.write(np.frombuffer(b"".join(block.names), np.uint8))
                ends = end + np.cumsum([len(name) for name in block.names])
                ids_ptr.write(ends)
                end = int(ends[-1])
            count += len(block.y)
        if x is None or count == 0:
            raise DataError(f"{self.stream.where}: has no nodes")
        if count >= MOST_NODES:
            raise DataError(f"{self.stream.where}: {count:,} nodes; a graph folder takes fewer than {MOST_NODES:,}")
        self._close(x, y, *(writer for writer in (ids, ids_ptr) if writer is not None))
        return count

    def _labels_and_splits(self) -> tuple[tuple[str, ...], str]:
        """Labels renumbered, splits given or drawn, and all of it checked as any dataset's."""
        names, renumbered = self.stream.classes()
        stored = np.load(self.part / "y.npy", mmap_mode="r+")
        if renumbered is not None and len(stored):
            stored[:] = np.where(stored < 0, -1, np.append(renumbered, -1)[stored])
            stored.flush()
        labels = np.array(stored, dtype=np.int64)
        del stored
        splits, how = self.stream.splits(), "as given"
        if splits is None:
            how = "stratified 60/20/20, seed 0"
            train, val, test = stratified_masks(labels)
            splits = train + 2 * val.astype(np.uint8) + 3 * test.astype(np.uint8)
        # What holds for every dataset is asked of one without features and edges.
        empty = Data(
            x=torch.zeros(1, 1).expand(len(labels), 1),
            y=torch.from_numpy(labels),
            edge_index=torch.zeros(2, 0, dtype=torch.long),
        )
        masks = (torch.from_numpy(splits == part) for part in (1, 2, 3))
        try:
            Dataset(self.stream.name, empty, *masks, class_names=list(names))
        except DataError as error:
            raise DataError(f"{self.stream.where}: {error}") from None
        writer = self._new("splits", np.uint8, len(labels))
        writer.write(splits.astype(np.uint8))
        self._close(writer)
        return names, how

    def _edges(self, num_nodes: int) -> int:
        """Structure and attributes of the edges, sorted; how many repeats were dropped."""
        stream, width = self.stream, len(self.stream.edge_columns) + self.stream.timed
        runs = self.part / "runs"
        runs.mkdir()
        sorter, symmetry = EdgeSorter(runs, width, self.memory), Symmetry()
        given = 0
        for block in stream.edges():
            given += self._add(block, sorter, num_nodes)
        self.say(f"sorting {given:,} edges")
        source = self._new("source", np.int32 if num_nodes < 2**31 else np.int64)
        attributes = self._new("edge_attr", np.float32, len(stream.edge_columns)) if stream.edge_columns else None
        times = self._new("edge_time", np.float64) if stream.timed else None
        degrees, kept = np.zeros(num_nodes + 1, np.int64), 0
        repeats = "refuse" if width and stream.repeats == "drop" else stream.repeats
        for to, come_from, carried in without_repeats(sorter.merged(), repeats, stream.where):
            symmetry.add(come_from, to)
            first = int(to[0])
            found = np.bincount(to - first)
            degrees[first + 1 : first + 1 + len(found)] += found
            if times is not None and carried is not None:
                times.write(carried[:, -1])
            if attributes is not None and carried is not None:
                attributes.write(carried[:, : len(stream.edge_columns)].astype(np.float32))
            source.write(come_from.astype(source.dtype))
            kept += len(to)
        if stream.convention == "both directions" and not symmetry.holds:
            raise DataError(
                f"{stream.where}: some edge is not there as often in the other direction, although both were promised; "
                "use convention 'undirected, once' or 'directed'"
            )
        ptr = self._new("ptr", np.int64)
        ptr.write(np.cumsum(degrees))
        self._close(ptr, source, *(writer for writer in (attributes, times) if writer is not None))
        shutil.rmtree(runs)
        if stream.timed:
            self._order_by_time(np.cumsum(degrees))
        return given - kept

    def _add(self, block: EdgeBlock, sorter: EdgeSorter, num_nodes: int) -> int:
        """Hand edges to the sorter, turned round too if they have no direction; how many they are then."""
        source, target = block.source, block.target
        bad = np.flatnonzero((source < 0) | (source >= num_nodes) | (target < 0) | (target >= num_nodes))
        if bad.size:
            ends = [int(source[bad[0]]), int(target[bad[0]])]
            raise DataError(f"{self.stream.where}: an edge joins {ends}, but nodes are numbered 0 to {num_nodes - 1}")
        columns = [] if block.attributes is None else [block.attributes]
        columns += [] if block.times is None else [block.times[:, None]]
        carried = np.concatenate(columns, axis=1) if columns else None
        sorter.add(source, target, carried)
        if self.stream.convention != "undirected, once":
            return len(source)
        other = source != target  # a self-loop is its own other direction
        sorter.add(target[other], source[other], None if carried is None else carried[other])
        return len(source) + int(other.sum())

    def _order_by_time(self, ptr: np.ndarray) -> None:
        """Every node's edges by their time, some nodes at once."""
        names = [name for name in ("source", "edge_attr", "edge_time") if name in self.arrays]
        arrays = {name: np.load(self.part / f"{name}.npy", mmap_mode="r+") for name in names}
        rows, first = max(self.memory // (8 * (4 + len(self.stream.edge_columns))), 1), 0
        while first < len(ptr) - 1:
            last = max(int(np.searchsorted(ptr, ptr[first] + rows, side="right")) - 1, first + 1)
            part = slice(ptr[first], ptr[last])
            owner = np.repeat(np.arange(last - first), np.diff(ptr[first : last + 1]))
            order = np.lexsort((arrays["edge_time"][part], owner))
            for array in arrays.values():
                array[part] = array[part][order]
            first = last
        for array in arrays.values():
            array.flush()


def check_convention(convention: str) -> str:
    """``convention`` if there is such a one."""
    if convention not in CONVENTIONS:
        raise InputError(f"convention: got {convention!r}; use one of {', '.join(map(repr, CONVENTIONS))}")
    return convention
