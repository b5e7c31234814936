"""Features made from the edges must not know of those that are held out."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch

import ltga
from ltga.data import Preparation, split_links
from ltga.data.link_structure import without_held_out
from ltga.errors import InputError
from ltga.train.tasks.run_data import data_of, links_of

QUICK = {"epochs": 2, "hidden_channels": 4, "heads": 1}


def tables(seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    graph = nx.barabasi_albert_graph(60, 3, seed=seed)
    edges = pd.DataFrame(list(graph.edges), columns=["source", "target"])
    return pd.DataFrame({"id": range(60), "age": np.arange(60) % 7}), edges


def prepared(structure: str = "degree,pagerank", **options: str):
    return Preparation(predict="links", structure=structure, **options).fit(tables()).dataset()


def test_features_are_those_of_the_training_graph() -> None:
    graph = prepared(scale="none")
    links = links_of(graph, split=3)
    seen = nx.Graph()
    seen.add_nodes_from(range(60))
    seen.add_edges_from(links.train.t().tolist())
    assert links.data.x[:, 1].tolist() == [degree for _, degree in seen.degree]
    directed = nx.DiGraph()
    directed.add_nodes_from(range(60))
    directed.add_edges_from((a, b) for a, b in graph.data.edge_index.t().tolist() if seen.has_edge(a, b))
    rank = nx.pagerank(directed, tol=1e-13, max_iter=1000)
    np.testing.assert_allclose(links.data.x[:, 2], [60 * rank[node] for node in range(60)], atol=1e-5)
    assert (links.data.x[:, 1] != graph.data.x[:, 1]).any()  # as they were before
    assert (links.data.x[:, 0] == graph.data.x[:, 0]).all()  # a column of the table


def test_held_out_edges_change_nothing() -> None:
    graph = prepared()
    links = split_links(graph.data, "graph", seed=1)
    first = without_held_out(links, graph)
    held = torch.cat([links.val, links.test], dim=1)
    codes = held[0] * 60 + held[1]
    ends = graph.data.edge_index.sort(dim=0).values
    graph.data.edge_index = graph.data.edge_index[:, ~torch.isin(ends[0] * 60 + ends[1], codes)]
    second = without_held_out(links, graph)
    assert torch.equal(first.data.x, second.data.x) and first.reading == second.reading
    assert first.data.x[:, 1:].mean(0).abs().max() < 1e-5  # scaled by the training graph, too


def test_the_run_keeps_the_scales_of_its_split(tmp_path: Path) -> None:
    nodes, edges = tables()
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    edges.to_csv(tmp_path / "edges.csv", index=False)
    graph = ltga.load_dataset(
        tmp_path, preparation=Preparation(predict="links", structure="degree", convention="undirected, once")
    )
    run = ltga.fit(graph, "gatv2", task="link", split=2, protocol=QUICK)
    links = links_of(graph, 2)
    table = run.record["reading"]["preparation"]["nodes"]
    degree = np.bincount(links.train.flatten().numpy(), minlength=60)
    assert table["mean"][1] == pytest.approx(degree.mean()) and table["scale"][1] == pytest.approx(degree.std())
    assert torch.equal(data_of(run).data.x, links.data.x)  # found again by its record


def test_a_laplacian_is_refused() -> None:
    with pytest.raises(InputError, match="choose other features for links"):
        ltga.fit(prepared("laplacian-2"), "gatv2", task="link", protocol=QUICK)


def test_a_graph_folder_with_such_features_is_refused(tmp_path: Path) -> None:
    from ltga.data.graph_folder_sources import DatasetStream
    from ltga.data.graph_folder_write import write_graph_folder

    write_graph_folder(DatasetStream(prepared()), tmp_path / "out")
    with pytest.raises(InputError, match="give the tables"):
        ltga.fit(tmp_path / "out", "gatv2", task="link", protocol=QUICK)


def test_undirected_edges_are_messages_both_ways() -> None:
    nodes, edges = tables()
    options = {"predict": "links", "structure": "pagerank", "scale": "none", "drop": "age"}
    once = Preparation(convention="undirected, once", **options).fit((nodes, edges))
    both = pd.concat([edges, edges.rename(columns={"source": "target", "target": "source"})])
    twice = Preparation(convention="both directions", **options).fit((nodes, both))
    np.testing.assert_allclose(once.arrays.x, twice.arrays.x, atol=1e-6)
