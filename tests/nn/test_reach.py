"""The full pass is the oracle: its rows, its gradients and its dropout, for every way a network can be built."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from ltga.errors import LTGAError
from ltga.kernels import SparseFeatures
from ltga.nn import LTGA
from ltga.nn.reach import Reach

N, FEATURES = 600, 130
NODES = torch.tensor([17, 3, 599, 0, 250])


def _graph(dense: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Features, edges (loops and duplicates among them; some nodes isolated) and their attributes."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, FEATURES, generator=generator)
    if not dense:
        x = x * (torch.rand(x.shape, generator=generator) < 0.05)
    edge_index = torch.randint(0, N - 5, (2, 900), generator=generator)
    edge_index[:, :20] = edge_index[:, 20:40]
    edge_index[1, 40:50] = edge_index[0, 40:50]
    return x, edge_index, torch.randn(900, 3, generator=generator)


SETTINGS: dict[str, dict[str, Any]] = {
    "head": {"index": "head"},
    "edge": {"index": "edge"},
    "frozen": {"index": 1.7},
    "entmax": {"index": 1.5, "normalizer": "entmax"},
    "scale": {"index": 1.0, "modifier": "edge-scale"},
    "dot": {"index": "head", "scoring": "dot"},
    "qkv": {"index": "head", "scoring": "qkv"},
    "gat": {"index": "head", "scoring": "gat"},
    "residual": {"index": "head", "residual": True},
    "shared": {"index": "head", "share_weights": True},
    "one-layer": {"index": "head", "num_layers": 1},
    "four-layers": {"index": "head", "num_layers": 4},
    "attributes": {"index": "head", "edge_dim": 3},
}


@pytest.mark.parametrize("key", [(5, 2), None], ids=["paired", "paper"])
@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
@pytest.mark.parametrize("backend", ["numba", "torch"])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_outputs_and_gradients_are_those_of_the_full_pass(
    settings: dict[str, Any], backend: str, dense: bool, key: tuple[int, ...] | None
) -> None:
    x, edge_index, edge_attr = _graph(dense)
    attributes = edge_attr if "edge_dim" in settings else None
    torch.manual_seed(1)
    model = LTGA(FEATURES, 4, hidden_channels=6, heads=2, backend=backend, **settings)
    for parameter in model.index_parameters():  # away from q = 1, where the index has no say
        torch.nn.init.normal_(parameter, std=0.5)
    given = SparseFeatures.from_dense(x) if key is not None and not dense else x
    reach = Reach.of(NODES, given, edge_index, attributes, len(model.convs))
    weights = torch.randn(len(NODES), 4)
    passes = []
    for training in (True, False):
        model.train(training)
        for output in (lambda: model(given, edge_index, attributes)[NODES], lambda: model.outputs(reach)):
            model.zero_grad()
            model.dropout_key = key
            torch.manual_seed(7)
            out = output()
            (out * weights).sum().backward()
            gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
            passes.append((out.detach(), gradients, torch.rand(4)))
    for (whole, wanted, drawn), (part, found, drawn_too) in (passes[:2], passes[2:]):
        torch.testing.assert_close(part, whole, rtol=1e-4, atol=1e-5)
        assert wanted.keys() == found.keys()
        for name in wanted:
            torch.testing.assert_close(found[name], wanted[name], rtol=1e-3, atol=1e-4, msg=name)
        assert torch.equal(drawn, drawn_too)  # as many of torch's random numbers as the full pass


def test_a_reach_has_the_nodes_within_as_many_steps_as_there_are_layers_and_no_others() -> None:
    _, edge_index, _ = _graph(True)
    adjacency = torch.zeros(N, N, dtype=torch.long)
    adjacency[edge_index[1], edge_index[0]] = 1
    within = adjacency + torch.eye(N, dtype=torch.long)
    reach = Reach.of(NODES, torch.randn(N, 2), edge_index, None, num_layers=3)
    read = torch.zeros(N, dtype=torch.long)
    read[NODES] = 1
    for hop in reversed(reach.hops):
        assert hop.size is not None and hop.nodes is not None
        assert hop.nodes.rows[: hop.size[1]].unique().tolist() == read.nonzero().squeeze(1).tolist()
        read = (within.t() @ read).clamp(max=1)
        assert hop.nodes.rows.sort().values.tolist() == read.nonzero().squeeze(1).tolist()


def test_the_share_is_of_the_whole_graph() -> None:
    x, edge_index, _ = _graph(True)
    whole = Reach.of(torch.arange(N), x, edge_index, None, num_layers=2)
    assert whole.share == 1.0
    assert Reach.of(NODES, x, edge_index, None, num_layers=2).share < 0.2
    model = LTGA(FEATURES, 4, hidden_channels=6, heads=2).eval()
    torch.testing.assert_close(model.outputs(whole), model(x, edge_index), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "nodes",
    [torch.tensor([3, 3]), torch.tensor([-1]), torch.tensor([N]), torch.ones(N, dtype=torch.bool)],
    ids=["twice", "negative", "outside", "mask"],
)
def test_a_reach_is_of_different_nodes_of_the_graph(nodes: Tensor) -> None:
    x, edge_index, _ = _graph(True)
    with pytest.raises(LTGAError, match="nodes"):
        Reach.of(nodes, x, edge_index, None, num_layers=2)


def test_what_does_not_fit_a_reach_is_refused() -> None:
    x, edge_index, _ = _graph(True)
    with pytest.raises(LTGAError, match="contiguous"):
        Reach.of(NODES, x.t().contiguous().t(), edge_index, None, num_layers=2)
    reach = Reach.of(NODES, x, edge_index, None, num_layers=2)
    with pytest.raises(LTGAError, match="is for 2 layers"):
        LTGA(FEATURES, 4, num_layers=3).outputs(reach)
    model = LTGA(FEATURES, 4)
    model.convs[0].add_self_loops = False
    with pytest.raises(LTGAError, match="self-loops"):
        model.outputs(reach)


def test_a_layer_forgets_the_reach_it_was_used_for() -> None:
    x, edge_index, _ = _graph(True)
    model = LTGA(FEATURES, 4, hidden_channels=6, heads=2)
    model.outputs(Reach.of(NODES, x, edge_index, None, num_layers=2))
    assert model.convs[0](x, edge_index).shape == (N, 12)


def test_half_precision_under_autocast() -> None:
    x, edge_index, _ = _graph(True)
    model = LTGA(FEATURES, 4, hidden_channels=6, heads=2)
    reach = Reach.of(NODES, x, edge_index, None, num_layers=2)
    with torch.autocast("cpu"):
        torch.manual_seed(1)
        whole = model(x, edge_index)[NODES]
        torch.manual_seed(1)
        torch.testing.assert_close(model.outputs(reach), whole, rtol=0.05, atol=0.05)
