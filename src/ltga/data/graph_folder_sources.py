"""What `ltga convert` reads: tables and npz files as streams, anything else by way of memory."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ltga.data.bounds import in_a_line
from ltga.data.dataset import Dataset
from ltga.data.graph_folder_files import PARTS, is_graph_folder
from ltga.data.graph_folder_tables import TableStream
from ltga.data.graph_folder_write import EdgeBlock, GraphStream, NodeBlock, check_convention
from ltga.data.incoming import as_times
from ltga.data.knobs import parse_knobs
from ltga.data.load import load_graph
from ltga.data.npz import read_arrays
from ltga.data.power_law import PowerLaw
from ltga.data.preparation import Preparation
from ltga.errors import DataError, InputError

_ROWS = 65536
_MASKS = ("train_masks", "val_masks", "test_masks")
_SMALL = {"node_labels", "class_names", "edge_convention", *_MASKS}


def open_source(
    source: str, convention: str | None = None, root: Path | None = None, preparation: Preparation | None = None
) -> GraphStream:
    """The stream of a graph: a folder with two tables, an npz file, ``power-law:...``, or a dataset by name or path.

    With a ``preparation`` tables are read whole and prepared as for training, which takes memory.
    """
    path = Path(source).expanduser()
    name = f"./{source}" if path.is_dir() and "/" not in source else source
    if preparation is not None:
        return DatasetStream(load_graph(name, root, convention=convention, preparation=preparation))
    if source == "power-law" or source.startswith("power-law:"):
        _refuse_convention(convention, "power-law")
        knobs: dict[str, Any] = parse_knobs("power-law", PowerLaw, source.partition(":")[2])
        return PowerLaw(**knobs)
    if path.suffix == ".npz" and path.is_file() and _has_dense_features(path):
        return NpzStream(path, convention)
    if path.name in ("edges.csv", "edges.parquet", "nodes.csv", "nodes.parquet"):
        path = path.parent
    if path.is_dir() and any((path / f"edges{suffix}").exists() for suffix in (".csv", ".parquet")):
        return TableStream(path, convention or "directed")
    if is_graph_folder(path):
        raise InputError(f"source: {path} is a graph folder already; there is nothing to convert")
    return DatasetStream(load_graph(name, root, convention=convention))


def _refuse_convention(convention: str | None, name: str) -> None:
    if convention is not None:
        raise InputError(f"convention: {name} has its own; leave it out")


class DatasetStream:
    """A dataset that is in memory; the attribute ``edge_time`` of its data, if it has one, is the time of its edges."""

    convention, repeats = "as it stands", "keep"

    def __init__(self, dataset: Dataset) -> None:
        self.name = self.where = dataset.name
        self._dataset = dataset
        attributes = dataset.data.get("edge_attr")
        self._attributes = None if attributes is None else attributes.numpy().reshape(len(attributes), -1)
        width = 0 if self._attributes is None else self._attributes.shape[1]
        self.edge_columns = tuple(f"attribute {at}" for at in range(width)) if width != 1 else ("weight",)
        times = dataset.data.get("edge_time")
        self._times = None if times is None else as_times(times.numpy(force=True).reshape(-1), "edge_time")
        self.timed = self._times is not None
        if self._times is not None and len(self._times) != dataset.data.num_edges:
            raise InputError(f"edge_time: {len(self._times)} times for {dataset.data.num_edges} edges; give one each")
        self.provenance: dict[str, Any] = {"source": dataset.name, "reading": dataset.reading}

    def nodes(self) -> Iterator[NodeBlock]:
        x, y, names = self._dataset.data.x.numpy(), self._dataset.data.y.numpy(), self._dataset.node_names
        for first in range(0, len(y), _ROWS):
            part = slice(first, first + _ROWS)
            yield NodeBlock(x[part], y[part], None if names is None else [name.encode() for name in names[part]])

    def edges(self) -> Iterator[EdgeBlock]:
        source, target = self._dataset.data.edge_index.numpy()
        for first in range(0, len(source), _ROWS):
            part = slice(first, first + _ROWS)
            attributes, times = (None if values is None else values[part] for values in (self._attributes, self._times))
            yield EdgeBlock(source[part], target[part], attributes, times)

    def classes(self) -> tuple[tuple[str, ...], np.ndarray | None]:
        return tuple(self._dataset.class_names), None

    def splits(self) -> np.ndarray | None:
        codes = np.zeros((self._dataset.num_splits, len(self._dataset.data.y)), np.uint8)
        for number, row in enumerate(codes):
            for mask, part in zip(self._dataset.split(number), PARTS.values()):
                row[mask.numpy()] = part
        return codes


class NpzStream:
    """A graph in the npz schema with dense features, of which labels and masks are read, the rest is streamed."""

    timed = False

    def __init__(self, path: Path, convention: str | None) -> None:
        self.name, self.where, self._path = path.stem, str(path), path
        self._small = read_arrays(path, _SMALL)
        stored = self._small.get("edge_convention")
        self.convention = check_convention(convention or ("undirected, once" if stored is None else str(stored)))
        self.repeats = "keep" if self.convention == "both directions" else "drop"
        self.provenance: dict[str, Any] = {"path": str(path)}
        streamed = [key for key in ("node_features", "edges", "edge_features") if _has(path, key)]
        shapes = {key: _Entry(path, key).shape for key in streamed}
        labels = self._small.get("node_labels")
        if "edges" not in shapes or labels is None:
            raise DataError(f"{path}: the npz schema needs node_labels and edges")
        if labels.dtype.kind not in "iu" or labels.shape != shapes["node_features"][:1]:
            raise DataError(f"{path}: expected a whole-number label for each of {shapes['node_features'][0]} nodes")
        if shapes["edges"][1:] != (2,):
            raise DataError(f"{path}: expected edges of shape [E, 2], got {list(shapes['edges'])}")
        width = shapes.get("edge_features")
        if width is not None and width[0] != shapes["edges"][0]:
            raise DataError(f"{path}: {shapes['edges'][0]} edges but {width[0]} rows of edge_features; give one each")
        count = 0 if width is None else math.prod(width[1:])
        self.edge_columns = ("weight",) if count == 1 else tuple(f"attribute {at}" for at in range(count))

    def nodes(self) -> Iterator[NodeBlock]:
        first, labels = 0, self._small["node_labels"]
        for x in _Entry(self._path, "node_features").blocks("fiub"):
            yield NodeBlock(x.astype(np.float32), labels[first : first + len(x)].astype(np.int64))
            first += len(x)

    def edges(self) -> Iterator[EdgeBlock]:
        attributes = _Entry(self._path, "edge_features").blocks("fiub") if self.edge_columns else None
        for rows in _Entry(self._path, "edges").blocks("iu"):
            values = None if attributes is None else next(attributes).reshape(len(rows), -1)
            if values is not None and not np.isfinite(values).all():
                raise DataError(f"{self._path}: edge_features are not all finite numbers")
            yield EdgeBlock(rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64), values)

    def classes(self) -> tuple[tuple[str, ...], np.ndarray | None]:
        names = self._small.get("class_names")
        if names is not None and (names.dtype.kind != "U" or names.ndim != 1):
            raise DataError(f"{self._path}: class_names must be a list of text")
        most = int(self._small["node_labels"].max(initial=-1)) + 1
        if names is None and most > max(1000, 10 * len(np.unique(self._small["node_labels"]))):
            raise DataError(f"{self._path}: a label is {most - 1}; number the classes 0, 1, 2, ..., -1 for unlabelled")
        return tuple(map(str, range(most) if names is None else names.tolist())), None

    def splits(self) -> np.ndarray | None:
        given = [key for key in _MASKS if key in self._small]
        if not given:
            return None
        if len(given) != len(_MASKS):
            raise DataError(f"{self._path}: found {', '.join(given)} only; give {', '.join(_MASKS)} or none of them")
        masks = [np.atleast_2d(self._small[key]) for key in _MASKS]
        shape = (len(masks[0]), len(self._small["node_labels"]))
        if any(mask.shape != shape for mask in masks):
            raise DataError(f"{self._path}: masks must be of one shape [splits, {shape[1]}]")
        if any(mask.dtype.kind not in "biu" or not np.isin(mask, (0, 1)).all() for mask in masks):
            raise DataError(f"{self._path}: masks must hold true/false (or 0/1) only")
        total = sum(mask.astype(np.uint8) for mask in masks)
        if (np.asarray(total) > 1).any():
            raise DataError(f"{self._path}: a node is in two parts of one split; a node may be in one part only")
        return np.asarray(sum(mask.astype(np.uint8) * part for mask, part in zip(masks, PARTS.values())), np.uint8)


class _Entry:
    """One array of an npz file, its rows read block by block."""

    def __init__(self, path: Path, key: str) -> None:
        self._path, self._key = path, key
        with self._opened() as (_, shape, _):
            self.shape: tuple[int, ...] = shape

    def blocks(self, kinds: str) -> Iterator[np.ndarray]:
        with self._opened() as (stream, shape, dtype):
            if dtype.kind not in kinds:
                raise DataError(f"{self._path}: {self._key} holds {in_a_line(dtype, 40)}, expected other numbers")
            row = dtype.itemsize * math.prod(shape[1:])
            for first in range(0, shape[0], _ROWS):
                count = min(_ROWS, shape[0] - first)
                content = stream.read(count * row)
                if len(content) != count * row:
                    raise DataError(f"{self._path}: {self._key} is cut short; fetch it again")
                yield np.frombuffer(content, dtype).reshape(count, *shape[1:])

    def _opened(self) -> _Opened:
        return _Opened(self._path, self._key)


class _Opened:
    """An array of an npz file behind its head; damage becomes one line."""

    def __init__(self, path: Path, key: str) -> None:
        self._path, self._key = path, key

    def __enter__(self) -> tuple[Any, tuple[int, ...], np.dtype]:
        try:
            self._archive = zipfile.ZipFile(self._path)
            self._stream = self._archive.open(f"{self._key}.npy")
            version = np.lib.format.read_magic(self._stream)
            read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
            shape, fortran, dtype = read(self._stream)
        except Exception as error:  # a header is a Python literal; a damaged one can raise nearly anything
            raise DataError(f"{self._path}: {self._key} cannot be read ({in_a_line(error)}); fetch it again") from None
        if dtype.hasobject or (fortran and len(shape) > 1) or not shape:
            raise DataError(f"{self._path}: {self._key} must be an array of numbers, stored by rows")
        return self._stream, shape, dtype

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._stream.close()
        self._archive.close()
        if isinstance(error, zipfile.BadZipFile | zlib.error | EOFError | ValueError):
            raise DataError(f"{self._path}: {self._key} is damaged ({in_a_line(error)}); fetch it again") from None


def _has(path: Path, key: str) -> bool:
    with zipfile.ZipFile(path) as archive:
        return f"{key}.npy" in archive.namelist()


def _has_dense_features(path: Path) -> bool:
    """Whether features can be streamed; where not, or where the file is damaged, the usual reader has a word on it."""
    try:
        return _has(path, "node_features")
    except (zipfile.BadZipFile, OSError, ValueError):
        return False
