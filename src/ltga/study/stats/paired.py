"""Two methods on the same seeds or datasets: which differs from which, by how much, and was the test able to tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy import stats
from statsmodels.stats.multitest import multipletests

from ltga.errors import InputError

Array = Sequence[float] | np.ndarray
Test = Literal["paired t", "Wilcoxon", "none"]

# Accuracies are fractions: 21/37 - 20/37 and 20/37 - 19/37 are equal, but not as floats. Ranks must see the tie.
DECIMALS = 12
FEWEST_PAIRS = 3  # Shapiro-Wilk needs three values


class WinsLossesTies(NamedTuple):
    wins: int
    losses: int
    ties: int

    def __str__(self) -> str:
        return f"{self.wins}/{self.losses}/{self.ties}"


@dataclass(frozen=True)
class PairedTest:
    """The outcome of :func:`paired_test`; ``p`` is two-sided and NaN where no test is possible."""

    test: Test
    p: float
    n: int
    counts: WinsLossesTies
    mean_difference: float
    cohens_d: float
    shapiro_p: float

    @property
    def smallest_p(self) -> float:
        """The smallest p that this test could have given with as many pairs that differ."""
        return smallest_possible_p(self.test, self.n - self.counts.ties)


def paired_test(first: Array, second: Array, alpha: float = 0.05) -> PairedTest:
    """Paired t-test if Shapiro-Wilk does not reject normal differences at ``alpha``, else Wilcoxon's signed ranks.

    Wilcoxon drops pairs without difference; it is exact up to 13 pairs, and up to 50 if no two differ by as much.
    Differences that are all equal leave nothing for Shapiro-Wilk or t to work with: Wilcoxon, or p = 1 if they are
    all zero. Fewer than three pairs: no test.

    >>> outcome = paired_test([0.81, 0.80, 0.83, 0.82], [0.80, 0.78, 0.80, 0.78])
    >>> outcome.test, round(outcome.p, 3), str(outcome.counts)
    ('paired t', 0.03, '4/0/0')
    """
    difference = differences(first, second)
    n = len(difference)
    counts = wins_losses_ties(first, second)
    mean = float(difference.mean()) if n else float("nan")
    test: Test = "none"
    p = shapiro_p = float("nan")
    if n >= FEWEST_PAIRS:
        if np.ptp(difference) == 0:
            test, p = "Wilcoxon", _wilcoxon(difference)
        else:
            shapiro_p = float(stats.shapiro(difference).pvalue)
            test = "Wilcoxon" if shapiro_p < alpha else "paired t"
            p = _wilcoxon(difference) if test == "Wilcoxon" else float(stats.ttest_1samp(difference, 0.0).pvalue)
    return PairedTest(test, p, n, counts, mean, cohens_d(first, second), shapiro_p)


def _wilcoxon(difference: np.ndarray) -> float:
    differing = difference[difference != 0]
    return float(stats.wilcoxon(differing).pvalue) if len(differing) else 1.0


def resampled_p(first: Array, second: Array, ratio: float) -> float:
    r"""Two-sided p of the t-test corrected for random splits that share nodes (Nadeau and Bengio, 2003).

    Training sets of different splits overlap, so that differences over splits are not independent and the plain
    test finds too much. Here :math:`t = \bar d / \sqrt{(1/n + r)\, s^2}` with n - 1 degrees of freedom.

    Args:
        ratio: r, the size of the test set over that of the training set; 0 gives the plain test.

    NaN for fewer than three pairs, 1 if nothing differs.

    >>> round(resampled_p([0.81, 0.80, 0.83, 0.82], [0.80, 0.78, 0.80, 0.78], ratio=0.5), 3)
    0.111
    """
    if not ratio >= 0:
        raise InputError(f"ratio: got {ratio}; pass the size of the test set over that of the training set")
    difference = differences(first, second)
    n = len(difference)
    if n < FEWEST_PAIRS:
        return float("nan")
    if not difference.any():
        return 1.0
    error = np.sqrt((1 / n + ratio) * difference.var(ddof=1))
    return 0.0 if error == 0 else float(2 * stats.t.sf(abs(difference.mean()) / error, n - 1))


def cohens_d(first: Array, second: Array) -> float:
    """Mean difference over the sample s.d. of the differences (the paired d, also d_z).

    Zero if nothing differs, infinite if everything differs by the same amount, NaN for fewer than two pairs.

    >>> cohens_d([2.0, 4.0], [1.0, 1.0])
    1.414213562373095
    """
    difference = differences(first, second)
    if len(difference) < 2:
        return float("nan")
    if not difference.any():
        return 0.0
    if np.ptp(difference) == 0:
        return float(np.copysign(np.inf, difference[0]))
    return float(difference.mean() / difference.std(ddof=1))


def wins_losses_ties(first: Array, second: Array) -> WinsLossesTies:
    """How often the first is greater, smaller, equal.

    >>> wins_losses_ties([3, 1, 2, 5], [2, 2, 2, 2])
    WinsLossesTies(wins=2, losses=1, ties=1)
    """
    sign = np.sign(differences(first, second))
    return WinsLossesTies(int((sign > 0).sum()), int((sign < 0).sum()), int((sign == 0).sum()))


def differences(first: Array, second: Array) -> np.ndarray:
    """``first - second`` without the noise of floating point, ``[pairs]``."""
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.ndim != 1 or a.shape != b.shape:
        raise InputError(f"first, second: expected two lists of one length, got shapes {a.shape} and {b.shape}")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise InputError("first, second: a value is not a finite number; leave that pair out")
    return np.round(a - b, DECIMALS)


def holm(p: Array) -> np.ndarray:
    """p-values adjusted for their number by Holm's method; NaN stays NaN but counts as a member of the family.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p, dtype=float)
    if not len(p):
        return p
    adjusted = np.asarray(multipletests(np.nan_to_num(p, nan=1.0), method="holm")[1], dtype=float)
    adjusted[np.isnan(p)] = np.nan
    return adjusted


def smallest_possible_p(test: Test, n: int) -> float:
    r"""The smallest two-sided p with ``n`` pairs that differ.

    Wilcoxon: all signs alike, :math:`2 \cdot 2^{-n}` (1 if nothing differs). Paired t: any p can be reached.

    >>> smallest_possible_p("Wilcoxon", 10), smallest_possible_p("Wilcoxon", 8), smallest_possible_p("paired t", 5)
    (0.001953125, 0.0078125, 0.0)
    """
    if n < 0:
        raise InputError(f"n: got {n}; pass the number of pairs that differ")
    if test == "none":
        return float("nan")
    return min(1.0, 2.0 ** (1 - n)) if test == "Wilcoxon" else 0.0


def smallest_possible_holm(smallest: Array) -> np.ndarray:
    """Per comparison, the smallest Holm-adjusted p if every test of the family did as well as it possibly can.

    Holm's adjusted p grows with each p of the family, so the best case is all of them at their smallest.

    >>> smallest_possible_holm([smallest_possible_p("Wilcoxon", 8)] * 15).round(3)[0]
    np.float64(0.117)
    """
    return holm(smallest)


def reach_warning(test: Test, n: int, family: int, alpha: float = 0.05) -> str | None:
    """A sentence if ``family`` such tests, Holm-corrected, cannot possibly reach ``alpha``; else None.

    >>> reach_warning("Wilcoxon", 8, 15)
    'Wilcoxon with 8 pairs cannot reach 0.05: its smallest p is 0.0078, 0.117 after Holm over 15'
    >>> reach_warning("Wilcoxon", 10, 14)
    """
    smallest = smallest_possible_p(test, n)
    adjusted = min(1.0, family * smallest)
    if not adjusted > alpha:
        return None
    return (
        f"{test} with {n} pairs cannot reach {alpha:g}: "
        f"its smallest p is {smallest:.2g}, {adjusted:.3f} after Holm over {family}"
    )
