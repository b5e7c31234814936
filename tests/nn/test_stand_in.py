"""Networks through compiled sums against PyG's layers, against dense float64, and under everybody's eyes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint
from torch_geometric.nn import FAConv, GATConv

from ltga.nn.baselines import FAGCN, GAT, GCN, H2GCN, GATv2, stand_in
from ltga.nn.baselines import fagcn as fagcn_module
from ltga.nn.baselines import gat as gat_module
from ltga.nn.baselines import gcn as gcn_module

NODES, FEATURES, CLASSES = 600, 150, 3
MODELS = [GCN, GAT, GATv2, FAGCN]


def _graph(kind: str, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Edges with self-loops and repetitions; nodes from 500 on have none. Features dense, mostly zero, or repeated."""
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(500, (2, 2000), generator=generator)
    edges = torch.cat([edges, edges[:, :50], torch.arange(5).expand(2, -1)], dim=1)
    x = torch.randn(NODES, FEATURES, generator=generator, dtype=dtype)
    if kind == "sparse":
        x = x * (torch.rand(NODES, FEATURES, generator=generator) < 0.02)
    return (x[torch.arange(NODES) % 50] if kind == "repeated" else x), edges


def _step(model: nn.Module, x: Tensor, edges: Tensor) -> list[Tensor]:
    """Logits of a training and an evaluation pass, and the gradients of all parameters."""
    model.train()
    model.zero_grad()
    torch.manual_seed(3)
    logits = model(x, edges)
    logits.square().sum().backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.eval()
    return [logits.detach(), model(x, edges).detach(), torch.rand(3), *gradients]


def _without_stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (gcn_module, gat_module, fagcn_module):
        monkeypatch.setattr(module, "may_stand_in", lambda *_: False)


@pytest.mark.parametrize("features", ["dense", "sparse", "repeated"])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("model_class", MODELS)
def test_a_training_step_is_pygs(
    model_class: Callable[..., nn.Module], residual: bool, features: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, edges = _graph(features)
    if model_class is FAGCN and residual:
        pytest.skip("has no such setting")
    settings = {"residual": True} if residual else {}
    model = model_class(FEATURES, CLASSES, hidden_channels=8, heads=4, **settings)
    _step(model, x, edges)  # forms of the features are looked for from the second time on
    ours = _step(model, x, edges)
    _without_stand_ins(monkeypatch)
    theirs = _step(model, x, edges)
    if model_class in (GCN, FAGCN) and features == "dense":
        assert all(map(torch.equal, ours, theirs))
    for found, wanted in zip(ours, theirs, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5 * float(wanted.abs().max() + 1))


@pytest.mark.parametrize("model_class", [GCN, FAGCN, H2GCN])
def test_against_dense_matrices_in_double_precision(model_class: Callable[..., nn.Module]) -> None:
    x, edges = _graph("dense", torch.float64)
    model = model_class(FEATURES, CLASSES, hidden_channels=4, heads=2).double().eval()
    found = model(x, edges)
    found.square().sum().backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    wanted = _dense(model, x, edges)
    wanted.square().sum().backward()
    torch.testing.assert_close(found, wanted)
    for ours, parameter in zip(gradients, model.parameters(), strict=True):
        torch.testing.assert_close(ours, parameter.grad, rtol=1e-6, atol=1e-8)


def _dense(model: nn.Module, x: Tensor, edges: Tensor) -> Tensor:
    count = torch.zeros(NODES, NODES, dtype=x.dtype).index_put(
        (edges[1], edges[0]), torch.ones(edges.size(1), dtype=x.dtype), accumulate=True
    )
    if isinstance(model, H2GCN):
        one = (count > 0).double().fill_diagonal_(0)
        two = ((one @ one > 0) & (one == 0)).double().fill_diagonal_(0)
        one, two = (hop / (hop.sum(1)[:, None] * hop.sum(0)).sqrt().clamp(min=1) for hop in (one, two))
        ego = model.embed(x).relu()
        first = torch.cat([one @ ego, two @ ego], 1)
        return model.classify(torch.cat([ego, first, one @ first, two @ first], 1))
    adjacency = count - torch.diag(count.diagonal()) + torch.eye(NODES, dtype=x.dtype)
    scale = adjacency.sum(1).rsqrt()
    normalised = scale[:, None] * adjacency * scale
    if isinstance(model, GCN):
        for number, conv in enumerate(model.convs):
            x = normalised @ (x @ conv.lin.weight.t()) + conv.bias
            x = nn.functional.elu(x) if number == 0 else x
        return x
    start = x = model.embed(x).relu()
    for conv in model.convs:
        x = (normalised * (conv.att_r(x) + conv.att_l(x).t()).tanh()) @ x + conv.eps * start
    return model.classify(x)


@pytest.mark.parametrize("model_class", MODELS)
def test_second_derivatives_are_pygs(model_class: Callable[..., nn.Module], monkeypatch: pytest.MonkeyPatch) -> None:
    x, edges = _graph("dense", torch.float64)
    x.requires_grad_()
    model = model_class(FEATURES, CLASSES, hidden_channels=4, heads=2).double().eval()

    def penalty() -> tuple[Tensor, ...]:
        (slope,) = torch.autograd.grad(model(x, edges).square().sum(), x, create_graph=True)
        return torch.autograd.grad(slope.square().sum(), list(model.parameters()), allow_unused=True)

    ours = penalty()
    _without_stand_ins(monkeypatch)
    for found, wanted in zip(ours, penalty(), strict=True):
        assert (found is None) == (wanted is None)
        if found is not None:
            torch.testing.assert_close(found, wanted)


def _hooked(model: nn.Module) -> list[object]:
    seen: list[object] = []
    model.convs[0].register_forward_hook(lambda *_: seen.append(1))
    return seen


def _message_hooked(model: nn.Module) -> list[object]:
    seen: list[object] = []
    model.convs[0].register_message_forward_hook(lambda *_: seen.append(1))
    return seen


def _linear_hooked(model: nn.Module) -> list[object]:
    seen: list[object] = []
    next(part for part in model.convs[0].children() if hasattr(part, "weight")).register_forward_hook(
        lambda *_: seen.append(1)
    )
    return seen


@pytest.mark.parametrize("touch", [_hooked, _message_hooked, _linear_hooked])
@pytest.mark.parametrize("model_class", MODELS)
def test_hooks_are_called(model_class: Callable[..., nn.Module], touch: Callable[[nn.Module], list[object]]) -> None:
    x, edges = _graph("dense")
    model = model_class(FEATURES, CLASSES, hidden_channels=4, heads=2)
    seen = touch(model)
    model(x, edges)
    assert seen


def test_what_a_user_changed_is_not_stood_in_for() -> None:
    x, edges = _graph("dense")
    model = GCN(FEATURES, CLASSES, hidden_channels=4, heads=2).eval()
    before, conv = model(x, edges), model.convs[0]
    assert stand_in.may_stand_in(conv, x)
    conv.message = lambda x_j, edge_weight: 2 * edge_weight.view(-1, 1) * x_j
    assert not stand_in.may_stand_in(conv, x)
    del conv.message
    parametrizations.weight_norm(conv.lin)
    assert not stand_in.may_stand_in(conv, x)
    torch.testing.assert_close(model(x, edges), before)
    for changed in ({"flow": "target_to_source"}, {"aggr": "mean"}, {"normalize": True}, {"explain": True}):
        other = FAConv(FEATURES, normalize=False)
        assert stand_in.may_stand_in(other, x)
        for name, value in changed.items():
            setattr(other, name, value)
        assert not stand_in.may_stand_in(other, x)
    assert not stand_in.may_stand_in(FAConv(FEATURES, normalize=False), x.double())
    with torch.autocast("cpu"):
        assert not stand_in.may_stand_in(FAConv(FEATURES, normalize=False), x)


# The others prepare a graph by reading it, which cannot be done inside torch.func.
@pytest.mark.parametrize("model_class", [GAT, GATv2])
def test_torch_func_sees_through(model_class: Callable[..., nn.Module]) -> None:
    x, edges = _graph("dense")
    model = model_class(FEATURES, CLASSES, hidden_channels=4, heads=2).eval()
    wanted = model(x, edges)
    parameters = dict(model.named_parameters())
    functional = torch.func.grad(lambda own: torch.func.functional_call(model, own, (x, edges)).square().sum())
    wanted.square().sum().backward()
    for name, found in functional(parameters).items():
        torch.testing.assert_close(found, parameters[name].grad, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("model_class", [*MODELS, H2GCN])
def test_compilers_see_through(model_class: Callable[..., nn.Module]) -> None:
    x, edges = _graph("dense")
    model = model_class(FEATURES, CLASSES, hidden_channels=4, heads=2).eval()
    torch.testing.assert_close(torch.compile(model, backend="eager")(x, edges), model(x, edges))


def test_a_share_that_is_learned_gets_its_gradient() -> None:
    x, edges = _graph("dense")
    model = FAGCN(FEATURES, CLASSES, hidden_channels=2, heads=2)
    del model.convs[0].eps
    model.convs[0].eps = nn.Parameter(torch.tensor(0.3))
    model(x, edges).square().sum().backward()
    assert model.convs[0].eps.grad.abs() > 0


def test_a_layer_for_two_sorts_of_nodes_is_called() -> None:
    x, edges = _graph("dense")
    model = GAT(FEATURES, CLASSES, hidden_channels=2, heads=2, num_layers=1).eval()
    model.convs[0] = GATConv((FEATURES, FEATURES), CLASSES, concat=False)
    assert torch.equal(model(x, edges), model.convs[0](x, edges))


@pytest.mark.parametrize("model_class", [*MODELS, H2GCN])
def test_checkpoints_of_sparse_features(model_class: Callable[..., nn.Module]) -> None:
    x, edges = _graph("sparse")
    model = model_class(FEATURES, CLASSES, hidden_channels=2, heads=2)
    checkpoint(model, x, edges, use_reentrant=False).square().sum().backward()


@pytest.mark.parametrize("model_class", [*MODELS, H2GCN])
def test_another_default_device(model_class: Callable[..., nn.Module]) -> None:
    x, edges = _graph("dense")
    model = model_class(FEATURES, CLASSES, hidden_channels=2, heads=2)
    with torch.device("meta"):
        assert model(x, edges).square().sum().item() > 0
