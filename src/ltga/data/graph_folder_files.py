"""The files of a graph folder: its manifest and arrays, opened with suspicion; nothing but headers is read."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ltga.data.bounds import in_a_line
from ltga.data.obtain import sha256_of
from ltga.errors import DataError

MANIFEST = "manifest.json"
FORMAT, VERSION = "ltga-graph", 2
UNSEALED = 1  # the version before, whose manifest has no checksum of its own
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
AGAIN = "make it again with `ltga convert`"
_LONGEST_MANIFEST = 64 * 1024**2  # bytes; names of classes are most of one


def is_graph_folder(path: Path) -> bool:
    """Whether a folder says that it is such a graph."""
    return (path / MANIFEST).is_file()


def open_files(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The manifest of a folder and its arrays, mapped, if they are about one graph.

    Files that were changed after the manifest was written are compared with their checksums first.
    """
    manifest = _read_manifest(path)
    arrays = {name: _mapped(path, name, entry) for name, entry in manifest["arrays"].items()}
    _check_shapes(path, manifest, arrays)
    _check_changed(path, manifest)
    return manifest, arrays


def verify(path: Path, manifest: dict[str, Any], names: Iterable[str]) -> None:
    """Read files and compare them with their checksums."""
    for name in names:
        if sha256_of(path / f"{name}.npy") != manifest["arrays"][name]["sha256"]:
            raise DataError(f"{path}: {name}.npy is not what was written (its checksum differs); {AGAIN}")


def _check_changed(path: Path, manifest: dict[str, Any]) -> None:
    told = path / MANIFEST
    names = list(manifest["arrays"])
    written = told.stat().st_mtime_ns
    later = [name for name in names if (path / f"{name}.npy").stat().st_mtime_ns > written]
    if later:
        verify(path, manifest, later)
        with suppress(OSError):  # a copy, or touched: it need not be read every time, if we may say so
            os.utime(told)


def _read_manifest(path: Path) -> dict[str, Any]:
    if not path.is_dir():
        raise DataError(f"{path}: no such folder; check the path")
    file = path / MANIFEST
    if not file.is_file():
        raise DataError(f"{path}: has no {MANIFEST}: not a graph folder, or one that was never finished")
    try:
        with file.open("rb") as stream:
            content = stream.read(_LONGEST_MANIFEST + 1)
        if len(content) > _LONGEST_MANIFEST:
            raise ValueError(f"more than {_LONGEST_MANIFEST >> 20} MiB")
        manifest = json.loads(content.decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: its {MANIFEST} is damaged ({in_a_line(error)}); {AGAIN}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise DataError(f"{path}: its {MANIFEST} is not that of a graph folder written by `ltga convert`")
    version = manifest.get("version")
    if type(version) is not int or version not in (UNSEALED, VERSION):
        raise DataError(f"{path}: of version {in_a_line(repr(version), 40)}, this ltga reads {VERSION}; {AGAIN}")
    if version == VERSION and manifest != sealed(manifest):
        raise DataError(f"{path}: its {MANIFEST} is not what was written (its checksum differs); {AGAIN}")
    if not _describes_a_graph(manifest):
        raise DataError(f"{path}: its {MANIFEST} does not describe a graph; {AGAIN}")
    return manifest


def sealed(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest with a checksum of all the rest in it."""
    rest = {key: value for key, value in manifest.items() if key != "sha256"}
    return {**rest, "sha256": hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()}


def _describes_a_graph(manifest: dict[str, Any]) -> bool:
    arrays, names, columns = (manifest.get(key) for key in ("arrays", "class_names", "edge_columns"))
    if not isinstance(arrays, dict) or not set(KINDS) - set(OPTIONAL) <= set(arrays) <= set(KINDS):
        return False
    if ("ids_ptr" in arrays) != ("ids_utf8" in arrays) or ("edge_attr" in arrays) != bool(columns):
        return False
    if not all(isinstance(given, list) and all(isinstance(text, str) for text in given) for given in (names, columns)):
        return False
    alike = len(set(names)) != len(names) or len(set(columns)) != len(columns)  # type: ignore[arg-type]
    plain = isinstance(manifest.get("name"), str) and isinstance(manifest.get("provenance"), dict)
    return plain and not alike and all(_is_entry(entry) for entry in arrays.values())


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or not {"dtype", "shape", "sha256"} <= set(entry):
        return False
    shape, checksum = entry["shape"], entry["sha256"]
    whole = isinstance(shape, list) and len(shape) in (1, 2) and all(type(size) is int and size >= 0 for size in shape)
    return whole and isinstance(checksum, str) and re.fullmatch("[0-9a-f]{64}", checksum) is not None


def _mapped(path: Path, name: str, entry: dict[str, Any]) -> np.ndarray:
    """An array of the folder, mapped, if it is what the manifest says."""
    file = path / f"{name}.npy"
    if not file.is_file():  # a pipe would be waited for
        raise DataError(f"{path}: {file.name} is missing; {AGAIN}")
    try:
        # Maps of nothing are refused by the system.
        array = np.load(file, mmap_mode=None if 0 in entry["shape"] else "r", allow_pickle=False)
    except (OSError, ValueError, TypeError, EOFError, SyntaxError, OverflowError, MemoryError) as error:
        raise DataError(f"{path}: {file.name} is damaged or cut short ({in_a_line(error)}); {AGAIN}") from None
    except Exception as error:  # numpy's reader of headers and archives raises more than it says
        raise DataError(f"{path}: {file.name} is damaged ({in_a_line(repr(error))}); {AGAIN}") from None
    if not isinstance(array, np.ndarray):
        raise DataError(f"{path}: {file.name} is an archive, not an array; {AGAIN}")
    if str(array.dtype) != entry["dtype"] or list(array.shape) != entry["shape"] or entry["dtype"] not in KINDS[name]:
        raise DataError(
            f"{path}: {file.name} holds {array.dtype} {list(array.shape)}, but {MANIFEST} says "
            f"{in_a_line(entry['dtype'], 40)} {in_a_line(entry['shape'], 60)}; {AGAIN}"
        )
    if array.ndim == 2 and not array.flags.c_contiguous:
        raise DataError(f"{path}: {file.name} is stored by columns; {AGAIN}")
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
            raise DataError(f"{path}: {name}.npy has shape {list(array.shape)} in a graph of {sizes}; {AGAIN}")
    ptr = arrays["ptr"]
    if nodes == 0 or int(ptr[0]) != 0 or int(ptr[-1]) != edges:
        raise DataError(f"{path}: ptr.npy does not fit {nodes} nodes and {edges} edges; {AGAIN}")
    if arrays["x"].shape[1] == 0 or len(arrays["splits"]) == 0 or len(manifest["class_names"]) < 2:
        raise DataError(f"{path}: a graph to learn from needs features, splits and two classes; {AGAIN}")
