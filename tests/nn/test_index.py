"""The entropic index: bounded, exactly 1 at the start, and a gate equal to an explicit MLP on [z_i || z_j]."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from ltga import LTGAError
from ltga.nn import FrozenIndex, GatedIndex, LearnedIndex, LogIndex, LTGAConv, index_parameters
from ltga.nn.edge_mlp import EdgeMLP
from ltga.nn.index import bounded, make_index
from ltga.nn.modifiers import EdgeBias, EdgeScale, Temperature, make_modifier

EDGE_INDEX = torch.tensor([[0, 1, 4, 2, 3, 0, 0], [1, 2, 0, 0, 2, 2, 0]])


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def shaken(module, scale=0.5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))
    return module


@pytest.mark.parametrize("delta", [0.1, 0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bounded_is_one_at_zero_monotone_and_stays_inside(dtype, delta):
    assert bounded(torch.zeros(3, dtype=dtype), delta).tolist() == [1.0, 1.0, 1.0]
    raw = torch.linspace(-100, 100, 2001, dtype=dtype)
    q = bounded(raw, delta)
    assert (q >= 1 - delta).all()
    assert (q <= 1 + delta).all()
    assert (q.diff() >= 0).all()
    middle = raw.abs() < 3
    assert (q[middle].diff() > 0).all()
    np.testing.assert_allclose(q.numpy(), 1 + delta * np.tanh(raw.double().numpy()), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("index", ["global", "layer", "head", "edge"])
@pytest.mark.parametrize("delta", [0.3, 1.0, 3.0])
def test_every_learned_index_is_exactly_one_at_the_start_and_after_a_reset(index, delta):
    module = make_index(index, channels=4, heads=3, delta=delta)
    source, target = torch.randn(5, 3, 4), torch.randn(3, 3, 4)
    edge_index = torch.tensor([[0, 4, 2], [1, 2, 0]])
    for _ in range(2):
        q = module(source, target, edge_index)
        assert q.shape in ((1, 3), (3, 3))
        assert (q == 1.0).all()
        shaken(module)
        assert not (module(source, target, edge_index) == 1.0).any()
        module.reset_parameters()


@pytest.mark.parametrize("index", ["global", "layer", "head", "edge"])
def test_the_first_gradient_of_a_learned_index_is_not_zero(index):
    """tanh has slope 1 at 0; a gate with a zeroed output layer still learns through that layer."""
    torch.manual_seed(0)
    conv = LTGAConv(6, 4, heads=3, index=index)
    (conv(torch.randn(5, 6), EDGE_INDEX) ** 2).sum().backward()
    parameter = conv.index.gate.out.weight if index == "edge" else conv.index.raw
    assert parameter.grad.abs().sum() > 0


def test_granularities_have_the_right_number_of_values():
    assert make_index("global", 4, 3, 1.0).raw.shape == (1,)
    assert make_index("layer", 4, 3, 1.0).raw.shape == (1,)
    assert make_index("head", 4, 3, 1.0).raw.shape == (3,)
    gate = make_index("edge", 4, 3, 1.0).gate
    assert gate.hidden.weight.shape == (8, 8)
    assert gate.out.weight.shape == (3, 8)
    assert not gate.out.weight.any()
    assert not gate.out.bias.any()


@pytest.mark.parametrize("value", [-0.9, 0, 1, 1.0, 2.7, 3.9])
def test_frozen_index(value):
    module = make_index(value, 4, 3, 1.0)
    assert isinstance(module, FrozenIndex)
    assert not list(module.parameters())
    assert not module.state_dict()
    q = module(draw(2, 3, 4), draw(2, 3, 4), EDGE_INDEX)
    assert q.dtype == torch.float64
    assert q.tolist() == [[float(value)] * 3]
    assert not q.requires_grad
    assert float(module.shannon_penalty()) == pytest.approx((value - 1) ** 2)


def explicit_gate(mlp, source, target, edge_index):
    """Concatenate, multiply, relu, multiply: one edge at a time in numpy."""
    weights = {name: value.detach().double().numpy() for name, value in mlp.state_dict().items()}
    rows = []
    for j, i in edge_index.t().tolist():
        joined = np.concatenate([target[i].mean(0).numpy(), source[j].mean(0).numpy()])
        hidden = np.maximum(weights["hidden.weight"] @ joined + weights["hidden.bias"], 0)
        rows.append(weights["out.weight"] @ hidden + weights["out.bias"])
    return torch.tensor(np.array(rows))


def test_edge_gate_is_the_mlp_on_both_endpoints():
    mlp = shaken(EdgeMLP(channels=4, heads=3)).double()
    source, target = draw(5, 3, 4), draw(3, 3, 4, seed=1)
    wanted = explicit_gate(mlp, source, target, EDGE_INDEX)
    assert torch.allclose(mlp(source, target, EDGE_INDEX), wanted, atol=1e-12)
    index = GatedIndex(4, 3, delta=1.7).double()
    index.gate = mlp
    assert torch.allclose(index(source, target, EDGE_INDEX), 1 + 1.7 * torch.tanh(wanted), atol=1e-12)
    bias, scale = EdgeBias(4, 3), EdgeScale(4, 3)
    bias.gate = scale.gate = mlp
    assert bias(source, target, EDGE_INDEX)[0] is None
    assert torch.allclose(bias(source, target, EDGE_INDEX)[1], wanted, atol=1e-12)
    assert torch.allclose(scale(source, target, EDGE_INDEX)[0], torch.exp(wanted), atol=1e-12)
    assert scale(source, target, EDGE_INDEX)[1] is None


@pytest.mark.parametrize("backend", ["torch", "numba"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("bipartite", [True, False])
def test_edge_gate_inside_a_layer_sees_the_projected_endpoints(bipartite, bias, backend):
    sizes = (6, 5) if bipartite else 6
    conv = LTGAConv(sizes, 4, heads=3, index="edge", add_self_loops=False, bias=bias, backend=backend)
    conv = shaken(conv).double()
    x = (draw(5, 6), draw(3, 5, seed=1)) if bipartite else draw(5, 6)
    pair = x if bipartite else (x, x)
    source, target = conv.lin_l(pair[0]).view(-1, 3, 4), conv.lin_r(pair[1]).view(-1, 3, 4)
    wanted = 1 + torch.tanh(explicit_gate(conv.index.gate, source.detach(), target.detach(), EDGE_INDEX))
    assert torch.allclose(conv.attend(x, EDGE_INDEX).q, wanted, atol=1e-12)


class Recorder(TorchDispatchMode):
    """The largest tensor that any operation returns."""

    def __init__(self):
        super().__init__()
        self.largest = 0
        self.operations = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.operations += 1
        for value in result if isinstance(result, tuple | list) else [result]:
            if isinstance(value, torch.Tensor):
                self.largest = max(self.largest, value.numel())
        return result


@pytest.mark.parametrize("module", [GatedIndex, EdgeBias, EdgeScale])
def test_the_gate_never_builds_edges_times_features(module):
    nodes, edges, heads, channels = 40, 3000, 2, 128
    gate = module(channels, heads)
    source, target = (torch.randn(nodes, heads, channels, requires_grad=True) for _ in range(2))
    edge_index = torch.randint(0, nodes, (2, edges))
    with Recorder() as recorder:
        out = gate(source, target, edge_index)
        value = out if isinstance(out, torch.Tensor) else next(v for v in out if v is not None)
        value.sum().backward()
    assert recorder.operations > 5
    assert recorder.largest <= max(edges * 8, nodes * heads * channels)
    assert recorder.largest < edges * channels


def test_shannon_penalty():
    index = LearnedIndex(3, delta=2.0)
    assert float(index.shannon_penalty()) == 0.0
    with torch.no_grad():
        index.raw.copy_(torch.tensor([0.1, -0.2, 0.3]))
    wanted = np.mean((2 * np.tanh([0.1, -0.2, 0.3])) ** 2)
    assert float(index.shannon_penalty()) == pytest.approx(wanted, rel=1e-6)
    index.shannon_penalty().backward()
    assert index.raw.grad.abs().min() > 0


def test_shannon_penalty_of_the_gate():
    index = shaken(GatedIndex(4, 3))
    source = torch.randn(5, 3, 4)
    index(source, source, EDGE_INDEX)  # nobody said that a penalty would be asked for
    with pytest.raises(LTGAError, match=r"shannon_penalty: .*keep_q"):
        index.shannon_penalty()
    index.keep_q = True
    source = torch.randn(5, 3, 4)
    q = index(source, source, EDGE_INDEX)
    penalty = index.shannon_penalty()
    assert float(penalty) == pytest.approx(float(((q - 1) ** 2).mean()))
    penalty.backward()
    assert index.gate.out.weight.grad.abs().sum() > 0


def test_shannon_penalty_of_a_shared_gate_covers_every_layer():
    """A gate shared by two layers has q on the edges of both; the mean is over all of them."""
    shared = shaken(GatedIndex(4, 2))
    shared.keep_q = True
    first, second = LTGAConv(6, 4, heads=2, index=shared), LTGAConv(8, 4, heads=2, index=shared)
    x = torch.randn(5, 6)
    hidden = first(x, EDGE_INDEX)
    second(hidden, EDGE_INDEX)
    wanted = torch.cat([first.attend(x, EDGE_INDEX).q, second.attend(hidden, EDGE_INDEX).q])
    assert float(shared.shannon_penalty()) == pytest.approx(float(((wanted - 1) ** 2).mean()), rel=1e-4)


def test_a_gate_can_be_copied_after_a_forward_pass():
    index = GatedIndex(4, 3)
    index(torch.randn(5, 3, 4), torch.randn(5, 3, 4), EDGE_INDEX)
    copied = copy.deepcopy(index)
    assert copied.state_dict().keys() == index.state_dict().keys()


def test_index_parameters_lists_each_once():
    shared = LearnedIndex(2)
    model = nn.ModuleList(
        [
            LTGAConv(6, 4, heads=2, index=shared),
            LTGAConv(8, 4, heads=2, index=shared),
            LTGAConv(8, 4, heads=2, index="edge"),
            LTGAConv(8, 4, heads=2, index=1.0, modifier="temperature"),
            LTGAConv(8, 4, heads=2, index="layer", modifier="edge-bias"),
            LTGAConv(8, 4, heads=2, index=1.0, modifier="edge-scale"),
        ]
    )
    found = list(index_parameters(model))
    assert len({id(p) for p in found}) == len(found)
    gate = 8 * 8 + 8 + 8 * 2 + 2
    assert sum(p.numel() for p in found) == 2 + gate + 2 + (1 + gate) + gate
    names = {name for name, p in model.named_parameters() if any(p is other for other in found)}
    assert all(".index." in name or ".modifier." in name for name in names)
    rest = {name for name, _ in model.named_parameters()} - names
    assert not any(".index." in name or ".modifier." in name for name in rest)
    assert not list(index_parameters(nn.Linear(3, 3)))


def test_temperature():
    module = Temperature(3)
    assert module(draw(2, 3, 4), draw(2, 3, 4), EDGE_INDEX)[0].tolist() == [[1.0, 1.0, 1.0]]
    with torch.no_grad():
        module.raw.copy_(torch.tensor([0.0, 1.0, -1.0]))
    assert torch.allclose(module(draw(2, 3, 4), draw(2, 3, 4), EDGE_INDEX)[0], torch.exp(module.raw)[None])
    assert isinstance(make_modifier("temperature", 4, 3), Temperature)


def test_a_shared_index_must_fit_the_heads():
    with pytest.raises(LTGAError, match="index"):
        LTGAConv(6, 4, heads=3, index=LearnedIndex(2))(torch.randn(5, 6), EDGE_INDEX)
    with pytest.raises(LTGAError):
        LTGAConv(6, 4, heads=3, index=GatedIndex(4, 2))(torch.randn(5, 6), EDGE_INDEX)
    with pytest.raises(LTGAError):
        LTGAConv(6, 4, heads=3, index=GatedIndex(5, 3))(torch.randn(5, 6), EDGE_INDEX)


@pytest.mark.parametrize("wrong", ["node", None, True, [1.0], -1.0, 4.0, float("inf")], ids=str)
def test_wrong_index(wrong):
    with pytest.raises(LTGAError, match="index"):
        make_index(wrong, 4, 3, 1.0)


@pytest.mark.parametrize("delta", [0, -1.0, 3.1, float("nan")])
def test_wrong_delta(delta):
    for index in ("head", "edge"):
        with pytest.raises(LTGAError, match="delta"):
            make_index(index, 4, 3, delta)


def test_wrong_modifier():
    with pytest.raises(LTGAError, match="modifier"):
        make_modifier("scale", 4, 3)


@pytest.mark.parametrize("start", [0.5, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("form", ["tanh", "log"])
@pytest.mark.parametrize("index", ["layer", "head"])
def test_an_index_starts_where_it_is_told_and_returns_there(index, form, start):
    module = make_index(index, 4, 3, 2.0, form, start)
    for _ in range(2):
        torch.testing.assert_close(module.q(), torch.full_like(module.q(), start))
        shaken(module)
        module.reset_parameters()


def test_a_gate_starts_where_it_is_told():
    gate = GatedIndex(4, 3, delta=1.0, start=1.5)
    q = gate(torch.randn(5, 3, 4), torch.randn(5, 3, 4), EDGE_INDEX)
    torch.testing.assert_close(q, torch.full_like(q, 1.5))


def test_an_index_by_its_logarithm_is_the_exponential_and_never_leaves_its_range():
    index = LogIndex(3, start=1.5)
    with torch.no_grad():
        index.raw.copy_(torch.tensor([-50.0, 0.25, 50.0]))
    q = index.q()
    np.testing.assert_allclose(q.detach().numpy(), [1 / 16, np.exp(0.25), 16.0], rtol=1e-6)
    assert index.at_bound() == pytest.approx(2 / 3)
    q[1].backward()
    assert index.raw.grad.tolist() == pytest.approx([0, np.exp(0.25), 0])


def test_starts_that_cannot_be_are_refused():
    with pytest.raises(LTGAError, match=r"start: must lie inside \(1 - delta, 1 \+ delta\) = \(0, 2\), got 2"):
        make_index("head", 4, 3, 1.0, "tanh", 2.0)
    with pytest.raises(LTGAError, match="start: must lie in"):
        make_index("head", 4, 3, 1.0, "log", 0.0)
    with pytest.raises(LTGAError, match="index_form: expected 'tanh' or 'log', got 'exp'"):
        make_index("head", 4, 3, 1.0, "exp", 1.0)
