"""The compiled threshold of rows whose edges have an alpha each, against bisection of the defining equation."""

import numpy as np
import pytest

from ltga.kernels.numba.entmax_rows import root


def by_bisection(z: np.ndarray, alpha: np.ndarray) -> float:
    """nu with sum of (1 + d (z - max + nu))_+ ^ (1 / d) = 1, d = alpha - 1."""
    d = alpha - 1
    low, high = -50.0, 0.0
    for _ in range(200):
        middle = (low + high) / 2
        total = (np.maximum(1 + d * (z - z.max() + middle), 0) ** (1 / d)).sum()
        low, high = (low, middle) if total > 1 else (middle, high)
    return high


def compiled(z: np.ndarray, alpha: np.ndarray) -> float:
    return root(0, len(z), 0, np.arange(len(z)), z[:, None], alpha[:, None], float(z.max()))


def test_steps_that_went_to_and_fro() -> None:
    z, alpha = np.array([-0.1863313615322113, 0.16162601113319397]), np.array([2.9904849529266357, 2.9986867904663086])
    assert compiled(z, alpha) == pytest.approx(by_bisection(z, alpha), rel=1e-12)


@pytest.mark.parametrize("steepest", [1.6, 2.0, 3.0, 5.0])
def test_any_row(steepest: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(1500):
        count = rng.integers(1, 9)
        z = rng.normal(0, rng.choice([0.1, 0.5, 3.0]), count)
        alpha = rng.choice([1 + rng.uniform(1e-3, steepest - 1, count), steepest - rng.uniform(0, 0.01, count)])
        assert compiled(z, alpha) == pytest.approx(by_bisection(z, alpha), rel=1e-9, abs=1e-12)
