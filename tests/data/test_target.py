"""Targets of every kind, and graphs whose nodes have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from ltga.data import CATALOGUE, Dataset, NodeDataset, Target, load_dataset, make_target, neighbour_classes
from ltga.data.twitch import read_twitch
from ltga.errors import DataError, InputError

NAN = float("nan")


def test_the_kind_follows_from_the_form() -> None:
    assert make_target([2, 0, -1, 1], "y").names == ("0", "1", "2")
    several = make_target([[0, 1], [1, NAN], [NAN, NAN], [0, 0]], "y")
    assert (several.kind, several.outputs, several.known.tolist()) == ("labels", 2, [True, True, False, True])
    number = make_target(torch.tensor([[0.5], [NAN], [2.0]]), "y")
    assert (number.kind, number.outputs, number.known.tolist()) == ("number", 1, [True, False, True])
    assert make_target([3, 4, 5], "y", "number").y.dtype == torch.float32
    assert make_target([2, 0, -1, 1], "y").known.tolist() == [True, True, False, True]


BAD: list[tuple[Any, dict[str, Any], str]] = [
    ([1.0, 1.0, NAN], {}, "y: the target is 1 for every node that has one"),
    ([NAN, NAN], {}, "y: the target of every node is missing"),
    ([1.0, float("inf")], {}, "target of node 1 is inf"),
    ([1.0, 1e39], {}, r"target of node 1 is 1e\+39"),
    ([-1, -1], {}, "the target of every node is missing"),
    ([1, 1, -1], {}, "every node that has a class has 1; classification needs at least two"),
    ([0, 1, -2], {}, "node 2 has label -2"),
    ([0, 1, 2], {"names": ["a", "b"]}, "node 2 has label 2; use 0 to 1"),
    ([0, 10**9], {}, "the largest label is 1000000000, but there are only 2 different ones"),
    (np.array([0, 2**64 - 1], dtype=np.uint64), {}, "beyond 2"),
    ([0.0, 1.0], {"kind": "classes"}, "classes must be whole numbers"),
    ([[0, 1], [2, 0]], {}, "label '0' of node 1 is 2; use 0, 1, or NaN"),
    ([[0, 1], [0, 0]], {"names": ["flies", "swims"]}, "label 'flies' is 0 for every node that has it"),
    ([[0, NAN], [1, NAN]], {}, "label '1' is missing for every node"),
    ([[NAN, NAN]], {}, "the target of every node is missing"),
    ([[0, 1], [1, 0]], {"names": ["one"]}, "2 labels but 1 names"),
    ([0.5, 1.5], {"names": ["a", "b"]}, "one number but 2 names"),
    (["a", "b"], {}, "expected numbers as target"),
    ([[[0]]], {}, r"target of shape \[1, 1, 1\]"),
    ([], {}, r"target of shape \[0\]"),
]


@pytest.mark.parametrize(("y", "settings", "message"), BAD, ids=[row[2] for row in BAD])
def test_targets_that_teach_nothing_are_refused(y: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        make_target(y, "y", **settings)


def line(nodes: int = 30) -> Data:
    return Data(x=torch.eye(nodes), edge_index=torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)]))


def test_a_graph_with_a_number_per_node() -> None:
    y = torch.linspace(0, 1, 30)
    y[3] = NAN
    data = line()
    dataset = NodeDataset("line", data, make_target(y, "line"))
    assert (dataset.task, dataset.metric, dataset.num_splits) == ("node regression", "mae", 10)
    for split in range(10):
        parts = torch.stack(dataset.split(split))
        assert parts.sum(dim=0).tolist() == [1, 1, 1, 0, *[1] * 26]
    assert torch.equal(dataset.data.y[4:], y[4:])
    assert data.get("y") is None  # the caller's graph stays as it was
    other = NodeDataset("line", data, make_target(y + 1, "line"))
    assert dataset.fingerprint != other.fingerprint


def test_graphs_and_targets_that_do_not_fit() -> None:
    with pytest.raises(DataError, match="30 nodes but 3 targets"):
        NodeDataset("line", line(), make_target([0.5, 1, 2], "line"))
    with pytest.raises(InputError, match=r"use ltga\.data\.Dataset"):
        NodeDataset("line", line(), make_target([0, 1] * 15, "line"))
    y = torch.linspace(0, 1, 30)
    y[3] = NAN
    everything = torch.ones(30, dtype=torch.bool)
    with pytest.raises(DataError, match="node 3 is unlabelled"):
        NodeDataset("line", line(), make_target(y, "line"), (everything, ~everything, ~everything))


def test_a_dataset_of_classes_has_a_target_too() -> None:
    dataset = load_dataset("csbm:num_nodes=100")
    assert isinstance(dataset.target, Target)
    assert (dataset.task, dataset.target.kind, dataset.target.outputs) == ("node classification", "classes", 2)
    assert torch.equal(dataset.target.y, dataset.data.y)


@pytest.mark.data
def test_classes_of_neighbours_by_networkx(data_root: Path) -> None:
    dataset = load_dataset("texas", root=data_root)
    several = neighbour_classes(dataset)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(dataset.data.x.shape[0]))
    graph.add_edges_from(dataset.data.edge_index.t().tolist())
    expected = [
        {dataset.class_names[int(dataset.data.y[other])] for other in graph.predecessors(node) if other != node}
        for node in graph
    ]
    found = [{name for name, flag in zip(several.target.names, row) if flag} for row in several.data.y.tolist()]
    assert found == [labels & set(several.target.names) for labels in expected]
    assert several.task == "multi-label nodes"
    for ours, theirs in zip(several.split(3), dataset.split(3)):
        assert torch.equal(ours, theirs)


@pytest.mark.data
@pytest.mark.parametrize("name", ["twitch-de", "twitch-engb"])
def test_twitch_against_its_files(name: str, data_root: Path) -> None:
    edges, features, targets = (data_root / file.path for file in CATALOGUE[name].raw)
    table = pd.read_csv(targets).set_index("new_id").sort_index()
    dataset = load_dataset(name, root=data_root)
    assert isinstance(dataset, Dataset)
    assert dataset.data.y.tolist() == table["mature"].astype(int).tolist()
    assert dataset.class_names == ("not mature", "mature")
    listed = json.loads(features.read_text())
    for node in (0, 17, 3000, 7125):
        assert set(dataset.data.x[node].nonzero().flatten().tolist()) == set(listed[str(node)])
    pairs = pd.read_csv(edges).to_numpy().tolist()
    both = {(a, b) for a, b in pairs} | {(b, a) for a, b in pairs}
    assert sorted(both) == list(map(tuple, dataset.data.edge_index.t().tolist()))
    for column in ("views",) if name == "twitch-de" else ("views", "days"):
        numbers = load_dataset(f"{name}:target={column}", root=data_root)
        assert isinstance(numbers, NodeDataset)
        assert numbers.name == f"{name}:target={column}"
        assert np.array_equal(numbers.data.y.numpy(), table[column].to_numpy(dtype=np.float32))
        assert all(torch.equal(ours, theirs) for ours, theirs in zip(numbers.split(2), dataset.split(2)))


@pytest.mark.data
def test_one_feature_space_for_both_languages(data_root: Path) -> None:
    german, english = (load_dataset(name, root=data_root) for name in ("twitch-de", "twitch-engb"))
    assert german.data.x.shape[1] == english.data.x.shape[1] == 3170
    # The same numbers mean the same: what is frequent among one half is so among the other.
    shares = torch.stack([german.data.x.mean(dim=0), english.data.x.mean(dim=0)])
    assert float(torch.corrcoef(shares)[0, 1]) > 0.8


def test_unknown_targets_of_twitch() -> None:
    for knobs in ("target=partner", "views", "target=views,target=days"):
        with pytest.raises(InputError, match="use target=mature, target=views, target=days"):
            load_dataset(f"twitch-de:{knobs}")


TWITCH = {
    "edges.csv": "from,to\n0,1\n1,2\n",
    "features.json": '{"0": [1, 1], "2": [], "1": [3169]}',
    "target.csv": "id,days,mature,views,partner,new_id\n7,10,True,5,False,2\n8,11,False,6,True,0\n9,12,True,7,True,1\n",
}


def twitch_files(folder: Path, **changes: str) -> list[Path]:
    paths = [folder / name for name in TWITCH]
    for path, text in zip(paths, (TWITCH | {key.replace("_", "."): value for key, value in changes.items()}).values()):
        path.write_text(text)
    return paths


def test_a_small_twitch(tmp_path: Path) -> None:
    read = read_twitch(twitch_files(tmp_path))
    assert {name: values.tolist() for name, values in read.targets.items()} == {
        "mature": [0, 1, 1],
        "views": [6, 7, 5],
        "days": [11, 12, 10],
    }
    assert [row.nonzero()[0].tolist() for row in read.x] == [[1], [3169], []]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edges_csv": "a,b\n0,1\n"}, r"edges\.csv: column 'from' is missing"),
        ({"edges_csv": "from,to\n0,x\n"}, "row 1: to is 'x'"),
        ({"features_json": "{"}, r"features\.json: not the JSON"),
        ({"features_json": '{"0": []}'}, "a list of features for each node 0 to 2"),
        ({"features_json": '{"0": [3170], "1": [], "2": []}'}, "node 0: expected feature numbers from 0 to 3169"),
        ({"features_json": '{"0": [true], "1": [], "2": []}'}, "node 0: expected feature numbers"),
        ({"target_csv": TWITCH["target.csv"].replace("False,2", "False,1")}, "expected new_id 0 to 2, each once"),
        ({"target_csv": TWITCH["target.csv"].replace("10,True", "10,yes")}, "row 1: mature is 'yes', not a flag"),
        ({"target_csv": TWITCH["target.csv"].replace(",5,", ",-5,")}, "row 1: views is '-5'"),
    ],
)
def test_twitch_files_that_are_not_sound(changes: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_twitch(twitch_files(tmp_path, **changes))
    assert "\n" not in str(caught.value)
