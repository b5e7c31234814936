"""``ltga convert``: a folder, a line about it, a check; and one line where it cannot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.graphs import QUICK, write_graph, write_tables


def test_tables_npz_and_synthetic_graphs_become_folders_that_train(ltga, tmp_path: Path) -> None:
    made = ltga("convert", write_tables(tmp_path / "tables"), "one", "--features", "float16", "--memory", "64M")
    assert made.code == 0 and made.out.startswith("one: ") and "(float16)" in made.out
    assert "to sort in" in made.err and made.out.count("\n") == 1
    assert ltga("convert", write_graph(tmp_path / "graph.npz"), "two", "--quiet").err == ""
    assert ltga("convert", "power-law:num_nodes=300,num_edges=900,num_features=4,train=0.2", "three").code == 0
    for folder in ("one", "two", "three"):
        checked = ltga("convert", folder, "--check")
        assert checked.code == 0 and checked.out.startswith(f"{folder}: whole; ")
    trained = ltga("train", "./three", "--method", "gatv2", "--seeds", "1", *QUICK)
    assert trained.code == 0, trained.err


def test_damage_is_found_by_the_check(ltga, tmp_path: Path) -> None:
    ltga("convert", "csbm:num_nodes=100", "graph")
    with (tmp_path / "graph" / "x.npy").open("r+b") as stream:
        stream.seek(-3, os.SEEK_END)
        stream.write(b"\x01")
    checked = ltga("convert", "graph", "--check")
    assert checked.code == 2 and checked.err.count("\n") == 1 and "x.npy is not what was written" in checked.err


@pytest.mark.parametrize(("arguments", "message"), [
    (["csbm"], "give SOURCE and FOLDER, or --check and one graph folder"),
    (["csbm", "there"], "FOLDER: there is there already"),
    (["csbm", "new", "--memory", "much"], "--memory: got 'much'; give a size such as 512M or 2G"),
    (["csbm", "new", "--memory", "10k"], "memory: got 10240 bytes; give at least one MiB"),
    (["csbm", "new", "--features", "int8"], "features: got 'int8'; use float32 or float16"),
    (["csbm", "new", "--convention", "directed"], "convention: a known dataset has its own"),
    (["there", "new"], "there: expected edges.csv or edges.parquet, but neither is there"),
    (["there", "--check"], "there: has no manifest.json"),
    (["nowhere", "--check"], "nowhere: no such folder"),
])  # fmt: skip
def test_bad_usage_is_one_line(ltga, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "there").mkdir()
    outcome = ltga("convert", *arguments)
    assert outcome.code == 2 and outcome.err.count("\n") == 1
    assert message in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_what_is_killed_leaves_nothing_that_could_be_taken_for_a_graph(tmp_path: Path) -> None:
    """Killed without a chance to clean up: no folder of that name, and the leftover is refused in a line."""
    command = [sys.executable, "-m", "ltga", "convert", "power-law:num_nodes=2000000,num_edges=40000000", "graph"]
    child = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (parts := list(tmp_path.glob(".graph.*.part/x.npy"))) and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert parts and not (tmp_path / "graph").exists()
    from ltga.data import open_graph_folder
    from ltga.errors import DataError

    with pytest.raises(DataError, match="one that was never finished"):
        open_graph_folder(parts[0].parent)


@pytest.mark.parametrize(("label", "found"), [("{0}.5", "24 different numbers"), ("a;b", "several labels for a node")])
def test_what_train_would_not_take_for_classes_is_not_made_classes(
    ltga, tmp_path: Path, label: str, found: str
) -> None:
    nodes = "id,label,x1\n" + "".join(f"n{at},{label.format(at)},{at}\n" for at in range(24))
    outcome = ltga("convert", write_tables(tmp_path / "mine", nodes=nodes), tmp_path / "new")
    assert outcome.code == 2 and f"label holds {found}" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
