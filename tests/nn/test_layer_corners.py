"""Corners in which the layer once differed from GATv2Conv, or its two backends from one another."""

import itertools

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.two_tensor import TwoTensor
from torch_geometric.nn import GATv2Conv

from ltga import LTGAError
from ltga.kernels import SparseFeatures, compact_form, elu
from ltga.nn import LTGAConv
from ltga.nn.conv import LTGAConv as Layer

EDGES = torch.tensor([[0, 1, 2, 3, 0, 2], [1, 2, 3, 0, 2, 2]])

BACKENDS = ["torch", "numba", pytest.param("triton", marks=pytest.mark.triton)]


def pair(*size, **arguments):
    torch.manual_seed(0)
    theirs, ours = GATv2Conv(*size, **arguments), LTGAConv(*size, index=1.0, **arguments)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


@pytest.mark.parametrize("normalizer", ["softmax", "q_softmax", "entmax"])
@pytest.mark.parametrize("scoring", ["gatv2", "gat", "dot", "qkv"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_logits_that_overflow_are_seen(backend, scoring, normalizer):
    conv = LTGAConv(3, 2, scoring=scoring, normalizer=normalizer, backend=backend)
    with torch.no_grad():
        for parameter in conv.parameters():
            parameter.fill_(1e30 if parameter is not conv.index.raw else 0.0)
    out, (_, weights) = conv(torch.ones(4, 3), EDGES, return_attention_weights=True)
    assert torch.isnan(out).all() and torch.isnan(weights).all()


def test_loading_something_else_leaves_the_index_alone():
    model = nn.ModuleDict({"enc": LTGAConv(3, 2, heads=2, modifier="edge-bias"), "dec": nn.Linear(4, 2)})
    nn.init.constant_(model["enc"].index.raw, 0.7)
    missing = model.load_state_dict({"dec.weight": torch.ones(2, 4), "dec.bias": torch.zeros(2)}, strict=False)
    assert (model["enc"].index.raw == 0.7).all() and "enc.index.raw" in missing.missing_keys
    assert any(name.startswith("enc.modifier") for name in missing.missing_keys)


def test_second_derivative_of_elu_where_the_exponential_overflows():
    x = torch.full((600, 600), 100.0, requires_grad=True)
    (g,) = torch.autograd.grad(elu(x).square().sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    assert torch.isfinite(gg).all() and torch.allclose(gg, torch.full_like(gg, 2.0))


def test_a_sparse_adjacency_and_a_flow_are_refused_together():
    adjacency = torch.sparse_coo_tensor(EDGES, torch.ones(6), (4, 4)).coalesce()
    with pytest.raises(LTGAError, match="edge_index: a sparse adjacency"):
        LTGAConv(3, 2, flow="target_to_source")(torch.ones(4, 3), adjacency)
    with pytest.raises(LTGAError, match="coalesce"):
        LTGAConv(3, 2)(torch.ones(4, 3), torch.sparse_coo_tensor(EDGES[:, [0, 0]], torch.ones(2), (4, 4)))


def test_sparse_adjacency_with_features_gives_its_attention_back():
    row, col = EDGES[:, EDGES[0].argsort(stable=True)]
    crow = torch.tensor([0, *torch.bincount(row, minlength=4).cumsum(0).tolist()])
    adjacency = torch.sparse_csr_tensor(crow, col, torch.randn(6, 3), (4, 4, 3))
    theirs, ours = pair(5, 2, heads=2, edge_dim=3, add_self_loops=False)
    x = torch.randn(4, 5)
    wanted, actual = (conv(x, adjacency, return_attention_weights=True) for conv in (theirs, ours))
    assert torch.allclose(wanted[0], actual[0], atol=1e-6) and torch.allclose(wanted[1][1], actual[1][1], atol=1e-6)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_sparse_features_do_not_hide_broken_weights(value):
    x = torch.zeros(600, 200)
    x[torch.arange(600), torch.arange(600) % 100] = 1.0
    conv = LTGAConv(200, 2)
    with torch.no_grad():
        conv.lin_l.weight[0, 150] = value  # a feature that nobody has
    counts = [int(conv(x, EDGES).isnan().sum()) for _ in range(3)]
    assert compact_form(x) is not None and counts == [1200] * 3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_dropout_under_autocast_scales_as_pyg_does(dtype):
    theirs, ours = pair(6, 4, heads=2, dropout=0.4)
    x, edges = torch.randn(60, 6), torch.randint(0, 60, (2, 600))
    results = []
    for conv in (theirs, ours):
        torch.manual_seed(1)
        with torch.autocast("cpu", dtype=dtype):
            results.append(conv(x, edges, return_attention_weights=True))
    (wanted, (_, alpha)), (actual, (_, beta)) = results
    assert wanted.dtype == actual.dtype and alpha.dtype == beta.dtype
    assert float((beta[alpha > 0.05] / alpha[alpha > 0.05]).mean()) == pytest.approx(1, abs=3e-4)


def test_a_changed_class_is_obeyed(monkeypatch):
    conv, x = LTGAConv(3, 2, heads=2, bias=False), torch.randn(4, 3)
    before = conv(x, EDGES)
    with monkeypatch.context() as patch:
        patch.setattr(Layer, "message", lambda self, x_j, alpha: 2 * x_j * alpha.unsqueeze(-1))
        assert torch.allclose(conv(x, EDGES), 2 * before, atol=1e-6)
    kind = type(conv.lin_l)
    right = kind.forward
    with monkeypatch.context() as patch:
        patch.setattr(kind, "forward", lambda self, x: 0 * right(self, x))
        assert (conv(x, EDGES) == 0).all()
    assert torch.allclose(conv(x, EDGES), before)


def test_repeated_columns_of_sparse_features_add_up():
    values = torch.tensor([1.0, 2.0, 5.0])
    x = SparseFeatures(values, torch.tensor([0, 2, 3]), torch.tensor([1, 1, 0], dtype=torch.int32), (2, 3))
    assert x.to_dense().tolist() == [[0, 3, 0], [5, 0, 0]]
    conv = LTGAConv(3, 2)
    plain = LTGAConv(3, 2, backend="torch")
    plain.load_state_dict(conv.state_dict())
    edges = torch.tensor([[0, 1], [1, 0]])
    assert torch.allclose(conv(x, edges), plain(x, edges), atol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_edges_returned_are_not_the_callers(backend):
    edges = EDGES.clone()
    conv = LTGAConv(3, 2, add_self_loops=False, backend=backend)
    _, (returned, _) = conv(torch.randn(4, 3), edges, return_attention_weights=True)
    returned.zero_()
    conv.attend(torch.randn(4, 3), edges).edge_index.zero_()
    assert torch.equal(edges, EDGES)


def test_a_traced_graph_holds_no_edges():
    conv = LTGAConv(3, 2, add_self_loops=False)
    x = torch.randn(4, 3)
    conv(x, EDGES)
    traced = make_fx(conv, tracing_mode="real")(x, EDGES)
    other = EDGES.flip(0)
    assert torch.allclose(traced(x, other), conv(x, other), atol=1e-6)


@pytest.mark.parametrize("nodes", [50, 20_000])
@pytest.mark.parametrize("concat", [True, False])
def test_the_output_may_be_changed_in_place(concat, nodes):
    conv = LTGAConv(4, 8, heads=4, concat=concat)
    x, edges = torch.randn(nodes, 4), torch.randint(0, nodes, (2, 2 * nodes))
    for change in (nn.ReLU(), nn.ELU(), nn.Identity()):
        wanted = change(conv(x, edges)) * 2
        change.inplace = True
        out = conv(x, edges)
        out = change(out.mul_(1)) * 2
        out.sum().backward()
        assert torch.equal(out, wanted)
    assert conv(x, edges).detach_().requires_grad is False
    with torch.no_grad():
        out = conv(x, edges)
    out.mul_(nn.Parameter(torch.ones(1)))


@pytest.mark.parametrize("kind", [{}, {"index": "edge"}, {"scoring": "qkv"}], ids=str)
def test_batched_gradients(kind):
    conv = LTGAConv(4, 2, heads=2, **kind).double()
    x = torch.randn(4, 4, dtype=torch.double)
    jacobian = torch.autograd.functional.jacobian
    wanted = jacobian(lambda x: conv(x, EDGES), x)
    assert torch.allclose(jacobian(lambda x: conv(x, EDGES), x, vectorize=True), wanted)
    x.requires_grad_()
    grads = torch.eye(16, dtype=torch.double).view(16, 4, 4)
    (found,) = torch.autograd.grad(conv(x, EDGES), x, grads, is_grads_batched=True)
    assert torch.allclose(found.view(4, 4, 4, 4), wanted)


@pytest.mark.filterwarnings("ignore")
def test_torch_jit_trace():
    conv = LTGAConv(4, 2, add_self_loops=False).eval()
    x = torch.randn(4, 4)
    traced = torch.jit.trace(conv, (x, EDGES), check_trace=False)
    for given in (EDGES, EDGES.flip(0)):
        assert torch.allclose(traced(x, given), conv(x, given), atol=1e-6)


def test_features_of_another_tensor_class():
    x = torch.zeros(600, 200)
    x[:, 0] = 1
    conv, edges = LTGAConv(200, 2), torch.randint(0, 600, (2, 900))
    wanted = conv(x, edges)
    for _ in range(3):
        out = conv(TwoTensor(x.clone(), x.clone()), edges)
        assert torch.allclose(out.a, wanted, atol=1e-6) and torch.allclose(out.b, wanted, atol=1e-6)


@pytest.mark.parametrize("part", ["hidden", "out"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_gate_without_a_bias(backend, part):
    conv = LTGAConv(4, 3, heads=2, index="edge", backend=backend)
    old = getattr(conv.index.gate, part)
    setattr(conv.index.gate, part, nn.Linear(old.in_features, old.out_features, bias=False))
    conv(torch.randn(4, 4), EDGES).sum().backward()
    assert getattr(conv.index.gate, part).weight.grad is not None


@pytest.mark.parametrize("sparse", [True, False])
def test_what_may_change_before_the_backward_pass_is_what_pyg_allows(sparse):
    """The bias may, and the weights of features that need no gradient."""
    x = torch.zeros(600, 200)
    x[torch.arange(600), torch.arange(600) % 200] = 1.0
    x = x if sparse else torch.randn(600, 200)
    edges = torch.randint(0, 600, (2, 900))
    theirs, ours = pair(200, 2)
    for conv, name in itertools.product((theirs, ours), ("bias", "lin_l", "lin_r")):
        for _ in range(2):
            conv(x, edges)
        out = conv(x, edges)
        with torch.no_grad():
            (conv.bias if name == "bias" else getattr(conv, name).weight).add_(1.0)
        out.sum().backward()
