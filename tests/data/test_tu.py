"""The reader of the TU format against PyG's, against published statistics, and on files that are not sound."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler
from torch_geometric.data import Data
from torch_geometric.io import read_tu_data

from ltga.cli.unscaled import warnings_about
from ltga.data import CATALOGUE, load_dataset
from ltga.data.tu import read_tu
from ltga.errors import DataError

# Graphs, mean nodes, mean undirected edges and classes as the collection's site prints them.
PUBLISHED = {
    "mutag": (188, 17.93, 19.79, 2),
    "proteins": (1113, 39.06, 72.82, 2),
    "enzymes": (600, 32.63, 62.14, 6),
    "mutagenicity": (4337, 30.32, 30.77, 2),
    "aids": (2000, 15.69, 16.20, 2),
}
SMALL = {
    "A": "1, 2\n2, 1\n3, 4\n4, 3\n4, 4\n3, 4\n",
    "graph_indicator": "1\n1\n2\n2\n",
    "graph_labels": "-1\n7\n",
    "node_labels": "2\n4\n3\n2\n",
    "node_attributes": "0.5, 1\n-2, 3\n4e1, 0\n0, 0\n",
    "edge_labels": "0\n0\n1\n1\n0\n1\n",
}


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., dict[str, Path]]:
    def write_files(**changes: str | bytes | None) -> dict[str, Path]:
        files = {}
        for part, text in {**SMALL, **changes}.items():
            if text is not None:
                files[part] = tmp_path / f"SMALL_{part}.txt"
                files[part].write_bytes(text if isinstance(text, bytes) else text.encode())
        return files

    return write_files


def same(ours: Data, theirs: Data) -> bool:
    keys = ("x", "edge_index", "edge_attr")
    return all(
        (ours.get(key) is None and theirs.get(key) is None) or torch.equal(ours[key], theirs[key]) for key in keys
    )


def by_pyg(folder: Path, prefix: str) -> list[Data]:
    data, slices, _ = read_tu_data(str(folder), prefix)
    graphs = []
    for at in range(slices["y"].numel() - 1):
        nodes, edges = slices["x"][at : at + 2].tolist(), slices["edge_index"][at : at + 2].tolist()
        graph = Data(x=data.x[slice(*nodes)], edge_index=data.edge_index[:, slice(*edges)], y=data.y[at])
        if data.edge_attr is not None:
            graph.edge_attr = data.edge_attr[slice(*edges)]
        graphs.append(graph)
    return graphs


@pytest.mark.data
@pytest.mark.parametrize("name", PUBLISHED)
def test_equal_to_pyg_and_to_what_is_published(name: str, data_root: Path) -> None:
    collection = load_dataset(name, root=data_root)
    folder = (data_root / CATALOGUE[name].raw[0].path).parent
    theirs = by_pyg(folder, folder.name)
    with_attributes = load_dataset(f"{name}:attributes=1", root=data_root)
    assert len(collection) == len(theirs) == len(with_attributes)
    labels = collection.num_features
    for ours, numbers, graph in zip(collection, with_attributes, theirs):
        assert same(numbers, graph)
        assert torch.equal(ours.x, graph.x[:, -labels:])
        assert torch.equal(ours.edge_index, graph.edge_index)
        assert int(ours.y) == int(graph.y)
    graphs, nodes, edges, classes = PUBLISHED[name]
    assert (len(collection), collection.target.outputs) == (graphs, classes)
    assert sum(graph.num_nodes for graph in collection) / graphs == pytest.approx(nodes, abs=0.005)
    assert sum(graph.num_edges for graph in collection) / 2 / graphs == pytest.approx(edges, abs=0.005)
    assert collection.task == "graph classification"
    assert collection.facts is CATALOGUE[name]
    assert collection.name == name and (with_attributes.name == f"{name}:attributes=1")


def test_a_small_collection_equals_pyg(write: Callable[..., dict[str, Path]]) -> None:
    files = write()
    read = read_tu(files, attributes=True)
    for ours, theirs in zip(read.graphs, by_pyg(files["A"].parent, "SMALL"), strict=True):
        assert same(ours, theirs)
    assert (read.y.tolist(), read.class_names) == ([0, 1], ("-1", "7"))
    assert read.graphs[1].edge_index.tolist() == [[0, 1], [1, 0]]  # the loop and the repeated edge are gone
    assert read_tu(files).graphs[0].x.tolist() == [[1, 0, 0], [0, 0, 1]]


@pytest.mark.data
def test_attributes_scaled_over_all_nodes(data_root: Path) -> None:
    raw, scaled = (load_dataset(f"enzymes:attributes=1{more}", root=data_root) for more in ("", ",scale=1"))
    assert scaled.name == "enzymes:attributes=1,scale=1"
    before, after = (torch.cat([graph.x for graph in of]).double() for of in (raw, scaled))
    assert torch.equal(before[:, -3:], after[:, -3:])  # labels stay
    oracle = StandardScaler().fit_transform(before[:, :-3].numpy())
    np.testing.assert_allclose(after[:, :-3].numpy(), oracle, atol=1e-5)
    (warning,) = warnings_about(raw)
    assert warning.endswith("use enzymes:attributes=1,scale=1") and warnings_about(scaled) == []


def test_a_constant_attribute_is_scaled_to_nothing(write: Callable[..., dict[str, Path]]) -> None:
    count = len(write()["graph_indicator"].read_text().split())
    read = read_tu(write(node_attributes="5, 1\n" + "5, 2\n" * (count - 1)), attributes=True, scale=True)
    columns = torch.cat([graph.x for graph in read.graphs])[:, :2]
    assert columns[:, 0].abs().max() == 0 and columns[:, 1].std(correction=0) == pytest.approx(1)


def test_a_number_per_graph(write: Callable[..., dict[str, Path]]) -> None:
    read = read_tu(write(graph_attributes="0.25\n-3\n"))
    assert read.class_names is None
    assert read.y[:, 0].tolist() == [0.25, -3.0]


BAD: list[tuple[dict[str, str | bytes | None], str]] = [
    ({"A": None}, "A.txt is missing"),
    ({"A": "1, 2\n2, x\n"}, "A.txt: line 2: expected numbers, got '2, x'"),
    ({"A": "1, 2\n2\n"}, "A.txt: line 2: expected 2 comma"),
    ({"A": "1, 2\n2, 1.5\n", "edge_labels": None}, "A.txt: line 2: expected whole numbers"),
    ({"A": "1, 2\n2, 5\n", "edge_labels": None}, r"line 2 joins \[2, 5\], but nodes are numbered 1 to 4"),
    ({"A": "0, 1\n", "edge_labels": None}, r"line 1 joins \[0, 1\]"),
    ({"A": "2, 3\n", "edge_labels": None}, "line 1 joins nodes of two graphs"),
    ({"A": ""}, "A.txt: the file is empty"),
    ({"A": "1, 2\n2, 1_0\n"}, "line 2: expected numbers"),
    ({"graph_indicator": "1\n1\n3\n3\n"}, "line 3: graph 2 has no nodes"),
    ({"graph_indicator": "2\n2\n2\n2\n"}, "line 1: graph 1 has no nodes"),
    ({"graph_indicator": "1\n2\n1\n2\n"}, "line 3: expected the nodes of graph 1, then"),
    ({"graph_labels": "1\n2\n3\n"}, "graph_labels.txt: 3 lines instead of 2"),
    ({"graph_labels": None}, "neither labels nor attributes"),
    ({"graph_labels": "nan\n1\n"}, "line 1: expected numbers, got 'nan'"),
    ({"node_labels": "1\n2\n"}, "node_labels.txt: 2 lines instead of 4"),
    ({"node_labels": "1\n2\n3\n900000000\n"}, "need 14,400,000,000 bytes"),
    ({"node_labels": None}, "nodes have neither labels nor attributes"),
    ({"node_labels": b"1\n2\n\xff\n1\n"}, "cannot be read as text"),
    ({"node_labels": "1\n2\n\u0663\n1\n"}, "cannot be read as text"),
]


@pytest.mark.parametrize(("changes", "message"), BAD, ids=[message for _, message in BAD])
def test_unsound_files_are_refused_by_name(
    changes: dict[str, str | bytes | None], message: str, write: Callable[..., dict[str, Path]]
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_tu(write(**changes))
    assert "\n" not in str(caught.value)
