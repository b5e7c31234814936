"""Dirichlet energy and mean average distance against loops, scikit-learn and closed forms."""

import math

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import cosine_distances
from torch.nn import functional as F

from ltga.errors import InputError
from ltga.study.analyses.inputs import task_of
from ltga.study.analyses.similarity import edge_cosine
from ltga.study.analyses.smoothing import dirichlet_energy, layer_embeddings, mean_average_distance, smoothing


@pytest.fixture
def x():
    return torch.randn(12, 4, generator=torch.Generator().manual_seed(1))


def edges_of(graph: nx.Graph) -> torch.Tensor:
    return torch.tensor(list(graph.to_directed().edges)).t()


def test_edge_cosine_against_scikit_learn(x, monkeypatch):
    monkeypatch.setattr("ltga.study.analyses.similarity._CHUNK", 5)  # several chunks
    edges = torch.randint(0, 12, (2, 23), generator=torch.Generator().manual_seed(2))
    expected = 1 - cosine_distances(x.double())[tuple(edges.numpy())]
    assert np.allclose(edge_cosine(x, edges), expected, atol=1e-12)


def test_energy_is_the_rayleigh_quotient_of_the_graphs_laplacian(x):
    graph = nx.erdos_renyi_graph(12, 0.4, seed=3)
    laplacian = nx.laplacian_matrix(graph, nodelist=range(12)).toarray()
    unit = F.normalize(x.double(), dim=1).numpy()
    # x^T L x sums |x_i - x_j|^2 over undirected edges; the energy is half its mean.
    expected = np.trace(unit.T @ laplacian @ unit) / 2 / graph.number_of_edges()
    assert dirichlet_energy(x, edges_of(graph)) == pytest.approx(expected, abs=1e-12)


def test_distance_against_all_pairs(x):
    distances = cosine_distances(x.double())
    assert mean_average_distance(x) == pytest.approx(distances[~np.eye(12, dtype=bool)].mean(), abs=1e-12)


def test_neither_depends_on_magnitude(x):
    edges = edges_of(nx.path_graph(12))
    scaled = x * torch.linspace(0.1, 50, 12)[:, None]
    assert dirichlet_energy(scaled, edges) == pytest.approx(dirichlet_energy(x, edges), abs=1e-6)
    assert mean_average_distance(scaled) == pytest.approx(mean_average_distance(x), abs=1e-6)


def test_collapse_is_zero(x):
    same = x[:1].repeat(12, 1)
    assert dirichlet_energy(same, edges_of(nx.cycle_graph(12))) == pytest.approx(0, abs=1e-12)
    assert mean_average_distance(same) == pytest.approx(0, abs=1e-12)


def test_two_opposite_halves():
    x = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]])
    assert dirichlet_energy(x, torch.tensor([[0, 1, 2], [1, 2, 3]])) == pytest.approx(2 / 3)
    assert mean_average_distance(x) == pytest.approx(2 * 4 / 6)  # 4 of 6 pairs are opposite


def test_self_loops_and_zero_vectors_are_left_out(x):
    edges = torch.tensor([[0, 1, 2, 3], [1, 1, 3, 2]])
    x = x.clone()
    x[3] = 0
    assert dirichlet_energy(x, edges) == pytest.approx(float(1 - F.cosine_similarity(x[:1], x[1:2])), abs=1e-6)
    kept = [node for node in range(12) if node != 3]
    assert mean_average_distance(x) == pytest.approx(mean_average_distance(x[kept]), abs=1e-12)


def test_nothing_to_average_is_nan(x):
    assert math.isnan(dirichlet_energy(x, torch.zeros(2, 0, dtype=torch.long)))
    assert math.isnan(dirichlet_energy(torch.zeros(3, 2), torch.tensor([[0], [1]])))
    assert math.isnan(mean_average_distance(x[:1]))


@pytest.mark.parametrize("method", ["gcn", "gatv2", "ltga-head"])
def test_stages_are_what_the_network_computes(method, run_of, graph):
    run = run_of(method, num_layers=3)
    task = task_of(run, graph)
    stages = layer_embeddings(run.model, task)
    assert torch.equal(stages[0], graph.data.x)
    with torch.no_grad():
        assert torch.allclose(stages[-2], run.model.hidden(task.x, task.edge_index), atol=1e-6)
        assert torch.allclose(stages[-1], run.model(task.x, task.edge_index), atol=1e-6)
        first = F.elu(run.model.convs[0](task.x, task.edge_index)) if method != "gcn" else stages[1]
    assert torch.allclose(stages[1], first, atol=1e-6)
    frame = smoothing(run, graph)
    assert frame["layer"].tolist() == [0, 1, 2, 3]
    assert frame["dirichlet_energy"][2] == dirichlet_energy(stages[2], graph.data.edge_index)
    assert not any(conv._forward_pre_hooks for conv in run.model.convs)


def test_sparse_features_are_seen_dense(graph):
    from ltga.data import Dataset
    from ltga.train import fit

    data = graph.data.clone()
    data.x = torch.nn.functional.one_hot(torch.arange(80)).float()  # sparse enough to be stored so
    sparse = Dataset("one-hot", data, *graph.split(0))
    run = fit(sparse, "ltga-head", protocol={"epochs": 1, "hidden_channels": 2, "heads": 1, "init": "paired"})
    assert torch.equal(layer_embeddings(run.model, task_of(run, sparse))[0], data.x)


def test_a_network_that_is_no_stack_of_layers_is_refused(run_of, graph):
    with pytest.raises(InputError, match="no stack of layers"):
        smoothing(run_of("linkx"), graph)
