"""LTGAConv against an oracle of plain loops: scoring x normaliser x index x modifier, extremes, gradients."""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.nn import GATConv

from ltga import LTGAError
from ltga.nn import GatedIndex, LTGAConv
from ltga.nn.modifiers import EdgeBias

sys.path.append(str(Path(__file__).resolve().parents[1]))
from oracles import attention as oracle

BACKENDS = ["torch", "numba", pytest.param("triton", marks=pytest.mark.triton)]
# Duplicate edges, self-loops, an unsorted order, a hub, and nodes (5, 6) with no incoming edge.
EDGES = [(4, 0), (1, 0), (1, 0), (2, 0), (3, 0), (5, 0), (6, 0), (0, 1), (1, 1), (2, 4), (6, 3), (0, 4), (3, 3),
         (5, 2), (3, 2), (4, 2), (0, 2)]  # fmt: skip
NODES, FEATURES, HEADS, CHANNELS, EDGE_FEATURES = 7, 5, 3, 4, 2
EDGE_INDEX = torch.tensor(EDGES).t().contiguous()


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def build(backend, seed=0, **arguments):
    """A float64 layer with every parameter, gates and index included, away from its start."""
    conv = LTGAConv(FEATURES, CHANNELS, heads=HEADS, backend=backend, **arguments).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in conv.parameters():
            parameter.copy_(0.6 * torch.randn(parameter.shape, generator=generator, dtype=torch.double))
    return conv


def arrays(conv):
    return {name: value.detach().numpy() for name, value in conv.state_dict().items()}


def expected(conv, x, edges=EDGES, edge_attr=None, self_loops=True, index="head", keep=None):
    x = x.detach().numpy()
    edge_attr = None if edge_attr is None else edge_attr.detach().numpy()
    if self_loops:
        edge_attr = None if edge_attr is None else oracle.mean_fill(edges, edge_attr, len(x))
        edges = oracle.with_self_loops(edges, len(x))
    modifier = {None: None, "EdgeBias": "edge-bias", "EdgeScale": "edge-scale", "Temperature": "temperature"}[
        None if conv.modifier is None else type(conv.modifier).__name__
    ]
    result = oracle.layer(
        arrays(conv), x, x, edges, heads=HEADS, concat=conv.concat, scoring=conv.scoring, keep=keep,
        normalizer=conv.normalizer, index=index, modifier=modifier, delta=getattr(conv.index, "delta", 1.0),
        edge_attr=edge_attr,
    )  # fmt: skip
    return result, edges


def close(actual, wanted, atol=1e-9, rtol=1e-8):
    np.testing.assert_allclose(actual.detach().numpy(), np.asarray(wanted), atol=atol, rtol=rtol)


def check(conv, index, edge_attr=None, self_loops=True):
    x = draw(NODES, FEATURES, seed=1)
    wanted, edges = expected(conv, x, edge_attr=edge_attr, self_loops=self_loops, index=index)
    out, (edge_index, weights) = conv(x, EDGE_INDEX, edge_attr, return_attention_weights=True)
    close(out, wanted.out)
    close(weights, wanted.weights)
    assert edge_index.t().tolist() == [list(edge) for edge in edges]
    close(conv(x, EDGE_INDEX, edge_attr), wanted.out)
    inside = conv.attend(x, EDGE_INDEX, edge_attr)
    assert inside.edge_index.t().tolist() == [list(edge) for edge in edges]
    close(inside.logits, wanted.logits)
    close(inside.weights, wanted.weights)
    close(inside.q, wanted.q)
    assert inside.ignored.tolist() == (wanted.weights == 0).all(axis=1).tolist()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("modifier", [None, "edge-bias", "edge-scale", "temperature"])
@pytest.mark.parametrize("index", ["global", "head", "edge", 1.0, 1.7])
@pytest.mark.parametrize("normalizer", ["q_softmax", "entmax", "softmax"])
@pytest.mark.parametrize("scoring", ["gatv2", "gat", "dot", "qkv"])
def test_every_combination_equals_the_oracle(scoring, normalizer, index, modifier, backend):
    check(build(backend, scoring=scoring, normalizer=normalizer, index=index, modifier=modifier), index)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("index", [0.3, 0.999999, 1.000001, 1.5, 2.0, 2.5, 3.2])
@pytest.mark.parametrize("normalizer", ["q_softmax", "entmax"])
def test_frozen_indices_equal_the_oracle(normalizer, index, backend):
    check(build(backend, normalizer=normalizer, index=index), index)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize(
    ("scoring", "concat", "residual", "bias", "delta"),
    [
        ("gatv2", False, True, True, 1.8),
        ("gat", True, False, False, 0.5),
        ("dot", False, True, False, 1.8),
        ("qkv", True, True, True, 1.0),
    ],
)
def test_edge_features_mean_heads_residual(scoring, concat, residual, bias, delta, self_loops, backend):
    conv = build(
        backend, scoring=scoring, index="edge", concat=concat, residual=residual, bias=bias, delta=delta,
        edge_dim=EDGE_FEATURES, add_self_loops=self_loops,
    )  # fmt: skip
    check(conv, "edge", draw(len(EDGES), EDGE_FEATURES, seed=2), self_loops)


@pytest.mark.parametrize("backend", BACKENDS)
def test_many_heads_and_odd_channels(backend):
    """Vector loops have remainders: 1, 2, 7 and 17 channels and 1, 5, 9 heads."""
    for heads, channels in itertools.product((1, 5, 9), (1, 2, 7, 17)):
        conv = LTGAConv(FEATURES, channels, heads=heads, index=1.6, backend=backend).double()
        x = draw(NODES, FEATURES, seed=heads)
        edges = oracle.with_self_loops(EDGES, NODES)
        wanted = oracle.layer(arrays(conv), x.numpy(), x.numpy(), edges, heads=heads, index=1.6)
        close(conv(x, EDGE_INDEX), wanted.out)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("normalizer", ["q_softmax", "entmax"])
def test_a_hub_of_thousands_of_edges(normalizer, backend):
    """More edges in one row than one block holds, beside empty rows."""
    count = 5000
    source = torch.randint(0, 50, (count,), generator=torch.Generator().manual_seed(3))
    edge_index = torch.stack([source, torch.full((count,), 7)])
    conv = LTGAConv(FEATURES, 2, heads=2, index=1.5, normalizer=normalizer, backend=backend, add_self_loops=False)
    conv = conv.double()
    x = 3 * draw(50, FEATURES)
    wanted = oracle.layer(
        arrays(conv), x.numpy(), x.numpy(), edge_index.t().tolist(), heads=2, index=1.5, normalizer=normalizer
    )
    close(conv(x, edge_index), wanted.out, atol=1e-8)


GRADIENT_CASES = [
    {},
    {"scoring": "gat"},
    {"scoring": "dot"},
    {"scoring": "qkv"},
    {"modifier": "edge-bias"},
    {"modifier": "edge-scale"},
    {"modifier": "temperature"},
    {"concat": False, "residual": True, "share_weights": True},
    {"normalizer": "entmax"},
    {"normalizer": "softmax", "modifier": "edge-scale", "scoring": "dot"},
    {"index": "edge"},
    {"index": "edge", "normalizer": "entmax", "scoring": "gat"},
]


def gradcheck_layer(conv, edge_attr=None):
    x = (0.7 * draw(NODES, FEATURES, seed=4)).requires_grad_()
    names, values = zip(*[(name, p) for name, p in conv.named_parameters() if p.requires_grad])
    inputs = (x, *([] if edge_attr is None else [edge_attr]), *values)

    def run(x, *rest):
        attr, parameters = (None, rest) if edge_attr is None else (rest[0], rest[1:])
        named = dict(zip(names, parameters))
        if conv.share_weights:
            named.update({n.replace("lin_l", "lin_r"): v for n, v in named.items() if n.startswith("lin_l")})
        out, (_, weights) = torch.func.functional_call(
            conv, named, (x, EDGE_INDEX, attr), {"return_attention_weights": True}
        )
        return out, weights

    # fast_mode projects the Jacobian on random vectors: one pair of passes instead of hundreds.
    assert torch.autograd.gradcheck(run, inputs, eps=1e-7, atol=2e-6, rtol=1e-4, fast_mode=True, nondet_tol=0.0)


@pytest.mark.parametrize("case", GRADIENT_CASES, ids=str)
@pytest.mark.parametrize("backend", BACKENDS)
def test_gradcheck_of_every_ingredient(backend, case):
    torch.manual_seed(0)
    conv = build(backend, edge_dim=EDGE_FEATURES, **case)
    gradcheck_layer(conv, (0.5 * draw(len(EDGES), EDGE_FEATURES, seed=5)).requires_grad_())


@pytest.mark.parametrize("q", [0.3, 1.0, 1.000001, 1.5, 2.0, 2.5])
@pytest.mark.parametrize("index", ["layer", "head"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_gradcheck_at_q(backend, index, q):
    conv = build(backend, index=index, delta=2.0)
    with torch.no_grad():
        conv.index.raw.fill_(float(np.arctanh((q - 1) / 2.0)))
        conv.att.mul_(0.3)  # small gaps: nobody sits at the edge of the support, where there is a kink
    weights = conv.attend(0.7 * draw(NODES, FEATURES, seed=4), EDGE_INDEX).weights
    assert ((weights == 0) | (weights > 1e-3)).all()
    gradcheck_layer(conv)


@pytest.mark.parametrize("fused", BACKENDS[1:])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("normalizer", ["q_softmax", "entmax"])
def test_gradient_through_the_returned_weights_is_the_definitions(normalizer, dropout, fused):
    gradients = []
    for backend in ("torch", fused):
        conv = build(backend, index="edge", normalizer=normalizer, dropout=dropout, edge_dim=EDGE_FEATURES)
        x = draw(NODES, FEATURES, seed=1).requires_grad_()
        attr = draw(len(EDGES), EDGE_FEATURES, seed=2).requires_grad_()
        torch.manual_seed(7)
        out, (_, weights) = conv(x, EDGE_INDEX, attr, return_attention_weights=True)
        factor = draw(*weights.shape, seed=8)
        ((out**2).sum() + (weights * factor).sum()).backward()
        gradients.append([x.grad, attr.grad, *(p.grad for p in conv.parameters())])
    for wanted, actual in zip(*gradients):
        assert torch.allclose(wanted, actual, atol=1e-9, rtol=1e-7)


@pytest.mark.parametrize("fused", BACKENDS[1:])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_gradient_through_the_returned_weights_alone(dropout, fused):
    gradients = []
    for backend in ("torch", fused):
        conv = build(backend, dropout=dropout)
        x = draw(NODES, FEATURES, seed=1).requires_grad_()
        torch.manual_seed(7)
        _, (_, weights) = conv(x, EDGE_INDEX, return_attention_weights=True)
        (weights**2).sum().backward()
        gradients.append([x.grad, conv.att.grad, conv.index.raw.grad, conv.lin_r.weight.grad])
    for wanted, actual in zip(*gradients):
        assert torch.allclose(wanted, actual, atol=1e-10, rtol=1e-8)


@pytest.mark.parametrize("backend", BACKENDS)
def test_dropout_keeps_the_expected_weights_and_drops_the_rest(backend):
    x = draw(NODES, FEATURES, seed=1)
    conv = build(backend, dropout=0.5, index=1.5)
    torch.manual_seed(3)
    out, (_, weights) = conv(x, EDGE_INDEX, return_attention_weights=True)
    calm, _ = expected(conv, x, index=1.5)
    ratio = weights.detach().numpy()[calm.weights > 0] / calm.weights[calm.weights > 0]
    assert set(np.round(ratio, 9)) == {0.0, 2.0}
    keep = np.zeros_like(calm.weights)
    keep[calm.weights > 0] = ratio
    wanted, _ = expected(conv, x, index=1.5, keep=keep)
    close(out, wanted.out)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("edge_dim", [None, 3])
def test_gat_scoring_is_pygs_gatconv(edge_dim, backend):
    torch.manual_seed(0)
    ours = LTGAConv(
        6, 4, heads=2, scoring="gat", index=1.0, share_weights=True, edge_dim=edge_dim, backend=backend, dropout=0.4
    )
    theirs = GATConv(6, 4, heads=2, edge_dim=edge_dim, dropout=0.4)
    with torch.no_grad():
        ours.lin_l.bias.zero_()
        theirs.lin.weight.copy_(ours.lin_l.weight)
        theirs.att_src.copy_(ours.att)
        theirs.att_dst.copy_(ours.att_target)
        if edge_dim is not None:
            theirs.att_edge.copy_(ours.att)
            theirs.lin_edge.weight.copy_(ours.lin_edge.weight)
    x = torch.randn(NODES, 6)
    attr = None if edge_dim is None else torch.randn(len(EDGES), edge_dim)
    results = []
    for conv in (ours, theirs):
        leaf = x.clone().requires_grad_()
        torch.manual_seed(5)
        out, (edge_index, weights) = conv(leaf, EDGE_INDEX, attr, return_attention_weights=True)
        (out**2).sum().backward()
        results.append((out, edge_index, weights, leaf.grad))
    for a, b in zip(*results):
        assert torch.allclose(a.double(), b.double(), atol=1e-5)
    assert torch.allclose(ours.lin_l.weight.grad, theirs.lin.weight.grad, atol=1e-5)
    assert torch.allclose(ours.att_target.grad, theirs.att_dst.grad, atol=1e-5)


INDICES = ["head", "edge", 0.5, 1.0, 1.5, 2.5]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("normalizer", ["q_softmax", "entmax", "softmax"])
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("modifier", [None, "edge-scale", "edge-bias"])
def test_no_edges_at_all(index, normalizer, modifier, backend):
    conv = build(
        backend, index=index, normalizer=normalizer, modifier=modifier, add_self_loops=False, residual=True,
        edge_dim=EDGE_FEATURES,
    )  # fmt: skip
    x = draw(NODES, FEATURES).requires_grad_()
    out, (edge_index, weights) = conv(
        x, torch.empty(2, 0, dtype=torch.long), draw(0, EDGE_FEATURES), return_attention_weights=True
    )
    assert edge_index.shape == (2, 0)
    assert weights.shape == (0, HEADS)
    assert torch.allclose(out, conv.bias + x @ conv.res.weight.t())
    out.sum().backward()
    assert torch.allclose(x.grad, conv.res.weight.sum(0).expand_as(x))
    for name, parameter in conv.named_parameters():
        if not name.startswith(("bias", "res")):
            assert parameter.grad is None or not parameter.grad.any(), name


@pytest.mark.parametrize("backend", BACKENDS)
def test_isolated_nodes_get_the_bias(backend):
    conv = build(backend, add_self_loops=False)
    out = conv(draw(NODES, FEATURES), EDGE_INDEX)
    assert torch.equal(out[5], conv.bias)
    assert torch.equal(out[6], conv.bias)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("normalizer", ["q_softmax", "entmax"])
def test_one_node_and_no_nodes(normalizer, backend):
    conv = build(backend, index="edge", normalizer=normalizer)
    nothing = torch.empty(2, 0, dtype=torch.long)
    x = draw(1, FEATURES).requires_grad_()
    out = conv(x, nothing)
    assert torch.allclose(out, conv.lin_l(x) + conv.bias)
    out.sum().backward()
    assert torch.isfinite(x.grad).all()
    assert conv(draw(0, FEATURES), nothing).shape == (0, HEADS * CHANNELS)


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_edge_with_per_edge_index_and_scale(backend):
    """One edge makes [E, H] look like [1, H]."""
    conv = build(backend, index="edge", modifier="edge-scale", add_self_loops=False)
    x = draw(3, FEATURES).requires_grad_()
    out = conv(x, torch.tensor([[0], [1]]))
    assert torch.allclose(out[1], conv.lin_l(x)[0] + conv.bias)
    out.sum().backward()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_duplicate_edges_count_twice(backend):
    conv = build(backend, add_self_loops=False, index=1.0)
    x = draw(3, FEATURES)
    once = conv.attend(x, torch.tensor([[0, 1], [2, 2]])).weights
    twice = conv.attend(x, torch.tensor([[0, 1, 0], [2, 2, 2]])).weights
    assert torch.equal(twice[0], twice[2])
    odds_once, odds_twice = once[0] / once[1], (twice[0] + twice[2]) / twice[1]
    assert torch.allclose(odds_twice, 2 * odds_once)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1e10, 1e30])
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("normalizer", ["q_softmax", "entmax"])
def test_huge_logits_stay_finite(normalizer, index, scale, dtype, backend):
    conv = LTGAConv(FEATURES, CHANNELS, heads=HEADS, index=index, normalizer=normalizer, backend=backend).to(dtype)
    x = (scale * draw(NODES, FEATURES)).to(dtype).requires_grad_()
    out, (_, weights) = conv(x, EDGE_INDEX, return_attention_weights=True)
    assert torch.isfinite(out).all()
    sums = torch.zeros(NODES, HEADS, dtype=dtype)
    sums.index_add_(0, conv.attend(x, EDGE_INDEX).edge_index[1], weights.detach())
    assert torch.allclose(sums, torch.ones_like(sums), atol=1e-5)
    (out / scale).sum().backward()
    for name, parameter in conv.named_parameters():
        if not name.startswith("index"):  # d/dq of a logit of 1e30 may itself overflow single precision
            assert torch.isfinite(parameter.grad).all(), name
        assert not parameter.grad.isnan().any(), name
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("normalizer", ["q_softmax", "entmax", "softmax"])
@pytest.mark.parametrize("scoring", ["gatv2", "gat", "dot", "qkv"])
@pytest.mark.parametrize("index", ["edge", 0.5, 1.0, 1.5])
def test_nan_features_give_nan_exactly_where_they_reach(index, scoring, normalizer, backend):
    """Everything that attends to, or is, the broken node is NaN; everything else is untouched."""
    conv = build(backend, index=index, scoring=scoring, normalizer=normalizer)
    x = draw(NODES, FEATURES)
    clean = conv(x, EDGE_INDEX)
    broken = x.clone()
    broken[3] = torch.nan
    out = conv(broken, EDGE_INDEX)
    reached = [0, 2, 3]  # 3 -> 0, 3 -> 2, and its own self-loop
    others = [1, 4, 5, 6]
    assert out[reached].isnan().all()
    assert torch.allclose(out[others], clean[others])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("normalizer", ["q_softmax", "entmax", "softmax"])
@pytest.mark.parametrize("index", [0.5, 1.0, 1.5, "edge"])
def test_nan_in_the_target_features_only(index, normalizer, backend):
    """The neighbours' messages are clean, but nobody knows how to weigh them: NaN, not the bias."""
    conv = LTGAConv(
        (FEATURES, FEATURES), CHANNELS, heads=HEADS, index=index, normalizer=normalizer, backend=backend,
        add_self_loops=False,
    ).double()  # fmt: skip
    target = draw(2, FEATURES)
    target[0] = torch.nan
    out = conv((draw(3, FEATURES, seed=1), target), torch.tensor([[0, 1, 2, 0], [0, 0, 1, 1]]))
    assert out[0].isnan().all()
    assert torch.isfinite(out[1]).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_infinite_features_are_not_silently_ignored(backend):
    conv = build(backend)
    x = draw(NODES, FEATURES)
    x[3, 0] = torch.inf
    assert not torch.isfinite(conv(x, EDGE_INDEX)[[0, 2, 3]]).all(dim=1).any()


@pytest.mark.parametrize("backend", BACKENDS)
def test_ignored_edges_do_not_matter(backend):
    """An edge that every head ignores can be removed without changing anything."""
    conv = build(backend, index=2.5, add_self_loops=False)
    x = 2 * draw(NODES, FEATURES, seed=11)
    inside = conv.attend(x, EDGE_INDEX)
    assert inside.ignored.any()
    assert not inside.ignored.all()
    assert torch.equal(inside.ignored, (inside.weights == 0).all(1))
    assert torch.allclose(conv(x, EDGE_INDEX), conv(x, EDGE_INDEX[:, ~inside.ignored]))


@pytest.mark.parametrize("backend", BACKENDS)
def test_attend_follows_the_callers_order(backend):
    conv = build(backend, index="edge", add_self_loops=False, edge_dim=EDGE_FEATURES)
    x, attr = draw(NODES, FEATURES), draw(len(EDGES), EDGE_FEATURES)
    order = torch.randperm(len(EDGES), generator=torch.Generator().manual_seed(0))
    first = conv.attend(x, EDGE_INDEX, attr)
    shuffled = conv.attend(x, EDGE_INDEX[:, order], attr[order])
    assert torch.equal(shuffled.edge_index, EDGE_INDEX[:, order])
    for name in ("logits", "q", "weights"):
        assert torch.allclose(getattr(shuffled, name), getattr(first, name)[order], atol=1e-12), name


@pytest.mark.parametrize("backend", BACKENDS)
def test_attend_sees_no_dropout_and_leaves_no_trace(backend):
    conv = build(backend, dropout=0.9, index="edge")
    conv.index.keep_q = True
    x = draw(NODES, FEATURES)
    state = torch.get_rng_state()
    first, second = conv.attend(x, EDGE_INDEX), conv.attend(x, EDGE_INDEX)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first.weights, second.weights)
    assert not first.weights.requires_grad
    out = conv(x, EDGE_INDEX)
    conv.attend(x, EDGE_INDEX)  # between a forward pass and the penalty on its q
    penalty = conv.index.shannon_penalty()
    assert penalty.requires_grad
    (out.sum() + penalty).backward()


@pytest.mark.parametrize("backend", BACKENDS)
def test_both_backends_see_integer_indices_of_either_width(backend):
    conv = build(backend, index=1.5)
    x = draw(NODES, FEATURES)
    assert torch.equal(conv(x, EDGE_INDEX.int()), conv(x, EDGE_INDEX))


def test_second_derivatives_are_refused_not_wrong():
    """The fused backward pass is not differentiable itself; asking must raise or be right."""
    grads = []
    for backend in ("torch", "numba"):
        conv = build(backend, index=1.0)
        x = draw(NODES, FEATURES).requires_grad_()
        (gradient,) = torch.autograd.grad((conv(x, EDGE_INDEX) ** 2).sum(), x, create_graph=True)
        try:
            grads.append(torch.autograd.grad((gradient**2).sum(), x)[0])
        except (RuntimeError, LTGAError):
            assert backend == "numba"
            return
    assert torch.allclose(*grads)


@pytest.mark.parametrize(
    "arguments",
    [
        {"scoring": "cosine"}, {"normalizer": "sparsemax"}, {"backend": "cuda"}, {"modifier": "bias"},
        {"index": "node"}, {"index": None}, {"index": True}, {"index": 4.0}, {"index": float("nan")},
        {"delta": 0.0}, {"delta": 3.5}, {"delta": float("nan")}, {"dropout": -0.1}, {"dropout": 1.5},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_arguments_name_themselves(arguments):
    with pytest.raises(LTGAError, match=next(iter(arguments))):
        LTGAConv(4, 2, **arguments)


@pytest.mark.parametrize("backend", BACKENDS)
def test_wrong_inputs_raise_ltga_errors(backend):
    conv = LTGAConv(4, 2, edge_dim=3, backend=backend)
    x, edge_index, attr = torch.randn(5, 4), torch.tensor([[0, 1], [1, 4]]), torch.randn(2, 3)
    bad_calls = {
        "x": (torch.randn(5, 3), edge_index, attr),
        "x ": (torch.randn(5), edge_index, attr),
        "x  ": ((x, None), edge_index, attr),
        "x   ": (x.double(), edge_index, attr),
        "x    ": (torch.ones(5, 4, dtype=torch.long), edge_index, attr),
        "x     ": (x.numpy(), edge_index, attr),
        "edge_index": (x, edge_index.float(), attr),
        "edge_index ": (x, edge_index + 1, attr),
        "edge_index  ": (x, edge_index - 1, attr),
        "edge_index   ": (x, edge_index.t().reshape(1, 4), attr),
        "edge_index    ": (x, None, attr),
        "edge_index     ": (x, edge_index.tolist(), attr),
        "edge_attr": (x, edge_index, torch.randn(3, 3)),
        "edge_attr ": (x, edge_index, torch.randn(2, 2)),
        "edge_attr  ": (x, edge_index, torch.randn(2, 3, 1)),
        "edge_attr   ": (x, edge_index, attr.tolist()),
    }
    wrong = {}
    for name, arguments in bad_calls.items():
        try:
            conv(*arguments)
        except LTGAError as error:
            if name.strip() not in str(error):
                wrong[name] = f"does not name itself: {error}"
        except Exception as error:
            wrong[name] = repr(error)
        else:
            wrong[name] = "accepted"
    assert not wrong
    with pytest.raises(LTGAError, match="edge_dim"):
        LTGAConv(4, 2, backend=backend)(x, edge_index, attr)
    for size in ((5, 6), (4, 4), (5, -1)):
        with pytest.raises(LTGAError, match="size"):
            conv(x, edge_index, attr, size=size)
    with pytest.raises(LTGAError, match="size"):
        conv((x, x), edge_index, attr, size=(5, 4))
    with pytest.raises(LTGAError, match="target 4"):  # the first four nodes may be the only targets, the fifth is one
        conv(x, edge_index, attr, size=(5, 4))


def test_shared_index_module_serves_several_layers():
    shared = GatedIndex(channels=CHANNELS, heads=HEADS)
    first = LTGAConv(FEATURES, CHANNELS, heads=HEADS, index=shared)
    second = LTGAConv(HEADS * CHANNELS, CHANNELS, heads=HEADS, index=shared)
    assert first.index is second.index
    x = torch.randn(NODES, FEATURES)
    second(first(x, EDGE_INDEX), EDGE_INDEX).sum().backward()
    assert shared.gate.out.weight.grad is not None


def test_controls_start_at_gatv2_and_are_index_parameters():
    for modifier in ("edge-bias", "edge-scale", "temperature"):
        torch.manual_seed(0)
        conv = LTGAConv(FEATURES, CHANNELS, heads=HEADS, index=1.0, modifier=modifier).double()
        torch.manual_seed(0)
        plain = LTGAConv(FEATURES, CHANNELS, heads=HEADS, index=1.0).double()
        x = draw(NODES, FEATURES)
        assert torch.allclose(conv(x, EDGE_INDEX), plain(x, EDGE_INDEX), atol=1e-13)
    assert isinstance(LTGAConv(4, 2, modifier="edge-scale").modifier, EdgeBias)


def test_entmax_with_a_gate_on_graphs_whose_last_nodes_have_no_edges():
    """An empty row has no first edge: looking its alpha up reads past the end of the arrays."""
    program = (
        "import torch\n"
        "from ltga.nn import LTGAConv\n"
        "torch.manual_seed(0)\n"
        "conv = LTGAConv(4, 3, heads=2, index='edge', normalizer='entmax', add_self_loops=False, backend='numba')\n"
        "for _ in range(1500):\n"
        "    edge_index = torch.randint(0, 5, (2, int(torch.randint(1, 40, ()))))\n"
        "    out = conv(torch.randn(8, 4), edge_index)\n"
        "    assert torch.equal(out[5:], conv.bias.expand(3, -1))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-500:]
