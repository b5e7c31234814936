"""npz files and pickles that lie about sizes, or mean to change the reader: refused before anything is taken."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from ltga.data import Nodes, load_dataset
from ltga.data.inert_pickle import _Array, _Csr, _Scalar, load_inert
from ltga.data.npz import read_npz
from ltga.data.planetoid import PARTS, read_planetoid
from ltga.errors import DataError

Arrays = dict[str, np.ndarray]
Write = Callable[..., Path]


# npz


def npz_with(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def npy(header: str, content: bytes = b"") -> bytes:
    text = header.encode() + b" " * (118 - len(header)) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }",
        "{'descr': '|V0', 'fortran_order': False, 'shape': (1000000000000,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "-" * 60 + "1,), }",
        "{'descr': '<M8[s]', 'fortran_order': False, 'shape': (0,), }",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (0,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (((((((((((((",
        "\x00\x01 (",
    ],
)
def test_odd_npy_headers(header: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"odd\.npz: class_names\.npy"):
        read_npz(npz_with(tmp_path / "odd.npz", {"class_names.npy": npy(header)}))


def test_wide_sparse_features_in_a_small_file(platonov_arrays: Arrays, write_npz: Write) -> None:
    del platonov_arrays["node_features"]
    form = {
        "features_data": np.ones(1, dtype=np.float32),
        "features_indices": np.zeros(1, dtype=np.int32),
        "features_indptr": np.array([0] + [1] * 12, dtype=np.int32),
        "features_shape": np.array([12, 100_000_000]),
    }
    with pytest.raises(DataError, match=r"need 4,800,000,000 bytes, but only 60 bytes describe them"):
        read_npz(write_npz(platonov_arrays | form))


@pytest.mark.parametrize(
    ("starts", "columns"),
    [
        ([0, 10**9, *[0] * 11], []),  # the last row ends at 0: scipy checks nothing and reads beyond the end
        ([0, *[-5] * 11, 0], []),
        ([5, *[1] * 12], [0]),
        ([0, *[2] * 12], [0]),
        ([0, *[1] * 12], [4]),
        ([0, *[1] * 12], [-1]),
        ([0, 1], [0]),
    ],
)
def test_sparse_rows_outside_the_matrix(
    starts: list[int], columns: list[int], platonov_arrays: Arrays, write_npz: Write
) -> None:
    del platonov_arrays["node_features"]
    form = {
        "features_data": np.ones(len(columns), dtype=np.float32),
        "features_indices": np.array(columns, dtype=np.int32),
        "features_indptr": np.array(starts, dtype=np.int32),
        "features_shape": np.array([12, 4]),
    }
    with pytest.raises(DataError, match=r"features_\* are not a valid CSR matrix"):
        read_npz(write_npz(platonov_arrays | form))


@pytest.mark.parametrize("code", [0x110000, 0xFFFFFFFF, 0xD800])
def test_text_of_characters_that_do_not_exist(code: int, platonov_arrays: Arrays, write_npz: Write) -> None:
    names = np.array(["a", "b", "c"])
    names.view(np.uint32)[1] = code
    with pytest.raises(DataError, match="class_names holds characters that do not exist"):
        load_dataset(write_npz(platonov_arrays | {"class_names": names}))
    convention = np.array("directed").reshape(1)
    convention.view(np.uint32)[0] = code
    with pytest.raises(DataError, match="edge_convention holds characters that do not exist"):
        load_dataset(write_npz(platonov_arrays | {"edge_convention": convention[0:1].reshape(())}))


def test_an_array_without_a_header(tmp_path: Path) -> None:
    path = npz_with(tmp_path / "odd.npz", {"edges.npy": b""})
    with pytest.raises(DataError, match=r"edges\.npy is not a plain numpy array \(\w"):
        read_npz(path)


def test_a_graph_without_edges_has_a_fingerprint(platonov_arrays: Arrays, write_npz: Write) -> None:
    empty = np.zeros((0, 2), dtype=int)
    dataset = load_dataset(write_npz(platonov_arrays | {"edges": empty, "edge_features": np.zeros((0, 3))}))
    assert dataset.data.edge_index.shape == (2, 0) and len(dataset.fingerprint) == 64
    assert len(Nodes(dataset.data.x, dataset.data.edge_index).fingerprint) == 64


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packing_that_hides_a_bomb_is_refused(method: int, tmp_path: Path) -> None:
    content = io.BytesIO()
    np.save(content, np.zeros(1_000_000))
    path = npz_with(tmp_path / "small.npz", {"edges.npy": content.getvalue()}, method)
    with pytest.raises(DataError, match="packed in an unusual way"):
        read_npz(path)


def test_a_directory_that_promises_more_than_deflate_can_hold(tmp_path: Path) -> None:
    header = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (3000000000,), }")
    whole = bytearray(npz_with(tmp_path / "lie.npz", {"edges.npy": header}).read_bytes())
    at = whole.rindex(b"PK\x01\x02")
    whole[at + 24 : at + 28] = struct.pack("<I", 3_000_000_000 + len(header))
    (tmp_path / "lie.npz").write_bytes(whole)
    with pytest.raises(DataError, match=r"cannot hold 3,000,000,\d+ bytes"):
        read_npz(tmp_path / "lie.npz")


def test_an_array_that_is_there_twice(tmp_path: Path) -> None:
    content = io.BytesIO()
    np.save(content, np.zeros((1, 2), dtype=int))
    path = npz_with(tmp_path / "two.npz", {"edges.npy": content.getvalue(), "edges": content.getvalue()})
    with pytest.raises(DataError, match="array 'edges' is there twice"):
        read_npz(path)


# Pickles

HUGE = {
    "bytes": b"\x80\x04\x8e" + struct.pack("<Q", 4 << 30) + b".",
    "bytes, 32 bits": b"\x80\x03B" + struct.pack("<I", 0xFFFFFFFF) + b".",
    "text": b"\x80\x04\x8d" + struct.pack("<Q", 4 << 30) + b".",
    "bytearray": b"\x80\x05\x96" + struct.pack("<Q", 4 << 30) + b".",
    "number": b"\x80\x02\x8b" + struct.pack("<i", 0x7FFFFFFF) + b".",
    "frame": b"\x80\x04\x95" + struct.pack("<Q", 4 << 30) + b"N.",
    "memo": b"\x80\x02Nr" + struct.pack("<I", 0xFFFFFFF0) + b".",
    "memo in text": b"Np4294967000\n.",
    "digits": b"I" + b"9" * 5000 + b"\n.",
    "raw as a number": pickle.dumps(np.zeros(3), 3).replace(b"C\x18" + bytes(24), b"J" + struct.pack("<i", 2**31 - 1)),
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(HUGE))
def test_a_small_pickle_that_asks_for_gigabytes(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "ind.cora.x"
    path.write_bytes(HUGE[kind])
    before = peak_kilobytes()
    with pytest.raises(DataError, match="nothing in it was run"):
        load_inert(path)
    assert peak_kilobytes() - before < 100_000


def peak_kilobytes() -> int:
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    return int(next(line for line in status.read_text().splitlines() if line.startswith("VmPeak")).split()[1])


def test_a_list_mentioned_again_and_again(tmp_path: Path) -> None:
    shared = list(range(300))
    (tmp_path / "graph").write_bytes(pickle.dumps(dict.fromkeys(range(300), shared), protocol=2))
    with pytest.raises(DataError, match="lists of more entries than the file has bytes"):
        load_inert(tmp_path / "graph")


def test_a_pickled_matrix_whose_rows_lie_outside_it(tmp_path: Path) -> None:
    matrix = scipy.sparse.csr_matrix((10, 3), dtype=np.float32)
    matrix.indptr[1] = 10**9
    (tmp_path / "tx").write_bytes(pickle.dumps(matrix, 3))
    with pytest.raises(DataError, match="rows that do not follow one another"):
        load_inert(tmp_path / "tx")


@pytest.mark.parametrize("name", [b"scipy.sparse.csr\ncsr_matrix", b"numpy.core.multiarray\nscalar", b"numpy\nndarray"])
def test_a_pickle_cannot_change_the_reader_itself(name: bytes, tmp_path: Path) -> None:
    before = [dict(vars(stand_in)) for stand_in in (_Csr, _Scalar, _Array)]
    (tmp_path / "x").write_bytes(b"c" + name + b"\n(N(dVarray\nI7\ns" + b"tb.")  # BUILD on the class, not on an object
    with pytest.raises(DataError):
        load_inert(tmp_path / "x")
    (tmp_path / "x").write_bytes(b"c" + name + b"\n(N(Varray\nI7\nd" + b"tb.")
    with pytest.raises(DataError):
        load_inert(tmp_path / "x")
    assert [dict(vars(stand_in)) for stand_in in (_Csr, _Scalar, _Array)] == before


@pytest.mark.data
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4000000000\n", "test.index holds node 4000000000, but there are"),
        ("-1\n", r"ind\.cora\.test\.index: expected a node number"),
        ("9" * 5000 + "\n", r"ind\.cora\.test\.index: expected a node number"),
        ("5\n", "test.index holds node 5, but the first 1708 are in allx"),
        ("", r"test\.index lists 999 nodes, tx has 1000"),
    ],
)
def test_a_bad_test_index(text: str, message: str, data_root: Path, tmp_path: Path) -> None:
    folder = data_root / "raw/planetoid"
    files = {part: folder / f"ind.cora.{part}" for part in PARTS}
    lines = files["test.index"].read_text().splitlines(keepends=True)
    files["test.index"] = tmp_path / "ind.cora.test.index"
    files["test.index"].write_text("".join(lines[:-1]) + text)
    with pytest.raises(DataError, match=message):
        read_planetoid(files)
