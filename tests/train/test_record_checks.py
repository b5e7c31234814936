"""What is read is what was written: swapped, edited and damaged files are refused, and saving does not fail late."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ltga.data import Dataset, csbm
from ltga.data.atomic import write_atomic
from ltga.errors import InputError, LTGAError, RecordError
from ltga.study.reproduce import reproduction_table, to_csv, to_markdown
from ltga.train import Protocol, Run, fit, load_run
from ltga.train.planned import plan_run
from ltga.train.storage import read_arrays, read_record, read_weights
from ltga.train.store import Store

QUICK = Protocol(epochs=2, hidden_channels=4, heads=2)
SUFFIXES = (".json", ".npz", ".safetensors")


@pytest.fixture(scope="module")
def runs() -> tuple[Run, Run]:
    graph = csbm(num_nodes=60)
    return fit(graph, "ltga-edge", 1, protocol=QUICK), fit(graph, "ltga-edge", 2, protocol=QUICK)


def without_checksums(path: Path) -> Path:
    """As earlier versions wrote it."""
    record = json.loads(path.read_text())
    del record["checksums"]
    path.write_text(json.dumps(record))
    return path


def test_a_record_of_an_earlier_version_is_read(runs: tuple[Run, Run], tmp_path: Path) -> None:
    path = without_checksums(runs[0].save(tmp_path))
    assert load_run(path).record == runs[0].record


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_copied_over_another_runs_are_noticed(runs: tuple[Run, Run], tmp_path: Path, suffix: str) -> None:
    first, second = (run.save(tmp_path) for run in runs)
    shutil.copy(first.with_suffix(suffix), second.with_suffix(suffix))
    assert load_run(first).record == runs[0].record
    with pytest.raises(RecordError, match=r"of another run|has changed since it was written"):
        load_run(second)


def test_a_configuration_that_is_not_the_ids_is_noticed_without_checksums(
    runs: tuple[Run, Run], tmp_path: Path
) -> None:
    path = without_checksums(runs[0].save(tmp_path))
    record = json.loads(path.read_text())
    record["config"]["seed"] = 7
    path.write_text(json.dumps(record))
    with pytest.raises(RecordError, match="is not of the run it says it is of"):
        read_record(path)


@pytest.mark.parametrize(("suffix", "read"), [(".npz", read_arrays), (".safetensors", read_weights)])
def test_a_flipped_bit_anywhere_in_arrays_and_weights_is_noticed(
    runs: tuple[Run, Run], tmp_path: Path, suffix: str, read: Callable[[Path], Any]
) -> None:
    path = runs[0].save(tmp_path)
    beside = path.with_suffix(suffix)
    whole = beside.read_bytes()
    for place in np.random.default_rng(0).integers(len(whole), size=40).tolist():
        beside.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        for reader in (read, load_run):
            with pytest.raises(RecordError, match="has changed since it was written"):
                reader(path)
    beside.write_bytes(whole)
    assert read(path)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_damage_that_no_checksum_finds_is_still_one_error(runs: tuple[Run, Run], tmp_path: Path, suffix: str) -> None:
    """zlib, zipfile, numpy and safetensors each have errors of their own."""
    path = without_checksums(runs[0].save(tmp_path))
    beside = path.with_suffix(suffix)
    whole = beside.read_bytes()
    generator = np.random.default_rng(1)
    broken = [b"", b"PK\x03\x04", b"\x93NUMPY\x01\x00", whole[: len(whole) // 2], b"\xff" * 100]
    for _ in range(150):
        damaged = bytearray(whole)
        for place in generator.integers(len(whole), size=8):
            damaged[place] = generator.integers(256)
        broken.append(bytes(damaged))
    for content in broken:
        beside.write_bytes(content)
        try:
            load_run(path)
        except RecordError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize(
    "content",
    ['{"schema":1,"id":"x","config":{}}', "[" * 100_000, '{"a":' * 100_000, "", "null", "\ufeff{}", '{"id":1e999}'],
)
def test_what_is_no_record_is_one_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(RecordError) as caught:
        read_record(path)
    assert "\n" not in str(caught.value) and "x.json" in str(caught.value)


def test_a_pipe_or_a_folder_is_no_record(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    for name in ("folder.json", "pipe.json"):
        with pytest.raises(RecordError, match="not a file"):
            read_record(tmp_path / name)


def test_a_name_that_is_no_text_does_not_lose_the_run(small: Dataset, tmp_path: Path) -> None:
    """As a file name with bytes that are not UTF-8 becomes the name of a graph."""
    graph = csbm(num_nodes=60)
    graph.name = os.fsdecode(b"caf\xe9")
    run = fit(graph, "gcn", protocol=QUICK)
    again = load_run(run.save(tmp_path))
    assert again.record == run.record and again.record["config"]["dataset"]["name"] == r"caf\udce9"
    assert again.record["id"] == plan_run(graph, "gcn", 1, None, QUICK).id


@pytest.mark.parametrize(
    ("change", "message"),
    [(lambda graph: setattr(graph, "name", Path("a")), "name must be text"), (lambda graph: None, "too large")],
)
def test_what_cannot_be_stored_is_refused_before_training(change: Callable[[Dataset], None], message: str) -> None:
    graph = csbm(num_nodes=60)
    change(graph)
    with pytest.raises(InputError, match=message):
        fit(graph, "gcn", 10**30, protocol=QUICK, callbacks=[lambda info: pytest.fail("trained")])


def test_something_odd_in_a_record_is_an_error_that_keeps_the_run(runs: tuple[Run, Run], tmp_path: Path) -> None:
    odd = Run({**runs[0].record, "note": object()}, runs[0].model, runs[0].arrays)
    with pytest.raises(RecordError, match="cannot be written as JSON"):
        odd.save(tmp_path)
    assert list(tmp_path.iterdir()) == []
    numpy = Run({**runs[0].record, "note": np.float32(0.5)}, runs[0].model, runs[0].arrays)
    assert read_record(numpy.save(tmp_path))["note"] == 0.5


def test_a_store_that_cannot_be_written_is_named_before_anything_is_run(
    small: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="file"):
        Store(tmp_path / "file" / "runs").check_writable()
    Store(tmp_path / "new" / "runs").check_writable()
    assert not (tmp_path / "new").exists()
    monkeypatch.setattr("ltga.study.reproduce.execute_and_store", lambda *_, **__: pytest.fail("trained"))
    with pytest.raises(RecordError, match=r"store: cannot write in .*runs"):
        reproduction_table(["gcn"], [small], (1, 2), store=tmp_path / "file" / "runs")


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    def full(stream: Any) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left") as caught:
        write_atomic(tmp_path / "table.md", full)
    assert caught.value.filename == str(tmp_path / "table.md") and list(tmp_path.iterdir()) == []


def test_the_reproduction_table_says_what_is_imported(small: Dataset, tmp_path: Path) -> None:
    protocol = QUICK.with_overrides(init="paper")
    run = fit(small, "gcn", 1, protocol=protocol)
    marked = Run({**run.record, "imported": {"from": "a.gz", "sha256": "0" * 64}}, run.model, run.arrays)
    marked.save(tmp_path)
    cells = reproduction_table(["gcn"], [small], (1, 2), store=tmp_path, protocol=protocol)
    assert "1 of 2 runs imported from a.gz." in to_markdown(cells, {})
    assert to_csv(cells, {}).splitlines()[0].endswith(",imported") and "1 of 2 from a.gz" in to_csv(cells, {})


def test_whatever_fit_gives_can_be_read_back(tmp_path: Path) -> None:
    """The check on reading must never be stricter than what training may write."""
    graph = csbm(num_nodes=60)
    for method in ("gcn", "linkx", "gat", "ltga-edge", "sparsemax", "gprgnn"):
        for settings in ({}, {"warmup": 0, "prior": 1.0}, {"num_layers": 1}, {"epochs": 1}):
            try:
                run = fit(graph, method, 3, protocol=QUICK.with_overrides(**settings))
            except LTGAError:
                continue  # this method has no such setting
            assert load_run(run.save(tmp_path)).record == run.record
    sampled = fit(graph, "ltga-head", protocol=QUICK, minibatch={"batch_size": 8, "fanout": [2, 2]})
    assert json.loads(json.dumps(sampled.record)) == load_run(sampled.save(tmp_path)).record
