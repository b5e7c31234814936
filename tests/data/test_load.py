"""`load_dataset` and the store: names, folders, missing, corrupt and swapped files."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ltga.data
from ltga.data import data_folders, load_dataset
from ltga.data.catalogue import CATALOGUE
from ltga.data.npz import read_npz
from ltga.data.obtain import check_file
from ltga.errors import DataError, InputError


@pytest.fixture
def offline(isolated: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without datasets whose connections are refused."""
    monkeypatch.setattr("ltga.data.facts.UPSTREAM", "http://127.0.0.1:9")
    return isolated


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("coar", "cora"),
        ("romanempire", "roman-empire"),
        ("Amazon_Rating", "amazon-ratings"),
        ("digit", "digits"),
    ],
)
def test_an_unknown_name_suggests_the_closest(wrong: str, right: str) -> None:
    with pytest.raises(InputError, match=f"{wrong}.*did you mean '{right}"):
        load_dataset(wrong)


def test_a_hopeless_name_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"known are cora, .*kinships; or give the path"):
        load_dataset("zzzzzz")


def test_folders_are_looked_in_in_order(isolated: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert data_folders() == [isolated]
    monkeypatch.setenv("LTGA_DATA", str(tmp_path / "env"))
    assert data_folders(tmp_path / "root") == [tmp_path / "root", tmp_path / "env", isolated]
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"root.*is a file"):
        data_folders(tmp_path / "file")


@pytest.mark.data
def test_the_explicit_root_comes_before_the_environment(
    data_root: Path, isolated: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LTGA_DATA", str(data_root))
    assert load_dataset("texas").provenance["folder"] == str(data_root)
    shutil.copy(data_root / "texas.npz", tmp_path / "texas.npz")
    assert load_dataset("texas", root=tmp_path).provenance["folder"] == str(tmp_path)
    assert load_dataset("cora", root=tmp_path).provenance["folder"] == str(data_root)
    assert load_dataset("Chameleon_Filtered").name == "chameleon-filtered"


@pytest.mark.parametrize("name", [n for n, f in CATALOGUE.items() if f.reader != "generated"])
def test_offline_errors_say_which_file_to_put_where(name: str, offline: Path) -> None:
    with pytest.raises(DataError) as caught:
        load_dataset(name)
    message, facts = str(caught.value), CATALOGUE[name]
    first = (facts.raw or (facts.packed,))[0]
    assert first is not None
    assert Path(first.path).name in message
    assert str((offline / first.path).parent) in message
    assert (first.sha256 or "not known") in message
    if "gum" in name:
        assert "cannot be downloaded because this project built it" in message
    assert "\n" not in message
    assert not [path for path in offline.rglob("*") if path.is_file()]


def test_a_read_only_folder_is_not_downloaded_into(
    offline: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o555)
    monkeypatch.setenv("LTGA_DATA", str(shared))
    with pytest.raises(DataError, match=f"into {offline}"):
        load_dataset("roman-empire")


@pytest.mark.data
@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty"])
def test_damaged_files_are_named_and_refused(damage: str, data_root: Path, tmp_path: Path) -> None:
    content = bytearray((data_root / "wisconsin.npz").read_bytes())
    if damage == "truncated":
        content = content[:-100]
    elif damage == "flipped":
        content[len(content) // 2] ^= 1
    else:
        content = bytearray()
    (tmp_path / "wisconsin.npz").write_bytes(content)
    expected = "corrupt" if damage == "flipped" else "truncated"
    with pytest.raises(DataError, match=rf"wisconsin\.npz: {expected}.*sha256 45686372"):
        load_dataset("wisconsin", root=tmp_path)


@pytest.mark.data
def test_swapped_files_are_named_for_what_they_are(data_root: Path, tmp_path: Path) -> None:
    shutil.copy(data_root / "texas.npz", tmp_path / "wisconsin.npz")
    with pytest.raises(DataError, match=r"swapped file: this is texas\.npz of texas, not of wisconsin"):
        load_dataset("wisconsin", root=tmp_path)
    shutil.copytree(data_root / "raw/planetoid", tmp_path / "raw/planetoid")
    shutil.copy(data_root / "raw/planetoid/ind.cora.tx", tmp_path / "raw/planetoid/ind.cora.allx")
    with pytest.raises(DataError, match=r"ind\.cora\.allx: swapped file: this is ind\.cora\.tx"):
        load_dataset("cora", root=tmp_path)


@pytest.mark.data
def test_a_damaged_pickle_is_refused_by_sum_before_it_is_read(data_root: Path, tmp_path: Path) -> None:
    shutil.copytree(data_root / "raw/planetoid", tmp_path / "raw/planetoid")
    (tmp_path / "raw/planetoid/ind.cora.graph").write_bytes(b"cos\nsystem\n(S'touch " + b"x'\ntR.")
    with pytest.raises(DataError, match=r"ind\.cora\.graph: truncated or not the file"):
        load_dataset("cora", root=tmp_path)


def test_roman_empire_is_real_down_to_its_sum(
    platonov_arrays: dict[str, np.ndarray], write_npz: Callable[..., Path], offline: Path
) -> None:
    path = write_npz(platonov_arrays, "roman_empire.npz")
    with pytest.raises(DataError, match="sha256 a58ba741d123bf89"):
        load_dataset("roman-empire", root=path.parent)
    assert load_dataset(path).data.edge_index.shape[1] == 10
    facts = CATALOGUE["amazon-ratings"]
    assert facts.packed is not None
    assert check_file(path, facts.packed, facts) == path
    assert np.array_equal(read_npz(path).x, platonov_arrays["node_features"])


def test_amazon_ratings_of_the_wrong_shape_is_refused(
    platonov_arrays: dict[str, np.ndarray], write_npz: Callable[..., Path], offline: Path
) -> None:
    path = write_npz(platonov_arrays, "amazon_ratings.npz")
    with pytest.raises(DataError, match=r"not amazon-ratings: it has 12 nodes instead of 24,492, 5 edges"):
        load_dataset("amazon-ratings", root=path.parent)


def test_knobs_of_generated_graphs() -> None:
    dataset = load_dataset("csbm:snr=0.5, degree=20,num_nodes=300")
    assert dataset.name == "csbm:degree=20,num_nodes=300,snr=0.5"
    assert dataset.data.num_nodes == 300
    assert load_dataset(dataset.name).data.edge_index.equal(dataset.data.edge_index)
    for bad, message in [
        ("csbm:colour=3", "no setting 'colour'; use num_nodes"),
        ("csbm:num_nodes=many", "must be a whole number, got 'many'"),
        ("csbm:num_nodes=10.5", "whole number"),
        ("csbm:snr=inf", "must be a finite number"),
        ("csbm:seed=1,seed=2", "seed is given twice"),
        ("csbm:snr=nan", "must be a finite number"),
        ("cora:k=1", "no setting 'k'; use planted_per_edge, seed"),
    ]:
        with pytest.raises(InputError, match=message):
            load_dataset(bad)


@pytest.mark.parametrize("name", [None, 3, ""])
def test_what_is_no_name_is_refused(name: object) -> None:
    with pytest.raises(InputError, match="give the name of a dataset"):
        load_dataset(name)  # type: ignore[arg-type]


def test_a_convention_is_for_own_graphs_only() -> None:
    with pytest.raises(InputError, match="convention"):
        load_dataset("cora", convention="directed")


def test_the_package_imports_nothing_of_ltga_but_errors() -> None:
    for path in Path(ltga.data.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ltga"):
                assert str(node.module).startswith(("ltga.data", "ltga.errors", "ltga.lazy")), path
