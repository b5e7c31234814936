"""Explanations of other tasks: against the networks' own attention, networkx, scikit-learn and what the records say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import average_precision_score, f1_score, mean_absolute_error
from torch_geometric.data import Batch

import ltga
from fixtures.task_runs import DATA, QUICK, shaken, task_runs  # noqa: F401
from ltga.data import Dataset
from ltga.explanation.graphs import Graphs
from ltga.explanation.molecule import orders_of, places, symbols_of
from ltga.explanation.node_values import NodeValues
from ltga.explanation.pairs_of_nodes import PlainLinks, TypedLinks
from ltga.train import load_run

KINDS = {"numbers": NodeValues, "labels": NodeValues, "links": PlainLinks, "triples": TypedLinks}


def inside_of(task_runs: Any, name: str) -> Any:  # noqa: F811
    data, run = task_runs(name)
    return ltga.explain(run, data)


@pytest.mark.parametrize("name", DATA)
def test_weights_are_those_the_network_reports(task_runs: Any, name: str) -> None:  # noqa: F811
    data, run = task_runs(name)
    inside = ltga.explain(run, data)
    assert isinstance(inside, KINDS.get(name, Graphs))
    if name == "triples":
        graph = data.graph(0)
        inputs = (run.model.nodes, graph.edge_index, run.model.edge_types[graph.edge_type])
    elif isinstance(inside, Graphs):
        batch = Batch.from_data_list(list(data))
        inputs = (batch.x, batch.edge_index)
    else:
        inputs = (inside.graph.x, inside.graph.edge_index)
    with torch.no_grad():
        layers = run.model.eval().attention_weights(*inputs)
    for layer, (edge_index, weights) in enumerate(layers):
        np.testing.assert_array_equal(inside.edge_index, edge_index.numpy())
        np.testing.assert_allclose(inside.weights[layer], weights.numpy(), atol=1e-6)
    assert inside.ignored.any() and not inside.ignored.all()
    assert len(inside.edges()) == inside.edge_index.shape[1] and len(inside.nodes()) == inside.num_nodes
    assert len(inside.coefficients()) == inside.weights.size
    assert inside.pruned().edge_index.shape[1] == int((~inside.unanimous & ~inside.self_loop).sum())


@pytest.mark.parametrize("name", DATA)
def test_files(task_runs: Any, name: str, tmp_path: Path) -> None:  # noqa: F811
    inside = inside_of(task_runs, name)
    frame = pd.read_parquet(inside.to_parquet(tmp_path / "all.parquet"))
    np.testing.assert_array_equal(frame["weight"], inside.weights.reshape(-1))
    table = pd.read_csv(inside.to_csv(tmp_path / "edges.csv"))
    assert table["ignored_by"].tolist() == inside.ignored_by.sum(axis=0).tolist()
    found = nx.read_graphml(inside.to_graphml(tmp_path / "graph.graphml"))
    assert found.number_of_nodes() == inside.num_nodes and found.number_of_edges() == inside.edge_index.shape[1]
    if name == "links":
        ids = [f"user-{node}" for node in inside.edge_index[0]]
        shown = table["source_id"].tolist()
        assert [a for a in shown if a.startswith("user")] == [a for a in ids if a != "user-39"]
        assert frame["target_id"].astype(str).tolist()[0] == f"user-{inside.edge_index[1, 0]}"


def test_numbers_in_their_units(task_runs: Any) -> None:  # noqa: F811
    data, run = task_runs("numbers")
    inside = ltga.explain(run, data)
    frame = inside.nodes()
    test = frame["part"] == "test"
    assert mean_absolute_error(frame.loc[test, "value"], frame.loc[test, "predicted"]) == pytest.approx(
        run.metrics["mae"], rel=1e-5
    )
    np.testing.assert_allclose(frame["residual"], frame["predicted"] - frame["value"])
    assert np.isnan(frame["value"][3]) and frame["part"][3] == ""


def test_labels_one_by_one(task_runs: Any) -> None:  # noqa: F811
    data, run = task_runs("labels")
    inside = ltga.explain(run, data)
    frame, test = inside.labels(), inside.parts() == "test"
    y, p = data.target.y.numpy()[test], inside.predicted[test]
    for at, row in enumerate(frame.to_dict("records")):
        assert row["f1"] == pytest.approx(f1_score(y[:, at], p[:, at] > 0.5))
        assert row["average_precision"] == pytest.approx(average_precision_score(y[:, at], p[:, at]))
        assert (row["true"], row["known"]) == (y[:, at].sum(), test.sum())
    mean = frame["average_precision"].mean()
    assert mean == pytest.approx(run.metrics["average_precision"])


def test_pairs_have_the_ranks_of_the_record_and_networkx_neighbours(task_runs: Any) -> None:  # noqa: F811
    data = task_runs("links")[0]
    run = ltga.fit(data, "ltga-head", protocol=QUICK, task="link")
    inside = ltga.explain(run, data)
    frame = inside.candidates()
    edges = frame[frame["edge"]]
    assert (1 / edges["rank"]).mean() == pytest.approx(run.metrics["mrr"])
    assert (edges["rank"] <= 3).mean() == pytest.approx(run.metrics["hits_at_3"])
    graph = nx.Graph(inside.graph.edge_index.t().tolist())
    graph.add_nodes_from(range(40))
    for row in frame.iloc[::17].to_dict("records"):
        shared = set(nx.common_neighbors(graph, row["first"], row["second"]))
        assert row["common"] == len(shared) and set(inside.common(row["first"], row["second"])) == shared
        assert (row["first_degree"], row["second_degree"]) == (graph.degree[row["first"]], graph.degree[row["second"]])
        assert row["first_id"] == data.node_ids[row["first"]]
        asked = torch.tensor([[row["first"]], [row["second"]]])
        assert row["probability"] == pytest.approx(run.predict_proba(inside.dataset, asked).item(), abs=1e-6)
    ends = inside.pair("user-1", 2)
    assert set(ends["target"]) == {1, 2} and ends["target"].iloc[0] == 1
    assert set(ends.loc[ends["common"], "source"]) == set(inside.common(1, 2))
    with pytest.raises(ltga.LTGAError, match="pair: both ends"):
        inside.pair(1, "user-1")


def test_typed_questions_have_the_ranks_of_the_record(task_runs: Any) -> None:  # noqa: F811
    data, run = task_runs("triples")
    inside = ltga.explain(run, data)
    frame = inside.candidates()
    assert (1 / frame["rank"]).mean() == pytest.approx(run.metrics["mrr"])
    assert (frame["rank"] == 1).mean() == pytest.approx(run.metrics["hits_at_1"])
    assert ((frame["best"] == frame["second"]) == (frame["rank"] == 1)).all()
    relations = inside.edges()["relation"]
    assert set(relations) == {"likes", "eats", "likes (back)", "eats (back)", ""}
    assert (relations == "").tolist() == inside.self_loop.tolist()
    assert inside.find("thing 4") == 4


@pytest.mark.parametrize("name", ["graph-classes", "graph-number", "graph-labels"])
def test_graphs_are_counted_one_by_one(task_runs: Any, name: str) -> None:  # noqa: F811
    data, run = task_runs(name)
    inside = ltga.explain(run, data)
    frame = inside.graphs()
    apart = ~inside.self_loop
    for graph in (0, 7, 39):
        mine = apart & (inside.graph_of[inside.edge_index[1]] == graph)
        assert frame["edges"][graph] == data[graph].edge_index.shape[1] == mine.sum()
        assert frame["ignored"][graph] == (inside.unanimous & mine).sum()
        assert frame["ignored_share"][graph] == pytest.approx(inside.ignored[:, mine].mean())
        rows = inside.edges_of(data.graph_names[graph])
        alone = rows[~rows["self_loop"]]
        assert sorted(zip(alone["source"], alone["target"])) == sorted(map(tuple, data[graph].edge_index.t().tolist()))
    test = frame["part"] == "test"
    if name == "graph-classes":
        assert (frame["class"] == frame["predicted"])[test].mean() == pytest.approx(run.metrics["accuracy"])
    if name == "graph-number":
        assert frame.loc[test, "residual"].pow(2).mean() ** 0.5 == pytest.approx(run.metrics["rmse"], rel=1e-4)
    for bad in ("ring 400", 40, -1, True):
        with pytest.raises(ltga.LTGAError, match="graph: "):
            inside.find_graph(bad)


def test_a_run_finds_its_data_again(task_runs: Any, tmp_path: Path) -> None:  # noqa: F811
    folder = tmp_path / "rings"
    folder.mkdir()
    names = [f"g{number}" for number in range(40)]
    pd.DataFrame({"graph_id": names, "mass": np.arange(40.0)}).to_csv(folder / "graphs.csv", index=False)
    nodes = [{"graph_id": name, "id": at, "size": at * number} for number, name in enumerate(names) for at in range(4)]
    pd.DataFrame(nodes).to_csv(folder / "nodes.csv", index=False)
    edges = [{"graph_id": name, "source": at, "target": at + 1} for name in names for at in range(3)]
    pd.DataFrame(edges).to_csv(folder / "edges.csv", index=False)
    record = shaken(ltga.load_dataset(folder)).save(tmp_path / "runs")
    inside = ltga.explain(record)
    assert isinstance(inside, Graphs) and inside.graphs()["name"].tolist() == names
    assert ltga.explain(load_run(record), folder).num_graphs == 40  # from where it is now
    data, run = task_runs("links")
    assert ltga.explain(run, data).node_ids == data.node_ids


def test_what_cannot_be_explained_is_named(task_runs: Any) -> None:  # noqa: F811
    _, run = task_runs("numbers")
    with pytest.raises(ltga.LTGAError, match=r"dataset: .*'worth'.*pass the data"):
        ltga.explain(run)
    with pytest.raises(ltga.LTGAError, match="dataset: 'kinds' is for multi-label nodes"):
        ltga.explain(run, task_runs("labels")[0])
    other = DATA["numbers"]()
    other.data.x[0, 0] += 1
    with pytest.raises(ltga.LTGAError, match="is not what this run was made on"):
        ltga.explain(run, other)
    collection = DATA["graph-classes"]()
    for method in ("gin", "features"):
        plain = ltga.fit(collection, method, protocol={"epochs": 1, "hidden_channels": 3})
        with pytest.raises(ltga.LTGAError, match=f"{method} has no attention"):
            ltga.explain(plain, collection)
    paper = ltga.fit(collection, "gatv2", protocol={"epochs": 1, "hidden_channels": 3, "init": "paper"})
    with pytest.raises(ltga.LTGAError, match="gatv2 cannot be explained; train it with init='paired'"):
        ltga.explain(paper, collection)


def test_elements_and_bonds_are_read_from_the_features() -> None:
    pytest.importorskip("rdkit")
    from ltga.data import molecule

    data = molecule("CC(=O)Oc1ccccc1C#N")
    assert symbols_of("any", data.x).tolist() == list("CCOOCCCCCCCN")
    orders = orders_of("any", data.edge_attr)
    pairs = {tuple(edge): order for edge, order in zip(data.edge_index.t().tolist(), orders)}
    assert (pairs[0, 1], pairs[1, 2], pairs[4, 5], pairs[10, 11]) == (1, 2, 4, 3)
    at = places(12, data.edge_index.numpy(), symbols_of("any", data.x).tolist(), orders)
    lengths = np.linalg.norm(at[data.edge_index[0]] - at[data.edge_index[1]], axis=1)
    assert lengths.max() < 1.2 * lengths.min()  # bonds of one length, as chemists draw them
    assert min(np.linalg.norm(at[a] - at[b]) for a in range(12) for b in range(a)) > 0.8 * lengths.min()


def test_other_graphs_are_drawn_without_rdkit() -> None:
    ring = np.stack([np.arange(6), (np.arange(6) + 1) % 6])
    for nodes in (1, 6, 400):
        at = places(nodes, ring if nodes > 1 else ring[:, :0], None, None)
        assert at.shape == (nodes, 2) and np.isfinite(at).all()
    assert symbols_of("enzymes", torch.eye(3)) is None and orders_of("enzymes", None) is None
    assert isinstance(DATA["links"](), Dataset)


@pytest.mark.parametrize("name", [name for name in DATA if name.startswith("graph-")])
def test_a_page_with_every_graph_is_no_sample(task_runs: Any, name: str) -> None:  # noqa: F811
    from ltga.explanation.page.content import page_content

    data, run = task_runs(name)
    content = page_content(ltga.explain(run, data))
    drawn = len(content["graphs"]["rows"])
    assert (content["sample"] is None) == (drawn == len(data))
    assert drawn == len(data) or "graphs are drawn here" in content["sample"]
