"""Graph folders: the graph that memory would hold, from any source; damage is told in a line."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn import functional as F

from ltga.data import Dataset, NeighborSampler, Preparation, csbm, graph_folder_files, load_dataset, open_graph_folder
from ltga.data import graph_folder_sources as sources
from ltga.data import graph_folder_tables as tables
from ltga.data.graph_folder_files import sealed
from ltga.data.graph_folder_sort import EdgeSorter
from ltga.data.graph_folder_sources import DatasetStream, open_source
from ltga.data.graph_folder_write import write_graph_folder
from ltga.data.power_law import PowerLaw
from ltga.errors import DataError, InputError, LTGAError
from ltga.nn import LTGA

SMALLEST = 1024**2


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small graph has many blocks and, with little memory, several runs."""
    monkeypatch.setattr(sources, "_ROWS", 37)
    monkeypatch.setattr(tables, "_ROWS", 37)
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 4096)


def write_tables(folder: Path, suffix: str, names: str = "text", edges: int = 500, **columns: np.ndarray) -> Path:
    rng = np.random.default_rng(2)
    count = 120
    ids = {
        "text": [f"näme {at}" for at in range(count)],
        "numbers": (rng.permutation(count) * 7 - 50).tolist(),
        "rows": list(range(count)),
        "mixed": [*range(100), *(f"x{at}" for at in range(20))],
    }[names]
    labels = rng.choice(["red", "green", "10", ""], count)
    pairs = np.array([(a, b) for a in range(count) for b in range(count)])[rng.permutation(count**2)[:edges]]
    ids = [str(name) for name in ids] if names == "mixed" else ids
    nodes = pd.DataFrame({"id": ids, "label": labels, "f": rng.normal(size=count), "g": rng.normal(size=count)})
    table = pd.DataFrame({"source": [ids[a] for a in pairs[:, 0]], "target": [ids[b] for b in pairs[:, 1]], **columns})
    folder.mkdir()
    for name, frame in (("nodes", nodes), ("edges", table)):
        frame.to_csv(folder / f"{name}.csv", index=False) if suffix == "csv" else frame.to_parquet(
            folder / f"{name}.parquet"
        )
    return folder


def edge_set(dataset: Dataset) -> list[tuple[float, ...]]:
    columns = [dataset.data.edge_index.T.double()]
    if dataset.data.get("edge_attr") is not None:
        columns.append(dataset.data.edge_attr.double())
    return sorted(map(tuple, torch.cat(columns, dim=1).tolist()))


def assert_same_graph(ours: Dataset, theirs: Dataset) -> None:
    torch.testing.assert_close(ours.data.x, theirs.data.x, atol=0, rtol=0)
    assert ours.data.y.equal(theirs.data.y) and ours.class_names == theirs.class_names
    assert edge_set(ours) == edge_set(theirs)
    assert ours.num_splits == theirs.num_splits
    for number in range(ours.num_splits):
        assert all(a.equal(b) for a, b in zip(ours.split(number), theirs.split(number)))
    assert ours.node_names == theirs.node_names


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("names", ["text", "numbers", "rows", "mixed"])
@pytest.mark.parametrize("convention", ["directed", "undirected, once"])
def test_tables_give_the_graph_that_the_reader_in_memory_gives(
    tmp_path: Path, suffix: str, names: str, convention: str
) -> None:
    folder = write_tables(tmp_path / "tables", suffix, names, edges=60, weight=np.arange(60) / 7)
    made = write_graph_folder(open_source(str(folder), convention), tmp_path / "graph", memory=SMALLEST)
    made.verify()
    theirs = load_dataset(folder, convention=convention, preparation=Preparation(scale="none"))
    assert_same_graph(made.dataset(), theirs)
    assert_same_graph(load_dataset(tmp_path / "graph"), theirs)
    assert made.node_names([3]) == [theirs.node_names[3]]


@pytest.mark.parametrize("convention", ["directed", "undirected, once", "both directions"])
@pytest.mark.parametrize("attributes", [False, True])
@pytest.mark.parametrize("compressed", [False, True])
def test_npz_gives_the_graph_that_the_reader_in_memory_gives(
    tmp_path: Path, convention: str, attributes: bool, compressed: bool
) -> None:
    rng = np.random.default_rng(1)
    edges = np.unique(np.sort(rng.integers(0, 90, (300, 2)), axis=1), axis=0)
    if convention == "both directions":
        edges = np.unique(np.concatenate([edges, edges[:, ::-1]]), axis=0)
    edges = rng.permutation(edges)
    if not attributes and convention != "both directions":
        edges = np.concatenate([edges, edges[:9]])  # repeats, which are dropped
    content = {
        "node_features": rng.normal(size=(90, 5)).astype(np.float32), "node_labels": rng.integers(-1, 3, 90),
        "edges": edges, "edge_convention": np.array(convention),
    }  # fmt: skip
    if attributes:
        content["edge_features"] = rng.normal(size=(len(edges), 2))
    path = tmp_path / "graph.npz"
    (np.savez_compressed if compressed else np.savez)(path, **content)
    made = write_graph_folder(open_source(str(path)), tmp_path / "graph")
    assert_same_graph(made.dataset(), load_dataset(path))
    assert made.manifest["provenance"]["repeats_dropped"] == (
        0
        if attributes or convention == "both directions"
        else (9 if convention == "directed" else 18 - loops(edges[:9]))
    )


def loops(edges: np.ndarray) -> int:
    return int((edges[:, 0] == edges[:, 1]).sum())


def test_a_dataset_keeps_its_edges_as_they_stand(tmp_path: Path) -> None:
    dataset = csbm(num_nodes=200, seed=4)
    dataset.data.edge_attr = torch.rand(dataset.data.num_edges, 3)
    made = write_graph_folder(DatasetStream(dataset), tmp_path / "graph")
    assert_same_graph(made.dataset(), dataset)
    dataset.data.edge_time = torch.randperm(dataset.data.num_edges)
    timed = write_graph_folder(DatasetStream(dataset), tmp_path / "timed").dataset()
    assert_same_graph(timed, dataset)
    told = dict(zip(map(tuple, dataset.data.edge_index.T.tolist()), dataset.data.edge_time.tolist()))
    assert [told[tuple(pair)] for pair in timed.data.edge_index.T.tolist()] == timed.data.edge_time.tolist()
    with pytest.raises(InputError, match="is a graph folder already"):
        open_source(str(made.path))


def test_the_external_sort_is_numpys_in_any_number_of_runs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    source, target, carried = rng.integers(0, 60, 20_000), rng.integers(0, 60, 20_000), rng.random((20_000, 2))
    sorter = EdgeSorter(tmp_path, width=2, memory=4 * 24 * 1500)
    for first in range(0, 20_000, 777):
        part = slice(first, first + 777)
        sorter.add(source[part], target[part], carried[part])
    parts = list(sorter.merged())
    assert sorter.num_runs > 10 and max(len(part[0]) for part in parts) <= sorter.run_rows
    order = np.lexsort((source, target))
    for ours, theirs in zip(map(np.concatenate, zip(*parts)), (target[order], source[order])):
        assert (ours == theirs).all()
    ours = np.concatenate([np.column_stack(part) for part in parts])
    theirs = np.column_stack([target, source, carried])
    assert sorted(map(tuple, ours.tolist())) == sorted(map(tuple, theirs.tolist()))


def test_little_memory_gives_the_same_files(tmp_path: Path) -> None:
    checksums = []
    for memory in (SMALLEST, 64 * SMALLEST):
        stream = PowerLaw(num_nodes=3000, num_edges=80_000, num_features=4)
        made = write_graph_folder(stream, tmp_path / str(memory), features="float16", memory=memory)
        checksums.append({name: entry["sha256"] for name, entry in made.manifest["arrays"].items()})
    assert checksums[0] == checksums[1]
    degrees = np.sort(np.diff(made.ptr))[::-1]
    assert degrees[0] > 20 * np.median(degrees) and made.num_edges > 70_000
    target = np.repeat(np.arange(3000), np.diff(made.ptr))
    assert 0.6 < (made.y[made.source] == made.y[target]).mean() < 0.75  # 0.6 + 0.4 / 8 by design
    assert (made.split(0)[0].sum(), made.split(0)[2].sum()) == (pytest.approx(30, abs=20), pytest.approx(60, abs=30))


MEASURED = """
import re
from pathlib import Path
from ltga.data.graph_folder_write import write_graph_folder
from ltga.data.power_law import PowerLaw

def status(field):
    return int(next(line for line in Path("/proc/self/status").read_text().splitlines() if field in line).split()[1])

write_graph_folder(PowerLaw(num_nodes=1000), "warm")
told = []
before = status("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
stream = PowerLaw(num_nodes=300_000, num_edges=6_000_000, num_features=2)
write_graph_folder(stream, "graph", memory=16 << 20, say=told.append)
promised = next(int(found[1]) for line in told if (found := re.search(r"up to ([0-9,]+) MiB", line)))
print(promised, (status("VmHWM") - before) / 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from Linux's /proc")
def test_memory_is_no_more_than_told(tmp_path: Path) -> None:
    """The edges as keys are 48 MB. 24 MiB are for the blocks that nodes and edges come in."""
    done = subprocess.run([sys.executable, "-c", MEASURED], cwd=tmp_path, capture_output=True, text=True, check=True)
    told, needed = map(float, done.stdout.split())
    assert told < 40 and needed < told + 24


def test_times_order_the_edges_and_the_sampler_reads_them(tmp_path: Path) -> None:
    when = np.random.default_rng(3).integers(1_700_000_000, 1_700_000_999, 500)  # float32 could not tell them apart
    folder = write_tables(tmp_path / "tables", "csv", weight=np.linspace(0, 1, 500), time=when)
    made = write_graph_folder(open_source(str(folder)), tmp_path / "graph", memory=SMALLEST)
    assert made.edge_columns == ("weight",) and sorted(made.edge_time.tolist()) == sorted(when.tolist())
    target = np.repeat(np.arange(120), np.diff(made.ptr))
    assert (np.diff(made.edge_time)[np.diff(target) == 0] >= 0).all()
    # The same edge still has its own weight and time.
    table = pd.read_csv(folder / "edges.csv")
    told = {(a, b): (w, t) for a, b, w, t in table[["source", "target", "weight", "time"]].itertuples(index=False)}
    for edge in range(500):
        key = tuple(made.node_names([made.source[edge], target[edge]]))
        assert told[key] == (pytest.approx(made.edge_attr[edge, 0]), made.edge_time[edge])
    limit = torch.full((120,), 1_700_000_500)
    for batch in NeighborSampler(made, [-1, 3], weight_attr="weight", time_attr="time", input_time=limit):
        assert (batch.edge_time < 1_700_000_500).all() and len(batch.edge_time)


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_batches_from_disk_are_batches_from_memory(tmp_path: Path, kind: str) -> None:
    dataset = csbm(num_nodes=400, degree=8, seed=2)
    made = write_graph_folder(DatasetStream(dataset), tmp_path / "graph", features=kind)
    assert isinstance(made.x, np.memmap) and isinstance(made.source, np.memmap) and made.x.dtype == kind
    in_memory = made.dataset().data
    settings = {"fanout": [4, 3], "nodes": made.split(0)[0], "batch_size": 64, "seed": 5}
    for ours, theirs in zip(NeighborSampler(made, **settings), NeighborSampler(in_memory, **settings), strict=True):
        for key in ("x", "y", "n_id", "e_id", "edge_index", "input_id"):
            assert ours[key].equal(theirs[key])
        assert ours.x.dtype == torch.float32
    model = LTGA(16, 2, hidden_channels=4, heads=2)
    whole = model.eval()(in_memory.x, in_memory.edge_index)
    for batch in NeighborSampler(made, [-1, -1], batch_size=100):
        out = model(batch.x, batch.edge_index)[: batch.batch_size]
        torch.testing.assert_close(out, whole[batch.n_id[: batch.batch_size]], atol=1e-5, rtol=1e-5)
        F.cross_entropy(out, batch.y[: batch.batch_size]).backward()


def damage(folder: Path, how: str) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    if how == "no manifest":
        (folder / "manifest.json").unlink()
    elif how == "no json":
        (folder / "manifest.json").write_text("{")
    elif how == "foreign":
        (folder / "manifest.json").write_text('{"name": "my app"}')
    elif how == "newer":
        (folder / "manifest.json").write_text(json.dumps({**manifest, "version": 3}))
    elif how == "no arrays":
        (folder / "manifest.json").write_text(json.dumps(sealed({**manifest, "arrays": {"x": 3}})))
    elif how == "missing":
        (folder / "y.npy").unlink()
    elif how == "cut":
        with (folder / "source.npy").open("r+b") as stream:
            stream.truncate(500)
    elif how == "empty":
        (folder / "x.npy").write_bytes(b"")
    elif how == "pickle":
        np.save(folder / "y.npy", np.array([object()]), allow_pickle=True)
    elif how == "other shape":
        np.save(folder / "y.npy", np.zeros(3, np.int32))
    elif how == "other graph":
        np.save(folder / "y.npy", np.zeros(3, np.int32))
        manifest["arrays"]["y"] |= {"shape": [3]}
        (folder / "manifest.json").write_text(json.dumps(sealed(manifest)))
    elif how == "shape":
        manifest["arrays"]["y"] |= {"shape": 7}
        (folder / "manifest.json").write_text(json.dumps(sealed(manifest)))
    elif how == "other names":
        manifest["class_names"].reverse()
        (folder / "manifest.json").write_text(json.dumps(manifest))


FAULTS = {
    "no manifest": "has no manifest.json: not a graph folder, or one that was never finished",
    "no json": "its manifest.json is damaged",
    "foreign": "is not that of a graph folder",
    "newer": "of version 3, this ltga reads 2",
    "no arrays": "does not describe a graph",
    "missing": "y.npy is missing",
    "cut": "source.npy is damaged or cut short",
    "empty": "x.npy is damaged or cut short",
    "pickle": "y.npy is damaged or cut short",
    "other shape": r"y.npy holds int32 \[3\], but manifest.json says int32 \[200\]",
    "other graph": "in a graph of 3 nodes",
    "shape": "does not describe a graph",
    "other names": "manifest.json is not what was written",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "graph"
    return write_graph_folder(DatasetStream(csbm(num_nodes=200, seed=4)), folder).path


@pytest.mark.parametrize("how", FAULTS)
def test_damage_is_told_in_one_line(sound: Path, tmp_path: Path, how: str) -> None:
    folder = shutil.copytree(sound, tmp_path / "graph")
    damage(folder, how)
    with pytest.raises(DataError, match=FAULTS[how]) as caught:
        open_graph_folder(folder)
    assert "\n" not in str(caught.value) and str(folder) in str(caught.value)


@pytest.mark.parametrize("name", ["ptr", "source"])
@pytest.mark.parametrize("value", [-5, 2**31 - 2])
def test_wrong_numbers_inside_are_noticed_by_checksum_and_never_followed(
    sound: Path, tmp_path: Path, name: str, value: int
) -> None:
    folder = shutil.copytree(sound, tmp_path / "graph")
    array = np.load(folder / f"{name}.npy", mmap_mode="r+")
    array[50:60] = value
    array.flush()
    with pytest.raises(DataError, match=rf"{name}\.npy is not what was written"):
        open_graph_folder(folder)  # the file is newer than the manifest
    os.utime(folder / f"{name}.npy", ns=(0, 0))  # as if the disk had done it
    graph = open_graph_folder(folder)
    with pytest.raises(DataError, match=rf"{name}\.npy is not what was written"):
        graph.verify()
    with pytest.raises(DataError, match="edges lead out of the graph"):
        for _ in NeighborSampler(graph, [-1, -1]):
            pass
    with pytest.raises(DataError):
        graph.dataset()


def test_a_copy_is_compared_with_its_checksums_once(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(sound, tmp_path / "graph")
    os.utime(folder / "manifest.json", ns=(0, 0))
    read = []
    original = graph_folder_files.sha256_of
    monkeypatch.setattr(graph_folder_files, "sha256_of", lambda path: read.append(path.name) or original(path))
    open_graph_folder(folder)
    assert len(read) == 5
    open_graph_folder(folder)
    assert len(read) == 5


def test_another_process_gets_the_path_not_the_arrays(sound: Path) -> None:
    graph = open_graph_folder(sound)
    graph.name = "renamed"
    sent = pickle.dumps(graph)
    assert len(sent) < 1000
    again = pickle.loads(sent)
    assert again.name == "renamed" and again.fingerprint == graph.fingerprint


def test_folders_of_the_version_before_are_read(sound: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(sound, tmp_path / "graph")
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["sha256"]
    (folder / "manifest.json").write_text(json.dumps({**manifest, "version": 1}))
    assert_same_graph(open_graph_folder(folder).dataset(), open_graph_folder(sound).dataset())


def test_nothing_is_left_of_a_conversion_that_fails(tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "tables", "csv")
    with (folder / "edges.csv").open("a") as stream:
        stream.write("näme 1,nobody\n")
    with pytest.raises(DataError, match=r"edges\.csv: row 501: target 'nobody' is not an id in .*nodes\.csv"):
        write_graph_folder(open_source(str(folder)), tmp_path / "graph")
    assert [path.name for path in tmp_path.iterdir()] == ["tables"]
    with pytest.raises(InputError, match="is there already"):
        write_graph_folder(open_source("power-law"), folder)


def spoil(folder: Path, file: str, row: int, line: str) -> None:
    lines = (folder / file).read_text().splitlines()
    lines[row] = line
    (folder / file).write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(("file", "row", "line", "message"), [
    ("nodes.csv", 3, "näme 0,red,1,2", r"nodes\.csv: row 3: id repeats row 1"),
    ("nodes.csv", 3, " ,red,1,2", r"nodes\.csv: row 3: id is blank"),
    ("nodes.csv", 90, "näme 89,red,one,2", r"nodes\.csv: row 90: f is 'one', expected a finite number"),
    ("nodes.csv", 90, "näme 89,red,inf,2", r"nodes\.csv: row 90: f is 'inf'"),
    ("nodes.csv", 90, "näme 89,red,1e39,2", r"nodes\.csv: row 90: f is '1e39'"),
    ("nodes.csv", 90, "näme 89,red,1", r"nodes\.csv: cannot be read as a csv table"),
    ("nodes.csv", 0, "id,label", "no feature columns"),
    ("nodes.csv", 0, "name,label,f,g", "column 'id' is missing"),
    ("nodes.csv", 0, "id,label,f,f", "column names repeat"),
    ("nodes.csv", 0, "id,label,f,", "a column has no name; name or delete it, or choose --prepare"),
    ("nodes.csv", 0, "id,label,f,Unnamed: 0", "column 'Unnamed: 0' is an index of pandas, it seems; name or delete it"),
    ("nodes.csv", 0, "id;label;f;g", "column 'id' is missing.*; for columns that no comma separates choose --prepare"),
    ("nodes.csv", 0, "sep=,", "for columns that no comma separates choose --prepare"),
    ("nodes.csv", 90, "näme 89,NA,1,2", r"row 90: label is 'NA', which may be a class, or not known; choose --prep"),
    ("edges.csv", 2, "näme 1", "cannot be read as a csv table"),
])  # fmt: skip
def test_faults_of_tables_name_file_and_row(tmp_path: Path, file: str, row: int, line: str, message: str) -> None:
    folder = write_tables(tmp_path / "tables", "csv")
    spoil(folder, file, row, line)
    with pytest.raises(LTGAError, match=message) as caught:
        write_graph_folder(open_source(str(folder)), tmp_path / "graph")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "graph").exists()


def test_repeated_edges_of_tables_and_too_large_features_are_refused(tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "tables", "csv")
    first = (folder / "edges.csv").read_text().splitlines()[1]
    spoil(folder, "edges.csv", 400, first)
    with pytest.raises(DataError, match="is there twice"):
        write_graph_folder(open_source(str(folder)), tmp_path / "graph")
    spoil(folder, "edges.csv", 400, "näme 1,näme 1")
    spoil(folder, "nodes.csv", 90, "näme 89,red,1e6,2")
    with pytest.raises(DataError, match=r"feature 0 of node 89 is 1000000\.0, which does not fit float16"):
        write_graph_folder(open_source(str(folder)), tmp_path / "graph", features="float16")


def test_both_directions_are_checked(tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "tables", "csv")
    with pytest.raises(DataError, match="in the other direction, although both were promised"):
        write_graph_folder(open_source(str(folder), "both directions"), tmp_path / "graph")


@pytest.mark.parametrize(("source", "message"), [
    ("power-law:nodes=5", "power-law has no setting 'nodes'"),
    ("power-law:num_nodes=5", "num_nodes: got 5; give at least 100"),
    ("power-law:exponent=2", "exponent: got 2"),
    ("nothing-here", "no dataset is called"),
    ("./nothing.npz", "no such file"),
])  # fmt: skip
def test_sources_that_are_none(source: str, message: str) -> None:
    with pytest.raises(LTGAError, match=message):
        open_source(source)
