"""The pooled ELU against torch's."""

import pytest
import torch
from torch.nn import functional as F

from ltga.kernels import elu


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
