"""Columns that tell the label by themselves: often made from it, and then a model learns nothing of use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from ltga.data.problems import Problems

ENOUGH = 0.995  # ROC AUC of one column, or correlation of its ranks with those of a number
FEWEST = 10  # members of a class, and others: below that chance separates
LOOKED_AT = 20_000  # labelled rows, fewer where they are wide
_MOST_CELLS = 5_000_000


def telltale_columns(
    x: np.ndarray, y: np.ndarray, values: np.ndarray | None, names: Sequence[str], classes: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """(column, what it tells) for each column of ``x`` ``[N, F]`` that goes with the target nearly without fault.

    ``y`` are classes ``[N]``, -1 where not known; ``values``, if there are some, numbers ``[N]`` or labels ``[N, L]``.

    >>> x = np.array([[0.0, 3.0], [1.0, 1.0]] * 10)
    >>> list(telltale_columns(x, np.array([0, 1] * 10), None, ("age", "size"), ("no", "yes")))
    [('age', "class 'no'"), ('size', "class 'no'")]
    """
    known = np.flatnonzero(y >= 0)
    most = min(LOOKED_AT, max(1000, _MOST_CELLS // max(1, x.shape[1])))
    if len(known) > most:
        known = known[np.linspace(0, len(known) - 1, most).astype(np.int64)]
    if len(known) < 2 * FEWEST or x.shape[1] == 0:
        return
    ranks = _ranks(x[known])
    if values is not None and values.ndim == 1:
        told = _alike(ranks, _ranks(values[known]))
        yield from ((name, "the number to predict") for name, tells in zip(names, told) if tells)
        return
    of = (y[known][:, None] == np.arange(len(classes))) if values is None else values[known]
    what = "class" if values is None else "label"
    told = _separates(ranks, of)
    for column, name in enumerate(names):
        first = int(told[:, column].argmax())
        if told[first, column]:
            yield name, f"{what} {classes[first]!r}"


def note_telltales(
    x: np.ndarray,
    names: Sequence[str],
    columns: Sequence[str],
    labels: tuple[np.ndarray, np.ndarray | None, Sequence[str]],
    where: str,
    problems: Problems,
    whose: str = "",
) -> None:
    """Add a note about each of a table's columns, of which the features ``x`` are made, that tells the label by itself.

    ``labels`` are ``y``, ``values`` and ``classes`` of :func:`telltale_columns`.
    """
    noted: set[str] = set()
    y, values, classes = labels
    for name, told in telltale_columns(x, y, values, names, classes):
        column = max((each for each in columns if name.startswith(each)), key=len, default=None)
        if column is not None and column not in noted:  # else it says where the node is in the graph
            noted.add(column)
            action = f"leave it out (drop={column}) if it was made from the label"
            problems.add(where, f"column {column!r}{whose} by itself tells {told}", 1, action, "note")


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks of every column; equal values share the mean of theirs."""
    ranks = pd.DataFrame(values).rank().to_numpy()
    return ranks.reshape(values.shape)


def _separates(ranks: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Whether a column ``[n, F]`` parts the members of each class or label ``[n, K]`` from the others: ``[K, F]``."""
    told = np.zeros((of.shape[1], ranks.shape[1]), dtype=bool)
    for number in range(of.shape[1]):
        rows = ~np.isnan(of[:, number]) if of.dtype.kind == "f" else np.ones(len(of), dtype=bool)
        members = of[rows, number].astype(bool)
        inside, outside = int(members.sum()), int((~members).sum())
        if min(inside, outside) < FEWEST:
            continue
        again = ranks[rows] if rows.all() else _ranks(ranks[rows])
        area = (again[members].sum(axis=0) - inside * (inside + 1) / 2) / (inside * outside)
        told[number] = np.abs(area - 0.5) >= ENOUGH - 0.5
    return told


def _alike(ranks: np.ndarray, target: np.ndarray) -> np.ndarray:
    away, from_mean = ranks - ranks.mean(axis=0), target - target.mean()
    norms = np.sqrt((away**2).sum(axis=0) * (from_mean**2).sum())
    return np.abs(from_mean @ away) >= ENOUGH * np.where(norms > 0, norms, np.inf)
