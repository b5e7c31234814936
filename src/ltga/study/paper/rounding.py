"""What printed, rounded numbers leave open: the range a statistic can take over all values that print the same."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from ltga.study.stats.paired import WinsLossesTies

Range = tuple[float, float]


def half_unit(printed: str) -> float:
    """Half of the last printed digit.

    >>> half_unit("61.7"), half_unit("0.199")
    (0.05, 0.0005)
    """
    decimals = len(printed.partition(".")[2])
    return 0.5 * 10.0**-decimals


def prints_as(value: float, printed: str) -> bool:
    """Whether ``value`` rounds to ``printed``; a value half-way rounds to both.

    >>> prints_as(51.25, "51.3"), prints_as(51.25, "51.2"), prints_as(51.24, "51.3")
    (True, True, False)
    """
    return abs(value - float(printed)) <= half_unit(printed) + 1e-9


def could_print_as(values: Range, printed: str) -> bool:
    """Whether some value of the range rounds to ``printed``."""
    low, high = min(values), max(values)
    margin = half_unit(printed) + 1e-9
    return low - margin <= float(printed) <= high + margin


def effect_range(difference: np.ndarray, slack: float) -> Range:
    """Smallest and largest paired Cohen's d if every difference may be off by up to ``slack``.

    Where the mean is positive, mean over s.d. is quasi-concave: its minimum is at a corner of the box, and at its
    maximum each difference is as close to one common value as its limits allow.

    >>> [round(d, 2) for d in effect_range(np.array([1.0, 2.0, 4.0]), 0.1)]
    [1.4, 1.67]
    """
    if difference.mean() < 0:
        low, high = effect_range(-difference, slack)
        return -high, -low
    lowest, highest = difference - slack, difference + slack
    corners = np.array(list(itertools.product(*zip(lowest, highest, strict=True))))
    common = np.linspace(lowest.min(), highest.max(), 4001)[:, None]
    towards_common = np.clip(common, lowest, highest)
    return float(_effects(corners).min()), float(_effects(towards_common).max())


def _effects(samples: np.ndarray) -> np.ndarray:
    return samples.mean(axis=1) / samples.std(axis=1, ddof=1)


def t_test_range(effects: Range, n: int) -> Range:
    """Smallest and largest p of a paired t-test over a range of Cohen's d, as t = d sqrt(n)."""
    sizes = np.abs(effects)
    smallest = 0.0 if effects[0] <= 0 <= effects[1] else float(sizes.min())
    p = 2 * stats.t.sf(np.array([sizes.max(), smallest]) * np.sqrt(n), n - 1)
    return float(p[0]), float(p[1])


def wilcoxon_range(difference: np.ndarray, slack: float, counts: WinsLossesTies) -> Range | None:
    """Smallest and largest exact p with ``counts`` wins, losses and ties, each difference off by up to ``slack``.

    None if no such values have these counts.
    """
    options = [[int(np.sign(value))] if abs(value) > slack else [-1, 0, 1] for value in difference]
    sums: list[float] = []
    for signs in itertools.product(*options):
        if (signs.count(1), signs.count(-1), signs.count(0)) == counts:
            sums += _extreme_rank_sums(difference, slack, np.array(signs))
    if not sums:
        return None
    p = [_wilcoxon_p(rank_sum, counts.wins + counts.losses) for rank_sum in sums]
    return min(p), max(p)


def _extreme_rank_sums(difference: np.ndarray, slack: float, signs: np.ndarray) -> list[float]:
    """Smallest and largest sum of the positive ranks: positive sizes at one limit, negative ones at the other."""
    size, kept = (difference * np.where(signs == 0, 1, signs))[signs != 0], signs[signs != 0]
    sums = []
    for towards in (1, -1):
        moved = np.maximum(size + towards * slack * kept, 0)
        # Sizes that tie at the limit may be ordered either way; let the favoured sign win.
        order = np.lexsort((towards * kept, np.round(moved, 9)))
        ranks = np.empty(len(order))
        ranks[order] = np.arange(1, len(order) + 1)
        sums.append(float(ranks[kept > 0].sum()))
    return sums


def _wilcoxon_p(rank_sum: float, n: int) -> float:
    """Exact two-sided p of a sum of positive ranks without ties."""
    ways = np.array([1.0])  # ways[s]: how many sets of ranks sum to s
    for rank in range(1, n + 1):
        ways = np.append(ways, np.zeros(rank)) + np.append(np.zeros(rank), ways)
    smaller = int(min(rank_sum, n * (n + 1) / 2 - rank_sum))
    return min(1.0, float(2 * ways[: smaller + 1].sum() / 2.0**n))


def resolved_ties(
    cells: Mapping[tuple[str, str], str], methods: Sequence[str], datasets: Sequence[str]
) -> Iterator[pd.DataFrame]:
    """Every table of scores ``[datasets, methods]`` that prints as ``cells`` ("mean±s.d."), up to order.

    Methods with the same mean and the same s.d. on a dataset count as the same runs and stay tied; methods with
    the same mean and another s.d. may stand in either order, or tie.

    >>> cells = {("a", "x"): "1.0±0.1", ("b", "x"): "1.0±0.2", ("c", "x"): "2.0±0.1"}
    >>> len(list(resolved_ties(cells, ["a", "b", "c"], ["x"])))
    3
    """
    rows = [_orders([cells[method, dataset] for method in methods]) for dataset in datasets]
    for table in itertools.product(*rows):
        yield pd.DataFrame(np.array(table), index=list(datasets), columns=list(methods))


def _orders(row: list[str]) -> list[list[float]]:
    """The scores of one dataset, once per order that its cells leave open."""
    kinds: dict[str, list[str]] = {}  # printed mean -> the different cells that have it
    for cell in row:
        same_mean = kinds.setdefault(cell.split("±")[0], [])
        if cell not in same_mean:
            same_mean.append(cell)
    found = []
    for places in itertools.product(*(_weak_orders(len(cells)) for cells in kinds.values())):
        nudge = {
            cell: 1e-3 * place
            for cells, at in zip(kinds.values(), places, strict=True)
            for cell, place in zip(cells, at, strict=True)
        }
        found.append([float(cell.split("±")[0]) + nudge[cell] for cell in row])
    return found


def _weak_orders(n: int) -> list[tuple[int, ...]]:
    """All orders of n things in which some may tie: places without gaps, from 0."""
    return [places for places in itertools.product(range(n), repeat=n) if set(places) == set(range(max(places) + 1))]
