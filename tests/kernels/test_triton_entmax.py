"""Entmax's derivatives by the GPU kernels where a weight almost vanishes, against fifty digits and the definition."""

import math

import mpmath
import pytest
import torch

pytest.importorskip("triton")

import triton
import triton.language as tl

from ltga.kernels.codes import ENTMAX
from ltga.kernels.operators import attention_torch, attention_triton
from ltga.kernels.operators.operands import Kind, Needed, Operands, Structure
from ltga.kernels.runtime.backends import is_interpreted
from ltga.kernels.runtime.neighbourhoods import Neighbourhoods
from ltga.kernels.triton.row_weights import entmax_slopes

pytestmark = pytest.mark.skipif(not is_interpreted(), reason="no GPU to compile for: TRITON_INTERPRET is 0")
ALPHAS = [0.5, 1.0, 1.2, 1.5, 1.9, 2.0, 2.5, 3.0]
WEIGHTS = [1.0, 0.7, 1e-2, 1e-9, 1e-20, 1e-38, 1e-45]


@triton.jit
def slopes(w, d, s, by_alpha, ACC: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, 8)
    slope, derivative = entmax_slopes(tl.load(w + at), tl.load(d), ACC)
    tl.store(s + at, slope)
    tl.store(by_alpha + at, derivative)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_slopes_of_weights_that_vanish(alpha: float, dtype: torch.dtype) -> None:
    """w^(alpha - 1) underflows long before w is zero, and the slope was infinite minus infinite there."""
    w = torch.tensor([*WEIGHTS, 0.3], dtype=dtype)
    d, found = torch.tensor([alpha], dtype=dtype) - 1, w.new_empty(2, 8)
    slopes[(1,)](w, d, *found, ACC=tl.float64 if dtype == torch.float64 else tl.float32)
    least = 1.2e-38 if dtype == torch.float32 else 0.0
    for p, (s, by_alpha) in zip(w.tolist(), found.t().tolist()):
        with mpmath.workdps(120):
            mp, md = mpmath.mpf(max(p, least)), mpmath.mpf(float(d))
            power = min(mp ** (1 - md), mpmath.exp(80)) if dtype == torch.float32 else mp ** (1 - md)
            log_p = mpmath.log(mp)
            expected = -mp * log_p**2 / 2 if md == 0 else (mp * (1 - md * log_p) - power) / md**2
        close = {"rel": 3e-5, "abs": 1e-34} if dtype == torch.float32 else {"rel": 1e-11, "abs": 0.0}
        assert s == pytest.approx(float(power), **close), p
        assert by_alpha == pytest.approx(float(expected), **close), p


@pytest.mark.triton
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("alpha", ALPHAS[2:])
@pytest.mark.parametrize("smallest", [1e-2, 1e-4, 1e-12, 1e-30])
def test_a_row_at_the_edge_of_the_support(alpha: float, smallest: float, dtype: torch.dtype) -> None:
    """An element that has only just entered the support; above alpha = 2 it has the steepest slope of all."""
    d = alpha - 1
    z = [(p**d - 1) / d for p in (0.6, 0.4 - smallest, smallest)] + [-3 / d]
    given, q = torch.tensor(z, dtype=dtype)[:, None], torch.tensor([[alpha]], dtype=dtype)
    edge_index = torch.tensor([[0, 1, 2, 3], [0, 0, 0, 0]])
    graph = Structure(*Neighbourhoods.build(edge_index, 4, 1).structure)
    x = torch.tensor([0.3, -1.1, 2.0, 0.7], dtype=dtype).view(4, 1, 1)
    kind, grad = Kind(0, ENTMAX, 0.2, 1.0, False), x.new_ones(1, 1, 1)
    results = attention_triton.forward(Operands(x, given=given, q=q), graph, kind)
    need = Needed(True, False, True, True, False)
    found = attention_triton.backward(grad, None, Operands(x, given=given, q=q), graph, results, kind, need)
    exact = Operands(x.double(), given=given.double().requires_grad_(), q=q.double().requires_grad_())
    out, weights = attention_torch.forward(exact, graph, kind)
    by_z, by_q = torch.autograd.grad(out.sum(), (exact.given, exact.q))
    exact_values = [value.detach().flatten().tolist() for value in (weights, by_z, by_q)]
    ours = [value.flatten().tolist() for value in (results.weights, found.given, found.q)]
    assert all(math.isfinite(value) for values in ours for value in values)
    rounding = 1e-7 if dtype == torch.float32 else 1e-15
    if smallest**d > 1e4 * rounding:  # else rounding decides whether it is in the support at all
        close = 1e2 * rounding / smallest**d  # what rounding z does to 1 + d (z + nu), which is p^d
        for mine, wanted in zip(ours, exact_values):
            assert mine == pytest.approx(wanted, rel=close, abs=close)
