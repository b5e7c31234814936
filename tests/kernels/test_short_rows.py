"""Sweeps for graphs of short rows: the numbers of the sweeps over rows, bit for bit, whatever the graph."""

import pytest
import torch

from ltga.kernels.operators import layer as layer_operator
from ltga.kernels.operators.small_graph import is_small
from ltga.nn import LTGAConv

GRAPHS = {
    "tree": lambda n: torch.stack([torch.arange(1, n), (torch.rand(n - 1) * torch.arange(1, n)).long()]),
    "random": lambda n: torch.randint(0, n, (2, 3 * n)),
    "dense": lambda n: torch.randint(0, max(n // 20, 1), (2, 6 * n)),  # duplicates, and nodes without edges
    "star": lambda n: torch.stack([torch.arange(n), torch.zeros(n, dtype=torch.long)]),
    "star turned round": lambda n: torch.stack([torch.zeros(n, dtype=torch.long), torch.arange(n)]),
}
KINDS = {
    "head": {},
    "sparse": {"index_start": 1.9},
    "heavy tails": {"index_start": 0.3},
    "softmax": {"index": 1.0, "normalizer": "softmax"},
    "edge": {"index": "edge", "index_start": 1.4},
    "entmax": {"normalizer": "entmax", "index_start": 1.6},
    "averaged": {"concat": False, "index_start": 1.7},
    "averaged, dropout": {"concat": False, "bias": False, "dropout": 0.4, "add_self_loops": False},
    "dropout": {"dropout": 0.6, "index_start": 1.5},
    "other way": {"flow": "target_to_source", "negative_slope": 0.0},
}
SIZES = [(1, 16), (2, 48), (3, 16), (4, 16), (4, 32), (8, 16)]


def layer_of(options, heads, channels, dtype):
    layer = LTGAConv(9, channels, heads, **options).to(dtype)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, dtype=dtype))
    return layer


def results(layer, x, edge_index):
    layer.zero_grad()
    x = x.clone().requires_grad_()
    torch.manual_seed(3)
    out = layer(x, edge_index)
    (out * torch.arange(out.numel()).view_as(out).cos()).sum().backward()
    return [out, x.grad, *(parameter.grad for parameter in layer.parameters())]


def assert_same_bits(layer, x, edge_index, monkeypatch):
    assert is_small(edge_index.size(1), len(x))
    short = results(layer, x, edge_index)
    with monkeypatch.context() as changed:
        changed.setattr(layer_operator, "is_small", lambda *_: False)
        long = results(layer, x, edge_index)
    for one, other in zip(short, long, strict=True):
        assert (one is None and other is None) or torch.equal(one, other)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("kind", KINDS)
def test_same_bits_as_row_by_row(kind, graph, monkeypatch):
    torch.manual_seed(1)
    for dtype in (torch.float32, torch.float64):
        for number, (heads, channels) in enumerate(SIZES):
            nodes = (40, 300, 700)[number % 3]
            layer = layer_of(KINDS[kind], heads, channels, dtype)
            x = torch.randn(nodes, 9, dtype=dtype)
            assert_same_bits(layer, x, GRAPHS[graph](nodes), monkeypatch)


@pytest.mark.parametrize("kind", ["head", "softmax", "sparse"])
@pytest.mark.parametrize("odd", [float("inf"), -float("inf"), float("nan"), 1e30])
def test_numbers_that_are_none(kind, odd, monkeypatch):
    """Logits that overflow, and features that an edge of weight zero must not bring in."""
    torch.manual_seed(1)
    layer, x = layer_of(KINDS[kind], 4, 16, torch.float32), torch.randn(60, 9)
    x[7, 2] = odd
    edge_index = GRAPHS["random"](60)
    with monkeypatch.context() as changed:
        short = results(layer, x, edge_index)
        changed.setattr(layer_operator, "is_small", lambda *_: False)
        long = results(layer, x, edge_index)
    for one, other in zip(short, long, strict=True):
        assert torch.equal(one.isfinite(), other.isfinite()) and torch.equal(one.isnan(), other.isnan())
        assert torch.equal(one.nan_to_num(), other.nan_to_num())


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("edges", [0, 1])
def test_hardly_any_edges(loops, edges, monkeypatch):
    torch.manual_seed(1)
    layer = layer_of({"add_self_loops": loops}, 4, 16, torch.float32)
    x, edge_index = torch.randn(5, 9), torch.tensor([[3], [1]])[:, :edges]
    if loops or edges:
        short = results(layer, x, edge_index)
        monkeypatch.setattr(layer_operator, "is_small", lambda *_: False)
        for one, other in zip(short, results(layer, x, edge_index), strict=True):
            assert torch.equal(one, other)
    else:
        assert torch.equal(layer(x, edge_index), layer.bias.expand(5, -1))


@pytest.mark.parametrize("kind", ["head", "edge", "averaged", "entmax"])
def test_gradcheck(kind):
    torch.manual_seed(1)
    layer = layer_of(KINDS[kind], 2, 16, torch.float64)
    x, edge_index = torch.randn(6, 9, dtype=torch.float64, requires_grad=True), torch.randint(0, 6, (2, 14))
    names = [name for name, _ in layer.named_parameters()]

    def call(x, *values):
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (x, edge_index))

    assert is_small(14, 6)
    assert torch.autograd.gradcheck(call, (x, *layer.parameters()), eps=1e-6, atol=1e-5, fast_mode=True)


@pytest.mark.parametrize("kind", ["head", "softmax", "edge", "dropout", "averaged"])
def test_as_defined(kind):
    torch.manual_seed(1)
    layer, x, edge_index = layer_of(KINDS[kind], 4, 16, torch.float32), torch.randn(80, 9), GRAPHS["random"](80)
    short = results(layer, x, edge_index)
    layer.backend = "torch"
    for one, other in zip(short, results(layer, x, edge_index), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


def test_rows_without_edges_of_very_many_heads():
    """Their totals once were written past the end of a panel that had no room for a row."""
    torch.manual_seed(2)
    layer = LTGAConv(3, 16, heads=516, add_self_loops=False, normalizer="softmax", index=1.0)
    x = torch.randn(2100, 3)
    edge_index = torch.stack([torch.randint(0, 2100, (20,)), torch.zeros(20, dtype=torch.long)])
    short = results(layer, x, edge_index)
    layer.backend = "torch"
    for one, other in zip(short, results(layer, x, edge_index), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)
