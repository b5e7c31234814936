"""The npz reader: its three feature forms, and files that lie or are broken."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.datasets import HeterophilousGraphDataset
from torch_geometric.utils import to_undirected

from ltga.data import load_dataset
from ltga.data.npz import read_npz
from ltga.errors import DataError

Arrays = dict[str, np.ndarray]
Write = Callable[..., Path]


def test_dense_features_and_masks_come_out_as_stored(platonov_arrays: Arrays, write_npz: Write) -> None:
    read = read_npz(write_npz(platonov_arrays))
    assert np.array_equal(read.x, platonov_arrays["node_features"])
    assert np.array_equal(read.y, platonov_arrays["node_labels"])
    assert np.array_equal(read.edges, platonov_arrays["edges"])
    assert read.masks is not None
    for mask, key in zip(read.masks, ("train_masks", "val_masks", "test_masks")):
        assert np.array_equal(mask, platonov_arrays[key])


def test_the_three_feature_forms_agree(platonov_arrays: Arrays, write_npz: Write) -> None:
    words = np.array([0, 1, 2, 1] * 3)
    vectors = np.array([[0.0, 1.5], [2.0, 0.0], [0.25, 0.0]], dtype=np.float16)
    dense = vectors[words].astype(np.float32)
    matrix = scipy.sparse.csr_matrix(dense)
    rest = {key: value for key, value in platonov_arrays.items() if key != "node_features"}
    forms: list[Arrays] = [
        {"node_features": dense},
        {
            "features_data": matrix.data,
            "features_indices": matrix.indices,
            "features_indptr": matrix.indptr,
            "features_shape": np.array([12, 2]),
        },
        {
            "word_vectors": vectors,
            "node_words": words,
            "words_utf8": np.frombuffer("à\nb\nc".encode(), dtype=np.uint8),
        },
    ]
    for form in forms:
        read = read_npz(write_npz(rest | form))
        assert read.x.dtype == np.float32
        assert np.array_equal(read.x, dense)
    assert read.node_names == ("à", "b", "c", "b") * 3


@pytest.mark.data
@pytest.mark.parametrize("name", ["minesweeper", "tolokers"])
def test_platonov_files_load_as_in_pyg(name: str, data_root: Path, tmp_path: Path) -> None:
    raw = tmp_path / name / "raw"
    raw.mkdir(parents=True)
    (raw / f"{name}.npz").symlink_to(data_root / f"{name}.npz")
    theirs = HeterophilousGraphDataset(str(tmp_path), name)[0]
    ours = load_dataset(name, root=data_root)
    for key in ("x", "y", "edge_index"):
        assert torch.equal(ours.data[key], theirs[key])
    for split in range(10):
        for mask, key in zip(ours.split(split), ("train_mask", "val_mask", "test_mask")):
            assert torch.equal(mask, theirs[key][:, split])


def zip_with(members: dict[str, bytes], path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def npy_bytes(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def test_a_zip_bomb_is_refused_before_it_unpacks(
    platonov_arrays: Arrays, write_npz: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ltga.data.npz.MAX_BYTES", 1_000_000)
    platonov_arrays["node_features"] = np.zeros((12, 300_000), dtype=np.float32)
    path = write_npz(platonov_arrays)
    assert path.stat().st_size < 100_000
    with pytest.raises(DataError, match=r"unpacks to 14,4.* more than the limit of 1,000,000"):
        read_npz(path)


def test_a_sparse_bomb_is_refused(platonov_arrays: Arrays, write_npz: Write) -> None:
    del platonov_arrays["node_features"]
    form = {
        "features_data": np.ones(1, dtype=np.float32),
        "features_indices": np.zeros(1, dtype=np.int32),
        "features_indptr": np.array([0, 1], dtype=np.int32),
        "features_shape": np.array([10**9, 10**9]),
    }
    with pytest.raises(DataError, match="more than the limit"):
        read_npz(write_npz(platonov_arrays | form))


def test_a_header_that_declares_more_than_the_file_holds(tmp_path: Path) -> None:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 8), }"
    header += b" " * (118 - len(header) - 1) + b"\n"
    lie = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64)
    path = zip_with({"node_features.npy": lie}, tmp_path / "lie.npz")
    with pytest.raises(DataError, match=r"node_features.npy declares shape"):
        read_npz(path)


class Bomb:
    def __init__(self, witness: str) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path(self.witness),))


def test_python_objects_are_never_unpickled(tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    array = np.empty(1, dtype=object)
    array[0] = Bomb(str(witness))
    path = zip_with({"edges.npy": npy_bytes(array)}, tmp_path / "object.npz")
    with pytest.raises(DataError, match="Python objects"):
        read_npz(path)
    plain = tmp_path / "plain.npz"
    plain.write_bytes(pickle.dumps(Bomb(str(witness))))
    with pytest.raises(DataError, match="not an npz file"):
        read_npz(plain)
    assert not witness.exists()


@pytest.mark.parametrize("keep", [0, 1, 100, 0.5, 0.9, 0.999])
def test_truncated_files_are_named(keep: float, platonov_arrays: Arrays, write_npz: Write, tmp_path: Path) -> None:
    whole = write_npz(platonov_arrays).read_bytes()
    path = tmp_path / "half.npz"
    path.write_bytes(whole[: int(keep if keep in (0, 1, 100) else keep * len(whole))])
    with pytest.raises(DataError, match=r"half\.npz: damaged or not an npz file"):
        read_npz(path)


def test_flipped_bytes_never_pass_silently(platonov_arrays: Arrays, write_npz: Write, tmp_path: Path) -> None:
    whole = bytearray(write_npz(platonov_arrays).read_bytes())
    start = whole.index(b"node_features.npy") + 60
    whole[start] ^= 0xFF
    path = tmp_path / "flipped.npz"
    path.write_bytes(bytes(whole))
    with pytest.raises(DataError, match="flipped"):
        read_npz(path)


ODD: list[tuple[dict[str, Any], str]] = [
    ({"edges": None}, "'edges' is missing"),
    ({"node_labels": None}, "'node_labels' is missing"),
    ({"node_features": None}, "exactly one of node_features.*found none"),
    ({"word_vectors": np.ones((2, 2)), "node_words": np.zeros(12, int)}, "exactly one of"),
    ({"val_masks": None}, "found train_masks, test_masks only"),
    ({"val_masks": np.zeros((2, 5), bool)}, r"val_masks has shape \[2, 5\]"),
    ({"val_masks": np.full((2, 12), 2)}, "true/false"),
    ({"node_labels": np.zeros(12)}, "node_labels must hold whole numbers"),
    ({"node_labels": np.zeros(5, int)}, "12 rows of features but node_labels has shape"),
    ({"edges": np.zeros((3, 2))}, "edges must hold whole numbers"),
    ({"node_features": np.array(["a"] * 12)}, "node_features must hold numbers"),
    ({"node_features": np.zeros(12)}, r"features of shape \[N, F\]"),
    ({"class_names": np.arange(3)}, "class_names must be a list of text"),
    ({"edge_convention": np.array("sideways")}, "edge_convention is 'sideways'"),
    ({"edge_features": np.array(["a"] * 5)}, "edge_features must be numbers"),
]


@pytest.mark.parametrize(("changes", "message"), ODD)
def test_missing_and_odd_arrays_are_named(
    changes: dict[str, Any], message: str, platonov_arrays: Arrays, write_npz: Write
) -> None:
    merged = {key: value for key, value in (platonov_arrays | changes).items() if value is not None}
    path = write_npz(merged)
    with pytest.raises(DataError, match=message) as caught:
        read_npz(path)
    assert str(path) in str(caught.value)


def test_a_bad_word_number_and_a_bad_csr_are_named(platonov_arrays: Arrays, write_npz: Write) -> None:
    del platonov_arrays["node_features"]
    form: Arrays = {"word_vectors": np.ones((2, 2)), "node_words": np.array([0] * 11 + [7])}
    with pytest.raises(DataError, match="node_words of node 11 is 7"):
        read_npz(write_npz(platonov_arrays | form))
    form = {
        "features_data": np.ones(2, dtype=np.float32),
        "features_indices": np.array([0, 9], dtype=np.int32),
        "features_indptr": np.array([0, 2] + [2] * 11, dtype=np.int32),
        "features_shape": np.array([12, 3]),
    }
    with pytest.raises(DataError, match="not a valid CSR"):
        read_npz(write_npz(platonov_arrays | form))


def test_own_npz_is_undirected_unless_it_says_otherwise(platonov_arrays: Arrays, write_npz: Write) -> None:
    path = write_npz(platonov_arrays)
    stored = torch.from_numpy(platonov_arrays["edges"]).t().contiguous()
    assert torch.equal(load_dataset(path).data.edge_index, to_undirected(stored))
    assert load_dataset(path, convention="directed").data.edge_index.shape[1] == 5
    path = write_npz(platonov_arrays | {"edge_convention": np.array("directed")})
    assert load_dataset(path).data.edge_index.shape[1] == 5


def test_edge_features_reach_the_data(platonov_arrays: Arrays, write_npz: Write) -> None:
    path = write_npz(platonov_arrays | {"edge_features": np.arange(5.0)})
    data = load_dataset(path).data
    values = {tuple(pair): v for pair, v in zip(data.edge_index.T.tolist(), data.edge_attr[:, 0].tolist())}
    for (a, b), value in zip(platonov_arrays["edges"].tolist(), range(5)):
        assert values[a, b] == values[b, a] == value
