"""The Planetoid reader against PyG and the packed files, and against hostile pickles."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.io import read_planetoid_data

from ltga.data import load_dataset
from ltga.data.inert_pickle import load_inert
from ltga.data.planetoid import PARTS, read_planetoid
from ltga.errors import DataError


def raw_only(data_root: Path, tmp_path: Path) -> Path:
    (tmp_path / "raw").symlink_to(data_root / "raw")
    return tmp_path


@pytest.mark.data
@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_raw_files_equal_pyg_and_the_packed_file(name: str, data_root: Path, tmp_path: Path) -> None:
    raw = load_dataset(name, root=raw_only(data_root, tmp_path))
    packed = load_dataset(name, root=data_root)
    theirs = read_planetoid_data(str(data_root / "raw/planetoid"), name)
    assert (raw.provenance["form"], packed.provenance["form"]) == ("raw", "packed")
    for dataset in (raw, packed):
        for key in ("x", "y", "edge_index"):
            assert torch.equal(dataset.data[key], theirs[key])
        for mask, key in zip(dataset.split(0), ("train_mask", "val_mask", "test_mask")):
            assert torch.equal(mask, theirs[key])


@pytest.mark.data
def test_citeseer_nodes_outside_the_test_index(data_root: Path) -> None:
    dataset = load_dataset("citeseer", root=data_root)
    listed = {int(line) for line in (data_root / "raw/planetoid/ind.citeseer.test.index").read_text().split()}
    absent = sorted(set(range(min(listed), max(listed) + 1)) - listed)
    assert len(absent) == 15
    assert float(dataset.data.x[absent].abs().sum()) == 0
    assert dataset.data.y[absent].tolist() == [0] * 15
    assert not any(bool(mask[absent].any()) for mask in dataset.split(0))


def hostile(witness: Path) -> dict[str, bytes]:
    """Streams that touch `witness` if any part of them is run, by different opcodes."""
    code = f"open({str(witness)!r}, 'w')".encode()
    text = b"X" + struct.pack("<I", len(code)) + code
    return {
        "global-reduce": b"c__builtin__\neval\n(" + text + b"tR.",
        "python-3 name": b"cbuiltins\neval\n(" + text + b"tR.",
        "stack-global": b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93(" + text + b"tR.",
        "inst": b"(" + text + b"i__builtin__\neval\n.",
        "obj": b"(cbuiltins\neval\n" + text + b"o.",
        "newobj": b"\x80\x02csubprocess\nPopen\n(" + text + b"t\x81.",
        "dotted": b"\x80\x04\x8c\x05numpy\x8c\x11ndarray.__class__\x93.",
        "numpy load": b"cnumpy\nload\n(" + text + b"tR.",
        "extension": b"\x80\x02\x82\x01.",
        "persistent": b"Pspam\n.",
    }


@pytest.mark.parametrize("kind", sorted(hostile(Path("x"))))
def test_hostile_pickles_are_refused_and_nothing_runs(kind: str, tmp_path: Path) -> None:
    witness, path = tmp_path / "ran", tmp_path / "ind.cora.x"
    path.write_bytes(hostile(witness)[kind])
    with pytest.raises(DataError, match="nothing in it was run"):
        load_inert(path)
    assert not witness.exists()


def test_the_hostile_pickle_would_run_in_pickle(tmp_path: Path) -> None:
    """Guards the test above: the same bytes do act on an ordinary unpickler."""
    pickle.loads(hostile(tmp_path / "ran")["global-reduce"])
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype=np.int32).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array([1.5, 2.5], dtype=">f8"),
    ],
)
def test_arrays_of_any_order_are_rebuilt(value: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "ind.x"
    path.write_bytes(pickle.dumps(value, protocol=2).replace(b"numpy._core", b"numpy.core"))
    if b"_codecs" in path.read_bytes():  # Python 3 writes bytes through a codec that Python 2 did not need
        with pytest.raises(DataError, match="_codecs"):
            load_inert(path)
        path.write_bytes(pickle.dumps(value, protocol=3))
    assert np.array_equal(load_inert(path), value)


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x80\x02", b"]q\x00.", b"K\x01."])
def test_damaged_files_are_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "ind.cora.allx"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"ind\.cora\.allx"):
        load_inert(path)


@pytest.mark.data
def test_files_of_two_datasets_do_not_fit_together(data_root: Path) -> None:
    folder = data_root / "raw/planetoid"
    files = {part: folder / f"ind.cora.{part}" for part in PARTS}
    with pytest.raises(DataError, match="do not fit together"):
        read_planetoid(files | {"tx": folder / "ind.citeseer.tx"})
    del files["graph"]
    with pytest.raises(DataError, match="missing: graph"):
        read_planetoid(files)
