"""The layer in one step of autograd: the long way's numbers bit for bit, where nobody could see a difference."""

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize
from torch.utils.checkpoint import checkpoint

from ltga.errors import InputError
from ltga.nn import LTGAConv, conv
from ltga.nn.index import EntropicIndex, GatedIndex
from ltga.nn.one_step import may_take_one_step

NODES, FEATURES = 30, 7
EDGE_INDEX = torch.randint(0, NODES, (2, 80), generator=torch.Generator().manual_seed(0))
KINDS = {
    "head": {},
    "layer": {"index": "layer", "delta": 2.0, "index_start": 1.4},
    "log": {"index_form": "log", "index_start": 1.7},
    "frozen": {"index": 1.5},
    "softmax": {"index": 1.0, "normalizer": "softmax"},
    "edge": {"index": "edge", "delta": 0.7, "index_start": 1.2},
    "entmax": {"normalizer": "entmax", "index_start": 1.6},
    "averaged, no bias": {"concat": False, "bias": False},
    "dropout": {"dropout": 0.4, "add_self_loops": False},
    "other way": {"flow": "target_to_source", "index": "edge"},
    "edge features": {"edge_dim": 3},
    "edge features, other way": {"edge_dim": 1, "flow": "target_to_source", "dropout": 0.3, "concat": False},
    "edge features, entmax": {"edge_dim": 3, "normalizer": "entmax", "add_self_loops": False, "index_start": 1.4},
    "edge features, filled with ones": {"edge_dim": 2, "fill_value": 1.0, "index": "edge"},
}


def layer_of(options, dtype=torch.float32, heads=4):
    torch.manual_seed(1)
    layer = LTGAConv(FEATURES, 5, heads, **options).to(dtype)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, dtype=dtype))
    return layer


def features(dtype=torch.float32, wants_gradient=True):
    generator = torch.Generator().manual_seed(2)
    return torch.randn(NODES, FEATURES, dtype=dtype, generator=generator).requires_grad_(wants_gradient)


def of_edges(layer, dtype=torch.float32, wants_gradient=False):
    if layer.edge_dim is None:
        return None
    generator = torch.Generator().manual_seed(4)
    made = torch.randn(EDGE_INDEX.size(1), layer.edge_dim, dtype=dtype, generator=generator)
    return made.requires_grad_(wants_gradient)


def takes_one_step(layer, x):
    return may_take_one_step(layer, x, EDGE_INDEX, of_edges(layer, x.dtype), conv._STEPS)


def result(layer, wants_gradient):
    x, edge_attr = features(wants_gradient=wants_gradient), of_edges(layer, wants_gradient=wants_gradient)
    layer.zero_grad()
    torch.manual_seed(3)
    out = layer(x, EDGE_INDEX, edge_attr)
    (out * torch.arange(out.numel()).view_as(out).cos()).sum().backward()
    of_edge_attr = None if edge_attr is None else edge_attr.grad
    return [out, x.grad, of_edge_attr, *(parameter.grad for parameter in layer.parameters())]


@pytest.mark.parametrize("wants_gradient", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_same_bits_as_the_long_way(kind, wants_gradient, monkeypatch):
    layer = layer_of(KINDS[kind])
    assert takes_one_step(layer, features())
    short = result(layer, wants_gradient)
    monkeypatch.setattr(conv, "may_take_one_step", lambda *_: False)
    for one, other in zip(short, result(layer, wants_gradient), strict=True):
        assert (one is None and other is None) or torch.equal(one, other)


@pytest.mark.parametrize("kind", ["head", "edge", "entmax", "edge features"])
def test_second_derivatives(kind):
    layer = layer_of(KINDS[kind], torch.double, heads=2)
    values, edge_attr = [features(torch.double), *layer.parameters()], of_edges(layer, torch.double)
    names = [name for name, _ in layer.named_parameters()]

    def gradients(way):
        layer.backend = way
        own = dict(zip(names, values[1:], strict=True))
        out = torch.func.functional_call(layer, own, (values[0], EDGE_INDEX, edge_attr))
        first = torch.autograd.grad((out**2).sum(), values, create_graph=True)
        return torch.autograd.grad(sum((grad**2).sum() for grad in first), values)

    assert takes_one_step(layer, values[0])
    for one, other in zip(gradients("auto"), gradients("torch"), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["head", "edge"])
def test_parameters_may_change_before_a_first_derivative_only(kind):
    layer = layer_of(KINDS[kind])
    expected = result(layer, wants_gradient=False)[3:]
    layer.zero_grad()
    x = features(wants_gradient=False)
    for twice in (False, True):
        out = layer(x, EDGE_INDEX)
        kept = [parameter.clone() for parameter in layer.lin_l.parameters()]
        weights = torch.arange(out.numel()).view_as(out).cos()
        with torch.no_grad():
            for parameter in layer.lin_l.parameters():
                parameter.mul_(2)
        if twice:
            with pytest.raises(InputError, match="second derivative"):
                torch.autograd.grad((out * weights).sum(), [layer.bias, layer.att], create_graph=True)
            return
        (out * weights).sum().backward()
        for parameter, before in zip(layer.lin_l.parameters(), kept, strict=True):
            parameter.data.copy_(before)
        for parameter, grad in zip(layer.parameters(), expected, strict=True):
            assert torch.equal(parameter.grad, grad)


@pytest.mark.parametrize("nodes", [12, 3000])
@pytest.mark.parametrize("change", [lambda w: w.data.clamp_(-0.01, 0.01), lambda w: w.detach().mul_(2)])
def test_weights_of_edge_features_may_change_before_the_backward_pass(nodes, change):
    """As with torch's linear, which needs them only where the features of edges want a gradient."""
    torch.manual_seed(0)
    layer = LTGAConv(5, 16, heads=2, edge_dim=3)
    given = torch.randn(nodes, 5), torch.randint(0, nodes, (2, 6 * nodes)), torch.randn(6 * nodes, 3)
    before = layer.lin_edge.weight.detach().clone()
    found = []
    for changed in (False, True):
        layer.zero_grad()
        layer.lin_edge.weight.data.copy_(before)
        out = layer(*given)
        if changed:
            change(layer.lin_edge.weight)
        out.square().sum().backward()
        found.append([parameter.grad.clone() for parameter in layer.parameters()])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


class OwnIndex(EntropicIndex):
    def forward(self, source, target, edge_index):
        return 1 + source[edge_index[0]].mean(-1).tanh()


class Doubled(nn.Module):
    def forward(self, weight):
        return 2 * weight


def instance_method(conv):
    conv.message = lambda x_j, alpha: x_j * alpha.unsqueeze(-1)


ODD_FEATURES = {
    "of too few edges": lambda given: given[1:],
    "of another type": lambda given: given.double(),
    "one number an edge": lambda given: given[:, 0],
    "none at all": lambda given: given[:, :0],
    "too many": lambda given: given.repeat(1, 2),
    "a subclass": lambda given: given.as_subclass(OwnTensor),
    "sparse": lambda given: given.to_sparse(),
}


class OwnTensor(torch.Tensor):
    pass


@pytest.mark.parametrize("odd", ODD_FEATURES)
def test_odd_features_of_edges_go_the_long_way(odd):
    layer = layer_of(KINDS["edge features"])
    given = ODD_FEATURES[odd](of_edges(layer))
    assert not may_take_one_step(layer, features(), EDGE_INDEX, given, conv._STEPS)
    layer.lin_edge = nn.Linear(3, 20)  # with a bias, which PyG's has not
    assert not takes_one_step(layer, features())


def test_gradients_of_edge_features_by_differences():
    layer = layer_of(KINDS["edge features"], torch.double, heads=2)
    x, edge_attr = features(torch.double), of_edges(layer, torch.double, wants_gradient=True)
    assert torch.autograd.gradcheck(
        lambda *given: layer(given[0], EDGE_INDEX, given[1]), (x, edge_attr), fast_mode=True
    )


TOUCHES = {
    "linear replaced": lambda layer: setattr(layer, "lin_r", nn.Sequential(layer.lin_r)),
    "linear hooked": lambda layer: layer.lin_l.register_forward_hook(lambda *_: None),
    "weight parametrised": lambda layer: parametrize.register_parametrization(layer.lin_l, "weight", Doubled()),
    "attention parametrised": lambda layer: parametrize.register_parametrization(layer, "att", Doubled()),
    "index hooked": lambda layer: layer.index.register_forward_pre_hook(lambda *_: None),
    "index of one's own": lambda layer: setattr(layer, "index", OwnIndex()),
    "gate with a hook": lambda layer: (
        setattr(layer, "index", GatedIndex(5, 4)),
        layer.index.gate.out.register_forward_hook(lambda *_: None),
    ),
    "bias parametrised": lambda layer: parametrize.register_parametrization(layer, "bias", Doubled()),
    "message of the instance": instance_method,
    "logits of the instance": lambda layer: setattr(layer, "_logits", lambda *ends: 2 * LTGAConv._logits(layer, *ends)),
    "edges of the instance": lambda layer: setattr(layer, "_edges", None),
    "backend": lambda layer: setattr(layer, "backend", "torch"),
    "another type": lambda layer: layer.double(),
}


@pytest.mark.parametrize("touch", TOUCHES)
def test_whatever_is_touched_goes_the_long_way(touch):
    layer = layer_of({})
    assert takes_one_step(layer, features())
    TOUCHES[touch](layer)
    assert not takes_one_step(layer, features())


def test_a_values_method_of_ones_own_is_called():
    layer = layer_of({})
    layer.index.q = lambda: layer.index.raw * 0 + 1.5
    frozen = layer_of({"index": 1.5})
    frozen.load_state_dict({k: v for k, v in layer.state_dict().items() if not k.startswith("index")})
    assert torch.equal(layer(features(), EDGE_INDEX), frozen(features(), EDGE_INDEX))


def gradients_of(layer, out):
    return torch.autograd.grad(out.square().sum(), list(layer.parameters()), allow_unused=True)


def assert_as_defined(layer):
    found = layer(features(), EDGE_INDEX)
    layer.backend = "torch"
    expected = layer(features(), EDGE_INDEX)
    torch.testing.assert_close(found, expected)
    for one, other in zip(gradients_of(layer, found), gradients_of(layer, expected), strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["head", "layer", "edge"])
@pytest.mark.parametrize("bound", [0.0, -0.5])
def test_a_bound_that_was_taken_off_or_turned_round(kind, bound):
    layer = layer_of(KINDS[kind])
    layer.index.delta = bound
    assert_as_defined(layer)


@pytest.mark.parametrize("kind", ["head", "edge"])
def test_a_bound_that_is_learned_gets_its_gradient(kind):
    layer = layer_of(KINDS[kind])
    del layer.index.delta
    layer.index.delta = nn.Parameter(torch.tensor(0.7))
    assert_as_defined(layer)


def test_a_gate_without_edges():
    layer = layer_of({"index": "edge", "add_self_loops": False})
    gradients_of(layer, layer(features(), torch.empty(2, 0, dtype=torch.long)))


@pytest.mark.parametrize("kind", ["head", "edge"])
def test_checkpoints(kind):
    layer, x = layer_of(KINDS[kind]), features()
    expected = gradients_of(layer, layer(x, EDGE_INDEX))
    found = gradients_of(layer, checkpoint(layer, x, EDGE_INDEX, use_reentrant=False))
    assert all(map(torch.equal, found, expected))


@pytest.mark.parametrize("kind", ["dropout", "edge"])
def test_another_default_device(kind):
    layer, x = layer_of(KINDS[kind]), features()
    torch.manual_seed(3)
    expected = gradients_of(layer, layer(x, EDGE_INDEX))
    torch.manual_seed(3)
    with torch.device("meta"):
        found = gradients_of(layer, layer(x, EDGE_INDEX))
    assert all(map(torch.equal, found, expected))


def test_an_indexs_values_by_head_of_ones_own_are_called():
    layer = layer_of({})
    layer.index.per_head = lambda heads, like: layer.index.q().expand(1, heads) * 1.1
    assert_as_defined(layer)


def test_logits_of_a_subclass_are_used():
    class Sharper(LTGAConv):
        def _logits(self, *ends):
            return 3 * super()._logits(*ends)

    layer = Sharper(FEATURES, 5, 4)
    assert_as_defined(layer)
