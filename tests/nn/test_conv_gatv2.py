"""LTGAConv is GATv2Conv at q = 1: same arguments, call forms, random numbers, outputs and gradients."""

import copy
import io
import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric import EdgeIndex as PygEdgeIndex
from torch_geometric.data import HeteroData
from torch_geometric.explain import AttentionExplainer, Explainer, GNNExplainer
from torch_geometric.nn import GATv2Conv, HeteroConv, to_hetero
from torch_geometric.utils import is_torch_sparse_tensor, to_torch_coo_tensor

from ltga.kernels import neighbourhoods
from ltga.nn import LTGAConv

BACKENDS = ["torch", "numba", pytest.param("triton", marks=pytest.mark.triton)]
NODES, FEATURES, EDGE_FEATURES = 9, 6, 3
EDGE_INDEX = torch.tensor(
    [[0, 1, 1, 2, 3, 4, 5, 6, 7, 0, 2, 8, 8, 5, 1], [1, 0, 2, 2, 1, 1, 6, 5, 7, 3, 0, 1, 2, 1, 0]]
)  # unsorted, with self-loops (2, 7) and a duplicate (1 -> 0)
BIPARTITE = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 0, 2], [0, 0, 1, 2, 3, 3, 0, 3, 1]])


def pair(*args, index=1.0, backend="numba", **arguments):
    """The two layers, each built from the same seed."""
    torch.manual_seed(12)
    theirs = GATv2Conv(*args, **arguments)
    torch.manual_seed(12)
    return theirs, LTGAConv(*args, index=index, backend=backend, **arguments)


def run(conv, x, edge_index, edge_attr=None, seed=3):
    """Output, attention and every gradient of a loss on the output."""
    if isinstance(x, tuple):
        leaves = tuple(part.clone().requires_grad_() for part in x)
        features = leaves
    else:
        leaves = (x.clone().requires_grad_(),)
        features = leaves[0]
    if edge_attr is not None:
        edge_attr = edge_attr.clone().requires_grad_()
    torch.manual_seed(seed)
    out, (returned, weights) = conv(features, edge_index, edge_attr, return_attention_weights=True)
    conv.zero_grad()
    factor = torch.randn(out.shape, generator=torch.Generator().manual_seed(1), dtype=out.dtype)
    (out * factor).sum().backward()
    values = {"out": out, "weights": weights}
    values.update({f"x{n}": leaf.grad for n, leaf in enumerate(leaves)})
    if edge_attr is not None:
        values["edge_attr"] = edge_attr.grad
    values.update({name: p.grad for name, p in conv.named_parameters() if not name.startswith("index")})
    return values, returned


def same(theirs, ours, atol=1e-5):
    (wanted, wanted_index), (actual, actual_index) = theirs, ours
    assert wanted.keys() == actual.keys()
    for name, value in wanted.items():
        assert value is not None, name
        assert actual[name] is not None, name
        assert actual[name].dtype == value.dtype, name
        torch.testing.assert_close(actual[name], value, atol=atol, rtol=1e-5, msg=lambda m, n=name: f"{n}: {m}")
    assert torch.equal(actual_index, wanted_index)


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("concat", "bias", "share_weights", "residual", "add_self_loops"),
    list(itertools.product([True, False], repeat=5)),
)
def test_every_switch(concat, bias, share_weights, residual, add_self_loops, backend):
    arguments = {
        "heads": 3, "concat": concat, "bias": bias, "share_weights": share_weights, "residual": residual,
        "add_self_loops": add_self_loops, "dropout": 0.5, "negative_slope": 0.1, "backend": backend,
    }  # fmt: skip
    for index in (1.0, "head", "edge"):
        theirs, ours = pair(FEATURES, 4, index=index, **arguments)
        x = draw(NODES, FEATURES)
        same(run(theirs, x, EDGE_INDEX), run(ours, x, EDGE_INDEX))
        same(run(theirs.eval(), x, EDGE_INDEX), run(ours.eval(), x, EDGE_INDEX))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("index", ["global", "layer", "head", "edge", 1.0])
@pytest.mark.parametrize("normalizer", ["q_softmax", "entmax", "softmax"])
def test_every_index_starts_at_gatv2(normalizer, index, backend):
    theirs, _ = pair(FEATURES, 4, heads=2, dropout=0.3)
    torch.manual_seed(12)
    ours = LTGAConv(FEATURES, 4, heads=2, dropout=0.3, index=index, normalizer=normalizer, backend=backend)
    x = draw(NODES, FEATURES)
    same(run(theirs, x, EDGE_INDEX), run(ours, x, EDGE_INDEX))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "fill_value", ["mean", "add", "max", "min", "mul", 0.7, torch.tensor([1.0, -2.0, 0.5])], ids=str
)
@pytest.mark.parametrize("add_self_loops", [True, False])
def test_edge_features_and_fill_values(add_self_loops, fill_value, backend):
    theirs, ours = pair(
        FEATURES, 4, heads=2, edge_dim=EDGE_FEATURES, fill_value=fill_value, add_self_loops=add_self_loops,
        dropout=0.4, backend=backend,
    )  # fmt: skip
    x, attr = draw(NODES, FEATURES), draw(EDGE_INDEX.size(1), EDGE_FEATURES, seed=4)
    same(run(theirs, x, EDGE_INDEX, attr), run(ours, x, EDGE_INDEX, attr))
    # Built for edge features, called without.
    assert torch.allclose(ours.eval()(x, EDGE_INDEX), theirs.eval()(x, EDGE_INDEX), atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("add_self_loops", [True, False])
def test_one_dimensional_edge_features(add_self_loops, backend):
    theirs, ours = pair(FEATURES, 4, edge_dim=1, add_self_loops=add_self_loops, backend=backend)
    x, attr = draw(NODES, FEATURES), draw(EDGE_INDEX.size(1), seed=4)
    same(run(theirs, x, EDGE_INDEX, attr), run(ours, x, EDGE_INDEX, attr))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("add_self_loops", [True, False])
def test_bipartite(add_self_loops, residual, backend):
    theirs, ours = pair(
        (FEATURES, 4), 5, heads=2, residual=residual, add_self_loops=add_self_loops, dropout=0.4,
        edge_dim=EDGE_FEATURES, backend=backend,
    )  # fmt: skip
    x = (draw(7, FEATURES), draw(4, 4, seed=1))
    attr = draw(BIPARTITE.size(1), EDGE_FEATURES, seed=2)
    same(run(theirs, x, BIPARTITE, attr), run(ours, x, BIPARTITE, attr))


@pytest.mark.parametrize("backend", BACKENDS)
def test_bipartite_with_shared_weights(backend):
    theirs, ours = pair((FEATURES, FEATURES), 5, share_weights=True, add_self_loops=False, backend=backend)
    x = (draw(7, FEATURES), draw(4, FEATURES, seed=1))
    same(run(theirs, x, BIPARTITE), run(ours, x, BIPARTITE))


@pytest.mark.parametrize("backend", BACKENDS)
def test_more_targets_than_sources(backend):
    theirs, ours = pair((FEATURES, 4), 5, backend=backend)
    x = (draw(4, FEATURES), draw(7, 4, seed=1))
    edge_index = BIPARTITE.flip(0)
    same(run(theirs, x, edge_index), run(ours, x, edge_index))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "arguments",
    [{}, {"share_weights": True}, {"residual": True}, {"concat": False, "edge_dim": EDGE_FEATURES}],
    ids=str,
)
def test_flow_target_to_source(arguments, backend):
    theirs, ours = pair(FEATURES, 4, heads=2, flow="target_to_source", backend=backend, **arguments)
    x = draw(NODES, FEATURES)
    attr = draw(EDGE_INDEX.size(1), EDGE_FEATURES) if "edge_dim" in arguments else None
    same(run(theirs, x, EDGE_INDEX, attr), run(ours, x, EDGE_INDEX, attr))
    inside = ours.attend(x, EDGE_INDEX, attr)
    wanted = theirs(x, EDGE_INDEX, attr, return_attention_weights=True)[1]
    assert torch.equal(inside.edge_index, wanted[0])
    assert torch.allclose(inside.weights, wanted[1], atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
@pytest.mark.parametrize("aggr", ["mean", "max"])
def test_other_aggregations(aggr, flow, backend):
    theirs, ours = pair(FEATURES, 4, heads=2, aggr=aggr, flow=flow, backend=backend)
    x = draw(NODES, FEATURES)
    same(run(theirs, x, EDGE_INDEX), run(ours, x, EDGE_INDEX))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("size", [-1, (-1, -1)], ids=str)
@pytest.mark.parametrize("residual", [True, False])
def test_lazy_sizes(residual, size, backend):
    theirs, ours = pair(size, 4, heads=2, residual=residual, add_self_loops=False, backend=backend)
    x = draw(NODES, FEATURES) if size == -1 else (draw(7, FEATURES), draw(4, 4, seed=1))
    edge_index = EDGE_INDEX if size == -1 else BIPARTITE
    for conv in (theirs, ours):
        torch.manual_seed(2)
        conv(x, edge_index)
    same(run(theirs, x, edge_index), run(ours, x, edge_index))


@pytest.mark.parametrize("backend", BACKENDS)
def test_lazy_edge_features(backend):
    theirs, ours = pair(-1, 4, heads=2, edge_dim=-1, backend=backend)
    x, attr = draw(NODES, FEATURES), draw(EDGE_INDEX.size(1), EDGE_FEATURES)
    for conv in (theirs, ours):
        torch.manual_seed(2)
        conv(x, EDGE_INDEX, attr)
    same(run(theirs, x, EDGE_INDEX, attr), run(ours, x, EDGE_INDEX, attr))


@pytest.mark.parametrize("backend", BACKENDS)
def test_lazy_layer_takes_a_gatv2_checkpoint(backend):
    theirs, _ = pair(FEATURES, 4)
    lazy = LTGAConv(-1, 4, backend=backend)
    lazy.load_state_dict(theirs.state_dict())
    x = draw(NODES, FEATURES)
    assert torch.allclose(lazy(x, EDGE_INDEX), theirs(x, EDGE_INDEX), atol=1e-5)


def unique_edges():
    """Sparse tensors add duplicates up, so here every edge occurs once."""
    return torch.unique(EDGE_INDEX, dim=1).contiguous()


def adjacencies(edge_index, sources, targets):
    """Every transposed sparse form of the same graph."""
    pattern = torch.sparse_coo_tensor(edge_index.flip(0), torch.ones(edge_index.size(1)), (targets, sources)).coalesce()
    return {"coo": pattern, "csr": pattern.to_sparse_csr(), "csc": pattern.to_sparse_csc()}


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("add_self_loops", [True, False])
def test_every_form_of_adjacency_gives_the_first_output(add_self_loops, backend):
    theirs, ours = pair(FEATURES, 4, heads=2, add_self_loops=add_self_loops, backend=backend)
    x, edge_index = draw(NODES, FEATURES), unique_edges()
    first = ours(x, edge_index)
    assert torch.allclose(first, theirs(x, edge_index), atol=1e-5)
    forms = adjacencies(edge_index, NODES, NODES)
    by_row = PygEdgeIndex(edge_index, sparse_size=(NODES, NODES)).sort_by("row").values
    by_col = PygEdgeIndex(edge_index, sparse_size=(NODES, NODES)).sort_by("col").values
    forms["EdgeIndex"] = PygEdgeIndex(edge_index, sparse_size=(NODES, NODES))
    forms["EdgeIndex by row"] = by_row
    forms["EdgeIndex by col"] = by_col
    forms["Neighbourhoods"] = neighbourhoods(edge_index, NODES, NODES, add_self_loops)
    forms["transposed COO"] = to_torch_coo_tensor(edge_index, size=NODES).t()
    forms["int32"] = edge_index.int()
    forms["not contiguous"] = edge_index.t().contiguous().t()
    for name, form in forms.items():
        torch.testing.assert_close(ours(x, form), first, atol=1e-6, rtol=1e-5, msg=lambda m, n=name: f"{n}: {m}")
    for layout in ("coo", "csr"):  # GATv2Conv itself refuses CSC
        torch.testing.assert_close(theirs(x, forms[layout]), first, atol=1e-5, rtol=1e-5, msg=layout)


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("backend", BACKENDS)
def test_sparse_bipartite(backend):
    _, ours = pair((FEATURES, 4), 5, heads=2, add_self_loops=False, backend=backend)
    x = (draw(7, FEATURES), draw(4, 4, seed=1))
    first = ours(x, BIPARTITE)
    for name, form in adjacencies(BIPARTITE, 7, 4).items():
        torch.testing.assert_close(ours(x, form), first, atol=1e-6, rtol=1e-5, msg=name)


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("add_self_loops", [True, False])
@pytest.mark.parametrize("layout", ["coo", "csr"])  # GATv2Conv itself refuses CSC here
def test_attention_of_sparse_input_has_gatv2s_form(layout, add_self_loops, backend):
    theirs, ours = pair(FEATURES, 4, heads=2, add_self_loops=add_self_loops, dropout=0.5, backend=backend)
    x, form = draw(NODES, FEATURES), adjacencies(unique_edges(), NODES, NODES)[layout]
    results = []
    for conv in (theirs, ours):
        torch.manual_seed(5)
        results.append(conv(x, form, return_attention_weights=True))
    (wanted, (wanted_adj, wanted_weights)), (actual, (actual_adj, actual_weights)) = results
    assert torch.allclose(actual, wanted, atol=1e-5)
    assert torch.allclose(actual_weights, wanted_weights, atol=1e-5)
    assert is_torch_sparse_tensor(actual_adj)
    assert actual_adj.layout == wanted_adj.layout
    assert actual_adj.shape == wanted_adj.shape
    values = [
        adj.values() if adj.layout != torch.sparse_coo else adj.coalesce().values() for adj in (actual_adj, wanted_adj)
    ]
    assert torch.allclose(*values, atol=1e-5)
    if layout == "coo":
        assert torch.equal(actual_adj.coalesce().indices(), wanted_adj.coalesce().indices())


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("add_self_loops", [True, False])
def test_sparse_adjacency_that_carries_edge_features(add_self_loops, backend):
    theirs, ours = pair(FEATURES, 4, heads=2, edge_dim=EDGE_FEATURES, add_self_loops=add_self_loops, backend=backend)
    edge_index = unique_edges()
    values = draw(edge_index.size(1), EDGE_FEATURES)
    adj = torch.sparse_coo_tensor(edge_index.flip(0), values, (NODES, NODES, EDGE_FEATURES)).coalesce()
    x = draw(NODES, FEATURES)
    wanted = theirs(x, edge_index, values)
    assert torch.allclose(theirs(x, adj), wanted, atol=1e-5)  # PyG itself agrees
    assert torch.allclose(ours(x, adj), wanted, atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("edge_dim", [None, EDGE_FEATURES])
def test_neighbourhoods_attention_and_edge_features(edge_dim, backend):
    _, ours = pair(FEATURES, 4, heads=2, edge_dim=edge_dim, backend=backend, add_self_loops=False)
    x = draw(NODES, FEATURES)
    attr = None if edge_dim is None else draw(EDGE_INDEX.size(1), edge_dim)
    wanted = ours(x, EDGE_INDEX, attr, return_attention_weights=True)
    actual = ours(x, neighbourhoods(EDGE_INDEX, NODES, NODES, False), attr, return_attention_weights=True)
    assert torch.equal(actual[0], wanted[0])
    assert torch.equal(actual[1][0], wanted[1][0])
    assert torch.equal(actual[1][1], wanted[1][1])


@pytest.mark.parametrize("backend", BACKENDS)
def test_return_attention_weights_false_returns_the_output(backend):
    theirs, ours = pair(FEATURES, 4, backend=backend)
    x = draw(NODES, FEATURES)
    assert isinstance(theirs(x, EDGE_INDEX, return_attention_weights=False), torch.Tensor)
    assert isinstance(ours(x, EDGE_INDEX, return_attention_weights=False), torch.Tensor)


@pytest.mark.parametrize("backend", BACKENDS)
def test_size(backend):
    _, ours = pair((FEATURES, 4), 5, add_self_loops=False, backend=backend)
    x = (draw(7, FEATURES), draw(4, 4, seed=1))
    assert torch.equal(ours(x, BIPARTITE, size=(7, 4)), ours(x, BIPARTITE))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "arguments",
    [{}, {"bias": False}, {"share_weights": True}, {"residual": True, "edge_dim": 3}, {"concat": False}],
    ids=str,
)
def test_gatv2_checkpoint_loads_strictly(arguments, backend):
    torch.manual_seed(1)
    theirs = GATv2Conv(FEATURES, 4, heads=2, **arguments)
    for index in ("global", "layer", "head", "edge", 1.0):
        for modifier in (None, "edge-bias", "temperature"):
            ours = LTGAConv(FEATURES, 4, heads=2, index=index, modifier=modifier, backend=backend, **arguments)
            with torch.no_grad():
                for parameter in ours.parameters():
                    parameter.add_(0.0)
            state = theirs.state_dict()
            keys = list(state)
            assert str(ours.load_state_dict(state, strict=True)) == "<All keys matched successfully>"
            assert list(state) == keys  # the caller's dictionary is left alone
            x, attr = draw(NODES, FEATURES), draw(EDGE_INDEX.size(1), 3) if "edge_dim" in arguments else None
            assert torch.allclose(ours(x, EDGE_INDEX, attr), theirs(x, EDGE_INDEX, attr), atol=1e-5)
            copied = copy.deepcopy(ours)
            copied.load_state_dict(state, strict=True)


def test_gatv2_network_checkpoint_loads_into_a_network():
    class Net(nn.Module):
        def __init__(self, layer, **arguments):
            super().__init__()
            self.first = layer(FEATURES, 4, heads=2, **arguments)
            self.second = layer(8, 3, **arguments)

        def forward(self, x, edge_index):
            return self.second(F.elu(self.first(x, edge_index)), edge_index)

    theirs, ours = Net(GATv2Conv), Net(LTGAConv)
    ours.load_state_dict(theirs.state_dict())
    x = draw(NODES, FEATURES)
    assert torch.allclose(ours(x, EDGE_INDEX), theirs(x, EDGE_INDEX), atol=1e-5)
    damaged = {name: value for name, value in theirs.state_dict().items() if name != "second.att"}
    with pytest.raises(RuntimeError, match=r"second\.att"):
        ours.load_state_dict(damaged)


def test_partial_ltga_checkpoint_is_refused():
    """A checkpoint that knows part of the index is damaged, not a GATv2 one."""
    conv = LTGAConv(FEATURES, 4, index="edge")
    state = conv.state_dict()
    del state["index.gate.out.weight"]
    with pytest.raises(RuntimeError, match=r"index\.gate\.out\.weight"):
        conv.load_state_dict(state)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"index": "edge"}, {"modifier": "edge-scale"}, {"scoring": "gat"}, {"scoring": "dot"}, {"scoring": "qkv"}],
    ids=str,
)
def test_state_dict_round_trip_and_copies(arguments):
    conv = LTGAConv(FEATURES, 4, heads=2, residual=True, **arguments)
    with torch.no_grad():
        for parameter in conv.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    x = draw(NODES, FEATURES)
    wanted = conv(x, EDGE_INDEX)
    wanted.sum().backward()  # leaves gradients and, for the gate, a graph-bound q behind
    other = LTGAConv(FEATURES, 4, heads=2, residual=True, **arguments)
    assert str(other.load_state_dict(conv.state_dict())) == "<All keys matched successfully>"
    assert torch.equal(other(x, EDGE_INDEX), wanted)
    conv(x, EDGE_INDEX)
    copied = copy.deepcopy(conv)
    assert torch.equal(copied(x, EDGE_INDEX), wanted)
    assert not {id(p) for p in conv.parameters()} & {id(p) for p in copied.parameters()}
    file = io.BytesIO()
    torch.save(conv, file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)(x, EDGE_INDEX), wanted)


def test_gatv2_keys_are_kept():
    theirs, ours = pair(FEATURES, 4, edge_dim=2, residual=True, index="head")
    assert set(theirs.state_dict()) | {"index.raw"} == set(ours.state_dict())
    assert set(pair(FEATURES, 4, index=1.5)[1].state_dict()) == set(GATv2Conv(FEATURES, 4).state_dict())


def test_reset_parameters_draws_as_gatv2_does():
    theirs, ours = pair(FEATURES, 4, heads=2, edge_dim=2, residual=True, index="edge")
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.add_(1.0)
    for conv in (theirs, ours):
        torch.manual_seed(8)
        conv.reset_parameters()
    for name, value in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], value), name
    assert not ours.index.gate.out.weight.any()
    for scoring in ("gat", "dot", "qkv"):
        LTGAConv(FEATURES, 4, scoring=scoring, modifier="edge-bias").reset_parameters()


@pytest.mark.parametrize("backend", BACKENDS)
def test_same_training_as_gatv2_with_dropout(backend):
    """Ten steps of Adam from the same seed: the parameters stay together."""
    theirs, ours = pair(FEATURES, 4, heads=2, dropout=0.4, residual=True, backend=backend)
    x, y = draw(NODES, FEATURES), draw(NODES, 8, seed=1)
    for conv in (theirs, ours):
        torch.manual_seed(0)
        optimiser = torch.optim.SGD(conv.parameters(), lr=0.05)
        for _ in range(10):
            optimiser.zero_grad()
            ((conv(x, EDGE_INDEX) - y) ** 2).mean().backward()
            optimiser.step()
    for name, value in theirs.named_parameters():
        assert torch.allclose(dict(ours.named_parameters())[name], value, atol=1e-5), name


class Heterogeneous(nn.Module):
    def __init__(self, layer, **arguments):
        super().__init__()
        self.conv = HeteroConv(
            {
                ("paper", "cites", "paper"): layer(5, 4, heads=2, **arguments),
                ("author", "writes", "paper"): layer((3, 5), 4, heads=2, add_self_loops=False, edge_dim=2, **arguments),
                ("paper", "written", "author"): layer((-1, -1), 4, heads=2, add_self_loops=False, **arguments),
            }
        )

    def forward(self, x, edges, attributes):
        return self.conv(x, edges, edge_attr_dict=attributes)


@pytest.mark.parametrize("backend", BACKENDS)
def test_hetero_conv(backend):
    x = {"paper": draw(6, 5), "author": draw(4, 3, seed=1)}
    writes = torch.tensor([[0, 1, 2, 3, 0], [0, 1, 2, 5, 4]])
    edges = {
        ("paper", "cites", "paper"): torch.tensor([[0, 1, 2, 5], [1, 2, 0, 3]]),
        ("author", "writes", "paper"): writes,
        ("paper", "written", "author"): writes.flip(0),
    }
    attributes = {("author", "writes", "paper"): draw(5, 2, seed=2)}
    outs = []
    for layer, arguments in ((GATv2Conv, {}), (LTGAConv, {"index": 1.0, "backend": backend})):
        torch.manual_seed(0)
        model = Heterogeneous(layer, **arguments)
        torch.manual_seed(1)
        outs.append(model(x, edges, attributes))
    for name, value in outs[0].items():
        assert torch.allclose(outs[1][name], value, atol=1e-5)


class TwoLayers(nn.Module):
    def __init__(self, layer, sizes=(-1, -1), **arguments):
        super().__init__()
        self.first = layer(sizes, 4, heads=2, add_self_loops=False, **arguments)
        self.second = layer(sizes, 3, add_self_loops=False, **arguments)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


@pytest.mark.parametrize("backend", BACKENDS)
def test_to_hetero(backend):
    data = HeteroData()
    data["paper"].x, data["author"].x = draw(6, 5), draw(4, 3, seed=1)
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 1, 2, 3, 0], [0, 1, 2, 5, 4]])
    data["paper", "written", "author"].edge_index = torch.tensor([[0, 1, 2, 5, 4], [0, 1, 2, 3, 0]])
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0, 1, 2, 5], [1, 2, 0, 3]])
    outs = []
    for layer, arguments in ((GATv2Conv, {}), (LTGAConv, {"index": "head", "backend": backend})):
        torch.manual_seed(0)
        model = to_hetero(TwoLayers(layer, **arguments), data.metadata())
        torch.manual_seed(1)
        outs.append(model(data.x_dict, data.edge_index_dict))
        outs[-1]["paper"].sum().backward()
    for name, value in outs[0].items():
        assert torch.allclose(outs[1][name], value, atol=1e-5)


class Classifier(nn.Module):
    def __init__(self, layer, **arguments):
        super().__init__()
        self.first = layer(FEATURES, 4, heads=2, **arguments)
        self.second = layer(8, 3, heads=1, **arguments)

    def forward(self, x, edge_index):
        return self.second(F.elu(self.first(x, edge_index)), edge_index).log_softmax(-1)


MODEL = {"mode": "multiclass_classification", "task_level": "node", "return_type": "log_probs"}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
def test_attention_explainer_gives_gatv2s_edge_mask(flow, backend):
    x, edge_index = draw(NODES, FEATURES), EDGE_INDEX[:, EDGE_INDEX[0] != EDGE_INDEX[1]]
    masks = []
    for layer, arguments in ((GATv2Conv, {}), (LTGAConv, {"index": "head", "backend": backend})):
        torch.manual_seed(0)
        model = Classifier(layer, flow=flow, **arguments)
        explainer = Explainer(
            model, AttentionExplainer(), explanation_type="model", edge_mask_type="object", model_config=MODEL
        )
        masks.append(explainer(x, edge_index, index=1).edge_mask)
    assert masks[0].any()
    assert torch.allclose(*masks, atol=1e-5)
    assert torch.isfinite(model(x, edge_index)).all()  # the fused path works again afterwards


@pytest.mark.parametrize("backend", BACKENDS)
def test_gnn_explainer_gives_gatv2s_masks(backend):
    class Fresh(LTGAConv):
        """PyG specialises a class when it is first built; what was built before must not matter."""

    x, edge_index = draw(NODES, FEATURES), EDGE_INDEX[:, EDGE_INDEX[0] != EDGE_INDEX[1]]
    masks = []
    for layer, arguments in ((GATv2Conv, {}), (Fresh, {"index": "head", "backend": backend})):
        torch.manual_seed(0)
        model = Classifier(layer, **arguments)
        explainer = Explainer(
            model, GNNExplainer(epochs=5), explanation_type="model", node_mask_type="attributes",
            edge_mask_type="object", model_config=MODEL,
        )  # fmt: skip
        torch.manual_seed(1)
        explanation = explainer(x, edge_index, index=1)
        masks.append((explanation.edge_mask, explanation.node_mask))
    assert torch.allclose(masks[0][0], masks[1][0], atol=1e-4)
    assert torch.allclose(masks[0][1], masks[1][1], atol=1e-4)
    assert masks[0][0].any()


@pytest.mark.parametrize("backend", BACKENDS)
def test_message_hooks_see_alpha(backend):
    _, ours = pair(FEATURES, 4, heads=2, backend=backend)
    x, seen = draw(NODES, FEATURES), []
    plain = ours(x, EDGE_INDEX)
    handle = ours.register_message_forward_hook(lambda module, inputs, out: seen.append(inputs[0]["alpha"]))
    hooked, (_, weights) = ours(x, EDGE_INDEX, return_attention_weights=True)
    handle.remove()
    assert torch.allclose(hooked, plain, atol=1e-6)
    assert torch.equal(seen[0], weights)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["pre", "forward", "backward"])
def test_hooks_on_the_linear_layers_run(kind, backend):
    """Pruning, spectral norm and adapters all live in hooks; a shortcut past them would be silent."""
    _, ours = pair(FEATURES, 4, heads=2, edge_dim=2, residual=True, backend=backend)
    calls = []
    for name in ("lin_l", "lin_r", "res", "lin_edge"):
        linear = getattr(ours, name)
        if kind == "pre":
            linear.register_forward_pre_hook(lambda *_, n=name: calls.append(n))
        elif kind == "forward":
            linear.register_forward_hook(lambda *_, n=name: calls.append(n))
        else:
            linear.register_full_backward_hook(lambda *_, n=name: calls.append(n))
    x = draw(NODES, FEATURES).requires_grad_()
    ours(x, EDGE_INDEX, draw(EDGE_INDEX.size(1), 2).requires_grad_()).sum().backward()
    assert {"lin_l", "lin_r", "res"} <= set(calls)
    assert "lin_edge" in calls


@pytest.mark.parametrize("backend", BACKENDS)
def test_pruned_weights_are_obeyed(backend):
    from torch.nn.utils import prune

    theirs, ours = pair(FEATURES, 4, backend=backend)
    x = draw(NODES, FEATURES)
    for conv in (theirs, ours):
        torch.manual_seed(0)
        prune.random_unstructured(conv.lin_l, "weight", 0.5)
        with torch.no_grad():
            conv.lin_l.weight_orig.mul_(2.0)  # as an optimiser step would
    assert torch.allclose(ours(x, EDGE_INDEX), theirs(x, EDGE_INDEX), atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("index", ["head", "edge"])
@pytest.mark.parametrize("edge_dim", [None, EDGE_FEATURES])
def test_autocast(edge_dim, index, backend):
    theirs, ours = pair(FEATURES, 4, heads=2, edge_dim=edge_dim, dropout=0.4, index=index, backend=backend)
    x = draw(NODES, FEATURES)
    attr = None if edge_dim is None else draw(EDGE_INDEX.size(1), edge_dim)
    full = run(theirs, x, EDGE_INDEX, attr)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        wanted, _ = run(theirs, x, EDGE_INDEX, attr)
        actual, _ = run(ours, x, EDGE_INDEX, attr)
    for name, value in wanted.items():
        assert actual[name].dtype == value.dtype, name
        assert torch.allclose(actual[name].float(), value.float(), atol=0.1, rtol=0.1), name
    # And no worse than GATv2Conv under autocast, against single precision.
    error, theirs_error = ((side["out"].float() - full["out"]).abs().max() for side in (actual, wanted))
    assert error <= 2 * theirs_error + 1e-3


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("index", ["head", "edge", 1.5])
@pytest.mark.parametrize("normalizer", ["q_softmax", "entmax"])
def test_other_precisions(normalizer, index, dtype, backend):
    torch.manual_seed(0)
    conv = LTGAConv(FEATURES, 4, heads=2, edge_dim=EDGE_FEATURES, index=index, normalizer=normalizer, backend=backend)
    x, attr = draw(NODES, FEATURES), draw(EDGE_INDEX.size(1), EDGE_FEATURES)
    wanted = conv(x, EDGE_INDEX, attr)
    other = copy.deepcopy(conv).to(dtype)
    leaf = x.to(dtype).requires_grad_()
    out, (_, weights) = other(leaf, EDGE_INDEX, attr.to(dtype), return_attention_weights=True)
    assert out.dtype == weights.dtype == leaf.dtype == dtype
    tolerance = {torch.float16: 1e-2, torch.bfloat16: 8e-2, torch.float64: 1e-5}[dtype]
    assert torch.allclose(out.float(), wanted, atol=tolerance, rtol=tolerance)
    out.float().pow(2).sum().backward()
    assert leaf.grad.dtype == dtype
    for name, parameter in other.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.dtype == dtype, name
        assert torch.isfinite(parameter.grad).all(), name
    assert other.attend(x.to(dtype), EDGE_INDEX, attr.to(dtype)).weights.shape == weights.shape


@pytest.mark.parametrize("backend", BACKENDS)
def test_float64_is_gatv2_to_the_last_digits(backend):
    theirs, ours = pair(FEATURES, 4, heads=2, dropout=0.5, backend=backend)
    x = draw(NODES, FEATURES).double()
    same(run(theirs.double(), x, EDGE_INDEX), run(ours.double(), x, EDGE_INDEX), atol=1e-13)


def count(first, second):
    return sum(p.numel() for p in (*first.parameters(), *second.parameters()))


@pytest.mark.parametrize(
    ("arguments", "parameters"),
    [
        (None, 1_526_959),
        ({"index": 1.0}, 1_526_959),
        ({"index": 1.5, "normalizer": "entmax"}, 1_526_959),
        ({"index": "head"}, 1_526_975),
        ({"index": 1.0, "modifier": "temperature"}, 1_526_975),
        ({"index": "edge"}, 1_528_255),
        ({"index": 1.0, "modifier": "edge-bias"}, 1_528_255),
        ({"index": 1.0, "modifier": "edge-scale"}, 1_528_255),
    ],
    ids=str,
)
def test_parameter_counts_on_cora(arguments, parameters):
    layer = GATv2Conv if arguments is None else LTGAConv
    arguments = arguments or {}
    first = layer(1433, 64, heads=8, **arguments)
    second = layer(512, 7, heads=8, concat=False, **arguments)
    assert count(first, second) == parameters


def test_layer_and_global_index_add_one_parameter_each():
    base = sum(p.numel() for p in GATv2Conv(8, 4, heads=2).parameters())
    for index in ("layer", "global"):
        assert sum(p.numel() for p in LTGAConv(8, 4, heads=2, index=index).parameters()) == base + 1


def test_input_tensors_are_left_alone():
    x, edge_index, attr = draw(NODES, FEATURES), EDGE_INDEX.clone(), draw(EDGE_INDEX.size(1), EDGE_FEATURES)
    before = [value.clone() for value in (x, edge_index, attr)]
    conv = LTGAConv(FEATURES, 4, heads=2, edge_dim=EDGE_FEATURES)
    conv(x, edge_index, attr).sum().backward()
    for value, copied in zip((x, edge_index, attr), before):
        assert torch.equal(value, copied)


def test_repr_is_short_and_evaluates_in_the_head():
    text = repr(LTGAConv(8, 4, heads=2, index=1.5))
    assert text == "LTGAConv(8, 4, heads=2, index=FrozenIndex(1.5))"
