"""Numbers in a file that ask for memory, or for more than a number can be: one line of error, and nothing taken."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file
from torch_geometric.data import Data

from ltga.data import Preparation, dataset_from_data, load_data, load_dataset, save_data, syntax_graph
from ltga.data.geom_gcn import read_geom_gcn
from ltga.data.splits import stratified_masks
from ltga.data.table_files import read_frame
from ltga.errors import DataError, InputError, LTGAError

Arrays = dict[str, np.ndarray]
Write = Callable[..., Path]


def graph(**changes: Any) -> Data:
    values = {"x": torch.ones(6, 2), "y": torch.arange(6) % 2, "edge_index": torch.tensor([[0, 1], [1, 2]])}
    return Data(**(values | changes))


# Labels


@pytest.mark.parametrize("label", [1_000, 4_000_000_000, 2**63 - 1])
def test_one_large_label_is_no_reason_for_that_many_classes(
    label: int, platonov_arrays: Arrays, write_npz: Write
) -> None:
    platonov_arrays["node_labels"][5] = label
    with pytest.raises(DataError, match=rf"node 5 has label {label}, but there are only 4 different labels"):
        load_dataset(write_npz(platonov_arrays))
    with pytest.raises(DataError, match="node 3 has label"):
        dataset_from_data(graph(y=torch.tensor([0, 1, 0, label, 1, 0])))


def test_classes_without_a_node_are_fine_in_reasonable_number() -> None:
    assert dataset_from_data(graph(y=torch.tensor([0, 39, 0, 39, 0, 39]))).num_classes == 40
    many = torch.arange(3000)
    assert (
        dataset_from_data(Data(x=torch.ones(3000, 1), y=many, edge_index=torch.zeros(2, 0).long())).num_classes == 3000
    )


def test_names_for_classes_nobody_has() -> None:
    with pytest.raises(DataError, match="5000 class names, but only 2 different labels"):
        dataset_from_data(graph(class_names=[f"c{i}" for i in range(5000)]))
    with pytest.raises(DataError, match="class names repeat: 'a' occurs 2 times"):
        dataset_from_data(graph(class_names=["a", "b", "a"]))
    for names in (7, "ab", {"a": 1, "b": 2}, [["a"], ["b"]]):
        with pytest.raises(InputError, match=r"data\.class_names must be a list"):
            dataset_from_data(graph(class_names=names))


def test_labels_beyond_int64_do_not_turn_into_unlabelled(platonov_arrays: Arrays, write_npz: Write) -> None:
    platonov_arrays["node_labels"] = platonov_arrays["node_labels"].astype(np.uint64)
    platonov_arrays["node_labels"][5] = 2**64 - 1  # as int64 this would be -1
    with pytest.raises(DataError, match="node_labels holds 18446744073709551615, which is too large"):
        load_dataset(write_npz(platonov_arrays))
    y = torch.from_numpy(np.array([0, 1, 0, 1, 0, 2**64 - 1], dtype=np.uint64))
    with pytest.raises(InputError, match="labels beyond"):
        dataset_from_data(graph(y=y))


def test_many_labels_do_not_take_the_square_of_their_number() -> None:
    labels = np.random.default_rng(0).permutation(20_000)
    train, val, test = stratified_masks(labels, num_splits=1)
    assert int(train.sum()) == 20_000 and not val.any() and not test.any()


def test_a_stated_number_of_nodes_must_be_theirs(tmp_path: Path) -> None:
    for stated in (10**12, 5, "6", [6]):
        with pytest.raises(DataError, match=r"data\.num_nodes is .* but x has 6 rows"):
            dataset_from_data(graph(num_nodes=stated))
    assert dataset_from_data(graph(num_nodes=6)).data.num_nodes == 6


# Geom-GCN and CoNLL-U


def geom_gcn(folder: Path, nodes: str, edges: str = "0\t1\n") -> Any:
    (folder / "nodes.txt").write_text(nodes)
    (folder / "edges.txt").write_text("node_id\tnode_id\n" + edges)
    return read_geom_gcn(folder / "nodes.txt", folder / "edges.txt", [])


FLAGS = "node_id\tfeature\tlabel\n0\t1,0\t0\n1\t0,1\t{}\n"


@pytest.mark.parametrize("number", [str(2**63), str(-(2**64)), "9" * 5000, "1_0", "٣", "1e3", ""])
def test_geom_gcn_numbers_that_fit_no_array(number: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nodes\.txt: line 3: expected a whole number"):
        geom_gcn(tmp_path, FLAGS.format(number))
    with pytest.raises(DataError, match=r"edges\.txt: line 2: expected a whole number"):
        geom_gcn(tmp_path, FLAGS.format(1), f"0\t{number}\n")


def test_a_far_word_position_in_a_small_file(tmp_path: Path) -> None:
    rows = "".join(f"{node}\t{node}\t{node % 2}\n" for node in range(999)) + "999\t999999\t1\n"
    with pytest.raises(DataError, match=r"features of shape \[1000, 1000000\] need 4,000,000,000 bytes, but only"):
        geom_gcn(tmp_path, "node_id\tfeature(feature_amount:3)\tlabel\n" + rows)


def test_geom_gcn_splits_hold_flags(tmp_path: Path) -> None:
    np.savez(tmp_path / "split.npz", train_mask=np.array([2, 0]), val_mask=np.zeros(2, int), test_mask=np.zeros(2, int))
    geom_gcn(tmp_path, FLAGS.format(1))
    with pytest.raises(DataError, match=r"split\.npz: train_mask must hold true/false"):
        read_geom_gcn(tmp_path / "nodes.txt", tmp_path / "edges.txt", [tmp_path / "split.npz"])


@pytest.mark.parametrize("head", ["9" * 5000, "²", "٣", "-1", "4294967296"])
def test_conllu_heads_that_are_no_word(head: str) -> None:
    text = f"1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n2\tb\t_\tX\t_\t_\t{head}\tobj\t_\t_\n"
    with pytest.raises(DataError, match=r"line 2: (expected a )?head"):
        syntax_graph(text, {"a": np.ones(2)})
    with pytest.raises(InputError, match="text: expected the text of a treebank, got bytes"):
        syntax_graph(text.encode(), {"a": np.ones(2)})  # type: ignore[arg-type]


# Tables


def tables(folder: Path, nodes: pd.DataFrame | pa.Table) -> Path:
    (folder / "edges.csv").write_text("source,target\n0,1\n")
    table = nodes if isinstance(nodes, pa.Table) else pa.Table.from_pandas(nodes)
    pq.write_table(table, folder / "nodes.parquet")
    return folder


PLAIN = {"id": [0, 1, 2], "label": ["a", "b", "a"], "f": [1.0, 2.0, 3.0]}


@pytest.mark.parametrize(
    ("column", "cells", "kind"),
    [
        ("f", [[1.0], [2.0], [3.0]], "list"),
        ("id", [[1], [2], [3]], "list"),
        ("label", [{"a": 1}, {"a": 2}, {"a": 3}], "struct"),
        ("f", pd.to_timedelta([1, 2, 3], "s"), "duration"),
        ("id", [b"a", b"b", b"c"], "binary"),
    ],
)
def test_parquet_cells_that_are_no_numbers_or_text(column: str, cells: Any, kind: str, tmp_path: Path) -> None:
    folder = tables(tmp_path, pd.DataFrame(PLAIN | {column: cells}))
    with pytest.raises(DataError, match=rf"nodes\.parquet: column '{column}' holds {kind}"):
        load_dataset(folder)


def test_what_pandas_noted_in_a_parquet_file_is_not_believed(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(pd.DataFrame(PLAIN, index=[7, 8, 9]))
    expected = load_dataset(tables(tmp_path, table)).fingerprint  # the index is no feature
    for note in (b"{", b"[]", b'{"index_columns": [7], "columns": 3}', b"\xff"):
        damaged = table.replace_schema_metadata({b"pandas": note})
        assert load_dataset(tables(tmp_path, damaged)).fingerprint == expected


def test_large_whole_numbers_beside_empty_cells_stay_exact(tmp_path: Path) -> None:
    ids = pa.array([2**60 + 1, 2**60 + 2, 2**60 + 3])
    labels = pa.array([2**60 + 1, 2**60 + 2, None])
    tables(tmp_path, pa.table({"id": ids, "label": labels, "f": [1.0, 2.0, 3.0]}))
    (tmp_path / "edges.csv").write_text(f"source,target\n{2**60 + 1},{2**60 + 3}\n")
    dataset = load_dataset(tmp_path)
    assert dataset.data.edge_index.tolist() == [[0], [2]] and dataset.data.y.tolist() == [0, 1, -1]
    assert dataset.class_names == (str(2**60 + 1), str(2**60 + 2))


def test_kinds_of_columns_that_do_work(tmp_path: Path) -> None:
    table = pa.table({
        "id": pa.array(["x", "y", "z"]).dictionary_encode(),
        "label": pa.array([0, 1, None], pa.int8()),
        "flag": pa.array([True, False, True]),
        "small": pa.array([1.5, 2.5, 3.5], pa.float32()),
        "count": pa.array([1, 2, 3], pa.uint64()),
    })  # fmt: skip
    tables(tmp_path, table)
    (tmp_path / "edges.csv").write_text("source,target\nx,y\n")
    dataset = load_dataset(tmp_path, preparation=Preparation(scale="none"))
    assert dataset.data.x.tolist() == [[1, 1.5, 1], [0, 2.5, 2], [1, 3.5, 3]]
    assert dataset.node_names == ("x", "y", "z") and dataset.class_names == ("0", "1")


def test_a_folder_named_like_a_setting_adds_no_column(tmp_path: Path) -> None:
    folder = tmp_path / "run=3"
    folder.mkdir()
    assert load_dataset(tables(folder, pd.DataFrame(PLAIN))).data.x.shape == (3, 1)


def test_a_parquet_file_of_very_many_equal_rows(tmp_path: Path) -> None:
    rows = 3_000_000
    table = pa.table({"id": pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), ["a"])})
    pq.write_table(table, tmp_path / "nodes.parquet", compression="zstd", max_rows_per_page=rows)
    assert (tmp_path / "nodes.parquet").stat().st_size < 3000
    with pytest.raises(DataError, match="announces 3,000,000 rows in"):
        read_frame(tmp_path / "nodes.parquet")


@pytest.mark.parametrize(
    ("labels", "names", "y"),
    [
        (["²", "--5", "9" * 5000], ("--5", "9" * 5000, "²"), [2, 0, 1]),
        (["-1.0", "0.0", "1.0"], ("0.0", "1.0"), [-1, 0, 1]),
        (["red", "-1", "blue"], ("blue", "red"), [1, -1, 0]),
        (["-1", "10", "9"], ("9", "10"), [-1, 1, 0]),
    ],
)
def test_labels_in_a_csv_file(labels: list[str], names: tuple[str, ...], y: list[int], tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    rows = "".join(f"{node},{label},1\n" for node, label in enumerate(labels))
    (tmp_path / "nodes.csv").write_text("id,label,f\n" + rows)
    dataset = load_dataset(tmp_path)
    assert dataset.class_names == names and dataset.data.y.tolist() == y


# safetensors


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": torch.zeros(6, 2, dtype=torch.long)}, r"data\.y of shape \[6, 2\].*argmax"),
        ({"y": torch.zeros(5, dtype=torch.long)}, r"one int64 label for each of 6 nodes"),
        ({"y": torch.zeros((), dtype=torch.long)}, r"data\.y of shape \[\]"),
        ({"y": torch.zeros(6, dtype=torch.complex64)}, "whole-number labels"),
        ({"edge_attr": torch.zeros(2, dtype=torch.complex64)}, "real numbers, got torch.complex64"),
        ({"edge_attr": [1, 2]}, "real numbers, got list"),
        ({"train_mask": torch.rand(6), "val_mask": torch.rand(6), "test_mask": torch.rand(6)}, "true/false"),
        ({"x": torch.ones(6)}, r"\[nodes, features\]"),
        ({"x": torch.ones(())}, "shape"),
    ],
)
def test_safetensors_of_odd_shapes_and_kinds_name_the_file(changes: Any, message: str, tmp_path: Path) -> None:
    path = save_data(graph(**changes), tmp_path / "graph.safetensors")
    with pytest.raises(DataError, match=message) as caught:
        load_dataset(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.int32, torch.bool])
def test_edge_attributes_of_any_number_type(dtype: torch.dtype, tmp_path: Path) -> None:
    attributes = torch.tensor([[1.0], [0.0]]).to(dtype)
    dataset = load_dataset(save_data(graph(edge_attr=attributes), tmp_path / "graph.safetensors"))
    assert dataset.data.edge_attr.tolist() == [[1], [0]] and len(dataset.fingerprint) == 64


def test_descriptions_that_do_not_describe(tmp_path: Path) -> None:
    path = tmp_path / "graph.safetensors"
    tensors = {"x": torch.ones(2, 2)}
    known = {"format": "ltga-data", "version": "1"}
    for attributes, order in (
        ("{}", '["x", "y"]'), ("{}", "[]"), ("{}", "7"), ("[]", '["x"]'), ("[" * 100_000, '["x"]'),
        ('{"x": 1}', '["x"]'), ('{"_store": 1}', '["x", "_store"]'),
        ('{"n": ' + "9" * 5000 + "}", '["x", "n"]'),
    ):  # fmt: skip
        save_file(tensors, path, metadata={**known, "attributes": attributes, "order": order})
        with pytest.raises(DataError, match=r"graph\.safetensors: its description is damaged"):
            load_data(path)
    header = json.dumps({"x": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"ab")
    with pytest.raises(LTGAError, match=r"graph\.safetensors"):
        load_data(path)
