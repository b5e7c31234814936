"""alpha-entmax and sparsemax against the `entmax` package, brute force, gradcheck and the bridge."""

import entmax as reference
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from ltga import LTGAError
from ltga.functional import (
    bridge_scale,
    entmax,
    q_softmax,
    segment_entmax,
    segment_sparsemax,
    sparsemax,
    tsallis_entropy,
)
from ltga.functional.entmax_root import solve
from ltga.functional.rows import DenseRows

ALPHAS = [1.05, 1.2, 1.5, 1.75, 2.0, 2.5, 3.0]


def scores(rows=6, columns=9, scale=1.5, seed=0, dtype=torch.double):
    return scale * torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_agrees_with_the_entmax_package(alpha):
    z = scores(40, 30)
    ours, theirs = z.clone().requires_grad_(), z.clone().requires_grad_()
    p = entmax(ours, alpha)
    expected = reference.entmax_bisect(theirs, alpha=alpha, n_iter=80)
    assert torch.allclose(p, expected, atol=1e-6)
    weight = scores(40, 30, seed=5)
    (p * weight).sum().backward()
    (expected * weight).sum().backward()
    assert torch.allclose(ours.grad, theirs.grad, atol=1e-6)


@pytest.mark.parametrize("alpha", [1.2, 1.7, 2.3])
def test_gradient_in_alpha_agrees_with_the_entmax_package(alpha):
    z, weight = scores(), scores(seed=7)
    grads = []
    for run in (lambda a: entmax(z, a), lambda a: reference.entmax_bisect(z, alpha=a, n_iter=80)):
        a = torch.full((6, 1), alpha, dtype=torch.double, requires_grad=True)
        (run(a) * weight).sum().backward()
        grads.append(a.grad)
    assert torch.allclose(*grads, atol=1e-6)


def test_exact_algorithms_agree_with_the_package_and_the_solver():
    z = scores(50, 40, 2.0)
    assert torch.allclose(sparsemax(z), reference.sparsemax(z), atol=1e-12)
    assert torch.allclose(entmax(z, 1.5), reference.entmax15(z), atol=1e-12)
    x = z - z.amax(1, keepdim=True)
    for alpha in (1.5, 2.0):
        p, _ = solve(x, torch.tensor(alpha - 1, dtype=torch.double), DenseRows(1))
        assert torch.allclose(entmax(z, alpha), p, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.3, 0.7, 1.0, 1.01, 1.2, 1.9, 2.5, 3.5])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_solver_needs_a_handful_of_iterations(alpha, scale):
    z = scores(200, 50, scale)
    x = z - z.amax(1, keepdim=True)
    p, iterations = solve(x, torch.tensor(alpha - 1, dtype=torch.double), DenseRows(1))
    assert torch.allclose(p.sum(1), torch.ones(200, dtype=torch.double), atol=1e-12 if alpha <= 2 else 1e-9)
    assert iterations <= (8 if alpha <= 2 else 14)  # the slowest of 200 rows; above 2 some halve the support


@pytest.mark.parametrize("alpha", [0.5, 1.3, 2.0])
def test_solves_the_stated_optimisation_problem(alpha):
    """Brute force: SLSQP on the simplex maximises p.z + S_alpha(p)/alpha."""
    z = torch.tensor([0.9, 0.1, -0.4, 0.5], dtype=torch.double)

    def objective(p):
        t = torch.tensor(p, dtype=torch.double).clamp(min=1e-12)
        return -float(t @ z + tsallis_entropy(t, alpha) / alpha)

    found = minimize(
        objective,
        [0.25] * 4,
        bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda p: sum(p) - 1},
        tol=1e-12,
    )
    assert torch.allclose(entmax(z, alpha), torch.tensor(found.x), atol=2e-4)


@pytest.mark.parametrize("alpha", [0.4, 0.999999, 1.0, 1.000001, 1.3, 1.5, 2.0, 2.4])
def test_gradcheck_dense_and_ragged(alpha):
    z = scores(3, 5, 0.5).requires_grad_()
    a = torch.full((3, 1), alpha, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(entmax, (z, a), atol=1e-6)
    heads = torch.full((5,), alpha, dtype=torch.double, requires_grad=True)
    index = torch.tensor([1, 0, 1])
    assert torch.autograd.gradcheck(lambda v, b: segment_entmax(v, b, index=index), (z, heads), atol=1e-6)


def test_continuous_into_softmax():
    z = scores()
    assert torch.allclose(entmax(z, 1.0), torch.softmax(z, -1), atol=1e-14)
    for gap in (1e-4, 1e-7, 1e-10, 1e-13):
        for sign in (1, -1):
            assert torch.allclose(entmax(z, 1 + sign * gap), torch.softmax(z, -1), atol=10 * gap + 1e-13)


def test_alpha_per_element_still_sums_to_one():
    z = scores().requires_grad_()
    alpha = torch.linspace(0.6, 2.2, z.numel(), dtype=torch.double).view_as(z).requires_grad_()
    assert torch.allclose(entmax(z, alpha).sum(1), torch.ones(6, dtype=torch.double))
    small = (z[:2, :4].detach() * 0.3).requires_grad_(), alpha[:2, :4].detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(entmax, small, atol=1e-6)


def test_ragged_equals_dense_rows_with_empty_single_and_huge_segments():
    sizes = torch.tensor([0, 1, 100_000, 3, 0, 17])
    ptr = torch.cat([torch.zeros(1, dtype=torch.long), sizes.cumsum(0)])
    z = torch.randn(int(sizes.sum()), 2, generator=torch.Generator().manual_seed(1), dtype=torch.double)
    for alpha in (0.8, 1.3, 1.5, 2.0):
        p = segment_entmax(z, alpha, ptr=ptr)
        for a, b in zip(ptr[:-1].tolist(), ptr[1:].tolist()):
            assert torch.allclose(p[a:b], entmax(z[a:b], alpha, dim=0), atol=1e-9)
    assert torch.equal(segment_sparsemax(z[:, 0], ptr=ptr), segment_entmax(z[:, 0], 2.0, ptr=ptr))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-30, 30), min_size=1, max_size=8), st.floats(0.05, 3.5))
def test_bridge(values, alpha):
    z = torch.tensor(values, dtype=torch.double)
    beta = bridge_scale(z, alpha)
    assert torch.allclose(entmax(z, alpha), q_softmax(beta * z, alpha), atol=1e-7)


def test_paper_counterexample():
    z = torch.tensor([1.0, 0.5], dtype=torch.double)
    assert sparsemax(z).tolist() == pytest.approx([0.75, 0.25])
    assert q_softmax(z, 2.0).tolist() == pytest.approx([2 / 3, 1 / 3])
    assert bridge_scale(z, 2.0).item() == pytest.approx(4 / 3)


def test_masked_and_extreme_scores():
    z = torch.tensor([[1.0, -torch.inf, 0.5], [-torch.inf] * 3, [3e38, -3e38, 0.0]])
    for alpha in (0.5, 1.0, 1.3, 1.5, 2.0, 3.0):
        p = entmax(z, alpha)
        assert torch.isfinite(p).all() and p[0, 1] == 0 and p[1].eq(0).all() and p[2, 0] == pytest.approx(1)


def test_bad_alpha_is_named():
    with pytest.raises(LTGAError, match="alpha: must be finite"):
        entmax(torch.zeros(3), float("inf"))
    with pytest.raises(LTGAError, match="alpha: shape"):
        entmax(torch.zeros(3), torch.ones(2, 3))
