"""What is predicted of a node or of a graph: one of several classes, any of several labels, or a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ltga.errors import DataError

if TYPE_CHECKING:  # tables are checked without torch
    from torch import Tensor

Kind = Literal["classes", "labels", "number"]
_UNEVEN = 1 / 3  # of an even share; a class rarer than that makes plain accuracy a poor guide


@dataclass(frozen=True, eq=False)
class Target:
    """The true values, and what they mean.

    Attributes:
        kind: "classes" (one of several), "labels" (any of several) or "number".
        y: int64 `[N]` with -1 where unknown for classes; float32 `[N, L]` of 0, 1 and NaN (unknown) for labels;
            float32 `[N]` with NaN where unknown for a number.
        names: of the classes, of the labels, or of the one quantity.
    """

    kind: Kind
    y: Tensor
    names: tuple[str, ...]

    @property
    def known(self) -> Tensor:
        """Which items have a value `[N]`; with several labels, at least one."""
        if self.kind == "classes":
            return self.y >= 0
        known = ~self.y.isnan()
        return known.any(dim=1) if self.kind == "labels" else known

    @property
    def outputs(self) -> int:
        """How many outputs a model needs: one per class or label, or a single one."""
        return len(self.names)


def make_target(
    y: Any, where: str, kind: Kind | None = None, names: Sequence[str] | None = None, item: str = "node"
) -> Target:
    """The checked target that `y` holds, its kind by its form if it is not named.

    Whole numbers `[N]` are classes (-1: unknown), fractions `[N]` a number and a table `[N, L]` of 0 and 1 labels (NaN:
    unknown). A target that is missing everywhere, or the same wherever it is known, is refused.

    >>> make_target([0, 1, 2, 1], "y").kind, make_target([0.5, 1, 2], "y").kind, make_target([[0, 1], [1, 0]], "y").kind
    ('classes', 'number', 'labels')
    >>> make_target([3.5, float("nan"), 3.5], "views")
    Traceback (most recent call last):
    ...
    ltga.errors.DataError: views: the target is 3.5 for every node that has one; there is nothing to learn
    """
    values = np.asarray(y) if isinstance(y, np.ndarray) or not hasattr(y, "numpy") else y.numpy(force=True)
    if values.ndim == 2 and values.shape[1] == 1 and kind != "labels":
        values = values[:, 0]
    if values.dtype.kind not in "biuf":
        raise DataError(f"{where}: expected numbers as target, got {values.dtype}")
    kind = kind or ("labels" if values.ndim == 2 else "number" if values.dtype.kind == "f" else "classes")
    if values.ndim != (2 if kind == "labels" else 1) or 0 in values.shape:
        meant = "a row of labels" if kind == "labels" else "one value"
        raise DataError(f"{where}: expected {meant} for every {item}, got a target of shape {list(values.shape)}")
    make = {"classes": _classes, "labels": _labels, "number": _number}[kind]
    return make(values, None if names is None else tuple(names), where, item)


def _classes(values: np.ndarray, names: tuple[str, ...] | None, where: str, item: str) -> Target:
    if values.dtype.kind == "f":
        raise DataError(f"{where}: classes must be whole numbers, -1 for unknown, got {values.dtype}")
    if values.dtype.kind == "u" and int(values.max()) > np.iinfo(np.int64).max:
        raise DataError(f"{where}: a label is beyond 2^63; number the classes 0, 1, 2, ...")
    y = values.astype(np.int64)
    found = np.unique(y[y >= 0])
    _refuse_empty(found.size, where, item)
    if found.size == 1:
        shown = names[found[0]] if names is not None and found[0] < len(names) else found[0]
        raise DataError(f"{where}: every {item} that has a class has {shown!s}; classification needs at least two")
    count = int(found[-1]) + 1 if names is None else len(names)
    if int(found[-1]) >= count or y.min() < -1:
        at = int(np.flatnonzero((y >= count) | (y < -1))[0])
        raise DataError(f"{where}: {item} {at} has label {y[at]}; use 0 to {count - 1}, or -1 for unknown")
    if names is None and count > 10 * found.size:
        raise DataError(
            f"{where}: the largest label is {count - 1}, but there are only {found.size} different ones; number the "
            "classes 0, 1, 2, ... (numpy.unique(labels, return_inverse=True)[1])"
        )
    return Target("classes", _tensor(y), names if names is not None else tuple(map(str, range(count))))


def _labels(values: np.ndarray, names: tuple[str, ...] | None, where: str, item: str) -> Target:
    y = values.astype(np.float32)
    names = names if names is not None else tuple(map(str, range(y.shape[1])))
    if len(names) != y.shape[1]:
        raise DataError(f"{where}: {y.shape[1]} labels but {len(names)} names; give one each")
    bad = np.argwhere(~(np.isnan(y) | (y == 0) | (y == 1)))
    if bad.size:
        row, column = bad[0]
        raise DataError(
            f"{where}: label {names[column]!r} of {item} {row} is {y[row, column]:g}; use 0, 1, or NaN for unknown"
        )
    _refuse_empty(int((~np.isnan(y)).sum()), where, item)
    for column, name in enumerate(names):
        present = np.unique(y[~np.isnan(y[:, column]), column])
        if present.size < 2:
            state = f"{present[0]:g} for every {item} that has it" if present.size else f"missing for every {item}"
            raise DataError(f"{where}: label {name!r} is {state}; there is nothing to learn, leave it out")
    return Target("labels", _tensor(y), names)


def _number(values: np.ndarray, names: tuple[str, ...] | None, where: str, item: str) -> Target:
    with np.errstate(over="ignore"):  # too large for float32 becomes inf and is refused below
        y = values.astype(np.float32)
    infinite = np.flatnonzero(np.isinf(y))
    if infinite.size:
        raise DataError(f"{where}: the target of {item} {infinite[0]} is {values[infinite[0]]}; use finite numbers")
    found = np.unique(y[~np.isnan(y)])
    _refuse_empty(found.size, where, item)
    if found.size == 1:
        raise DataError(f"{where}: the target is {found[0]:g} for every {item} that has one; there is nothing to learn")
    if names is not None and len(names) != 1:
        raise DataError(f"{where}: one number but {len(names)} names; give one")
    return Target("number", _tensor(y), names or ("value",))


def _tensor(values: np.ndarray) -> Tensor:
    import torch

    return torch.from_numpy(values)


def _refuse_empty(known: int, where: str, item: str) -> None:
    if known == 0:
        raise DataError(f"{where}: the target of every {item} is missing; there is nothing to learn from")


def metric_of_classes(y: Tensor, count: int) -> str:
    """What labels `[N]` (-1: unknown) of so many classes call for.

    Where every class has at least a third of an even share, that is accuracy. Two uneven classes are judged by the area
    under the ROC curve, more by macro-F1.

    >>> import torch
    >>> metric_of_classes(torch.tensor([0, 1, 0, 1, -1]), 2), metric_of_classes(torch.tensor([0] * 9 + [1]), 2)
    ('accuracy', 'roc_auc')
    """
    shares = y[y >= 0].bincount(minlength=count).double()
    shares = shares[shares > 0] / shares.sum()
    if float(shares.min()) * len(shares) >= _UNEVEN:
        return "accuracy"
    return "roc_auc" if count == 2 else "macro_f1"


def rarer_class(y: Tensor) -> int:
    """Of two classes the one that fewer labels `[N]` (-1: unknown) name: what one looks for. Class 1 if they are level.

    >>> import torch
    >>> [rarer_class(torch.tensor(y)) for y in ([0, 1, 1, -1], [0, 0, 1], [0, 1])]
    [0, 1, 1]
    """
    return int((y == 1).sum() <= (y == 0).sum())
