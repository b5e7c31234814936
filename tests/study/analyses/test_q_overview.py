"""q overviews against runs whose q is known and loops over records."""

import copy

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from ltga.data import Dataset, csbm
from ltga.errors import InputError
from ltga.study.analyses.q_overview import (
    distance_from_softmax,
    edge_homophily,
    final_q,
    q_against_homophily,
    setting_of,
)


def tiny(y, edges):
    y = torch.tensor(y)
    masks = torch.zeros(3, len(y), dtype=torch.bool)
    masks[0, :2] = True
    return Dataset("tiny", Data(x=torch.ones(len(y), 1), y=y, edge_index=torch.tensor(edges).t()), *masks)


def test_homophily_counts_undirected_edges_once():
    # 0-1 twice (different), 0-2 (same), 2-2 (a self-loop), 1-3 (unlabelled)
    assert edge_homophily(tiny([0, 1, 0, -1], [[0, 1], [1, 0], [2, 0], [2, 2], [1, 3]])) == pytest.approx(2 / 3)
    assert np.isnan(edge_homophily(tiny([0, 1, -1], [[0, 2]])))


def test_homophily_against_networkx(graph):
    simple = nx.Graph(graph.data.edge_index.t().tolist())
    y = graph.data.y.tolist()
    assert edge_homophily(graph) == pytest.approx(np.mean([y[i] == y[j] for i, j in simple.edges]))


@pytest.mark.parametrize("method", ["ltga-global", "ltga-layer", "ltga-head", "ltga-edge", "frozen-q1.5"])
def test_final_q_is_the_models(run_of, method):
    run = run_of(method)
    frame = final_q([run.record])
    for layer, values in enumerate(run.model.index_values(), start=1):
        own = frame[frame["layer"] == layer]
        if values is None:
            q = run.arrays[f"layer{layer}_q"].astype(float)
            assert np.allclose(own["q"], q.mean(0), atol=1e-6) and np.allclose(own["std"], q.std(0), atol=1e-6)
            assert np.allclose(own["distance"], np.sqrt(np.square(q - 1).mean(0)), atol=1e-6)
            assert (own["std"] > 0).any()
        else:
            assert np.allclose(own["q"], values) and (own["std"] == 0).all()
            assert np.allclose(own["distance"], (values - 1).abs())
    heads = {"ltga-head": [1, 2], "ltga-edge": [1, 2]}.get(method, [0])
    assert frame["head"].tolist() == heads * 2


def test_records_without_an_index_give_empty_frames(run_of):
    record = run_of("gcn").record
    assert final_q([record]).empty and final_q([]).empty and q_against_homophily([record], {}).empty
    assert "q" in final_q([record]).columns


def seeds_of(record, q_by_seed, **protocol):
    """Copies of a record with given head means of q (both layers alike) and accuracies."""
    copies = []
    for seed, (q, accuracy) in enumerate(q_by_seed, start=1):
        new = copy.deepcopy(record)
        new["config"]["seed"] = seed
        new["config"]["protocol"] |= protocol
        for layer in new["trajectory"]["q"]:
            layer["mean"][new["best_epoch"] - 1] = list(q)
        new["metrics"]["test"]["accuracy"] = accuracy
        copies.append(new)
    return copies


def test_q_against_homophily(run_of, graph):
    record = run_of("ltga-head").record
    runs = seeds_of(record, [([1.0, 1.2], 0.5), ([1.4, 1.6], 0.6)])
    frame = q_against_homophily(runs, {graph.name: 0.3})
    row = frame.iloc[0]
    assert len(frame) == 1 and row["runs"] == 2 and row["homophily"] == 0.3
    assert row["q"] == pytest.approx(1.3) and row["q_std"] == pytest.approx(np.std([1.1, 1.5], ddof=1))
    assert row["distance"] == pytest.approx(0.3)
    zero = np.mean([np.mean(layer["zero_fraction"]) for layer in record["attention"]])
    assert row["zero_fraction"] == pytest.approx(zero)
    single = q_against_homophily(runs[:1], {}).iloc[0]
    assert np.isnan(single["q_std"]) and np.isnan(single["homophily"])


def test_settings_are_kept_apart(run_of):
    record = run_of("ltga-head").record
    runs = seeds_of(record, [([1.0, 1.0], 0.5)]) + seeds_of(record, [([2.0, 2.0], 0.5)], kappa=4.0)
    frame = q_against_homophily(runs, {})
    by_kappa = dict(zip(frame["setting"].str.contains("kappa=4"), frame["q"]))
    assert by_kappa == {False: 1.0, True: 2.0}


def test_distance_from_softmax_pairs_by_seed(run_of):
    base = seeds_of(run_of("frozen-q1.0").record, [([1.0], 0.50), ([1.0], 0.70)])
    sweep = seeds_of(run_of("ltga-head").record, [([1.5, 0.5], 0.55), ([1.1, 1.3], 0.60)], kappa=8.0)
    unpaired = seeds_of(run_of("ltga-head").record, [([1.0, 1.0], 0.9)], num_layers=4)
    frame = distance_from_softmax([*sweep, *base, *unpaired, run_of("gcn").record])
    frame = frame.sort_values(["seed", "accuracy"], ignore_index=True)
    assert frame["distance"].tolist() == pytest.approx([0.5, 0.0, 0.2])
    assert frame["accuracy_change"].tolist() == pytest.approx([0.05, np.nan, -0.10], nan_ok=True)
    assert frame["q"].tolist() == pytest.approx([1.0, 1.0, 1.2])  # 1.5 and 0.5 average to 1 but are far from it


def test_a_baseline_must_be_there(run_of):
    with pytest.raises(InputError, match=r"no record of 'frozen-q1\.0'"):
        distance_from_softmax([run_of("ltga-head").record])


def test_not_a_number_in_a_record(run_of):
    record = copy.deepcopy(run_of("ltga-head").record)
    record["trajectory"]["q"][0]["mean"][record["best_epoch"] - 1] = [None, 1.5]
    assert pd.isna(final_q([record])["q"][0]) and final_q([record])["q"][1] == 1.5


def test_setting(run_of):
    assert setting_of(run_of("gcn").record) == "epochs=4, heads=2, hidden_channels=3, lr=0.1, warmup=0"


@pytest.mark.data
@pytest.mark.parametrize("name", ["texas", "cornell", "wisconsin", "cora"])
def test_homophily_is_the_catalogues(name):
    import os
    from pathlib import Path

    from ltga.data import load_dataset

    folder = Path(os.environ.get("LTGA_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no datasets in {folder}; set LTGA_DATA")
    dataset = load_dataset(name, folder)
    assert edge_homophily(dataset) == pytest.approx(dataset.facts.homophily, abs=5e-5)


def test_homophily_of_generated_graphs_follows_the_knob():
    assert edge_homophily(csbm(num_nodes=600, homophily=0.1)) < 0.2 < edge_homophily(csbm(num_nodes=600, homophily=0.6))
