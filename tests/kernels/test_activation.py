"""The pooled ELU against torch's."""

import pytest
import torch
from torch.nn import functional as F

from ltga.kernels import elu
from ltga.kernels.operators import activations
from ltga.kernels.runtime import buffers


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("rows", [3, 3000])
def test_same_as_torch(rows, dtype):
    x = torch.randn(rows, 200, generator=torch.Generator().manual_seed(0)).to(dtype)
    ours, reference = x.clone().requires_grad_(), x.clone().requires_grad_()
    upstream = torch.randn(rows, 200).to(dtype)
    elu(ours).backward(upstream)
    F.elu(reference).backward(upstream)
    assert elu(x).equal(F.elu(x))
    assert ours.grad.equal(reference.grad)


def test_second_derivative():
    x = torch.randn(700, 200, dtype=torch.float64).requires_grad_()
    (first,) = torch.autograd.grad(elu(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert torch.allclose(second, torch.where(x > 0, 0.0, x.exp()))


def test_strided_input():
    x = torch.randn(2000, 400)[:, ::2]
    assert elu(x).equal(F.elu(x))


@pytest.mark.parametrize("name", ["elu", "relu"])
def test_gradients_that_can_be_differentiated_are_torchs_too(name, monkeypatch):
    monkeypatch.setattr(buffers, "SMALLEST", 1)
    x = torch.tensor([float("nan"), float("inf"), 0.0, -0.0, 2.0, -2.0], dtype=torch.double, requires_grad=True)
    ours, theirs = getattr(activations, name)(x), getattr(F, name)(x)
    for upstream in (torch.ones_like(x), torch.full_like(x, float("inf")), torch.randn(3, 6, dtype=torch.double)):
        for again in (False, True):
            options = {"is_grads_batched": upstream.dim() == 2, "create_graph": again, "retain_graph": True}
            found, expected = (torch.autograd.grad(out, x, upstream, **options)[0] for out in (ours, theirs))
            torch.testing.assert_close(found, expected, equal_nan=True)
