"""Plain indexing in torch is the oracle; malformed input is refused before compiled code sees it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ltga.errors import LTGAError
from ltga.kernels import edge_dot, neighbourhoods


def _case(dtype: torch.dtype, channels: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    key, query = (torch.randn(n, 3, channels, dtype=dtype, generator=generator).requires_grad_() for n in (40, 30))
    edges = torch.stack([torch.randint(0, n, (200,), generator=generator) for n in (40, 25)])  # five targets have none
    return key, query, edges


@pytest.mark.parametrize("channels", [1, 8, 21, 64])
def test_dot_products_along_edges(channels: int) -> None:
    key, query, edges = _case(torch.float32, channels)
    graph = neighbourhoods(edges, 40, 30, False)
    found = edge_dot(key, query, *graph.structure, 0.5)
    wanted = 0.5 * (key[edges[0]] * query[edges[1]]).sum(-1)
    torch.testing.assert_close(found, wanted)
    upstream = torch.randn_like(wanted)
    for ours, theirs in zip(*(torch.autograd.grad(out, (key, query), upstream) for out in (found, wanted))):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_gradcheck() -> None:
    key, query, edges = _case(torch.float64)
    graph = neighbourhoods(edges, 40, 30, False)
    assert torch.autograd.gradcheck(lambda a, b: edge_dot(a, b, *graph.structure, 0.3), (key, query))


def test_no_edges() -> None:
    key, query, edges = _case(torch.float32)
    graph = neighbourhoods(edges[:, :0], 40, 30, False)
    out = edge_dot(key, query, *graph.structure, 1.0)
    assert out.shape == (0, 3)
    assert not any(g.any() for g in torch.autograd.grad(out.sum(), (key, query)))


def test_what_does_not_fit_is_refused() -> None:
    key, query, edges = _case(torch.float32)
    graph = neighbourhoods(edges, 40, 30, False)
    for bad in ((key[:10], query), (key, query[:, :2]), (key, query[:29]), (key.half(), query), (key, query.double())):
        with pytest.raises(LTGAError):
            edge_dot(*bad, *graph.structure, 1.0)
    broken = (graph.ptr, graph.col + 40, *graph.structure[2:])
    with pytest.raises(LTGAError, match="CSR"):
        edge_dot(key, query, *broken, 1.0)


def test_torch_knows_the_operator() -> None:
    key, query, edges = _case(torch.float32)
    graph = neighbourhoods(edges, 40, 30, False)
    torch.library.opcheck(torch.ops.ltga.edge_dot.default, (key, query, *graph.structure, 0.5))
