"""The deep backbones against the same networks written out with PyG's GATConv, and their slot."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv

from ltga.errors import InputError
from ltga.nn import build_model
from ltga.nn.backbones import ClassicStack, SeparatedStack
from ltga.nn.methods import METHODS
from ltga.train.published import published

EDGES = torch.tensor([[0, 1, 4, 2, 3, 0, 5, 6], [1, 2, 0, 0, 2, 2, 6, 5]])
SLOTS = ("softmax", "q", "alpha", "sparsemax", "temperature")


def as_pyg(conv: nn.Module, **how: object) -> GATConv:
    """PyG's layer with our layer's weights; our source vector scores the neighbour, att_target the attending node."""
    layer = GATConv(conv.in_channels, conv.out_channels, conv.heads, bias=False, **how)
    with torch.no_grad():
        layer.lin.weight.copy_(conv.lin_l.weight)
        layer.att_src.copy_(conv.att)
        layer.att_dst.copy_(conv.att_target)
    return layer


def shaken(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape))
    return model.eval()


def test_the_classic_stack_is_pygs_gat_with_skips_norms_and_relus() -> None:
    torch.manual_seed(1)
    model = shaken(ClassicStack(5, 3, hidden_channels=8, num_layers=3, index=1.0, normalizer="softmax"))
    x = torch.randn(7, 5)
    expected = x
    for conv, skip, norm in zip(model.convs, model.skips, model.norms):
        expected = torch.relu(norm(as_pyg(conv)(expected, EDGES) + skip(expected)))
    torch.testing.assert_close(model(x, EDGES), model.out(expected))


def test_the_separated_stack_keeps_a_nodes_own_features_apart() -> None:
    torch.manual_seed(2)
    model = shaken(SeparatedStack(5, 3, hidden_channels=8, heads=2, num_layers=2, index=1.0, normalizer="softmax"))
    x = torch.randn(7, 5)
    state = F.gelu(model.into(x))
    for conv, norm, mix, narrow in zip(model.convs, model.norms, model.mix, model.narrow):
        read = norm(state)
        around = as_pyg(conv, add_self_loops=False)(read, EDGES)
        state = state + narrow(F.gelu(mix(torch.cat([read @ conv.lin_l.weight.t(), around], 1))))
    torch.testing.assert_close(model(x, EDGES), model.out(model.last_norm(state)))


@pytest.mark.parametrize("backbone", ["classic", "separated"])
def test_all_methods_of_a_seed_have_the_same_weights_and_dropout(backbone: str) -> None:
    def outcome(slot: str) -> tuple[dict[str, Tensor], Tensor]:
        torch.manual_seed(3)
        model = build_model(f"{backbone}-{slot}", 5, 3, hidden_channels=8, heads=2, num_layers=2, dropout=0.5)
        model.dropout_key = (1, 2)
        dropped = model.drop(torch.ones(40, 8), 1)
        return {name: value for name, value in model.state_dict().items() if "index" not in name}, dropped

    weights, mask = outcome("softmax")
    for slot in SLOTS[1:]:
        others, other_mask = outcome(slot)
        assert all(value.equal(others[name]) for name, value in weights.items())
        assert mask.equal(other_mask)


@pytest.mark.parametrize("method", [f"{backbone}-{slot}" for backbone in ("classic", "separated") for slot in SLOTS])
def test_backends_agree_and_attend_says_what_the_network_did(method: str) -> None:
    torch.manual_seed(4)
    x = torch.randn(7, 5)
    sizes = {"hidden_channels": 8, "heads": 2, "num_layers": 3}
    fused, plain = (build_model(method, 5, 3, backend=name, **sizes) for name in ("auto", "torch"))
    shaken(fused)
    plain.load_state_dict(fused.state_dict())
    torch.testing.assert_close(fused(x, EDGES), plain.eval()(x, EDGES), rtol=1e-4, atol=1e-5)
    inside = fused.attend(x, EDGES)
    assert len(inside) == 3
    for layer in inside:
        sums = torch.zeros(7, 2).index_add(0, layer.edge_index[1], layer.weights)
        reached = sums[layer.edge_index[1].unique()]
        torch.testing.assert_close(reached, torch.ones_like(reached))
    assert METHODS[method].learns_index == (method.endswith(("-q", "-alpha")))


def test_published_settings_and_what_is_not_known() -> None:
    assert published("classic", "roman-words") == published("classic", "roman-empire")
    assert published("separated", "tolokers").heads == 8
    with pytest.raises(InputError, match="nothing is published for 'classic' on 'cora'"):
        published("classic", "cora")
    with pytest.raises(InputError, match="scoring: a backbone has no such setting"):
        ClassicStack(5, 3, scoring="dot")
