"""PyG's models and tools with LTGAConv where they use GATv2Conv: the same numbers."""

import copy

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GATv2Conv, Sequential
from torch_geometric.nn.models import basic_gnn
from torch_geometric.utils import dropout_edge, to_undirected

from ltga.nn import LTGAConv

X = torch.randn(10, 8, generator=torch.Generator().manual_seed(0))
EDGES = to_undirected(torch.randint(0, 10, (2, 20), generator=torch.Generator().manual_seed(1)))
ATTR = torch.randn(EDGES.size(1), 3, generator=torch.Generator().manual_seed(2))


class AtOne(LTGAConv):
    """The layer under GATv2Conv's own signature, q held at 1."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, index=1.0, **kwargs)


def both(monkeypatch, make):
    torch.manual_seed(3)
    theirs = make()
    monkeypatch.setattr(basic_gnn, "GATv2Conv", AtOne)
    torch.manual_seed(3)
    ours = make()
    assert any(isinstance(module, AtOne) for module in ours.modules())
    return theirs, ours


@pytest.mark.parametrize("jk", [None, "last", "cat", "max", "lstm"])
@pytest.mark.parametrize("norm", [None, "BatchNorm", "GraphNorm"])
@pytest.mark.parametrize("out_channels", [None, 5])
def test_the_gat_model(monkeypatch, out_channels, norm, jk):
    arguments = {"v2": True, "heads": 2, "dropout": 0.3, "norm": norm, "jk": jk, "edge_dim": 3}
    theirs, ours = both(monkeypatch, lambda: GAT(8, 16, num_layers=3, out_channels=out_channels, **arguments))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    outs = []
    for model in (theirs, ours):
        torch.manual_seed(4)
        out = model(X, EDGES, edge_attr=ATTR)
        out.square().sum().backward()
        outs.append(out)
    assert torch.allclose(*outs, atol=1e-5)
    for (name, p), q in zip(theirs.named_parameters(), ours.parameters()):
        if p.grad is not None:
            assert torch.allclose(p.grad, q.grad, atol=1e-4), name


def test_trimming_to_layers_of_a_sampled_batch(monkeypatch):
    theirs, ours = both(monkeypatch, lambda: GAT(8, 16, num_layers=2, v2=True, heads=2))
    edges = torch.tensor([[1, 2, 3, 4, 5], [0, 0, 1, 1, 2]])
    sampled = {"num_sampled_nodes_per_hop": [1, 2, 3], "num_sampled_edges_per_hop": [2, 3]}
    for model in (theirs, ours):
        model.eval()
    assert torch.allclose(theirs(X[:6], edges, **sampled), ours(X[:6], edges, **sampled), atol=1e-6)


def test_sequential():
    def make(kind):
        torch.manual_seed(5)
        layers = [(kind(8, 4, heads=2), "x, edge_index -> x"), torch.nn.ReLU(inplace=True), torch.nn.Linear(8, 3)]
        return Sequential("x, edge_index", layers)

    theirs, ours = make(GATv2Conv), make(AtOne)
    assert torch.allclose(theirs(X, EDGES), ours(X, EDGES), atol=1e-6)


def test_data_objects_and_edge_dropout_keep_working():
    data = Data(x=X, edge_index=EDGES, edge_attr=ATTR)
    theirs, ours = GATv2Conv(8, 4, edge_dim=3), AtOne(8, 4, edge_dim=3)
    ours.load_state_dict(theirs.state_dict())
    for seed in range(5):
        torch.manual_seed(seed)
        edges, mask = dropout_edge(data.edge_index, p=0.4)
        attr = data.edge_attr[mask]
        assert torch.allclose(theirs(data.x, edges, attr), ours(data.x, edges, attr), atol=1e-6)
    twin = copy.deepcopy(ours)
    assert torch.equal(twin(X, EDGES, ATTR), ours(X, EDGES, ATTR))
