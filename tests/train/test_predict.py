"""Inductive use: train on one graph, predict on another."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from ltga.data import Dataset, csbm, digits_noise
from ltga.errors import DataError, InputError
from ltga.nn.methods import METHODS
from ltga.train import Protocol, fit, load_run


def test_a_model_carries_over_to_a_graph_it_has_not_seen(quick: dict, tmp_path: Path) -> None:
    digits = digits_noise(planted_per_edge=0.5).data
    known, new = digits.subgraph(torch.arange(1000)), digits.subgraph(torch.arange(1000, 1797))
    run = fit(known, "ltga-head", protocol=Protocol(epochs=40, lr=0.02, **quick))
    assert (run.predict(new) == new.y).double().mean().item() > 0.8
    probabilities = run.predict_proba(new)
    assert probabilities.shape == (797, 10) and not probabilities.requires_grad
    torch.testing.assert_close(probabilities.sum(1), torch.ones(797))
    unlabelled = Data(x=new.x.double(), edge_index=new.edge_index)
    assert run.predict(unlabelled).equal(run.predict(new))
    assert load_run(run.save(tmp_path)).predict(new).equal(run.predict(new))
    torch.testing.assert_close(run.predict_proba(new, batch_size=64), probabilities, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("method", [method for method in METHODS if method != "linkx"])
def test_on_its_own_graph_a_run_repeats_its_predictions(small: Dataset, quick: dict, method: str) -> None:
    run = fit(small, method, protocol=Protocol(epochs=2, **quick))
    torch.testing.assert_close(run.predict_proba(small).log(), torch.from_numpy(run.arrays["log_probs"]))


def test_what_does_not_fit_is_named(small: Dataset, quick: dict) -> None:
    run = fit(small, "ltga-edge", protocol=Protocol(epochs=1, **quick))
    x, edge_index = small.data.x, small.data.edge_index
    edges, outside = edge_index.size(1), torch.tensor([[0], [len(x)]])
    cases = [
        (Data(x=x[:, :-1], edge_index=edge_index), InputError, "features, the network was trained on"),
        (Data(x=x, edge_index=edge_index, edge_attr=torch.ones(edges)), InputError, "has 1 edge attributes"),
        (Data(x=x), DataError, r"data\.edge_index is missing"),
        (Data(edge_index=edge_index), DataError, r"data\.x is missing"),
        (Data(x=x, edge_index=outside), DataError, "edge 0 joins"),
        (Data(x=x / 0, edge_index=edge_index), DataError, "must be finite"),
        (x, InputError, "data: expected a PyG Data, a Dataset or a graph folder, got Tensor"),
    ]
    for data, error, message in cases:
        with pytest.raises(error, match=message):
            run.predict(data)
    with pytest.raises(InputError, match="batch_size: expected a whole number from 1"):
        run.predict(small, batch_size=0)
    with_attributes = small.data.clone()
    with_attributes.edge_attr = torch.ones(edges, 2)
    run = fit(with_attributes, "ltga-edge", protocol=Protocol(epochs=1, **quick))
    with pytest.raises(InputError, match="has no edge attributes, the network was trained with 2"):
        run.predict(small)
    assert run.predict(with_attributes).shape == (len(x),)


def test_methods_that_cannot_say_so(small: Dataset, quick: dict) -> None:
    run = fit(small, "linkx", protocol=Protocol(epochs=1, **quick))
    with pytest.raises(InputError, match="linkx has a weight for every node"):
        run.predict(small)
    run = fit(small, "gcn", protocol=Protocol(epochs=1, **quick))
    with pytest.raises(InputError, match="GCN needs the whole graph at once"):
        run.predict(small, batch_size=10)


def test_a_graph_with_attributes_of_no_edges() -> None:
    graph = csbm(num_nodes=40).data
    trained = Data(x=graph.x, y=graph.y, edge_index=graph.edge_index, edge_attr=torch.ones(graph.num_edges, 2))
    run = fit(trained, "gatv2", protocol={"epochs": 1, "hidden_channels": 4, "heads": 1})
    lonely = Data(x=graph.x, edge_index=torch.empty(2, 0, dtype=torch.long), edge_attr=torch.empty(0, 2))
    assert run.predict_proba(lonely).shape == (40, 2)
