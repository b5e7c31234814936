"""Labels with gaps, in the many forms in which Python has them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ltga.errors import InputError


def known_labels(y: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels `[count]` of one kind, and which of them are known.

    Not known is what is -1, `None`, NaN, `pandas.NA` or masked. Whole numbers stay whole beside such gaps.

    >>> labels, known = known_labels([0, 1, None, 2], 4)
    >>> labels[known], known.tolist()
    (array([0, 1, 2]), [True, True, False, True])
    """
    labels, gaps = _as_array(y)
    if labels.shape != (count,):
        raise InputError(f"y: expected one label for each of {count} rows, got shape {list(labels.shape)}")
    known = ~(gaps | np.asarray(pd.isna(labels)))
    if labels.dtype == object:
        # One by one, because a comparison with pandas.NA is neither true nor false.
        known[known] = [not (isinstance(label, Real) and label == -1) for label in labels[known]]
        labels = _of_one_kind(labels, known)
    else:
        known &= ~(labels == -1)
    if labels.dtype.kind == "f" and np.isinf(labels[known]).any():
        raise InputError(f"y: the label of row {int(np.isinf(labels).argmax())} is infinite; use numbers or text")
    return labels, known


def _as_array(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """`y` as an array that forgot nothing, and where it is masked."""
    if isinstance(y, np.ma.MaskedArray):  # numpy's own conversion would show what the mask hides
        return np.asarray(np.ma.getdata(y)), np.ma.getmaskarray(y)
    if isinstance(y, Tensor):
        y = y if y.layout == torch.strided else y.to_dense()
        labels = (y.double() if y.is_floating_point() else y).numpy(force=True)  # numpy has fewer kinds of fractions
    elif isinstance(y, pd.Series | pd.Index | pd.api.extensions.ExtensionArray) and not isinstance(y.dtype, np.dtype):
        labels = y.to_numpy(dtype=object)  # its own conversion turns whole numbers beside gaps into fractions
    elif isinstance(y, list | tuple) and not any(isinstance(label, list | tuple | np.ndarray) for label in y):
        # numpy would make text of all of ["a", nan] and of ["a", 3].
        labels = np.empty(len(y), dtype=object)
        labels[:] = [label.item() if isinstance(label, Tensor) and label.numel() == 1 else label for label in y]
    else:
        try:
            labels = np.asarray(y)
        except ValueError as error:
            raise InputError(f"y: expected one label for each row ({error})") from None
    return labels, np.zeros(labels.shape, dtype=bool)


def _of_one_kind(labels: np.ndarray, known: np.ndarray) -> np.ndarray:
    """An array of objects as one of numbers or text; what stands in the gaps does not matter."""
    kinds = {_kind(label) for label in labels[known]}
    if kinds == {"int", "float"}:
        kinds = {"float"}
    if len(kinds) > 1:
        raise InputError(f"y: labels are a mixture of {', '.join(sorted(kinds))}; use one kind")
    kind = kinds.pop() if kinds else ""
    if kind == "str" and known.all():
        return labels.astype(str)
    if kind not in ("bool", "int", "float"):
        return labels
    typed = np.zeros(labels.shape, dtype={"bool": bool, "int": np.int64, "float": np.float64}[kind])
    try:
        typed[known] = labels[known].astype(typed.dtype)
    except OverflowError:
        raise InputError("y: a label is beyond 2^63; number the classes 0, 1, 2, ...") from None
    return typed


def _kind(label: Any) -> str:
    if isinstance(label, bool | np.bool_):
        return "bool"
    if isinstance(label, Integral):
        return "int"
    if isinstance(label, Real):
        return "float"
    return "str" if isinstance(label, str) else type(label).__name__
