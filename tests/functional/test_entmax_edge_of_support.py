"""Derivatives of entmax where an element has only just entered the support, against fifty digits."""

import mpmath
import pytest
import torch

from ltga.functional import entmax
from ltga.kernels.numba.entmax_panel import log_alpha
from ltga.kernels.numba.scalar import by_alpha, leaf


def exact(z: list[float], alpha: float, grad: list[float]) -> tuple[list[float], list[float], float]:
    """Weights, gradient in z and in alpha, from the definition: nu by bisection, derivatives by differences."""
    with mpmath.workdps(80):

        def weights(scores: list, a):  # type: ignore[no-untyped-def]
            d = a - 1

            def powers(nu):  # type: ignore[no-untyped-def]
                return [max(1 + d * (score + nu), mpmath.mpf(0)) ** (1 / d) for score in scores]

            low, high = -max(scores) - 1 / d, -max(scores)
            for _ in range(260):
                middle = (low + high) / 2
                low, high = (low, middle) if sum(powers(middle)) > 1 else (middle, high)
            return powers((low + high) / 2)

        scores, a = [mpmath.mpf(value) for value in z], mpmath.mpf(alpha)
        step = mpmath.mpf(10) ** -40

        def loss(changed: list, index):  # type: ignore[no-untyped-def]
            return sum(g * p for g, p in zip(grad, weights(changed, index)))

        def moved(at: int, by):  # type: ignore[no-untyped-def]
            return [score + by * (place == at) for place, score in enumerate(scores)]

        by_z = [(loss(moved(k, step), a) - loss(moved(k, -step), a)) / (2 * step) for k in range(len(z))]
        by_a = (loss(scores, a + step) - loss(scores, a - step)) / (2 * step)
        return [float(p) for p in weights(scores, a)], [float(value) for value in by_z], float(by_a)


@pytest.mark.parametrize("alpha", [1.3, 1.5, 1.9, 2.0, 2.5, 3.0])
@pytest.mark.parametrize("smallest", [1e-2, 1e-4])
def test_derivatives_near_the_edge_of_the_support(alpha: float, smallest: float) -> None:
    p = [0.6, 0.4 - smallest, smallest]
    z = [(value ** (alpha - 1) - 1) / (alpha - 1) for value in p] + [-3.0 / (alpha - 1)]
    grad = [0.3, -1.1, 2.0, 0.7]
    weights, by_z, by_a = exact(z, alpha, grad)
    scores = torch.tensor(z, dtype=torch.double, requires_grad=True)
    index = torch.tensor(alpha, dtype=torch.double, requires_grad=True)
    found = entmax(scores, index)
    found.backward(torch.tensor(grad, dtype=torch.double))
    blurred = 1e-15 * smallest ** min(0.0, 2 - 2 * alpha)  # what rounding z does to s, which is p^(2 - alpha)
    assert found.tolist() == pytest.approx(weights, rel=1e-9, abs=1e-12)
    assert scores.grad.tolist() == pytest.approx(by_z, rel=1e-8 + blurred, abs=1e-10)  # type: ignore[union-attr]
    assert index.grad.item() == pytest.approx(by_a, rel=1e-8 + blurred, abs=1e-10)  # type: ignore[union-attr]


@leaf()
def slope(p, log_p, s, d):  # type: ignore[no-untyped-def]
    return by_alpha(p, log_p, log_alpha(log_p, d), s, d)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.2, 1.5, 1.9, 2.0, 2.5, 3.0, 8.0])
@pytest.mark.parametrize("p", [1.0, 0.7, 1e-2, 1e-9, 1e-20, 1e-38, 1e-45])
def test_the_slope_in_alpha_survives_weights_that_vanish(alpha: float, p: float) -> None:
    """p^d loses its digits beside 1 long before p is zero; the slope was infinite minus infinite there."""
    with mpmath.workdps(120):
        d, mp = mpmath.mpf(alpha) - 1, mpmath.mpf(p)
        log_p = mpmath.log(mp)
        expected = -mp * log_p**2 / 2 if d == 0 else (mp * (1 - d * log_p) - mp ** (1 - d)) / d**2
        s = float(mp ** (1 - d))
    assert slope(p, float(log_p), s, alpha - 1) == pytest.approx(float(expected), rel=1e-9, abs=1e-300)
