"""A small graph's attention in one compiled call: the numbers of the sweeps called block by block, bit for bit."""

import pytest
import torch

from ltga import LTGAError
from ltga.kernels import neighbourhoods
from ltga.kernels.operators import layer as layer_operator
from ltga.kernels.operators.small_graph import MOST_ALONE, is_small
from ltga.kernels.runtime.threads import row_blocks
from ltga.nn import LTGAConv

KINDS = {
    "head": {"delta": 0.5},
    "averaged": {"concat": False, "bias": False},
    "layer": {"index": "layer"},
    "edge": {"index": "edge"},
    "entmax": {"normalizer": "entmax"},
    "dropout": {"dropout": 0.3},
    "edge features": {"edge_dim": 3},
    "edge features, averaged": {"edge_dim": 70, "concat": False, "normalizer": "entmax"},
}


def results(layer, x, edge_index, unpack=lambda value: value):
    layer.zero_grad()
    x, edge_attr = x.clone().requires_grad_(), None
    torch.manual_seed(3)
    if layer.edge_dim is not None:
        edge_attr = torch.randn(edge_index.size(1), layer.edge_dim, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda value: value, unpack):
        out = layer(x, edge_index, edge_attr)
    (out * torch.arange(out.numel()).view_as(out).cos()).sum().backward()
    of_edges = None if edge_attr is None else edge_attr.grad
    return [out, x.grad, of_edges, *(parameter.grad for parameter in layer.parameters())]


def case(options, nodes, edges, channels=16):
    torch.manual_seed(1)
    layer = LTGAConv(20, channels, 4, **options)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    return layer, torch.randn(nodes, 20), torch.randint(0, nodes, (2, edges))


@pytest.mark.parametrize(("nodes", "edges"), [(1, 3), (40, 90), (900, 2500)])
@pytest.mark.parametrize("kind", KINDS)
def test_same_bits_as_block_by_block(kind, nodes, edges, monkeypatch):
    given = case(KINDS[kind], nodes, edges)
    assert is_small(edges, nodes)
    at_once = results(*given)
    monkeypatch.setattr(layer_operator, "is_small", lambda *_: False)
    for one, other in zip(at_once, results(*given), strict=True):
        assert (one is None and other is None) or torch.equal(one, other)


@pytest.mark.parametrize("kind", KINDS)
def test_same_bits_with_two_threads(kind, monkeypatch):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        given = case(KINDS[kind], 300, 700)
        assert is_small(700, 300)
        at_once = results(*given)
        monkeypatch.setattr(layer_operator, "is_small", lambda *_: False)
        block_by_block = results(*given)
    finally:
        torch.set_num_threads(before)
    for one, other in zip(at_once, block_by_block, strict=True):
        assert (one is None and other is None) or torch.equal(one, other)


def test_several_blocks_are_among_the_cases():
    edge_index = case({}, 900, 2500)[2]
    blocks = row_blocks(neighbourhoods(edge_index, 900, 900, True).ptr.numpy())
    assert 1 < len(blocks) <= MOST_ALONE


def test_not_small():
    assert not is_small(0, 10)  # an empty tensor has no address
    assert not is_small(1_000_000, 10)


@pytest.mark.parametrize("change", [torch.Tensor.contiguous, lambda value: value.t().contiguous().t()])
def test_saved_tensors_may_come_back_in_another_order_of_memory(change):
    def unpack(value):
        return change(value) if value.dim() == 2 else value

    given = case({"edge_dim": 3}, 40, 90)
    for one, other in zip(results(*given), results(*given, unpack), strict=True):
        assert torch.equal(one, other)


def test_saved_tensors_of_another_type_are_no_addresses():
    layer, x, edge_index = case({"edge_dim": 3}, 40, 90)

    def halved(value):
        return value.half() if value.shape == (len(value), 4) and value.is_floating_point() else value

    expected = results(layer, x, edge_index)
    try:
        found = results(layer, x, edge_index, halved)
    except (RuntimeError, TypeError):
        return  # refused, as it was before there were addresses
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one.float(), other, rtol=0.1, atol=0.1)


@pytest.mark.parametrize(("nodes", "edges"), [(40, 90), (3000, 20_000)])
def test_saved_tensors_of_another_shape_are_refused(nodes, edges):
    """Their ends are not looked for: rows that are missing would be read from whatever stands behind them."""
    given = case({"edge_dim": 3, "add_self_loops": False}, nodes, edges)
    for shape in ((edges, 3), (edges, 4), (nodes, 64)):
        with pytest.raises(LTGAError, match="gave back other shapes"):
            results(*given, lambda value, shape=shape: value[:4].clone() if value.shape == shape else value)


@pytest.mark.parametrize("nodes", [40, 3000])
def test_features_of_edges_that_are_held_as_negatives(nodes):
    layer, x, edge_index = case({"edge_dim": 3, "add_self_loops": False}, nodes, 7 * nodes)
    edge_attr = torch.randn(edge_index.size(1), 3)
    assert torch.equal(layer(x, edge_index, torch._neg_view(edge_attr)), layer(x, edge_index, -edge_attr))


def test_memory_that_holds_negatives():
    layer, x, edge_index = case({}, 40, 90)
    grad = torch.randn(40, 64)
    found = []
    for given in (-grad, torch._neg_view(grad)):
        layer.zero_grad()
        layer(x, edge_index).backward(given)
        found.append([parameter.grad.clone() for parameter in layer.parameters()])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("loops", [True, False])
def test_entmax_with_an_alpha_per_edge_and_no_edges(loops):
    layer = LTGAConv(20, 16, 4, index="edge", normalizer="entmax", add_self_loops=loops)
    out = layer(torch.randn(40, 20), torch.empty(2, 0, dtype=torch.long))
    out.sum().backward()
    assert out.isfinite().all() and all(parameter.grad.isfinite().all() for parameter in layer.parameters())
