"""Indices at and beyond the edge of their range: one answer on both backends, and the right one."""

import math

import mpmath
import pytest
import torch

from ltga.functional import entmax, segment_entmax
from ltga.nn import LTGAConv
from ltga.nn.index import EntropicIndex, LearnedIndex

EDGES = torch.tensor([[0, 1, 2, 3, 4, 0, 2, 3, 1], [1, 1, 1, 1, 1, 2, 2, 0, 0]])
X = torch.randn(5, 4, dtype=torch.double, generator=torch.Generator().manual_seed(0))


def exact_entmax(scores, alpha):
    """In fifty digits, by bisection on the sum: p = [1 + (alpha - 1)(z + nu)]^(1/(alpha - 1))."""
    with mpmath.workdps(50):
        z = [mpmath.mpf(score) - mpmath.mpf(max(scores)) for score in scores]
        d = mpmath.mpf(alpha) - 1

        def p(x):
            u = d * x
            return mpmath.mpf(0) if u <= -1 else mpmath.e**x if d == 0 else (1 + u) ** (1 / d)

        low, high = -(mpmath.mpf(len(z)) ** 8) - 1, mpmath.mpf(0)
        for _ in range(300):
            middle = (low + high) / 2
            low, high = (low, middle) if sum(p(x + middle) for x in z) > 1 else (middle, high)
        return [float(p(x + high)) for x in z]


@pytest.mark.parametrize("alpha", [-2.0, -1.0, -0.3, 0.0, 1e-9, 0.1, 0.5])
def test_entmax_is_defined_below_one_and_below_zero(alpha):
    scores = [0.3, -1.2, 2.0, 0.29, -7.0]
    found = entmax(torch.tensor(scores, dtype=torch.double), alpha)
    assert found.tolist() == pytest.approx(exact_entmax(scores, alpha), rel=1e-10)
    assert torch.allclose(segment_entmax(torch.tensor(scores).double(), alpha, torch.zeros(5).long()), found)


@pytest.mark.parametrize("alpha", [-1.0, 0.0, 0.5])
def test_derivatives_of_entmax_there(alpha):
    z = torch.randn(3, 4, dtype=torch.double, generator=torch.Generator().manual_seed(1)).requires_grad_()
    a = torch.tensor(alpha, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(entmax, (z, a)) and torch.autograd.gradgradcheck(entmax, (z, a))


class Constant(EntropicIndex):
    def __init__(self, value):
        super().__init__()
        self.value = torch.nn.Parameter(torch.tensor(value))

    def forward(self, source, target, edge_index):
        return self.value.to(source.dtype).expand(1, source.size(1))


@pytest.mark.parametrize("normalizer", ["q_softmax", "entmax"])
@pytest.mark.parametrize("value", [-1.5, -1.0, 0.0, 1.0, 2.0, 3.5])
def test_backends_agree_on_every_index(value, normalizer):
    results = []
    for backend in ("torch", "numba"):
        torch.manual_seed(2)
        conv = LTGAConv(4, 3, heads=2, index=Constant(value), normalizer=normalizer, backend=backend).double()
        x = X.clone().requires_grad_()
        out, (_, weights) = conv(x, EDGES, return_attention_weights=True)
        (out.square().sum() + weights.square().sum()).backward()
        results.append([out, weights, x.grad, conv.att.grad, conv.index.value.grad])
    for wanted, actual in zip(*results):
        assert torch.isfinite(wanted).all() and torch.allclose(wanted, actual, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("normalizer", ["q_softmax", "entmax"])
@pytest.mark.parametrize("dtype", [torch.float, torch.double])
def test_a_saturated_index_trains_on_alike(dtype, normalizer, sign):
    """tanh rounds to 1: alpha is exactly 0 or 2, where one backend used to stop and the other went on."""
    results = []
    for backend in ("torch", "numba"):
        torch.manual_seed(2)
        conv = LTGAConv(4, 3, heads=2, index="head", normalizer=normalizer, backend=backend).to(dtype)
        torch.nn.init.constant_(conv.index.raw, sign * 40.0)
        assert conv.index.q().tolist() == [1.0 + sign] * 2
        out = conv(X.to(dtype), EDGES)
        out.square().sum().backward()
        results.append([out, conv.att.grad, conv.lin_l.weight.grad])
    for wanted, actual in zip(*results):
        assert torch.isfinite(wanted).all() and torch.allclose(
            wanted, actual, atol=1e-4 if dtype is torch.float else 1e-9
        )


@pytest.mark.parametrize("backend", ["torch", "numba"])
@pytest.mark.parametrize("normalizer", ["q_softmax", "entmax"])
@pytest.mark.parametrize("index", ["head", "edge"])
def test_an_index_that_is_not_a_number_is_seen(index, normalizer, backend):
    conv = LTGAConv(4, 3, heads=2, index=index, normalizer=normalizer, backend=backend).double()
    raw = conv.index.raw if isinstance(conv.index, LearnedIndex) else conv.index.gate.out.bias
    with torch.no_grad():
        raw[0] = math.nan
    out = conv(X, EDGES)
    assert torch.isnan(out[:, :3]).all() and torch.isfinite(out[:, 3:]).all()
