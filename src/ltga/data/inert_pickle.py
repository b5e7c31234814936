"""Numbers out of the pickles of Python 2, through an unpickler that runs nothing and takes no more than is there."""

from __future__ import annotations

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np

from ltga.data.bounds import in_a_line
from ltga.data.csr import checked_csr
from ltga.errors import DataError


class _DType:
    """An inert record of what a pickle says about a dtype."""

    def __init__(self, code: str = "", *_: Any) -> None:
        self.code = code
        self.order = "|"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1]

    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype, if it is a plain number."""
        if not isinstance(self.code, str) or len(self.code) > 8:
            raise ValueError("an array of something else than numbers")
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
        data = raw.encode("latin1") if isinstance(raw, str) else bytes(memoryview(raw))
        return np.frombuffer(data, dtype.dtype()).reshape(shape, order="F" if fortran else "C")


class _Csr:
    """An inert stand-in that keeps the parts of a CSR matrix."""

    # Without it a pickle could set attributes, and on the class itself as well as on an object of it.
    def __setstate__(self, state: dict[str, Any]) -> None:
        self.parts = dict(state)

    def matrix(self) -> Any:
        """The matrix, if its parts belong together."""
        data, indices, indptr = (self.parts[key].array() for key in ("data", "indices", "indptr"))
        rows, columns = (int(side) for side in self.parts["_shape"])
        return checked_csr(data, indices, indptr, (rows, columns))


class _Scalar:
    """A stand-in for numpy's way of storing one number; making one gives the number."""

    def __new__(cls, dtype: _DType, raw: str | bytes) -> Any:
        kind = dtype.dtype()
        if len(raw) != kind.itemsize:
            raise ValueError(f"a number of {len(raw)} bytes where {kind} has {kind.itemsize}")
        return np.frombuffer(raw.encode("latin1") if isinstance(raw, str) else raw, kind)[0].item()

    def __setstate__(self, state: Any) -> None:
        raise ValueError("a number with attributes")


class _Lists(dict[Any, Any]):
    """`defaultdict(list)`: a dict that takes its entries one by one, so no pickle can copy large ones."""

    def __init__(self, factory: Any = None) -> None:
        super().__init__()

    def __setstate__(self, state: Any) -> None:
        raise ValueError("a dict with attributes")


class _ListName:
    """What the name `list` means in a pickle: a word to pass on, nothing to call with arguments."""

    def __setstate__(self, state: Any) -> None:
        raise ValueError("a list with attributes")


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _DType,
    ("collections", "defaultdict"): _Lists,
    ("__builtin__", "list"): _ListName,
    ("builtins", "list"): _ListName,
    **{(f"{core}.multiarray", "_reconstruct"): _Array for core in ("numpy.core", "numpy._core")},
    **{(f"{core}.multiarray", "scalar"): _Scalar for core in ("numpy.core", "numpy._core")},
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
    """The numbers in a pickle: an array, a CSR matrix, or a dict of lists of ints."""
    try:
        content = path.read_bytes()
        _check_lengths(content)
        return _materialise(_InertUnpickler(io.BytesIO(content), encoding="latin1").load(), len(content))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    # A damaged pickle can raise nearly anything from inside the unpickler.
    except Exception as error:
        raise DataError(f"{path}: not a Planetoid file ({in_a_line(error)}); nothing in it was run") from None


def _check_lengths(content: bytes) -> None:
    """Read the stream through without building anything: the unpickler believes the lengths it is told.

    A text or number that is longer than the rest of the file is noticed here, as is a place in the memo beyond
    the number of things that could have been put there.
    """
    for opcode, argument, at in pickletools.genops(io.BytesIO(content)):
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT", "FRAME") and not 0 <= int(argument or 0) <= len(content):
            raise ValueError(f"byte {at} asks for {argument} in a file of {len(content)} bytes")


def _materialise(value: Any, stored: int) -> Any:
    if isinstance(value, _Array):
        return value.array()
    if isinstance(value, _Csr):
        return value.matrix()
    if isinstance(value, dict):
        if not all(isinstance(others, list) for others in value.values()):
            raise ValueError("a dict of something else than lists")
        # Every entry takes at least a byte, unless a list is mentioned again and again.
        if sum(map(len, value.values())) > stored:
            raise ValueError("lists of more entries than the file has bytes")
        return {int(node): [int(other) for other in others] for node, others in value.items()}
    raise ValueError(f"a {type(value).__name__} where an array, a matrix or a dict belongs")
