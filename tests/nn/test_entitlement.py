"""Whatever a user replaces, hooks, parametrises or overrides acts as it does in GATv2Conv, on every backend."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune
from torch_geometric.nn import GATv2Conv
from torch_geometric.nn.aggr import SumAggregation

from ltga.nn import LTGAConv
from ltga.nn.index import EntropicIndex, GatedIndex

BACKENDS = ["auto", "numba", "torch"]
NODES, FEATURES, EDGE_FEATURES = 12, 6, 3
EDGE_INDEX = torch.randint(0, NODES, (2, 40), generator=torch.Generator().manual_seed(0))


class LoRA(nn.Module):
    """The usual adapter: a frozen linear and a low-rank product beside it."""

    def __init__(self, base: nn.Module) -> None:
        super().__init__()
        self.base = base
        generator = torch.Generator().manual_seed(1)
        out, width = base.weight.shape
        self.down = nn.Parameter(torch.randn(2, width, generator=generator, dtype=torch.double))
        self.up = nn.Parameter(torch.randn(out, 2, generator=generator, dtype=torch.double))

    def forward(self, x):
        return self.base(x) + x @ self.down.t() @ self.up.t()


class Doubled(nn.Module):
    def forward(self, weight):
        return 2 * weight


def replace(name, make):
    def touch(conv):
        setattr(conv, name, make(getattr(conv, name)))

    return touch


def with_own_forward(name):
    def touch(conv):
        linear = getattr(conv, name)
        linear.forward = lambda x: 3 * type(linear).forward(linear, x)

    return touch


def edge_linear_with_bias(conv):
    linear = nn.Linear(EDGE_FEATURES, conv.lin_edge.weight.size(0)).double()
    with torch.no_grad():
        linear.weight.copy_(conv.lin_edge.weight)
        linear.bias.fill_(0.7)
    conv.lin_edge = linear


def edge_network(conv):
    torch.manual_seed(4)
    conv.lin_edge = nn.Sequential(nn.Linear(EDGE_FEATURES, 5), nn.Tanh(), nn.Linear(5, 8)).double()


def pruned(conv):
    prune.l1_unstructured(conv.lin_l, "weight", amount=0.5)


def parametrised(name, attribute):
    return lambda conv: parametrize.register_parametrization(getattr(conv, name), attribute, Doubled())


def attention_parametrised(conv):
    parametrize.register_parametrization(conv, "att", Doubled())


def instance_message(conv):
    conv.message = lambda x_j, alpha: 2 * x_j * alpha.unsqueeze(-1)


class LoudSum(SumAggregation):
    def forward(self, x, *args, **kwargs):
        return 5 * super().forward(x, *args, **kwargs)


TOUCHES = {
    "lora on lin_l": replace("lin_l", LoRA),
    "lora on lin_r": replace("lin_r", LoRA),
    "lora on lin_edge": replace("lin_edge", LoRA),
    "lora on res": replace("res", LoRA),
    "lin_l is a network": replace("lin_l", lambda old: nn.Sequential(old, nn.Tanh())),
    "lin_l has a forward of its own": with_own_forward("lin_l"),
    "lin_edge has a forward of its own": with_own_forward("lin_edge"),
    "lin_edge has a bias": edge_linear_with_bias,
    "lin_edge is a network": edge_network,
    "forward hook on lin_r": lambda conv: conv.lin_r.register_forward_hook(lambda m, i, out: 2 * out),
    "forward pre-hook on lin_l": lambda conv: conv.lin_l.register_forward_pre_hook(lambda m, i: (3 * i[0],)),
    "forward hook on lin_edge": lambda conv: conv.lin_edge.register_forward_hook(lambda m, i, out: out + 1),
    "weight norm": lambda conv: parametrizations.weight_norm(conv.lin_l),
    "spectral norm": lambda conv: parametrizations.spectral_norm(conv.lin_r),
    "parametrised weight": parametrised("lin_l", "weight"),
    "parametrised edge weight": parametrised("lin_edge", "weight"),
    "parametrised attention": attention_parametrised,
    "pruning mask": pruned,
    "message of the instance": instance_message,
    "message hook": lambda conv: conv.register_message_forward_hook(lambda m, i, out: 2 * out),
    "aggregate hook": lambda conv: conv.register_aggregate_forward_hook(lambda m, i, out: out + 1),
    "propagate hook": lambda conv: conv.register_propagate_forward_hook(lambda m, i, out: 2 * out),
    "edge update hook": lambda conv: conv.register_edge_update_forward_hook(lambda m, i, out: out**2),
    "edge update pre-hook": lambda conv: conv.register_edge_update_forward_pre_hook(
        lambda m, i: (i[0], i[1], {**i[2], "x_j": 2 * i[2]["x_j"]})
    ),
    "another aggregation module": replace("aggr_module", lambda old: LoudSum()),
}


def pair(backend, kind=(GATv2Conv, LTGAConv)):
    arguments = {"heads": 2, "edge_dim": EDGE_FEATURES, "residual": True}
    torch.manual_seed(3)
    theirs = kind[0](FEATURES, 4, **arguments).double()
    ours = kind[1](FEATURES, 4, index=1.0, backend=backend, **arguments).double()
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def inputs():
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(NODES, FEATURES, generator=generator, dtype=torch.double)
    return x, EDGE_INDEX, torch.randn(40, EDGE_FEATURES, generator=generator, dtype=torch.double)


def check_same(theirs, ours):
    x, edge_index, attr = inputs()
    results = []
    for conv in (theirs, ours):
        conv.zero_grad()
        leaf = x.clone().requires_grad_()
        out = conv(leaf, edge_index, attr)
        out.square().sum().backward()
        grads = {name: p.grad for name, p in conv.named_parameters() if not name.startswith("index")}
        results.append({"out": out, "x": leaf.grad, **grads})
    wanted, actual = results
    assert wanted.keys() == actual.keys()
    for name, value in wanted.items():
        assert (value is None) == (actual[name] is None), name
        if value is not None:
            assert torch.allclose(value, actual[name], rtol=1e-9, atol=1e-9), name


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("touch", TOUCHES)
def test_what_a_user_touches_acts_as_in_gatv2(touch, backend):
    theirs, ours = pair(backend)
    untouched = theirs(*inputs()).detach()
    for conv in (theirs, ours):
        torch.manual_seed(6)  # spectral norm draws
        TOUCHES[touch](conv)
        touched = conv(*inputs())
        assert not torch.allclose(touched, untouched) or touch == "weight norm"
    check_same(theirs, ours)


class SquaredMessage:
    def message(self, x_j, alpha):
        return x_j * alpha.unsqueeze(-1) ** 2


class ShiftedUpdate:
    def update(self, inputs):
        return inputs + 1


class DoubledAggregate:
    def aggregate(self, inputs, index, ptr=None, dim_size=None):
        return 2 * super().aggregate(inputs, index, ptr, dim_size)


class SigmoidEdges:
    def edge_update(self, x_j, x_i, edge_attr, index, ptr, dim_size):
        alpha = (x_i * x_j).sum(-1).sigmoid()
        return alpha if edge_attr is None else alpha + edge_attr[:, :1]


class TheirMessage(SquaredMessage, GATv2Conv):
    pass


class OurMessage(SquaredMessage, LTGAConv):
    pass


class TheirUpdate(ShiftedUpdate, GATv2Conv):
    pass


class OurUpdate(ShiftedUpdate, LTGAConv):
    pass


class TheirAggregate(DoubledAggregate, GATv2Conv):
    pass


class OurAggregate(DoubledAggregate, LTGAConv):
    pass


class TheirEdges(SigmoidEdges, GATv2Conv):
    pass


class OurEdges(SigmoidEdges, LTGAConv):
    pass


class OurPropagate(LTGAConv):
    def propagate(self, edge_index, size=None, **kwargs):
        return 3 * super().propagate(edge_index, size=size, **kwargs)


OVERRIDES = [
    (TheirMessage, OurMessage),
    (TheirUpdate, OurUpdate),
    (TheirAggregate, OurAggregate),
    (TheirEdges, OurEdges),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kinds", OVERRIDES, ids=lambda kinds: kinds[1].__name__)
def test_overridden_methods_act_as_in_gatv2(kinds, backend):
    check_same(*pair(backend, kinds))


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_overridden_propagate_is_called(backend):
    _, plain = pair(backend)
    _, ours = pair(backend, (GATv2Conv, OurPropagate))
    ours.res = plain.res = None
    bias = plain.bias.detach()
    assert torch.allclose(ours(*inputs()) - bias, 3 * (plain(*inputs()) - bias))


def test_a_global_hook_is_called():
    theirs, ours = pair("auto")
    handle = nn.modules.module.register_module_forward_hook(
        lambda module, given, out: 2 * out if module in (theirs.lin_l, ours.lin_l) else out
    )
    try:
        check_same(theirs, ours)
    finally:
        handle.remove()


@pytest.mark.parametrize("modifier", [None, "edge-bias", "edge-scale"])
@pytest.mark.parametrize("part", ["hidden", "out"])
@pytest.mark.parametrize("touch", ["hook", "replace", "parametrise"])
def test_the_gate_can_be_touched_too(touch, part, modifier):
    """Hooks and replacements inside the edge gate act the same on both backends."""
    results = []
    for backend in ("auto", "torch"):
        torch.manual_seed(5)
        conv = LTGAConv(FEATURES, 4, heads=2, index="edge", modifier=modifier, backend=backend).double()
        for parameter in conv.parameters():
            nn.init.normal_(parameter, std=0.5, generator=torch.Generator().manual_seed(parameter.numel()))
        gate = conv.index.gate if modifier is None else conv.modifier.gate
        before = conv.attend(inputs()[0], EDGE_INDEX)
        if touch == "hook":
            getattr(gate, part).register_forward_hook(lambda m, i, out: out + 1)
        elif touch == "replace":
            setattr(gate, part, nn.Sequential(getattr(gate, part), nn.Tanh()))
        else:
            parametrize.register_parametrization(getattr(gate, part), "weight", Doubled())
        inside = conv.attend(inputs()[0], EDGE_INDEX)
        assert not torch.allclose(inside.logits, before.logits) or not torch.allclose(inside.q, before.q)
        results.append((conv(inputs()[0], EDGE_INDEX), inside.q, inside.logits))
    for fused, plain in zip(*results):
        assert torch.allclose(fused, plain, atol=1e-12)


class ByEdge(GatedIndex):
    """A user's own index on top of ours: values in the order of edge_index."""

    def forward(self, source, target, edge_index):
        return 1 + 0.01 * edge_index[0].to(source.dtype).unsqueeze(1).expand(-1, source.size(1))


class Editing(EntropicIndex):
    """An index that does what it should not: edits the edges it is shown."""

    def forward(self, source, target, edge_index):
        edge_index.zero_()
        return torch.ones(1, source.size(1), dtype=source.dtype)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_index_of_ones_own_sees_the_edges_in_order(backend):
    x, edge_index, _ = inputs()
    conv = LTGAConv(FEATURES, 4, heads=2, index=ByEdge(4, 2), backend=backend).double()
    inside = conv.attend(x, edge_index)
    assert torch.allclose(inside.q, 1 + 0.01 * inside.edge_index[0].double().unsqueeze(1).expand(-1, 2))
    seen = []
    handle = conv.index.register_forward_hook(lambda m, given, q: seen.append((given[2], q)))
    conv(x, edge_index)
    handle.remove()
    assert torch.allclose(seen[0][1], 1 + 0.01 * seen[0][0][0].double().unsqueeze(1))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_hook_on_the_edge_gate_sees_q_in_the_order_of_the_edges(backend):
    x, edge_index, _ = inputs()
    conv = LTGAConv(FEATURES, 4, heads=2, index="edge", backend=backend).double()
    nn.init.normal_(conv.index.gate.out.weight)
    wanted = conv.attend(x, edge_index).q
    seen = []
    conv.index.register_forward_hook(lambda m, given, q: seen.append(q.detach()))
    conv(x, edge_index)
    assert torch.allclose(seen[0], wanted)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_handed_out_can_be_edited(backend):
    x, edge_index, _ = inputs()
    conv = LTGAConv(FEATURES, 4, heads=2, backend=backend).double()
    wanted = conv(x, edge_index)
    conv.attend(x, edge_index).edge_index.zero_()
    _, (returned, _) = conv(x, edge_index, return_attention_weights=True)
    returned.zero_()
    assert torch.equal(conv(x, edge_index), wanted)
    editing = LTGAConv(FEATURES, 4, heads=2, index=Editing(), backend="numba").double()
    editing.load_state_dict(conv.state_dict(), strict=False)
    assert torch.allclose(editing(x, edge_index), wanted) and torch.allclose(editing(x, edge_index), wanted)


@pytest.mark.parametrize("index", ["head", "edge"])
def test_a_gatv2_checkpoint_puts_the_index_back_to_its_start(index):
    theirs = GATv2Conv(FEATURES, 4, heads=2)
    ours = LTGAConv(FEATURES, 4, heads=2, index=index, modifier="edge-bias")
    for parameter in ours.parameters():
        nn.init.normal_(parameter)
    moved = copy.deepcopy(ours)
    state = torch.get_rng_state()
    ours.load_state_dict(theirs.state_dict())
    assert torch.equal(torch.get_rng_state(), state)
    x = torch.randn(NODES, FEATURES)
    assert (ours.attend(x, EDGE_INDEX).q == 1).all() and not (moved.attend(x, EDGE_INDEX).q == 1).all()
    assert torch.allclose(ours(x, EDGE_INDEX), theirs(x, EDGE_INDEX), atol=1e-5)
    ours.load_state_dict(moved.state_dict())  # and a checkpoint of its own keeps what it says
    assert torch.allclose(ours(x, EDGE_INDEX), moved(x, EDGE_INDEX), atol=1e-5)
