"""The Geom-GCN reader against PyG, and the Cornell that carries Texas's words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.datasets import Actor, WebKB

from ltga.data import load_dataset
from ltga.data.assemble import assemble
from ltga.data.catalogue import CATALOGUE
from ltga.data.geom_gcn import read_geom_gcn
from ltga.errors import DataError

FOLDERS = {"texas": "texas", "wisconsin": "wisconsin", "cornell": "cornell", "actor": "film"}


@pytest.mark.data
@pytest.mark.parametrize("name", sorted(FOLDERS))
def test_raw_files_equal_pyg_and_the_packed_file(name: str, data_root: Path, tmp_path: Path) -> None:
    source, folder = data_root / "raw/geom-gcn", FOLDERS[name]
    raw = tmp_path / "pyg" / ("raw" if name == "actor" else f"{name}/raw")
    raw.mkdir(parents=True)
    for path in (*(source / "new_data" / folder).iterdir(), *(source / "splits").glob(f"{folder}_*")):
        (raw / path.name).symlink_to(path)
    theirs = (Actor(str(tmp_path / "pyg")) if name == "actor" else WebKB(str(tmp_path / "pyg"), name))[0]
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours/raw").symlink_to(data_root / "raw")
    forms = [load_dataset(name, root=root) for root in (tmp_path / "ours", data_root)]
    assert [dataset.provenance["form"] for dataset in forms] == ["raw", "packed"]
    for dataset in forms:
        for key in ("x", "y", "edge_index"):
            assert torch.equal(dataset.data[key], theirs[key])
        for split in range(10):
            for mask, key in zip(dataset.split(split), ("train_mask", "val_mask", "test_mask")):
                assert torch.equal(mask, theirs[key][:, split])


def cornell_root(data_root: Path, root: Path, nodes: Path, edges: Path) -> Path:
    base = root / "raw/geom-gcn"
    (base / "new_data/cornell").mkdir(parents=True)
    (base / "splits").symlink_to(data_root / "raw/geom-gcn/splits")
    (base / "new_data/cornell/out1_node_feature_label.txt").symlink_to(nodes)
    (base / "new_data/cornell/out1_graph_edges.txt").symlink_to(edges)
    return root


@pytest.mark.data
def test_the_mixture_is_refused_by_sha256(data_root: Path, tmp_path: Path) -> None:
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed/cornell.npz").symlink_to(data_root / "cornell_texas_mixture.npz")
    with pytest.raises(DataError, match=r"cornell\.npz.*words and labels are those of Texas"):
        load_dataset("cornell", root=tmp_path / "packed")
    mixture = data_root / "raw/geom-gcn/new_data/cornell_texas_mixture"
    nodes, edges = mixture / "out1_node_feature_label.txt", mixture / "out1_graph_edges.txt"
    with pytest.raises(DataError, match=r"swapped file.*of texas, not of cornell.*mirrored copy of Cornell"):
        load_dataset("cornell", root=cornell_root(data_root, tmp_path / "raw", nodes, edges))
    good = data_root / "raw/geom-gcn/new_data/cornell/out1_node_feature_label.txt"
    with pytest.raises(DataError, match=r"out1_graph_edges\.txt.*mirrored Cornell"):
        load_dataset("cornell", root=cornell_root(data_root, tmp_path / "edges", good, edges))


@pytest.mark.data
def test_the_mixture_is_refused_by_content(data_root: Path, tmp_path: Path) -> None:
    with np.load(data_root / "cornell_texas_mixture.npz") as stored:
        arrays = dict(stored)
    order = np.random.default_rng(0).permutation(arrays["edges"].shape[0])
    arrays["edges"] = arrays["edges"][order, ::-1]
    arrays["node_features"] = arrays["node_features"] / 7.0
    np.savez(tmp_path / "webpages.npz", **arrays)
    with pytest.raises(DataError, match=r"webpages\.npz: this Cornell carries the words of Texas"):
        load_dataset(tmp_path / "webpages.npz", convention="directed")
    with pytest.raises(DataError, match="carries the words of Texas"):
        load_dataset(data_root / "cornell_texas_mixture.npz")
    folder = data_root / "raw/geom-gcn/new_data"
    for edges in ("cornell_texas_mixture", "cornell", "texas"):
        read = read_geom_gcn(
            folder / "cornell_texas_mixture/out1_node_feature_label.txt",
            folder / edges / "out1_graph_edges.txt",
            [data_root / "raw/geom-gcn/splits/cornell_split_0.6_0.2_0.npz"],
        )
        with pytest.raises(DataError, match="carries the words of Texas"):
            assemble(read, "cornell", "directed", "raw", facts=CATALOGUE["cornell"])


@pytest.mark.data
def test_texas_itself_and_true_cornell_are_not_refused(data_root: Path) -> None:
    assert load_dataset(data_root / "texas.npz").name == "texas"
    assert load_dataset(data_root / "cornell.npz").data.edge_index.shape[1] == 298
    assert load_dataset(data_root / "cornell_platonov.npz").data.edge_index.shape[1] == 2 * 277


@pytest.mark.data
def test_platonovs_cornell_is_not_taken_for_the_papers(data_root: Path, tmp_path: Path) -> None:
    (tmp_path / "cornell.npz").symlink_to(data_root / "cornell_platonov.npz")
    with pytest.raises(DataError, match="undirected and without self-loops"):
        load_dataset("cornell", root=tmp_path)


def small(tmp_path: Path, nodes: str, edges: str = "node_id\tnode_id\n0\t1\n") -> tuple[Path, Path, list[Path]]:
    (tmp_path / "nodes.txt").write_text(nodes)
    (tmp_path / "edges.txt").write_text(edges)
    flags = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.uint8)
    np.savez(tmp_path / "split.npz", train_mask=flags[0], val_mask=flags[1], test_mask=flags[2])
    return tmp_path / "nodes.txt", tmp_path / "edges.txt", [tmp_path / "split.npz"]


def test_nodes_may_come_in_any_order(tmp_path: Path) -> None:
    nodes = "node_id\tfeature\tlabel\n2\t1,1\t1\n0\t1,0\t0\n1\t0,1\t2\n"
    read = read_geom_gcn(*small(tmp_path, nodes, "node_id\tnode_id\n2\t0\n0\t1\n2\t0\n1\t1\n"))
    assert read.x.tolist() == [[1, 0], [0, 1], [1, 1]]
    assert read.y.tolist() == [0, 2, 1]
    assert read.edges.tolist() == [[0, 1], [1, 1], [2, 0]]


HEAD = "node_id\tfeature\tlabel\n"
BAD_NODES = [
    (HEAD + "0\t1,0\t0\n0\t1,0\t0\n", "line 3: node 0 is listed twice"),
    (HEAD + "0\t1,0\t0\n5\t1,0\t0\n", "expected nodes 0 to 1"),
    (HEAD + "0\t1,0\t0\n1\t1,x\t0\n", "line 3: expected a whole number, got 'x'"),
    (HEAD + "0\t1,0\t0\n1\t1,2\t0\n", "line 3: expected features 0 or 1, got 2"),
    (HEAD + "0\t1,0\t0\n1\t1\t0\n", "differ in their number of features"),
    (HEAD + "0\t1,0\n", "line 2: expected 3 tab-separated fields, got 2"),
    ("<html>404</html>\n", "expected a header"),
    ("node_id\tfeature(feature_amount:9)\tlabel\n0\t99999999999\t1\n", "feature positions"),
]


@pytest.mark.parametrize(("nodes", "message"), BAD_NODES)
def test_bad_lines_are_named(nodes: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_geom_gcn(*small(tmp_path, nodes))


def test_bad_splits_and_missing_files_are_named(tmp_path: Path) -> None:
    nodes, edges, splits = small(tmp_path, HEAD + "0\t1\t0\n1\t0\t1\n")
    with pytest.raises(DataError, match=r"split\.npz: expected train_mask with one flag for each of 2"):
        read_geom_gcn(nodes, edges, splits)
    with pytest.raises(DataError, match=r"gone\.txt: no such file"):
        read_geom_gcn(tmp_path / "gone.txt", edges, splits)
