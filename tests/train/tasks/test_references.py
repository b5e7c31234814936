"""Rows without training against networkx, scikit-learn's dummies and counting by hand."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, f1_score, mean_absolute_error, r2_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from torch_geometric.data import Data

from ltga.data import NodeDataset, Triples, collection_from_data, csbm, make_target, neighbour_classes, split_links
from ltga.train.tasks.references import references
from ltga.train.tasks.task_run import plan_task
from ltga.train.tasks.task_scores import link_scores, rank_scores


def test_a_constant_number_is_scikit_learns_dummy() -> None:
    data = csbm(num_nodes=90).data
    dataset = NodeDataset("n", data, make_target(data.x[:, 0] * 7, "n"))
    train, _, test = (mask.numpy() for mask in dataset.split(0))
    y = dataset.data.y.double().numpy()
    dummy = DummyRegressor().fit(np.zeros((train.sum(), 1)), y[train]).predict(np.zeros((test.sum(), 1)))
    found = references(plan_task(dataset, "features"))["constant"]["test"]
    assert found["mae"] == pytest.approx(mean_absolute_error(y[test], dummy), rel=1e-5)
    assert found["r2"] == pytest.approx(r2_score(y[test], dummy), rel=1e-4)


def test_a_constant_class_is_the_most_frequent_and_labels_rank_nothing() -> None:
    ring = torch.stack([torch.arange(4), (torch.arange(4) + 1) % 4])
    graphs = [Data(x=torch.ones(4, 1), edge_index=ring, y=int(n % 3 == 0)) for n in range(60)]
    collection = collection_from_data(graphs)
    train, _, test = collection.split(0)
    dummy = DummyClassifier().fit(np.zeros((int(train.sum()), 1)), collection.y[train])
    found = references(plan_task(collection, "features"))["constant"]["test"]
    assert found["accuracy"] == accuracy_score(collection.y[test], dummy.predict(np.zeros((int(test.sum()), 1))))
    labels = neighbour_classes(csbm(num_nodes=100, degree=3))
    assert references(plan_task(labels, "features"))["constant"]["test"]["roc_auc"] == 0.5


def test_the_linear_row_is_scikit_learns() -> None:
    data = csbm(num_nodes=90).data
    number = NodeDataset("n", data.clone(), make_target(data.x[:, 0] * 7 + data.x[:, 1] ** 2, "n"))
    train, _, test = (mask.numpy() for mask in number.split(0))
    scaler = StandardScaler().fit(data.x[train])
    seen, unseen = scaler.transform(data.x[train]), scaler.transform(data.x[test])
    y = number.data.y.double().numpy()
    mean, spread = y[train].mean(), y[train].std()
    ridge = Ridge().fit(seen, (y[train] - mean) / spread).predict(unseen) * spread + mean
    found = references(plan_task(number, "features"))["linear on features"]["test"]
    assert found["mae"] == pytest.approx(mean_absolute_error(y[test], ridge), rel=0.01)  # s.d. of n or n - 1


def test_the_linear_row_of_labels_and_graphs() -> None:
    labels = neighbour_classes(csbm(num_nodes=150, degree=3))
    train, _, test = (mask.numpy() for mask in labels.split(0))
    x, y = labels.data.x.numpy(), labels.target.y.numpy()
    scaler = StandardScaler().fit(x[train])
    model = OneVsRestClassifier(LogisticRegression()).fit(scaler.transform(x[train]), y[train])
    truth, said = y[test], model.predict(scaler.transform(x[test]))
    found = references(plan_task(labels, "features"))["linear on features"]["test"]
    assert found["micro_f1"] == pytest.approx(f1_score(truth, said, average="micro"))
    rng = np.random.default_rng(0)
    ring = torch.stack([torch.arange(4), (torch.arange(4) + 1) % 4])
    graphs = [
        Data(x=torch.tensor(rng.normal(size=(4, 2)) + n % 2).float(), edge_index=ring, y=n % 2) for n in range(60)
    ]
    collection = collection_from_data(graphs)
    train, _, test = (mask.numpy() for mask in collection.split(0))
    means = np.stack([graph.x.numpy().mean(0) for graph in graphs])
    model = LogisticRegression().fit(StandardScaler().fit(means[train]).transform(means[train]), collection.y[train])
    right = model.score(StandardScaler().fit(means[train]).transform(means[test]), collection.y[test])
    found = references(plan_task(collection, "features"))["linear on features"]["test"]
    assert found["accuracy"] == pytest.approx(right)


def test_heuristics_of_links_are_networkxs() -> None:
    graph = nx.karate_club_graph()
    edges = torch.tensor(list(graph.edges)).t()
    links = split_links(Data(x=torch.eye(34), edge_index=edges), "karate", seed=1)
    found = references(plan_task(links, "gcn", options={"each": 4}))
    seen = nx.Graph(links.data.edge_index.t().tolist())
    seen.add_nodes_from(range(34))
    pairs = torch.cat([links.positives("test").unsqueeze(-1), links.negatives("test", "two-hop", 4)], dim=-1)
    both = pairs.flatten(1).t().tolist()
    common = [len(list(nx.common_neighbors(seen, u, v))) for u, v in both]
    adamic = [sum(1 / math.log(seen.degree(w)) for w in nx.common_neighbors(seen, u, v)) for u, v in both]
    for name, scores in (("common neighbours", common), ("adamic-adar", adamic)):
        by_hand = torch.tensor(scores, dtype=torch.float64).reshape(pairs.shape[1:])
        assert found[name]["test"] == pytest.approx(link_scores(by_hand))


def test_frequencies_of_typed_links_are_counted_in_training_only() -> None:
    edges = torch.tensor([[0, 1, 2, 3, 0], [4, 4, 4, 5, 5]])
    number = torch.arange(5)
    triples = Triples(
        "t", edges, torch.zeros(5, dtype=torch.long), number < 3, number == 3, number == 4, "abcdef", ["r"]
    )
    found = references(plan_task(triples, "features"))["frequency"]
    # Tail of (0, r): 4 is left out as true, the rest were never seen: 0 1 2 3 5 tie. Head of (r, 5): 3 is left out as
    # true; 0, 1 and 2 were seen once each and tie before 4 and 5.
    assert found["test"] == pytest.approx(rank_scores(torch.tensor([3.0, 2.0], dtype=torch.float64)))
