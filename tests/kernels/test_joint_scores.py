"""GAT's logits from one embedding: plain indexing in torch is the oracle, to the second derivative."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from ltga.errors import LTGAError
from ltga.kernels import joint_scores, neighbourhoods
from ltga.nn import LTGAConv
from ltga.nn.backbones.classic import ClassicStack


def _case(heads: int, channels: int, dtype: torch.dtype = torch.float32) -> tuple[tuple[Tensor, ...], Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = ((40, heads, channels), (heads, channels), (heads, channels))
    given = tuple(torch.randn(shape, dtype=dtype, generator=generator).requires_grad_() for shape in shapes)
    return given, torch.randint(0, 35, (2, 300), generator=generator)  # five nodes have no edges


def _wanted(x: Tensor, left: Tensor, right: Tensor, edges: Tensor, slope: float) -> Tensor:
    return F.leaky_relu((x * left).sum(-1)[edges[0]] + (x * right).sum(-1)[edges[1]], slope)


@pytest.mark.parametrize(("heads", "channels"), [(1, 64), (3, 5), (8, 8), (2, 1)])
@pytest.mark.parametrize("slope", [0.2, 0.0, -0.5])
def test_logits_and_gradients(heads: int, channels: int, slope: float) -> None:
    given, edges = _case(heads, channels)
    graph = neighbourhoods(edges, 40, 40, self_loops=False)
    found, wanted = joint_scores(*given, graph.structure, slope), _wanted(*given, edges, slope)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    upstream = torch.randn_like(wanted)
    for ours, theirs in zip(*(torch.autograd.grad(out, given, upstream) for out in (found, wanted)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_first_and_second_derivatives() -> None:
    given, edges = _case(2, 3, torch.float64)
    graph = neighbourhoods(edges[:, :30], 40, 40, self_loops=True)

    def scores(*own: Tensor) -> Tensor:
        return joint_scores(*own, graph.structure, 0.2).square()

    assert torch.autograd.gradcheck(scores, given)
    assert torch.autograd.gradgradcheck(scores, given)


def test_no_edges() -> None:
    given, edges = _case(2, 3)
    graph = neighbourhoods(edges[:, :0], 40, 40, self_loops=False)
    out = joint_scores(*given, graph.structure, 0.2)
    assert out.shape == (0, 2)
    assert not any(grad.any() for grad in torch.autograd.grad(out.sum(), given))


def test_what_does_not_fit_is_refused() -> None:
    (x, left, right), edges = _case(2, 3)
    structure = neighbourhoods(edges, 40, 40, self_loops=False).structure
    for bad in ((x[:39], left, right), (x.half(), left, right), (x, left[:1], right), (x, left, right.double())):
        with pytest.raises(LTGAError):
            joint_scores(*bad, structure, 0.2)
    with pytest.raises(LTGAError, match="CSR"):
        joint_scores(x, left, right, (structure[0], structure[1] + 40, *structure[2:]), 0.2)
    with pytest.raises(LTGAError, match="same nodes"):
        joint_scores(x, left, right, neighbourhoods(edges, 40, 50, self_loops=False).structure, 0.2)


@pytest.mark.parametrize("normalizer", ["softmax", "q_softmax", "entmax"])
def test_a_deep_stack_is_that_of_plain_torch(normalizer: str) -> None:
    """The stack uses the joint form; its layers by the definition give the same logits and gradients."""
    generator = torch.Generator().manual_seed(1)
    x, edges = torch.randn(30, 6, generator=generator), torch.randint(0, 30, (2, 120), generator=generator)
    outcomes = []
    for backend in ("auto", "torch"):
        torch.manual_seed(0)
        model = ClassicStack(
            6, 3, hidden_channels=8, num_layers=3, dropout=0.0, index=1.3, normalizer=normalizer, backend=backend
        )
        assert all(isinstance(conv, LTGAConv) and conv.joint_scores for conv in model.convs)
        out = model(x, edges)
        out.square().sum().backward()
        outcomes.append([out, *(parameter.grad for parameter in model.parameters())])
    for ours, theirs in zip(*outcomes, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=2e-3, atol=2e-4)
