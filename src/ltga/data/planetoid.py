"""Reader for the Planetoid files (Python 2 pickles), through an unpickler that runs nothing."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from ltga.data.assemble import GraphArrays
from ltga.errors import DataError

PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
_NUM_VAL = 500


class _DType:
    """An inert record of what a pickle says about a dtype."""

    def __init__(self, code: str = "", *_: Any) -> None:
        self.code = code
        self.order = "|"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1]

    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype, if it is a plain number."""
        order = self.order if self.order in ("<", ">") else ""
        dtype = np.dtype(f"{order}{self.code}")
        if dtype.kind not in "biuf":
            raise ValueError(f"an array of {dtype}")
        return dtype


class _Array:
    """An inert record of what a pickle says about an array."""

    def __init__(self, *_: Any) -> None:
        self.state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def array(self) -> np.ndarray:
        """The numbers as a numpy array."""
        _, shape, dtype, fortran, raw = self.state
        # Python 2 strings come out of the unpickler as latin-1 text: one character per byte.
        data = raw.encode("latin1") if isinstance(raw, str) else bytes(raw)
        return np.frombuffer(data, dtype.dtype()).reshape(shape, order="F" if fortran else "C")


class _Csr:
    """An inert stand-in whose attributes are the parts of a CSR matrix."""


def _scalar(dtype: _DType, raw: str | bytes) -> Any:
    data = raw.encode("latin1") if isinstance(raw, str) else raw
    return np.frombuffer(data, dtype.dtype())[0].item()


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _DType,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
    **{(f"{core}.multiarray", "_reconstruct"): _Array for core in ("numpy.core", "numpy._core")},
    **{(f"{core}.multiarray", "scalar"): _scalar for core in ("numpy.core", "numpy._core")},
    **{(f"scipy.sparse.{module}", "csr_matrix"): _Csr for module in ("csr", "_csr")},
}


class _InertUnpickler(pickle.Unpickler):
    """Knows only the stand-ins above; any other name in the stream is refused, never imported."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}") from None


def load_inert(path: Path) -> Any:
    """The numbers in a Planetoid pickle: an array, a CSR matrix, or a dict of lists of ints."""
    try:
        with path.open("rb") as stream:
            return _materialise(_InertUnpickler(stream, encoding="latin1").load())
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    # A damaged pickle can raise nearly anything from inside the unpickler.
    except Exception as error:
        raise DataError(f"{path}: not a Planetoid file ({error}); nothing in it was run") from None


def _materialise(value: Any) -> Any:
    if isinstance(value, _Array):
        return value.array()
    if isinstance(value, _Csr):
        parts: Any = tuple(getattr(value, key).array() for key in ("data", "indices", "indptr"))
        matrix: Any = scipy.sparse.csr_matrix(parts, shape=vars(value)["_shape"])
        matrix.check_format(full_check=True)
        return matrix
    if isinstance(value, dict):
        return {int(node): [int(other) for other in others] for node, others in value.items()}
    raise ValueError(f"a {type(value).__name__} where an array, a matrix or a dict belongs")


def read_planetoid(files: Mapping[str, Path]) -> GraphArrays:
    """The graph in the eight files of one dataset, keyed by `PARTS`; equal to what PyG makes of them.

    Check the files' sha256 first (`ltga.load_dataset` does): this reader trusts their meaning.
    """
    missing = [part for part in PARTS if part not in files]
    if missing:
        raise DataError(f"planetoid: files missing: {', '.join(missing)}")
    _, y, tx, ty, allx, ally, graph = (load_inert(Path(files[part])) for part in PARTS[:-1])
    try:
        test_index = np.loadtxt(files["test.index"], dtype=np.int64, ndmin=1)
        num_nodes = int(test_index.max()) + 1
        # Rows of the range that the test index leaves out (CiteSeer has 15) stay zero.
        features = np.zeros((num_nodes, allx.shape[1]), dtype=np.float32)
        one_hot = np.zeros((num_nodes, ally.shape[1]))
        features[: allx.shape[0]], features[test_index] = allx.toarray(), tx.toarray()
        one_hot[: ally.shape[0]], one_hot[test_index] = ally, ty
        masks = np.zeros((3, 1, num_nodes), dtype=bool)
        masks[0, 0, : y.shape[0]] = True
        masks[1, 0, y.shape[0] : y.shape[0] + _NUM_VAL] = True
        masks[2, 0, test_index] = True
        edges = _edges(graph)
    except (ValueError, IndexError, AttributeError, OSError) as error:
        raise DataError(f"{Path(files['graph']).parent}: the Planetoid files do not fit together ({error})") from None
    return GraphArrays(features, one_hot.argmax(axis=1), edges, (masks[0], masks[1], masks[2]))


def _edges(graph: dict[int, list[int]]) -> np.ndarray:
    """Distinct pairs `[E, 2]` without self-loops, ordered by target and then source as in PyG."""
    pairs = np.array([(node, other) for node, others in graph.items() for other in others], dtype=np.int64)
    pairs = pairs.reshape(-1, 2)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return np.unique(pairs[:, ::-1], axis=0)[:, ::-1]
