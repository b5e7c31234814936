"""A store with bad files in it: every command serves the rest and names what it left out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ltga.study.archive import read_archive
from oracles.records import make_record, write_records

BAD = {
    "x.json": '{"schema":1,"id":"x","config":{}}',
    "deep.json": "[" * 100_000,
    "notes.json": '"hello"',
    "empty.json": "",
}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    records = [make_record(method=method, seed=seed) for method in ("gat", "gatv2") for seed in (1, 2)]
    write_records(tmp_path / "store", records)
    for name, content in BAD.items():
        (tmp_path / "store" / name).write_text(content)
    (tmp_path / "store" / "folder.json").mkdir()
    forged = make_record(seed=3)
    forged["metrics"]["test"]["accuracy"] = "high"
    write_records(tmp_path / "store", [forged])
    return tmp_path / "store"


def told(err: str) -> None:
    lines = [line for line in err.splitlines() if line.startswith("left out: ")]
    assert len(lines) == 6 and "1 more damaged files; `ltga suite verify --store" in lines[-1]
    assert "Traceback" not in err


def test_status(store: Path, ltga: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(
        "LTGA_DATA", raising=False
    )  # where the graphs are, their fingerprints tell made-up records apart
    found = ltga("suite", "status", "pairwise-seeds", "--store", store, "--data", store)
    assert found.code == 0
    told(found.err)
    plain = ltga("suite", "status", "pairwise-seeds", "--store", store, "--data", store, "--json")
    listed = json.loads(plain.out)
    assert {*BAD, "folder.json"} < set(listed["damaged"]) and listed["experiments"][0]["done"] == 4


def test_export(store: Path, ltga: Callable[..., Any], tmp_path: Path) -> None:
    found = ltga("suite", "export", tmp_path / "a.gz", "--store", store)
    assert found.code == 0 and "4 records" in found.out and len(list(read_archive(tmp_path / "a.gz"))) == 4
    told(found.err)


def test_report(store: Path, ltga: Callable[..., Any], tmp_path: Path) -> None:
    found = ltga("suite", "report", "headline", "--store", store, "--out", tmp_path / "report")
    assert found.code == 0 and "from 4 runs" in found.out
    told(found.err)


def test_verify(store: Path, ltga: Callable[..., Any]) -> None:
    found = ltga("suite", "verify", "--store", store)
    assert found.code == 2 and "10 runs: 4 unchecked, 6 damaged" in found.out
    assert "do again: texas, gat, seed 3, split 2: " in found.out


@pytest.mark.parametrize("command", [("report", "headline", "--out"), ("export",)])
def test_a_disk_that_fills_up_is_named_with_the_file(
    store: Path, ltga: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    out = tmp_path / "out"
    found = ltga("suite", *command, out, "--store", store)
    last = found.err.splitlines()[-1]
    assert found.code == 2 and last.startswith("error: ") and "No space left on device" in last
    assert (str(out / "tables" / "headline.md") if command[0] == "report" else str(out)) in last


@pytest.mark.parametrize(
    "content",
    ["a = " + "[" * 100_000, "protocol = " + "{a=" * 5_000, "protocol.lr." + "a." * 5_000 + "a = 1", "x" * (2 << 20)],
    ids=["lists", "tables", "dots", "long"],
)
def test_settings_nested_without_end(ltga: Callable[..., Any], tmp_path: Path, content: str) -> None:
    (tmp_path / "deep.toml").write_text(content)
    found = ltga("train", "--config", tmp_path / "deep.toml")
    assert found.code == 2 and found.err.startswith("error: --config: ") and found.err.count("\n") == 1


def test_a_graph_whose_file_name_is_no_text(ltga: Callable[..., Any], tmp_path: Path) -> None:
    """Bytes that are not UTF-8 in a file name lost the run when it was to be stored."""
    import os

    import numpy as np

    rng = np.random.default_rng(0)
    path = tmp_path / os.fsdecode(b"caf\xe9.npz")
    np.savez(
        path, edges=rng.integers(0, 60, (120, 2)), node_features=rng.random((60, 4)), node_labels=np.arange(60) % 2
    )
    out = os.fsdecode(b"runs\xe9")
    found = ltga("train", path, "--method", "gcn,ltga-head", "--seeds", 1, "--set", "epochs=2", "--out", out)
    assert found.code == 0 and len(list((tmp_path / out).glob("*.json"))) == 2
    again = ltga("train", path, "--method", "gcn,ltga-head", "--seeds", 1, "--set", "epochs=2", "--out", out, "--json")
    assert all(run["reused"] for method in json.loads(again.out)["methods"] for run in method["runs"])
