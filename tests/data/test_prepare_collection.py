"""Messy tables of many graphs: prepared as those of one graph are, kept in the run, repeated on others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch

import ltga
from ltga.data import GraphCollection, Preparation, load_dataset, read_again
from ltga.data.readings import prepare_graphs_like
from ltga.data.structure import structural_features
from ltga.errors import DataError, InputError, LTGAError

QUICK = {"epochs": 2, "hidden_channels": 4, "heads": 1, "num_layers": 1}


def teams(folder: Path, count: int = 40, roles: tuple[str, ...] = ("cook", "waiter"), seed: int = 0) -> Path:
    """Text, gaps, dates, repeated edges and ids that other graphs have, too."""
    rng = np.random.default_rng(seed)
    nodes, edges = [], []
    for at in range(count):
        for member in range(4):
            role, pay = roles[int(rng.integers(len(roles)))], "" if member == at % 9 else 1000 * (at + member)
            nodes.append((f"t{at}", member, role, pay, f"2020-01-{1 + member:02d}"))
        edges += [(f"t{at}", 0, 1, 2), (f"t{at}", 0, 1, 3), (f"t{at}", 1, 2, 1), (f"t{at}", 2, 0, 4)]
    folder.mkdir(exist_ok=True)
    graphs = pd.DataFrame({"graph_id": [f"t{at}" for at in range(count)], "label": ["won", "lost"] * (count // 2)})
    graphs.assign(city="Rome").to_csv(folder / "graphs.csv", index=False)
    pd.DataFrame(nodes, columns=["graph_id", "id", "role", "pay", "since"]).to_csv(folder / "nodes.csv", index=False)
    pd.DataFrame(edges, columns=["graph_id", "source", "target", "weight"]).to_csv(folder / "edges.csv", index=False)
    return folder


def loaded(folder: Path, **options: Any) -> GraphCollection:
    with pytest.warns(UserWarning, match="mended"):
        found = load_dataset(folder, preparation=Preparation(**options))
    assert isinstance(found, GraphCollection)
    return found


def test_columns_become_numbers_as_those_of_one_graph(tmp_path: Path) -> None:
    found = loaded(teams(tmp_path / "teams"))
    assert found.feature_names == ("role=cook", "role=waiter", "pay", "pay is missing", "since")
    assert found.target.names == ("lost", "won")
    every = torch.cat([graph.x for graph in found])
    assert every[:, [2, 4]].mean(0).abs().max() < 1e-5  # scaled on all graphs
    assert (every[:, [2, 4]].std(0, unbiased=False) - 1).abs().max() < 1e-5
    assert [graph.edge_index.shape[1] for graph in found] == [3] * 40  # repeated edges are one
    weights = loaded(tmp_path / "teams", scale="none")[5].edge_attr[:, 0].tolist()
    assert sorted(weights) == [1, 4, 5]  # 2 and 3 added up
    assert any("city" in note for note in found.notes)


def test_undirected_edges(tmp_path: Path) -> None:
    both = loaded(teams(tmp_path / "teams"), convention="undirected, once")
    assert both[0].edge_index.shape[1] == 6 and both[0].is_undirected()


def test_the_run_keeps_it_and_others_are_prepared_alike(tmp_path: Path) -> None:
    found = loaded(teams(tmp_path / "teams"))
    run = ltga.fit(found, "gatv2", protocol=QUICK)
    reading = run.record["reading"]
    assert read_again(reading).fingerprint == found.fingerprint
    other = teams(tmp_path / "other", 10, seed=3)
    graphs = pd.read_csv(other / "graphs.csv").drop(columns="label")  # nothing is known of them
    graphs.to_csv(other / "graphs.csv", index=False)
    alike = prepare_graphs_like(reading, other)
    assert alike.targets is None and alike.graph_names[:2] == ("t0", "t1")
    pay = pd.read_csv(tmp_path / "teams" / "nodes.csv")["pay"]
    scaled = pay.fillna(pay.median())
    shown = pd.read_csv(other / "nodes.csv")["pay"][1]
    expected = (shown - scaled.mean()) / scaled.std(ddof=0)
    assert float(alike.graphs[0].x[1, 2]) == pytest.approx(expected, abs=1e-5)
    assert run.predict(alike.graphs).shape == (10,)


def test_a_new_category_is_an_error_or_other(tmp_path: Path) -> None:
    reading = dict(loaded(teams(tmp_path / "teams")).reading or {})
    other = teams(tmp_path / "other", 10, roles=("cook", "pilot"))
    with pytest.raises(DataError, match=r"role is 'pilot', which was not there before"):
        prepare_graphs_like(reading, other)
    alike = prepare_graphs_like(reading, other, {"new_category": "other"})
    assert float(torch.cat([graph.x for graph in alike.graphs])[:, 0].mean()) < 1


def test_graphs_without_features_get_those_of_their_edges(tmp_path: Path) -> None:
    folder = teams(tmp_path / "teams")
    nodes = pd.read_csv(folder / "nodes.csv")[["graph_id", "id"]]
    nodes.to_csv(folder / "nodes.csv", index=False)
    found = loaded(folder, scale="none")
    alone, _ = structural_features(
        np.array([[0, 1], [1, 2], [2, 0]]), 4, ["log-degree", "pagerank", "clustering", "core"]
    )
    for graph in found:
        np.testing.assert_allclose(graph.x, alone, atol=1e-6)


def test_parts_of_a_graph_rank_as_they_do_alone() -> None:
    """With sinks and lonely nodes, whose rank would go to all parts otherwise."""
    rows = {part: np.array(list(nx.gnp_random_graph(9, 0.15, seed=part, directed=True).edges)) for part in range(3)}
    together = np.concatenate([rows[part] + 9 * part for part in rows])
    found, _ = structural_features(together, 27, ["pagerank"], np.repeat(np.arange(3), 9))
    for part in rows:
        graph = nx.DiGraph()
        graph.add_nodes_from(range(9))
        graph.add_edges_from(rows[part].tolist())
        rank = nx.pagerank(graph, tol=1e-14, max_iter=1000)
        np.testing.assert_allclose(found[9 * part : 9 * part + 9, 0], [9 * rank[node] for node in range(9)], atol=1e-8)


BAD = [
    ({"label": "colour"}, "column 'colour' is missing; found label, city"),
    ({"drop": "colour"}, "drop=colour: there is no such column"),
    ({"structure": "laplacian-2"}, "a Laplacian places the nodes of one graph"),
    ({"categories": "error"}, "choose categories=auto"),
    ({"empty_cells": "error"}, "pay is empty"),
    ({"predict": "number", "label": "label,city"}, "2 columns to predict, but one number is wanted"),
    ({"predict": "number"}, "label is 'won'"),
    ({"label": "city"}, "the only label is 'Rome'"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_options_are_one_line(options: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(LTGAError, match=message) as caught:
        load_dataset(teams(tmp_path / "teams"), preparation=Preparation(**options))
    assert "\n" not in str(caught.value)


def test_several_columns_ask_which(tmp_path: Path) -> None:
    folder = teams(tmp_path / "teams")
    graphs = pd.read_csv(folder / "graphs.csv").rename(columns={"label": "outcome"})
    graphs.to_csv(folder / "graphs.csv", index=False)
    with pytest.raises(DataError, match="2 columns may be the target: outcome, city; say which"):
        load_dataset(folder)
    assert loaded(folder, label="outcome").target.names == ("lost", "won")


def test_numbers_in_a_column_of_labels(tmp_path: Path) -> None:
    folder = teams(tmp_path / "teams")
    graphs = pd.read_csv(folder / "graphs.csv").assign(label=np.arange(40) * 1.25)
    graphs.to_csv(folder / "graphs.csv", index=False)
    assert loaded(folder).task == "graph regression"


def test_molecules_take_options_of_their_table_only(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    folder = tmp_path / "molecules"
    folder.mkdir()
    table = pd.DataFrame({"graph_id": range(40), "smiles": ["C" * (1 + at) for at in range(40)], "mass": range(40)})
    table.to_csv(folder / "graphs.csv", index=False)
    assert load_dataset(folder, preparation=Preparation(label="mass")).task == "graph regression"
    with pytest.raises(DataError, match="scale=none: molecules have features of their own"):
        load_dataset(folder, preparation=Preparation(scale="none"))


def test_a_run_on_one_graph_is_no_collection(tmp_path: Path) -> None:
    reading = dict(loaded(teams(tmp_path / "teams")).reading or {})
    with pytest.raises(InputError, match=r"is no folder with graphs\.csv"):
        prepare_graphs_like(reading, tmp_path)


def test_molecules_that_are_none_may_be_left_out_everywhere(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    smiles = ["C" * (1 + at) for at in range(40)]
    for at in (3, 9, 20, 39):
        smiles[at] = "C1CC" if at % 2 else "nonsense"
    table = pd.DataFrame({"graph_id": [f"m{at}" for at in range(40)], "smiles": smiles, "mass": range(40)})
    table.loc[10, "mass"] = None
    (folder := tmp_path / "drugs").mkdir()
    table.to_csv(folder / "graphs.csv", index=False)
    said = (
        r"row 4: smiles does not parse \(m3: not a SMILES, m9: .*, and 1 more\) \(4 rows\); .* choose bad_smiles=drop"
    )
    with pytest.raises(DataError, match=said):
        load_dataset(folder)
    collection = loaded(folder, bad_smiles="drop")
    assert len(collection) == 36 and [text.split(":")[0] for text in collection.left_out] == ["m3", "m9", "m20", "m39"]
    assert collection.target.known.logical_not().nonzero().flatten().tolist() == [8]  # row 10, of which 2 are gone
    assert any("left out (bad_smiles=drop), in predictions too" in note for note in collection.notes)
    table[["graph_id", "smiles"]].to_csv(folder / "graphs.csv", index=False)
    again = prepare_graphs_like(collection.reading or {}, folder)
    assert len(again.graphs) == 36 and "m9" not in again.graph_names and again.left_out == collection.left_out
    table["smiles"] = "nonsense"
    table.to_csv(folder / "graphs.csv", index=False)
    with pytest.raises(DataError, match="no smiles can be read"):
        load_dataset(folder, preparation=Preparation(bad_smiles="drop"))


def test_graphs_that_are_no_molecules_have_no_bad_smiles(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"bad_smiles=drop: .*graphs\.csv has no column 'smiles'"):
        load_dataset(teams(tmp_path / "teams"), preparation=Preparation(bad_smiles="drop"))
