"""Reader for graphs in the npz schema (that of the Platonov et al. files)."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np

from ltga.data.assemble import GraphArrays
from ltga.data.bounds import DEFLATE_RATIO, MAX_BYTES, check_dense_size, in_a_line
from ltga.data.conventions import CONVENTIONS
from ltga.data.csr import checked_csr
from ltga.data.splits import Masks
from ltga.errors import DataError

_DENSE = ("node_features",)
_SPARSE = ("features_data", "features_indices", "features_indptr", "features_shape")
_WORDS = ("word_vectors", "node_words")
_MASKS = ("train_masks", "val_masks", "test_masks")
_OPTIONAL = ("class_names", "words_utf8", "edge_features", "edge_convention")


def read_npz(path: str | Path) -> GraphArrays:
    """The arrays of a graph in the schema; nothing in the file is executed.

    Beyond the schema a file may hold `edge_features` (`[E]` or `[E, D]`) and `edge_convention` (one
    of "both directions", "directed", "undirected, once"); a file without masks has no fixed splits.
    """
    path = Path(path)
    wanted = {"node_labels", "edges", *_DENSE, *_SPARSE, *_WORDS, *_MASKS, *_OPTIONAL}
    arrays = read_arrays(path, wanted)
    for key in ("node_labels", "edges"):
        if key not in arrays:
            raise DataError(f"{path}: array {key!r} is missing; the npz schema needs node_labels and edges")
    x, node_names = _features(arrays, path)
    y = _whole_numbers(arrays["node_labels"], "node_labels", path)
    if y.ndim != 1 or y.shape[0] != x.shape[0]:
        raise DataError(f"{path}: {x.shape[0]} rows of features but node_labels has shape {list(y.shape)}")
    return GraphArrays(
        x=x,
        y=y,
        edges=_whole_numbers(arrays["edges"], "edges", path),
        masks=_masks(arrays, x.shape[0], path),
        edge_attr=_edge_features(arrays, path),
        class_names=_class_names(arrays, path),
        node_names=node_names,
        convention=_convention(arrays, path),
    )


def read_arrays(path: Path, wanted: set[str]) -> dict[str, np.ndarray]:
    """The wanted arrays that an npz file holds, refusing pickles, damage and unreasonable sizes."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries: dict[str, zipfile.ZipInfo] = {}
            for entry in archive.infolist():
                key = entry.filename.removesuffix(".npy")
                if key in entries:
                    raise DataError(f"{path}: array {key!r} is there twice; keep one of them")
                if key in wanted:
                    entries[key] = entry
            _check_sizes(list(entries.values()), path)
            for entry in entries.values():
                with archive.open(entry) as stream:
                    _check_header(stream, entry, path)
            return {key: _read_array(archive, entry, path) for key, entry in entries.items()}
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; check the path") from None
    except (
        zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError, MemoryError,
    ) as error:  # fmt: skip
        raise DataError(f"{path}: damaged or not an npz file ({in_a_line(error)}); fetch it again") from None


def _check_sizes(entries: list[zipfile.ZipInfo], path: Path) -> None:
    """Refuse what would unpack to too much, or to more than the bytes that are there can hold."""
    for entry in entries:
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DataError(f"{path}: {entry.filename} is packed in an unusual way; use numpy.savez_compressed")
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > MAX_BYTES:
        raise DataError(f"{path}: unpacks to {unpacked:,} bytes, more than the limit of {MAX_BYTES:,}; split the graph")
    if unpacked > DEFLATE_RATIO * path.stat().st_size:
        raise DataError(f"{path}: damaged or not an npz file (it cannot hold {unpacked:,} bytes); fetch it again")


def _check_header(stream: IO[bytes], entry: zipfile.ZipInfo, path: Path) -> None:
    """Compare the shape an array declares with the bytes it has, before numpy allocates for it."""
    try:
        version = np.lib.format.read_magic(stream)
        reader = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, _, dtype = reader(stream)
    except (zipfile.BadZipFile, zlib.error, OSError):
        raise
    # A header is a Python literal; a damaged one can raise nearly anything from inside the parser.
    except Exception as error:
        raise DataError(f"{path}: {entry.filename} is not a plain numpy array ({in_a_line(error)})") from None
    if dtype.hasobject:
        raise DataError(f"{path}: {entry.filename} holds Python objects, which may run code; not read")
    if dtype.kind not in "biufU" or dtype.itemsize == 0:
        raise DataError(f"{path}: {entry.filename} holds {in_a_line(dtype, 60)}; give numbers or text")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != entry.file_size - stream.tell():
        raise DataError(
            f"{path}: {entry.filename} declares shape {in_a_line(list(shape), 60)} of {dtype} but holds "
            f"{entry.file_size - stream.tell():,} bytes; fetch it again"
        )


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path) -> np.ndarray:
    try:
        with archive.open(entry) as stream:
            return np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, UnicodeError) as error:
        raise DataError(f"{path}: {entry.filename} cannot be read ({in_a_line(error)}); fetch it again") from None


def _features(arrays: Mapping[str, np.ndarray], path: Path) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Features `[N, F]` float32 from whichever of the three forms the file has, and words per node."""
    forms = [form for form in (_DENSE, _SPARSE, _WORDS) if any(key in arrays for key in form)]
    if len(forms) != 1 or any(key not in arrays for key in forms[0]):
        found = sorted(key for form in forms for key in form if key in arrays)
        raise DataError(
            f"{path}: features must be exactly one of node_features, features_data/_indices/_indptr/_shape "
            f"or word_vectors/node_words; found {', '.join(found) or 'none'}"
        )
    for key in forms[0]:
        if arrays[key].dtype.kind not in "fiub":
            raise DataError(f"{path}: {key} must hold numbers, got {arrays[key].dtype}")
    if forms[0] == _DENSE:
        x, names = arrays["node_features"], None
    elif forms[0] == _SPARSE:
        x, names = _sparse_features(arrays, path), None
    else:
        x, names = _word_features(arrays, path)
    if x.ndim != 2:
        raise DataError(f"{path}: expected features of shape [N, F], got {list(x.shape)}")
    with np.errstate(over="ignore"):  # too large for float32 becomes inf, which the dataset refuses
        return x.astype(np.float32, copy=False), names


def _sparse_features(arrays: Mapping[str, np.ndarray], path: Path) -> np.ndarray:
    shape = arrays["features_shape"].tolist()
    if not isinstance(shape, list) or len(shape) != 2 or any(not isinstance(n, int) or n < 1 for n in shape):
        raise DataError(f"{path}: features_shape must be two positive whole numbers, got {shape}")
    data, indices, indptr = (arrays[key] for key in _SPARSE[:3])
    check_dense_size(shape[0], shape[1], data.nbytes + indices.nbytes + indptr.nbytes, path)
    try:
        dense: np.ndarray = checked_csr(data, indices, indptr, (shape[0], shape[1])).toarray()
        return dense
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise DataError(f"{path}: features_* are not a valid CSR matrix ({in_a_line(error)})") from None


def _word_features(arrays: Mapping[str, np.ndarray], path: Path) -> tuple[np.ndarray, tuple[str, ...] | None]:
    vectors, words = arrays["word_vectors"], _whole_numbers(arrays["node_words"], "node_words", path)
    if vectors.ndim != 2 or words.ndim != 1:
        raise DataError(f"{path}: expected word_vectors [W, F] and node_words [N]")
    check_dense_size(words.shape[0], vectors.shape[1], vectors.nbytes + words.nbytes, path)
    bad = np.flatnonzero((words < 0) | (words >= vectors.shape[0]))
    if bad.size:
        raise DataError(
            f"{path}: node_words of node {bad[0]} is {words[bad[0]]}, but word_vectors has {vectors.shape[0]} rows"
        )
    with np.errstate(over="ignore"):  # as above
        x = vectors.astype(np.float32)[words]
    if "words_utf8" not in arrays:
        return x, None
    if arrays["words_utf8"].dtype != np.uint8:
        raise DataError(f"{path}: words_utf8 must hold bytes (uint8), got {arrays['words_utf8'].dtype}")
    try:
        forms = arrays["words_utf8"].tobytes().decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: words_utf8 is not UTF-8 text ({error})") from None
    if len(forms) != vectors.shape[0]:
        raise DataError(f"{path}: {len(forms)} words in words_utf8 for {vectors.shape[0]} word_vectors")
    return x, tuple(forms[word] for word in words.tolist())


def _masks(arrays: Mapping[str, np.ndarray], num_nodes: int, path: Path) -> Masks | None:
    present = [key for key in _MASKS if key in arrays]
    if not present:
        return None
    if len(present) != len(_MASKS):
        raise DataError(f"{path}: found {', '.join(present)} only; give {', '.join(_MASKS)} or none of them")
    masks = []
    for key in _MASKS:
        mask = np.atleast_2d(arrays[key])
        if mask.ndim != 2 or mask.shape[1] != num_nodes:
            raise DataError(f"{path}: {key} has shape {list(mask.shape)}, expected [splits, {num_nodes}]")
        if mask.dtype.kind not in "biu" or not np.isin(mask, (0, 1)).all():
            raise DataError(f"{path}: {key} must hold true/false (or 0/1) only")
        masks.append(mask.astype(bool))
    return masks[0], masks[1], masks[2]


def _edge_features(arrays: Mapping[str, np.ndarray], path: Path) -> np.ndarray | None:
    values = arrays.get("edge_features")
    if values is not None and (values.dtype.kind not in "fiub" or values.ndim not in (1, 2)):
        raise DataError(
            f"{path}: edge_features must be numbers of shape [E] or [E, D], got {values.dtype} {list(values.shape)}"
        )
    return values


def _class_names(arrays: Mapping[str, np.ndarray], path: Path) -> tuple[str, ...] | None:
    names = arrays.get("class_names")
    if names is None:
        return None
    if names.dtype.kind != "U" or names.ndim != 1:
        raise DataError(f"{path}: class_names must be a list of text, got {names.dtype} {list(names.shape)}")
    _check_text(names, "class_names", path)
    return tuple(names.tolist())


def _check_text(text: np.ndarray, key: str, path: Path) -> None:
    """Refuse characters that do not exist: numpy stores any 32 bits as one, and Python fails on it later."""
    codes = np.frombuffer(np.ascontiguousarray(text.astype(text.dtype.newbyteorder("="))).tobytes(), np.uint32)
    if ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any():
        raise DataError(f"{path}: {key} holds characters that do not exist; fetch it again")


def _convention(arrays: Mapping[str, np.ndarray], path: Path) -> str | None:
    if "edge_convention" not in arrays:
        return None
    if arrays["edge_convention"].dtype.kind != "U" or arrays["edge_convention"].shape != ():
        raise DataError(f"{path}: edge_convention must be one text; use one of {', '.join(CONVENTIONS)}")
    _check_text(arrays["edge_convention"], "edge_convention", path)
    convention = str(arrays["edge_convention"])
    if convention not in CONVENTIONS:
        raise DataError(f"{path}: edge_convention is {convention!r}; use one of {', '.join(CONVENTIONS)}")
    return convention


def _whole_numbers(values: np.ndarray, key: str, path: Path) -> np.ndarray:
    if values.dtype.kind not in "iu":
        raise DataError(f"{path}: {key} must hold whole numbers, got {values.dtype}")
    if values.dtype.kind == "u" and values.size and int(values.max()) > np.iinfo(np.int64).max:
        raise DataError(f"{path}: {key} holds {int(values.max())}, which is too large; use numbers below 2^63")
    return values.astype(np.int64, copy=False)
