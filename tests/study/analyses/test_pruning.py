"""Pruned against kept edges, and planted edges found, against loops over edges."""

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.metrics import precision_score, recall_score
from torch_geometric.data import Data

from ltga.data import Dataset, csbm, digits_noise
from ltga.errors import InputError
from ltga.study.analyses.inputs import task_of
from ltga.study.analyses.pruning import planted_edges_found, pruned_against_kept
from ltga.train import fit

QUICK = {"epochs": 2, "hidden_channels": 3, "heads": 2}


def cosine(a, b):
    a, b = a.double().numpy(), b.double().numpy()
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


@pytest.mark.parametrize("method", ["frozen-q2.0", "ltga-edge", "sparsemax"])
def test_against_a_loop_over_edges(pruning_run_of, graph, method):
    run = pruning_run_of(method)
    frame = pruned_against_kept(run, graph, resamples=20).set_index(["layer", "head", "quantity"])
    task = task_of(run, graph)
    train = set(task.train.tolist())
    digraph = nx.MultiDiGraph(e for e in graph.data.edge_index.t().tolist() if e[0] != e[1])
    for number, layer in enumerate(run.model.attend(task.x, task.edge_index), start=1):
        for head in ("1", "2", "all"):
            seen = {name: ([], []) for name in ("label_agreement", "feature_cosine", "source_degree", "target_degree")}
            for (j, i), weights in zip(layer.edge_index.t().tolist(), layer.weights.tolist()):
                if i == j:
                    continue
                side = int(any(weights) if head == "all" else weights[int(head) - 1] != 0)
                if i in train and j in train:
                    seen["label_agreement"][side].append(float(graph.data.y[i] == graph.data.y[j]))
                seen["feature_cosine"][side].append(cosine(graph.data.x[i], graph.data.x[j]))
                seen["source_degree"][side].append(digraph.in_degree(j))
                seen["target_degree"][side].append(digraph.in_degree(i))
            for name, (pruned, kept) in seen.items():
                row = frame.loc[number, head, name]
                assert (row["pruned_edges"], row["kept_edges"]) == (len(pruned), len(kept))
                for column, values in (("pruned", pruned), ("kept", kept), ("every", pruned + kept)):
                    expected = np.mean(values) if values else np.nan
                    assert row[column] == pytest.approx(expected, abs=1e-9, nan_ok=True)
                assert row["difference"] == pytest.approx(row["pruned"] - row["kept"], nan_ok=True)
    bounded = frame.dropna()
    assert len(bounded) and (bounded["low"] <= bounded["high"]).all()


def test_softmax_prunes_nothing(run_of, graph):
    frame = pruned_against_kept(run_of("gatv2"), graph, resamples=5)
    assert frame["pruned_edges"].sum() == 0
    assert frame[["pruned", "difference", "low", "high"]].isna().all(axis=None)
    assert np.allclose(frame["kept"], frame["every"])


class Pretending(Dataset):
    """A graph that says it is another one."""

    fingerprint = ""


def test_labels_outside_the_training_nodes_are_never_looked_at(run_of, graph):
    """Scrambling every other label changes nothing."""
    run = run_of("frozen-q2.0")
    train = graph.split(0)[0]
    data = graph.data.clone()
    data.y = torch.where(train, data.y, 1 - data.y)
    scrambled = Pretending("scrambled", data, *graph.split(0))
    scrambled.fingerprint = graph.fingerprint
    first, second = (pruned_against_kept(run, dataset, resamples=5) for dataset in (graph, scrambled))
    assert first.equals(second)


def test_isolated_nodes_no_labelled_edge_and_zero_features():
    """Edges only among test nodes: no label agreement is known. A featureless node has no cosine."""
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [2.0, 1.0], [3.0, 1.0]])
    data = Data(x=x, y=torch.tensor([0, 1, 0, 1, 0, 1]), edge_index=torch.tensor([[2, 3, 4, 3], [3, 2, 2, 3]]))
    masks = torch.tensor([[1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1], [0, 0, 1, 1, 1, 0]]).bool()
    dataset = Dataset("tiny", data, *masks)
    run = fit(dataset, "frozen-q2.0", protocol=QUICK)
    frame = pruned_against_kept(run, dataset, resamples=5).set_index(["quantity"])
    labels, cosines = frame.loc["label_agreement"], frame.loc["feature_cosine"]
    assert labels["every"].isna().all() and (labels["pruned_edges"] + labels["kept_edges"] == 0).all()
    assert (cosines["pruned_edges"] + cosines["kept_edges"] == 1).all()  # of 3 edges between different nodes
    assert np.allclose(cosines["every"], cosine(x[4], x[2]))
    assert np.allclose(frame.loc["target_degree"]["every"], (1 + 2 + 2) / 3)


@pytest.fixture(scope="module")
def noisy():
    graph = digits_noise(k=2, planted_per_edge=2)
    return graph, fit(graph, "frozen-q2.0", protocol={**QUICK, "epochs": 12})


def test_planted_edges_against_scikit_learn(noisy):
    graph, run = noisy
    frame = planted_edges_found(run, graph).set_index(["layer", "head"])
    task = task_of(run, graph)
    planted = {tuple(edge): flag for edge, flag in zip(graph.data.edge_index.t().tolist(), graph.data.planted_edge)}
    for number, layer in enumerate(run.model.attend(task.x, task.edge_index), start=1):
        proper = [k for k, (j, i) in enumerate(layer.edge_index.t().tolist()) if i != j]
        truth = [bool(planted[tuple(layer.edge_index[:, k].tolist())]) for k in proper]
        zero = (layer.weights[proper] == 0).numpy()
        for head, pruned in (("1", zero[:, 0]), ("2", zero[:, 1]), ("all", zero.all(1))):
            row = frame.loc[number, head]
            assert row["pruned"] == pruned.sum() and row["edges"] == len(truth) and row["planted"] == sum(truth)
            if pruned.any():
                assert row["precision"] == pytest.approx(precision_score(truth, pruned))
            assert row["recall"] == pytest.approx(recall_score(truth, pruned))
            assert row["base_rate"] == pytest.approx(2 / 3)
    assert frame["pruned"].max() > 100  # there was something to judge


def test_bad_input(run_of, graph):
    with pytest.raises(InputError, match="does not know its noise"):
        planted_edges_found(run_of("ltga-head"), graph)
    with pytest.raises(InputError, match="gcn has no attention"):
        pruned_against_kept(run_of("gcn"), graph)
    with pytest.raises(InputError, match="not the graph of this run"):
        pruned_against_kept(run_of("ltga-head"), csbm(num_nodes=30))
