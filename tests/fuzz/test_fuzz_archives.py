"""Thousands of damaged archives: refused in one line and nothing changed, or imported with the very numbers in them."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from fuzz import mutate, tally
from ltga.errors import RecordError
from ltga.study import Store
from ltga.study.archive import read_archive, stored_records, unpack_archive, write_archive
from oracles.records import make_record


def damaged(packed: bytes, rng: random.Random) -> tuple[bytes, bool]:
    """An archive damaged in one random way, and whether its records still have checksums."""
    lines = gzip.decompress(packed).splitlines()
    number = rng.randrange(len(lines))
    what = rng.randrange(8)
    if what <= 1:
        return mutate.mutated_bytes(packed, rng), True
    if what == 2:
        lines[number] = mutate.mutated_bytes(lines[number], rng)
    elif what <= 4:
        lines[number] = mutate.mutated_json(lines[number], rng)
    elif what == 5:
        record = json.loads(lines[number])
        del record["checksums"]
        lines[number] = mutate.mutated_json(json.dumps(record).encode(), rng)
        return gzip.compress(b"\n".join(lines), 1, mtime=0), False
    elif what == 6:
        rng.shuffle(lines) if rng.random() < 0.5 else lines.append(rng.choice(lines))
    else:
        first, second = json.loads(lines[number]), json.loads(rng.choice(lines))
        for name in rng.sample(sorted(first), rng.randrange(1, 4)):
            first[name] = second.get(name)
        lines[number] = json.dumps(first).encode()
    return gzip.compress(b"\n".join(lines), 1, mtime=0), True


def hunt(folder: Path, cases: int, seed: int) -> list[str]:
    records = [
        make_record(method=method, seed=number, q=1.3) for method in ("gat", "ltga-head") for number in (1, 2, 3)
    ]
    healthy = make_record(dataset="cora")
    write_archive(folder / "whole.gz", records)
    packed = (folder / "whole.gz").read_bytes()
    truth = {record["id"]: record for record in read_archive(folder / "whole.gz")}
    faults = []
    for case in range(cases):
        rng = random.Random(f"{seed} {case}")
        content, checked = damaged(packed, rng)
        (folder / "bad.gz").write_bytes(content)
        shutil.rmtree(folder / "store", ignore_errors=True)
        store = Store(folder / "store")
        if case % 4 == 0:
            (folder / "store").mkdir()
            (folder / "store" / f"{healthy['id']}.json").write_text(json.dumps(healthy))
        try:
            fault = _look(folder / "bad.gz", store, truth if checked else None, healthy if case % 4 == 0 else None)
        except Exception as error:
            fault = f"{type(error).__name__}: {str(error)[:200]}"
        if fault:
            faults.append(f"case {case}: {fault}")
    return faults


def _look(path: Path, store: Store, truth: dict[str, Any] | None, healthy: dict[str, Any] | None) -> str:
    before = {file.name for file in store.folder.glob("*.json")}
    try:
        read: list[Any] | None = stored_records(path)
    except RecordError as error:
        read = None
        if "\n" in str(error):
            return "a message of several lines"
    try:
        unpack_archive(path, store)
        if read is None:
            return "imported what cannot be read"
    except RecordError:
        if {file.name for file in store.folder.glob("*.json")} != before:
            return "a bad archive changed the store"
    served = {record["id"]: record for record in store.records()}
    if healthy is not None and served.pop(healthy["id"], None) != healthy:
        return "a healthy run was lost"
    for run, record in served.items():
        if record.get("imported", {}).get("from") != path.name:
            return "an imported run does not say so"
        original = None if truth is None else truth.get(run)
        if original is not None and _sealed(path, run) and any(record[name] != original[name] for name in original):
            return "other numbers were imported"
    return ""


def _sealed(path: Path, run: str) -> bool:
    lines = gzip.decompress(path.read_bytes()).splitlines()
    return any(record["id"] == run and record.get("checksums") for record in map(json.loads, lines))


@pytest.mark.parametrize("cases", [200, pytest.param(4000, marks=pytest.mark.slow)])
def test_damaged_archives(tmp_path: Path, cases: int, capsys: pytest.CaptureFixture[str]) -> None:
    faults = hunt(tmp_path, cases, seed=cases)
    with capsys.disabled():
        tally.report("archives", cases, len(faults))
    assert faults == []


def test_the_hunt_finds_what_a_missing_check_lets_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ltga.train.storage.broken_seal", lambda record: None)
    assert hunt(tmp_path, 200, seed=200)
