"""A row whose largest score is exactly 0 is no different from any other."""

import pytest
import torch

from ltga.functional import q_softmax, segment_q_softmax


@pytest.mark.parametrize("top", [0.0, 0.5])
def test_the_ragged_gradient_through_the_maximum_is_the_dense_one(top):
    z = torch.tensor([top, top - 0.3, top - 0.7], dtype=torch.double, requires_grad=True)
    up = torch.tensor([0.3, -1.0, 2.0], dtype=torch.double)
    ragged = segment_q_softmax(z, 1.5, index=torch.zeros(3, dtype=torch.long))
    (ours,), (dense,) = (torch.autograd.grad(out, z, up) for out in (ragged, q_softmax(z, 1.5)))
    assert torch.allclose(ours, dense, atol=1e-14)
