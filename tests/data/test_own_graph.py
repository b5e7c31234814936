"""Your own graph: tables, safetensors, PyG `Data`; every fault named by file and row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from ltga import fit
from ltga.data import Preparation, dataset_from_data, load_data, load_dataset, save_data
from ltga.errors import DataError, InputError

NODES = """id,label,split,height,width
ann,red,train,1.5,0
bob,blue,train,2,1
cid,red,val,-3e2,0
dot,blue,test,4,1
eve,,,5,0
"""
EDGES = """source,target,kind,weight
ann,bob,1,0.5
cid,ann,0,2
eve,dot,1,-1
"""


def write(folder: Path, nodes: str = NODES, edges: str = EDGES) -> Path:
    (folder / "nodes.csv").write_text(nodes)
    (folder / "edges.csv").write_text(edges)
    return folder


def check_people(folder: Path) -> None:
    dataset = load_dataset(folder, preparation=Preparation(scale="none"))
    data = dataset.data
    assert dataset.name == folder.name
    assert dataset.node_ids == dataset.node_names
    assert dataset.feature_names == ("height", "width")
    assert dataset.node_names == ("ann", "bob", "cid", "dot", "eve")
    assert dataset.class_names == ("blue", "red")
    assert data.y.tolist() == [1, 0, 1, 0, -1]
    assert data.x.tolist() == [[1.5, 0], [2, 1], [-300, 0], [4, 1], [5, 0]]
    # weight comes first, whatever the order of the columns
    rows = {tuple(pair): attr for pair, attr in zip(data.edge_index.T.tolist(), data.edge_attr.tolist())}
    assert rows == {(0, 1): [0.5, 1], (2, 0): [2, 0], (4, 3): [-1, 1]}
    train, val, test = (mask.tolist() for mask in dataset.split(0))
    assert (train, val, test) == (
        [True, True, False, False, False],
        [False, False, True, False, False],
        [False, False, False, True, False],
    )


def test_a_folder_of_csv(tmp_path: Path) -> None:
    check_people(write(tmp_path))
    assert load_dataset(tmp_path / "edges.csv").num_classes == 2


def test_a_folder_of_parquet(tmp_path: Path) -> None:
    write(tmp_path)
    for stem in ("nodes", "edges"):
        frame = pd.read_csv(tmp_path / f"{stem}.csv")
        (tmp_path / f"{stem}.csv").unlink()
        frame.to_parquet(tmp_path / f"{stem}.parquet")
    check_people(tmp_path)


def test_quotes_crlf_and_a_byte_order_mark_do_no_harm(tmp_path: Path) -> None:
    folder = write(tmp_path)
    nodes = NODES.replace("ann", '"ann"').replace("\n", "\r\n")
    (folder / "nodes.csv").write_bytes(b"\xef\xbb\xbf" + nodes.encode())
    check_people(folder)


def test_numbers_as_ids_and_labels_mix_across_formats(tmp_path: Path) -> None:
    pd.DataFrame({"id": [10, 20, 30], "label": [7, 3, -1], "f": [1.0, 2.0, 3.0]}).to_parquet(tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("source,target\n30,10\n10,20\n")
    dataset = load_dataset(tmp_path)
    assert dataset.class_names == ("3", "7")
    assert dataset.data.y.tolist() == [1, 0, -1]
    assert dataset.data.edge_index.T.tolist() == [[0, 1], [2, 0]]
    assert "edge_attr" not in dataset.data
    assert dataset.num_splits == 10
    undirected = load_dataset(tmp_path, convention="undirected, once")
    assert undirected.data.edge_index.T.tolist() == [[0, 1], [0, 2], [1, 0], [2, 0]]


def test_integer_classes_are_in_numerical_order(tmp_path: Path) -> None:
    rows = "".join(f"{i},{label},1\n" for i, label in enumerate([10, 9, 2, 10, 9, 2]))
    write(tmp_path, "id,label,f\n" + rows, "source,target\n0,1\n")
    assert load_dataset(tmp_path).class_names == ("2", "9", "10")


FAULTS = [
    ("nodes", NODES.replace("4,1", "4,one"), r"nodes\.csv: row 4: width is 'one', expected a finite number"),
    ("nodes", NODES.replace("4,1", "inf,1"), "row 4: height is 'inf'"),
    ("nodes", NODES.replace("4,1", "1e39,1"), "row 4: height is '1e39'"),
    ("nodes", NODES.replace("cid", "ann"), "row 3: id 'ann' repeats row 1"),
    ("nodes", NODES.replace("dot", ""), "row 4: id is blank"),
    ("nodes", NODES.replace("test", "tset"), "row 4: split must be train, val or test"),
    ("nodes", NODES.replace("eve,,", "eve,,test"), "row 5: label is blank or -1 although"),
    ("nodes", NODES.replace("train", "test"), "names no train node"),
    ("nodes", NODES.replace("blue", "red"), "at least two"),
    ("nodes", NODES.replace("id,", "name,"), "column 'id' is missing; found name, label"),
    ("nodes", NODES.replace("5,0", "5,0,9"), r"nodes\.csv: row 1: 6 fields, but the header names 5"),
    ("nodes", "id,label,f\n", "no rows"),
    ("nodes", "", "nodes.csv: is empty; give a header and a row for each node"),
    (
        "nodes",
        NODES.replace("width", "height"),
        "column names repeat: .height., among id, label, split, height, height",
    ),
    ("nodes", NODES.replace("ann", '"a"nn'), "cannot be read as a csv table"),
    (
        "edges",
        EDGES.replace("eve,dot", "eve,dod"),
        r"edges\.csv: row 3: target 'dod' is not an id in .*nodes",
    ),
    ("edges", EDGES.replace("cid,ann,0", "cid,ann,x"), r"edges\.csv: row 2: kind is 'x'"),
    ("edges", "source,to\na,b\n", "column 'target' is missing"),
]


@pytest.mark.parametrize(("table", "content", "message"), FAULTS)
def test_the_wrong_row_is_named(table: str, content: str, message: str, tmp_path: Path) -> None:
    assert content not in (NODES, EDGES)
    write(tmp_path)
    (tmp_path / f"{table}.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        load_dataset(tmp_path)


def test_short_rows_are_named(tmp_path: Path) -> None:
    write(tmp_path, NODES.replace("dot,blue,test,4,1", "dot,blue,test,4"))
    with pytest.raises(DataError, match="row 4: 4 fields"):
        load_dataset(tmp_path)


def test_incomplete_folders_and_damaged_parquet_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"edges\.csv or edges\.parquet, but neither"):
        load_dataset(tmp_path)
    write(tmp_path)
    (tmp_path / "nodes.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match="both are there"):
        load_dataset(tmp_path)
    (tmp_path / "nodes.csv").unlink()
    with pytest.raises(DataError, match=r"nodes\.parquet: cannot be read as a parquet table"):
        load_dataset(tmp_path)


@pytest.mark.parametrize("name", ["./nowhere", "gone.npz", "some/where/x.csv"])
def test_a_missing_path_is_named(name: str) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        load_dataset(name)


def graph(**extra: object) -> Data:
    generator = torch.Generator().manual_seed(0)
    return Data(
        x=torch.randn(20, 3, generator=generator),
        y=torch.arange(20) % 2,
        edge_index=torch.randint(0, 20, (2, 30), generator=generator),
        edge_attr=torch.rand(30, 2, generator=generator),
        **extra,
    )


def test_data_survives_a_round_trip(tmp_path: Path) -> None:
    masks = torch.zeros(20, 2, dtype=torch.bool)
    train, val, test = masks.clone(), masks.clone(), masks.clone()
    train[:10], val[10:15], test[15:] = True, True, True
    data = graph(train_mask=train, val_mask=val, test_mask=test, class_names=["yes", "no"], note={"a": [1, 2.5, None]})
    data.transposed = data.x.t()
    back = load_data(save_data(data, tmp_path / "deep/graph.safetensors"))
    assert back.keys() == data.keys()
    for key, value in data.to_dict().items():
        assert torch.equal(back[key], value) if isinstance(value, torch.Tensor) else back[key] == value
    dataset = load_dataset(tmp_path / "deep/graph.safetensors")
    assert (dataset.name, dataset.num_splits, dataset.class_names) == ("graph", 2, ("yes", "no"))
    assert torch.equal(dataset.split(1)[1], val[:, 1])
    assert torch.equal(dataset.data.edge_attr, data.edge_attr)
    assert "train_mask" not in dataset.data


def test_what_cannot_be_stored_safely_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="secret"):
        save_data(graph(secret=object()), tmp_path / "graph.safetensors")
    with pytest.raises(InputError, match="adj is a sparse tensor"):
        save_data(graph(adj=torch.eye(3).to_sparse()), tmp_path / "graph.safetensors")
    with pytest.raises(InputError, match=r"ends in \.safetensors"):
        save_data(graph(), tmp_path / "graph.pt")
    assert list(tmp_path.iterdir()) == []


def test_foreign_damaged_and_pickled_files_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    path = tmp_path / "graph.safetensors"
    save_file({"x": torch.ones(2)}, path)
    with pytest.raises(DataError, match="not a graph written by"):
        load_data(path)
    whole = save_data(graph(), path).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="damaged"):
        load_dataset(path)
    with pytest.raises(DataError, match="no such file"):
        load_data(tmp_path / "gone.safetensors")
    torch.save(graph(), tmp_path / "graph.pt")
    with pytest.raises(DataError, match=r"can run code.*save_data"):
        load_dataset(tmp_path / "graph.pt")
    (tmp_path / "graph.npz.old").touch()
    with pytest.raises(DataError, match="not a known format"):
        load_dataset(tmp_path / "graph.npz.old")


def test_data_without_masks_gets_seeded_stratified_splits() -> None:
    dataset = dataset_from_data(graph())
    train, val, test = dataset.split(0)
    assert [int(mask.sum()) for mask in (train, val, test)] == [12, 4, 4]
    assert int(dataset.data.y[train].sum()) == 6
    assert torch.equal(dataset_from_data(graph()).split(9)[0], dataset.split(9)[0])
    assert not torch.equal(dataset_from_data(graph(), seed=1).split(9)[0], dataset.split(9)[0])


def test_data_is_not_changed_and_its_faults_are_named() -> None:
    data = graph(train_mask=torch.ones(20, dtype=torch.bool))
    with pytest.raises(InputError, match="found train_mask only"):
        dataset_from_data(data)
    with pytest.raises(InputError, match=r"data\.y is missing"):
        dataset_from_data(Data(x=torch.ones(2, 2), edge_index=torch.zeros(2, 0, dtype=torch.long)))
    column = graph()
    column.y = column.y.unsqueeze(1)
    column.x = column.x.double()
    assert dataset_from_data(column).data.y.shape == (20,)
    assert column.y.shape == (20, 1)
    assert column.x.dtype == torch.float64
    column.y = torch.rand(20)
    with pytest.raises(InputError, match="whole-number labels"):
        dataset_from_data(column)


@pytest.mark.data
def test_a_known_file_given_by_path_keeps_its_convention(data_root: Path) -> None:
    texas = load_dataset(data_root / "texas.npz")
    with np.load(data_root / "texas.npz") as stored:
        assert texas.data.edge_index.T.tolist() == stored["edges"].tolist()


def test_weights_under_another_name_are_not_passed_over() -> None:
    data = graph()
    weighted = Data(x=data.x, y=data.y, edge_index=data.edge_index, edge_weight=torch.rand(30))
    for source, there in ((weighted, "data.edge_weight would be"), (graph(edge_weight=torch.rand(30)), "beside")):
        with pytest.raises(DataError, match=f"{there}.*put the weights there"):
            dataset_from_data(source)
    run = fit(dataset_from_data(data), protocol={"epochs": 1, "hidden_channels": 2, "heads": 1})
    with pytest.raises(DataError, match=r"beside data[.]edge_attr would be ignored"):
        run.predict(graph(edge_weight=torch.rand(30)))
