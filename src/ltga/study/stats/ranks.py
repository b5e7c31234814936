"""Many methods on many datasets: average ranks, Friedman, Nemenyi and the critical-difference diagram's data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from ltga.errors import InputError
from ltga.study.stats.paired import DECIMALS


@dataclass(frozen=True)
class Friedman:
    """Friedman's test, corrected for ties; p from the chi-square distribution with ``methods - 1`` degrees."""

    chi2: float
    p: float
    methods: int
    datasets: int


@dataclass(frozen=True, eq=False)
class CriticalDifference:
    """What a critical-difference diagram shows.

    Attributes:
        ranks: average rank per method, best first.
        difference: two average ranks further apart than this differ at ``alpha`` (Nemenyi).
        cliques: the diagram's bars; each names methods, best first, that cannot be told apart.
    """

    ranks: pd.Series[float]
    difference: float
    cliques: tuple[tuple[str, ...], ...]
    alpha: float


def average_ranks(table: pd.DataFrame) -> pd.Series[float]:
    """Mean rank over datasets, 1 the best (greatest score); methods that tie share the mean of their ranks.

    Args:
        table: scores ``[datasets, methods]``, greater is better; :meth:`ltga.study.stats.Scores.means` gives one
            (negate it where lower is better).

    >>> average_ranks(pd.DataFrame({"a": [3.0, 2.0], "b": [1.0, 2.0]})).to_dict()
    {'a': 1.25, 'b': 1.75}
    """
    return _ranks(table).mean(axis=0)


def friedman(table: pd.DataFrame) -> Friedman:
    """Do the methods' ranks differ more than chance would make them?

    >>> friedman(pd.DataFrame({"a": [3.0, 3.0, 3.0], "b": [2.0, 2.0, 2.0], "c": [1.0, 1.0, 1.0]})).chi2
    6.0
    """
    ranks = _ranks(table)
    datasets, methods = ranks.shape
    if methods < 3 or datasets < 2:
        raise InputError(
            f"table: {datasets} datasets and {methods} methods; Friedman's test needs at least 2 and 3 "
            "(for two methods use paired_test)"
        )
    if (ranks.nunique(axis=1) == 1).all():
        return Friedman(0.0, 1.0, methods, datasets)  # everything ties everywhere: 0/0 in the formula
    result = stats.friedmanchisquare(*(ranks[method] for method in ranks))
    return Friedman(float(result.statistic), float(result.pvalue), methods, datasets)


def critical_difference(methods: int, datasets: int, alpha: float = 0.05) -> float:
    r""":math:`q_{\alpha,k} \sqrt{k(k+1)/(6n)}` with q the studentised range over :math:`\sqrt 2`.

    >>> round(critical_difference(7, 8), 3)
    3.185
    """
    if methods < 2 or datasets < 1 or not 0 < alpha < 1:
        raise InputError(f"methods, datasets, alpha: got {methods}, {datasets}, {alpha}; need >= 2, >= 1, in (0, 1)")
    q = stats.studentized_range.ppf(1 - alpha, methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(methods * (methods + 1) / (6 * datasets)))


def critical_difference_diagram(table: pd.DataFrame, alpha: float = 0.05) -> CriticalDifference:
    """Average ranks, the critical difference, and the maximal groups whose ranks lie within it."""
    ranks = average_ranks(table).sort_values(kind="stable")
    difference = critical_difference(len(ranks), len(table), alpha)
    return CriticalDifference(ranks, difference, cliques(ranks, difference), alpha)


def cliques(ranks: pd.Series[float], difference: float) -> tuple[tuple[str, ...], ...]:
    """Maximal groups of two or more methods no further apart than ``difference``, best first.

    >>> cliques(pd.Series({"a": 1.0, "b": 2.0, "c": 3.5}), 1.5)
    (('a', 'b'), ('b', 'c'))
    """
    ranks = ranks.sort_values(kind="stable")
    values = np.round(ranks.to_numpy(dtype=float), DECIMALS)
    ends = np.searchsorted(values, np.round(values + difference, DECIMALS), side="right")
    groups, reached = [], 0
    for start, end in enumerate(ends):
        if end > reached and end - start > 1:
            groups.append(tuple(str(name) for name in ranks.index[start:end]))
        reached = max(reached, int(end))
    return tuple(groups)


def _ranks(table: pd.DataFrame) -> pd.DataFrame:
    if table.empty:
        raise InputError("table: it has no scores")
    if not table.columns.is_unique:
        raise InputError("table: a method appears in two columns; keep one")
    values = table.to_numpy(dtype=float)
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise InputError(
            f"table: no finite score for {table.columns[column]} on {table.index[row]}; "
            "ranks need every method on every dataset, so leave one of them out"
        )
    return table.astype(float).round(DECIMALS).rank(axis=1, ascending=False)
