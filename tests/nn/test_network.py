"""The network, its two initialisations, its dropout streams and the method catalogue."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ltga.errors import InputError
from ltga.kernels import SparseFeatures
from ltga.nn.baselines import GATv2
from ltga.nn.build import build_model
from ltga.nn.initialize import initialize
from ltga.nn.methods import METHODS
from ltga.nn.network import LTGA
from ltga.study.paper.cells import PAPER_CELLS

EDGES = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]])


def small_network(**settings: object) -> LTGA:
    return LTGA(6, 3, **{"hidden_channels": 4, "heads": 2, **settings})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("method", "count"),
    [
        ("gatv2", 1_526_959), ("frozen-q1.0", 1_526_959), ("sparsemax", 1_526_959), ("ltga-global", 1_526_960),
        ("ltga-layer", 1_526_961), ("ltga-head", 1_526_975), ("gatv2-temperature", 1_526_975),
        ("ltga-edge", 1_528_255), ("gatv2-edge-bias", 1_528_255), ("gatv2-edge-scale", 1_528_255),
    ],
)  # fmt: skip
def test_parameter_counts_on_cora(method: str, count: int) -> None:
    for init in ("paper", "paired"):
        model = build_model(method, 1433, 7, init=init)
        assert sum(parameter.numel() for parameter in model.parameters()) == count


def test_the_catalogue_has_the_contract_names() -> None:
    names = (
        "gcn gat gatv2 ltga-global ltga-layer ltga-head ltga-edge frozen-q0.5 frozen-q0.8 frozen-q1.0 frozen-q1.2 "
        "frozen-q1.5 frozen-q2.0 entmax-1.2 entmax-1.5 sparsemax gatv2-edge-bias gatv2-edge-scale "
        "gatv2-temperature dot-softmax dot-ltga-head h2gcn gprgnn fagcn linkx"
    )
    assert [name for name in METHODS if name in names.split()] == names.split()
    slots = ("softmax", "q", "alpha", "sparsemax", "temperature")
    added = {f"{backbone}-{slot}" for backbone in ("classic", "separated") for slot in slots}
    assert set(METHODS) - set(names.split()) == added | {"entmax-head", "entmax-edge", "gin", "features"}
    assert {method for method, _ in PAPER_CELLS} == set(names.split()) and len(PAPER_CELLS) == 25 * 8


def test_build_model_explains_itself() -> None:
    with pytest.raises(InputError, match="did you mean 'sparsemax'"):
        build_model("sparsmax", 4, 2)
    with pytest.raises(InputError, match="hiden_channels: ltga-edge has no such setting; did you mean 'hidden_"):
        build_model("ltga-edge", 4, 2, hiden_channels=3)
    with pytest.raises(InputError, match="num_nodes"):
        build_model("linkx", 4, 2)
    with pytest.raises(InputError, match="num_layers"):
        build_model("ltga-edge", 4, 2, num_layers=0)


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("index", ["global", "layer", "head", "edge", 1.5])
def test_any_depth_and_index(depth: int, index: str | float) -> None:
    model = small_network(num_layers=depth, index=index, residual=True)
    for conv in model.convs:
        conv.index.keep_q = True
    x = torch.randn(5, 6)
    assert model(x, EDGES).shape == (5, 3)
    assert model.hidden(x, EDGES).shape == (5, 6 if depth == 1 else 8)
    assert [layer.weights.shape for layer in model.attend(x, EDGES)] == [(11, 2)] * depth
    assert model.training
    values = model.index_values()
    assert len(values) == depth and all((value is None) == (index == "edge") for value in values)
    scalars = {"global": 1, "layer": depth, "head": 2 * depth, 1.5: 0}
    if index in scalars:
        assert sum(parameter.numel() for parameter in model.index_parameters()) == scalars[index]
    assert model.shannon_penalty().item() == 0.0


def test_at_q_one_it_is_pyg_gatv2_in_training_too() -> None:
    ours, theirs = LTGA(6, 3, index="head"), GATv2(6, 3)
    ours.load_state_dict({**ours.state_dict(), **theirs.state_dict()})
    x = torch.randn(5, 6)
    outputs = []
    for model in (ours, theirs):
        torch.manual_seed(3)
        outputs.append(model(x, EDGES))
    torch.testing.assert_close(outputs[0], outputs[1])


def test_sparse_features_with_torch_dropout_draw_the_dense_numbers() -> None:
    x = (torch.rand(200, 400) < 0.02).float()
    edges = torch.randint(0, 200, (2, 500))
    outputs = []
    for backend in ("torch", "numba"):
        torch.manual_seed(0)
        model = small_network_for(400, backend)
        torch.manual_seed(1)
        outputs.append((model(x, edges), torch.rand(1)))
    torch.testing.assert_close(outputs[0], outputs[1])


def small_network_for(features: int, backend: str) -> LTGA:
    return LTGA(features, 3, hidden_channels=4, heads=2, index="head", backend=backend)


def test_keyed_dropout_depends_on_the_key_alone() -> None:
    x = (torch.rand(200, 400) < 0.02).float()
    edges = torch.randint(0, 200, (2, 500))
    model = small_network_for(400, "auto")
    model.dropout_key = (1, 2)
    first = model(x, edges)
    torch.rand(5)
    assert model(x, edges).equal(first)
    model.dropout_key = (1, 3)
    assert not model(x, edges).equal(first)
    plain = small_network_for(400, "torch")
    plain.load_state_dict(model.state_dict())
    outputs = []
    for network in (model, plain):
        network.dropout_key = (4, 5)
        outputs.append(network(SparseFeatures.from_dense(x), edges))
    torch.testing.assert_close(outputs[0], outputs[1])


def test_paper_initialisation_is_the_papers_construction() -> None:
    model = initialize(small_network(index="head"), 7, "paper")
    after = torch.rand(1)
    torch.manual_seed(7)
    for conv, (width_in, channels) in zip(model.convs, ((6, 4), (8, 3))):
        attending, sending = nn.Linear(width_in, 2 * channels), nn.Linear(width_in, 2 * channels)
        att = torch.empty(1, 2, channels)
        for weight in (attending.weight, sending.weight, att):
            nn.init.xavier_uniform_(weight)
        assert conv.lin_r.weight.equal(attending.weight) and conv.lin_l.weight.equal(sending.weight)
        assert conv.att.equal(att)
        assert not any(bias.any() for bias in (conv.lin_l.bias, conv.lin_r.bias, conv.bias))
    assert torch.rand(1).equal(after)


def test_paired_initialisation_shares_what_methods_have_in_common() -> None:
    torch.manual_seed(0)
    state = torch.get_rng_state()
    models = {}
    for method, entry in METHODS.items():
        if entry.network == "ltga" or entry.paired is not None:
            built = build_model(method, 6, 3, init="paired", hidden_channels=4, heads=2)
            torch.set_rng_state(state)
            models[method] = dict(initialize(built, 3, "paired").named_parameters())
            assert torch.get_rng_state().equal(state)
    reference = models["gatv2"]
    for method, parameters in models.items():
        common = set(parameters) & set(reference)
        assert {"convs.0.lin_l.weight", "convs.1.lin_l.weight"} <= common
        assert all(parameters[name].equal(reference[name]) for name in common), method
    gates = [models[m][f"convs.0.{kind}.gate.hidden.weight"] for m, kind in
             (("ltga-edge", "index"), ("gatv2-edge-bias", "modifier"), ("gatv2-edge-scale", "modifier"))]  # fmt: skip
    assert gates[0].equal(gates[1]) and gates[0].equal(gates[2]) and gates[0].any()
    bound = math.sqrt(6 / (6 + 8))
    assert 0.8 * bound < reference["convs.0.lin_l.weight"].abs().max() <= bound
    other = initialize(small_network(index="head"), 4, "paired")
    assert not other.convs[0].lin_l.weight.equal(reference["convs.0.lin_l.weight"])
    with pytest.raises(InputError, match="init"):
        initialize(small_network(), 1, "random")


def test_gat_in_its_paired_form_is_gat() -> None:
    """Shared projection, additive scores, softmax: PyG's GATConv gives the same numbers."""
    from torch_geometric.nn import GATConv

    model = build_model("gat", 6, 3, init="paired", hidden_channels=4, heads=2).eval()
    conv = initialize(model, 1, "paired").convs[0]
    theirs = GATConv(6, 4, heads=2)
    with torch.no_grad():
        theirs.lin.weight.copy_(conv.lin_l.weight)
        theirs.att_src.copy_(conv.att)
        theirs.att_dst.copy_(conv.att_target)
    x = torch.randn(5, 6)
    torch.testing.assert_close(F.elu(conv(x, EDGES)), F.elu(theirs(x, EDGES)))
