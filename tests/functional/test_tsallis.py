"""exp_q, log_q and the entropy against mpmath, through q = 1 and to the ends of the float range."""

import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ltga import LTGAError
from ltga.functional import exp_q, log_q, tsallis_entropy

mpmath.mp.dps = 60
OFFSETS = (
    [0.0]
    + [s * 10.0**-e for e in range(12, 0, -1) for s in (1, -1)]
    + [-1.0, -0.7, -0.5, 0.25, 0.5, 0.9, 1.0, 1.3, 2.0]
)
POINTS = np.concatenate([[0.0], -np.geomspace(1e-6, 80.0, 120)])


def true_exp_q(x, d):
    """(value, d/dx, d/dq) with d = q - 1, in 60 digits."""
    x, d = mpmath.mpf(float(x)), mpmath.mpf(float(d))
    u = d * x
    if u <= -1:
        return mpmath.mpf(0), mpmath.mpf(0), mpmath.mpf(0)
    if u == 0:
        y = mpmath.exp(x)
        return y, y, -y * x * x / 2
    y = mpmath.exp(mpmath.log1p(u) / d)
    return y, y / (1 + u), y * (u / (1 + u) - mpmath.log1p(u)) / d**2


def allowed(x, d, eps):
    x, d = mpmath.mpf(float(x)), mpmath.mpf(float(d))
    u = d * x
    log_y = x if u == 0 else mpmath.log1p(u) / d
    return 4 * eps * (1 + abs(log_y) + abs(x / (1 + u)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("offset", OFFSETS)
def test_value_and_derivatives_against_mpmath(dtype, offset):
    """Within 4 eps (1 + |log y| + |x/(1+u)|): a few roundings, nothing lost to cancellation."""
    eps, tiny = torch.finfo(dtype).eps, torch.finfo(dtype).tiny
    x = torch.tensor(POINTS, dtype=dtype, requires_grad=True)
    q = 1.0 + offset
    d = float(np.float32(q - 1.0)) if dtype == torch.float32 else q - 1.0  # what the code is given
    value = exp_q(x, q)
    (slope,) = torch.autograd.grad(value.sum(), x)
    per_point = torch.full_like(x.detach(), q, requires_grad=True)
    tensor_d = (per_point.detach() - 1)[0].item()
    (in_q,) = torch.autograd.grad(exp_q(x, per_point).sum(), per_point)
    for k, point in enumerate(x.tolist()):
        y, dx, _ = true_exp_q(point, d)
        if y > tiny:
            assert abs(value[k].item() - y) <= allowed(point, d, eps) * y, (point, q)
            if dx < torch.finfo(dtype).max:
                assert abs(slope[k].item() - dx) <= allowed(point, d, eps) * abs(dx), (point, q)
        y, _, dq = true_exp_q(point, tensor_d)
        if y > tiny and abs(dq) > tiny:
            assert abs(in_q[k].item() - dq) <= 2 * allowed(point, tensor_d, eps) * abs(dq), (point, q)


def test_derivative_in_q_at_one_has_the_right_sign():
    q = torch.tensor(1.0, dtype=torch.double, requires_grad=True)
    exp_q(torch.tensor(-3.0, dtype=torch.double), q).backward()
    assert q.grad.item() == pytest.approx(-0.5 * 9 * math.exp(-3.0), rel=1e-14)


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False, width=32), st.floats(-1.0, 4.0, width=32))
def test_never_nan_or_inf(x, q):
    point = torch.tensor(x, requires_grad=True)
    index = torch.tensor(q, requires_grad=True)
    y = exp_q(point, index)
    y.backward()
    assert torch.isfinite(y) and torch.isfinite(point.grad)
    assert y >= 0
    wide = torch.tensor(q, dtype=torch.double, requires_grad=True)
    exp_q(torch.tensor(x, dtype=torch.double), wide).backward()
    too_large = wide.grad.abs() > 0.99 * torch.finfo(torch.float32).max  # of the derivative itself
    assert torch.isfinite(index.grad) or (too_large and not index.grad.isnan())


@pytest.mark.parametrize("q", [-0.5, 0.3, 0.999999, 1.0, 1.000001, 1.5, 2.0, 2.5, 3.5])
def test_gradcheck(q):
    x = torch.linspace(-0.35, 0.3, 9, dtype=torch.double, requires_grad=True)
    index = torch.tensor(q, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(exp_q, (x, index), eps=1e-6, atol=1e-8)
    assert torch.autograd.gradgradcheck(lambda v: exp_q(v, q), (x,), eps=1e-6, atol=1e-6)
    positive = torch.linspace(0.2, 2.0, 9, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(log_q, (positive, index), eps=1e-6, atol=1e-8)


@pytest.mark.parametrize("q", [0.0, 0.4, 1.0, 1.0 + 1e-9, 1.7, 2.0, 3.0])
def test_log_q_inverts_and_matches_mpmath(q):
    x = torch.linspace(0.01, 5, 40, dtype=torch.double)
    d = mpmath.mpf(q - 1.0)
    for point, value in zip(x.tolist(), log_q(x, q).tolist()):
        exact = mpmath.log(point) if d == 0 else (mpmath.power(point, d) - 1) / d
        assert value == pytest.approx(float(exact), rel=1e-14, abs=1e-15)
    assert torch.allclose(exp_q(log_q(x, q), q), x, rtol=1e-12)
    assert log_q(torch.tensor([0.0]), 1.5).item() == -2.0
    assert log_q(torch.tensor([0.0]), 0.5).item() == -math.inf


def test_entropy():
    p = torch.tensor([[0.2, 0.3, 0.5, 0.0]], dtype=torch.double)
    shannon = -sum(v * math.log(v) for v in (0.2, 0.3, 0.5))
    assert tsallis_entropy(p, 1.0).item() == pytest.approx(shannon, rel=1e-14)
    for q in (0.5, 1 + 1e-10, 2.0, 3.0):
        direct = (1 - sum(mpmath.mpf(v) ** mpmath.mpf(q) for v in (0.2, 0.3, 0.5))) / (mpmath.mpf(q) - 1)
        assert tsallis_entropy(p, q).item() == pytest.approx(float(direct), rel=1e-9)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_runs_in_single(dtype):
    x = torch.linspace(-5, 0, 20).to(dtype)
    assert exp_q(x, 1.3).dtype == dtype
    assert torch.equal(exp_q(x, 1.3), exp_q(x.float(), 1.3).to(dtype))


def test_errors_name_the_argument():
    with pytest.raises(LTGAError, match="q: expected a number"):
        exp_q(torch.zeros(2), "two")
    with pytest.raises(LTGAError, match=r"x: expected a floating-point tensor"):
        exp_q(torch.zeros(2, dtype=torch.long), 1.5)
