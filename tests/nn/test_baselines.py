"""The published networks against their dense definitions, and what all of them have in common."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from ltga.errors import InputError
from ltga.nn.baselines import FAGCN, GAT, GCN, GPRGNN, H2GCN, LINKX, GATv2
from ltga.nn.baselines.propagation import OncePerGraph, gcn_operator, hop_matrices, symmetric_normalized

NUM_NODES, FEATURES, CLASSES = 12, 6, 3
MODELS = [GCN, GAT, GATv2, H2GCN, GPRGNN, FAGCN, LINKX]


def build(model_class: Callable[..., nn.Module], **overrides: object) -> nn.Module:
    settings: dict[str, object] = {"hidden_channels": 4, "heads": 2} | overrides
    if model_class is LINKX:
        settings.setdefault("num_nodes", NUM_NODES)
    torch.manual_seed(0)
    return model_class(FEATURES, CLASSES, **settings)


@pytest.fixture
def x() -> Tensor:
    return torch.randn(NUM_NODES, FEATURES, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def edge_index() -> Tensor:
    """A directed graph with a self-loop, a node without incoming edges (10) and one with none at all (11)."""
    generator = torch.Generator().manual_seed(2)
    edges = torch.randint(10, (2, 30), generator=generator)
    return torch.cat([edges, torch.tensor([[3, 10], [3, 0]])], dim=1).unique(dim=1)


def dense_gcn(edge_index: Tensor, num_nodes: int) -> Tensor:
    adjacency = torch.zeros(num_nodes, num_nodes)
    adjacency[edge_index[1], edge_index[0]] = 1
    adjacency.fill_diagonal_(1)
    scale = adjacency.sum(1).rsqrt()
    return scale[:, None] * adjacency * scale


# What all models share


@pytest.mark.parametrize("model_class", MODELS)
@pytest.mark.parametrize("num_layers", [1, 2, 4])
def test_any_depth_with_gradients_to_every_parameter(
    model_class: Callable[..., nn.Module], num_layers: int, x: Tensor, edge_index: Tensor
) -> None:
    model = build(model_class, num_layers=num_layers, dropout=0.0)
    logits = model(x, edge_index)
    assert logits.shape == (NUM_NODES, CLASSES)
    F.cross_entropy(logits, torch.arange(NUM_NODES) % CLASSES).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0 or name.endswith("bias"), name


@pytest.mark.parametrize("model_class", MODELS)
def test_isolated_nodes_and_no_edges(model_class: Callable[..., nn.Module], x: Tensor) -> None:
    model = build(model_class)
    empty = torch.empty(2, 0, dtype=torch.long)
    logits = model(x, empty)
    logits.sum().backward()
    assert logits.isfinite().all()
    assert model.eval().hidden(x, empty).isfinite().all()


@pytest.mark.parametrize("model_class", [GCN, GAT, GATv2, H2GCN, GPRGNN, FAGCN])
def test_permutation_equivariance(model_class: Callable[..., nn.Module], x: Tensor, edge_index: Tensor) -> None:
    model = build(model_class).eval()
    order = torch.randperm(NUM_NODES)
    position = order.argsort()
    torch.testing.assert_close(model(x[order], position[edge_index]), model(x, edge_index)[order], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model_class", MODELS)
def test_last_layer_reads_hidden(model_class: Callable[..., nn.Module], x: Tensor, edge_index: Tensor) -> None:
    model = build(model_class, num_layers=3).eval()
    hidden = model.hidden(x, edge_index)
    if model_class is LINKX:
        logits = model.network.final_mlp.lins[-1](hidden)
    elif model_class in (H2GCN, FAGCN):
        logits = model.classify(hidden)
    elif model_class is GPRGNN:
        step = model.linears[-1](hidden)
        powers = [step]
        for _ in range(10):
            powers.append(dense_gcn(edge_index, NUM_NODES) @ powers[-1])
        logits = sum(weight * power for weight, power in zip(model.gamma, powers))
    elif model_class is GCN:
        logits = model.convs[-1](hidden, *gcn_norm(edge_index, None, NUM_NODES))
    else:
        logits = model.convs[-1](hidden, edge_index)
    assert hidden.shape[0] == NUM_NODES
    torch.testing.assert_close(logits, model(x, edge_index))


@pytest.mark.parametrize("model_class", MODELS)
def test_reset_forgets_training_and_follows_the_seed(model_class: Callable[..., nn.Module]) -> None:
    models = [build(model_class), build(model_class)]
    for seed, model in enumerate(models):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(seed + 1)
        torch.manual_seed(7)
        model.reset_parameters()
    first, second = (model.state_dict() for model in models)
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("model_class", MODELS)
def test_dropout_acts_in_training_only(model_class: Callable[..., nn.Module], x: Tensor, edge_index: Tensor) -> None:
    model = build(model_class, dropout=0.5)
    assert not torch.equal(model(x, edge_index), model(x, edge_index))
    model.eval()
    assert torch.equal(model(x, edge_index), model(x, edge_index))


@pytest.mark.parametrize("model_class", MODELS)
def test_survives_pickling_after_use(model_class: Callable[..., nn.Module], x: Tensor, edge_index: Tensor) -> None:
    model = build(model_class).eval()
    expected = model(x, edge_index)
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    for twin in (torch.load(buffer, weights_only=False), copy.deepcopy(model)):
        assert torch.equal(twin(x, edge_index), expected)


@pytest.mark.parametrize("model_class", MODELS)
def test_depth_zero_is_refused(model_class: Callable[..., nn.Module]) -> None:
    with pytest.raises(InputError, match="num_layers"):
        build(model_class, num_layers=0)


# The attention networks and GCN


@pytest.mark.parametrize(("model_class", "conv"), [(GCN, GCNConv), (GAT, GATConv), (GATv2, GATv2Conv)])
def test_equals_the_two_layers_written_with_pyg(
    model_class: Callable[..., nn.Module], conv: Callable[..., nn.Module], x: Tensor, edge_index: Tensor
) -> None:
    torch.manual_seed(5)
    model = model_class(FEATURES, CLASSES)
    torch.manual_seed(5)
    if conv is GCNConv:
        first, second = conv(FEATURES, 512), conv(512, CLASSES)
    else:
        first = conv(FEATURES, 64, heads=8, dropout=0.4)
        second = conv(512, CLASSES, heads=8, concat=False, dropout=0.4)
    torch.manual_seed(6)
    logits = model(x, edge_index)
    torch.manual_seed(6)
    hidden = F.elu(first(F.dropout(x, 0.4), edge_index))
    expected = second(F.dropout(hidden, 0.4), edge_index)
    if conv is GCNConv:
        assert torch.equal(logits, expected)
    else:  # attention weights are rounded otherwise
        torch.testing.assert_close(logits, expected, rtol=1e-5, atol=1e-6)


def test_parameter_count_on_cora() -> None:
    assert sum(p.numel() for p in GATv2(1433, 7).parameters()) == 1_526_959


@pytest.mark.parametrize("model_class", [GCN, GAT, GATv2])
def test_residual_adds_a_linear_map(model_class: Callable[..., nn.Module], x: Tensor, edge_index: Tensor) -> None:
    model = build(model_class, residual=True, num_layers=1).eval()
    skip = model.skips[0] if model_class is GCN else model.convs[0].res
    with torch.no_grad():
        total = model(x, edge_index)
        added = skip(x)
        skip.weight.zero_()
        torch.testing.assert_close(total - added, model(x, edge_index))


@pytest.mark.parametrize("model_class", [GAT, GATv2])
def test_edge_attributes_reach_every_layer(
    model_class: Callable[..., nn.Module], x: Tensor, edge_index: Tensor
) -> None:
    edge_attr = torch.randn(edge_index.size(1), 2, requires_grad=True)
    model = build(model_class, edge_dim=2, num_layers=3).eval()
    model(x, edge_index, edge_attr).square().sum().backward()
    assert edge_attr.grad is not None
    assert edge_attr.grad.abs().sum() > 0
    assert all(conv.lin_edge.weight.grad.abs().sum() > 0 for conv in model.convs)
    with pytest.raises(InputError, match="edge_dim=2"):
        build(model_class)(x, edge_index, edge_attr)


# H2GCN


@pytest.mark.parametrize("seed", range(4))
def test_hops_equal_shortest_path_lengths(seed: int) -> None:
    graph = nx.gnp_random_graph(25, 0.08, seed=seed, directed=True)
    graph.add_edge(4, 4)
    edges = np.array(graph.edges).T
    edge_index = torch.from_numpy(np.concatenate([edges, edges[:, :3]], axis=1))  # some edges twice
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    for hops, matrix in zip((1, 2), hop_matrices(edge_index, 25)):
        expected = [[lengths[j].get(i) == hops for j in range(25)] for i in range(25)]
        assert (matrix.toarray() == np.array(expected)).all()


def test_normalisation_is_the_symmetric_one_on_undirected_graphs() -> None:
    graph = nx.gnp_random_graph(15, 0.2, seed=0)
    assert any(degree == 0 for _, degree in graph.degree)
    adjacency = nx.to_scipy_sparse_array(graph, format="csr")
    expected = np.eye(15) - nx.normalized_laplacian_matrix(graph).toarray()
    np.fill_diagonal(expected, 0)  # networkx gives isolated nodes a Laplacian of 0
    np.testing.assert_allclose(symmetric_normalized(adjacency).toarray(), expected, atol=1e-12)


def test_h2gcn_equals_the_dense_formula(x: Tensor, edge_index: Tensor) -> None:
    model = build(H2GCN).eval()
    one, two = (torch.from_numpy(m.toarray()).double() for m in hop_matrices(edge_index, NUM_NODES))

    def normalise(adjacency: Tensor) -> Tensor:
        into, out_of = adjacency.sum(1), adjacency.sum(0)
        return (adjacency / (into[:, None] * out_of).sqrt().clamp(min=1)).float()

    one, two = normalise(one), normalise(two)
    ego = F.relu(model.embed(x))
    first = torch.cat([one @ ego, two @ ego], 1)
    second = torch.cat([one @ first, two @ first], 1)
    expected = model.classify(torch.cat([ego, first, second], 1))
    torch.testing.assert_close(model(x, edge_index), expected)


def test_h2gcn_sees_a_graph_change_in_place(x: Tensor, edge_index: Tensor) -> None:
    model = build(H2GCN).eval()
    before = model(x, edge_index)
    edge_index[:, :5] = edge_index[:, :5].flip(0)
    after = model(x, edge_index)
    assert not torch.allclose(before, after)
    assert torch.equal(after, model(x, edge_index.clone()))


def test_graphs_are_prepared_once() -> None:
    calls = []

    def count(edge_index: Tensor, num_nodes: int, dtype: torch.dtype) -> int:
        calls.append(num_nodes)
        return len(calls)

    once = OncePerGraph(count)
    edge_index = torch.zeros(2, 3, dtype=torch.long)
    for _ in range(3):
        assert once(edge_index, 4, torch.float32) == 1
    assert once(edge_index, 5, torch.float32) == 2
    assert once(edge_index.clone(), 5, torch.float32) == 3


def test_evaluation_in_inference_mode_does_not_spoil_training(x: Tensor, edge_index: Tensor) -> None:
    for model_class in (GCN, H2GCN, GPRGNN, FAGCN):
        model = build(model_class)
        with torch.inference_mode():
            model(x, edge_index)
        model(x, edge_index).sum().backward()


# GPR-GNN


def test_propagation_matrix_and_its_gradient_equal_the_dense_one(edge_index: Tensor) -> None:
    dense = dense_gcn(edge_index, NUM_NODES).double()
    operator = gcn_operator(edge_index, NUM_NODES, torch.float64)
    values = torch.randn(NUM_NODES, 2, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(operator(values), dense @ values, rtol=1e-6, atol=1e-6)
    assert torch.autograd.gradcheck(operator, (values,))


def test_gprgnn_equals_dense_matrix_powers(x: Tensor, edge_index: Tensor) -> None:
    model = build(GPRGNN, num_steps=10).eval()
    with torch.no_grad():
        model.gamma.copy_(torch.randn(11))
    dense = dense_gcn(edge_index, NUM_NODES)
    filtered = sum(g * torch.linalg.matrix_power(dense, k) for k, g in enumerate(model.gamma))
    expected = filtered @ model.linears[1](F.relu(model.linears[0](x)))
    torch.testing.assert_close(model(x, edge_index), expected, rtol=1e-4, atol=1e-5)


def test_gprgnn_starts_at_personalised_pagerank() -> None:
    gamma = build(GPRGNN).gamma
    assert gamma.shape == (11,)
    assert gamma.sum().item() == pytest.approx(1)
    assert gamma[3].item() == pytest.approx(0.1 * 0.9**3)


# FAGCN


def test_fagcn_equals_the_dense_formula(x: Tensor, edge_index: Tensor) -> None:
    model = build(FAGCN, eps=0.3).eval()
    adjacency = dense_gcn(edge_index, NUM_NODES)
    hidden = embedded = F.relu(model.embed(x))
    for conv in model.convs:
        # [target, source]
        gate = torch.tanh(conv.att_r(hidden) + conv.att_l(hidden).T)
        hidden = 0.3 * embedded + (gate * adjacency) @ hidden
    torch.testing.assert_close(model(x, edge_index), model.classify(hidden), rtol=1e-4, atol=1e-5)


# LINKX


def test_linkx_equals_the_dense_formula(x: Tensor, edge_index: Tensor) -> None:
    model = build(LINKX, num_layers=1).eval()
    net = model.network
    adjacency = torch.zeros(NUM_NODES, NUM_NODES)
    adjacency[edge_index[1], edge_index[0]] = 1
    from_edges = adjacency @ net.edge_lin.weight + net.edge_lin.bias
    from_nodes = net.node_mlp(x)
    mixed = F.relu(net.cat_lin1(from_edges) + net.cat_lin2(from_nodes) + from_edges + from_nodes)
    torch.testing.assert_close(model(x, edge_index), net.final_mlp(mixed))


def test_linkx_fits_one_set_of_nodes(x: Tensor, edge_index: Tensor) -> None:
    with pytest.raises(InputError, match="num_nodes=12"):
        build(LINKX, num_nodes=5)(x, edge_index)
