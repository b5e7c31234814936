"""Thousands of damaged stores: only RecordErrors, never another number than was stored, always the healthy rest."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzz import mutate, tally
from ltga.data import csbm
from ltga.errors import LTGAError, RecordError
from ltga.study import EXPERIMENTS, Store
from ltga.study.archive import write_archive
from ltga.study.status import status
from ltga.study.verify import verify_store
from ltga.train import Protocol, Run, fit, load_run
from ltga.train.record_schema import RunRecord
from ltga.train.storage import read_arrays, read_record, read_weights

SUFFIXES = (".json", ".npz", ".safetensors")


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    graph = csbm(num_nodes=60)
    protocol = Protocol(epochs=3, hidden_channels=4, heads=2)
    return [
        fit(graph, method, seed, protocol=protocol) for method, seed in (("ltga-edge", 1), ("gatv2", 2), ("gcn", 3))
    ]


def damage(store: Path, originals: dict[str, bytes], rng: random.Random) -> tuple[set[str], bool]:
    """Damage a store in one random way: the ids of runs that may suffer, and whether checksums were left alone."""
    ids = sorted({Path(name).stem for name in originals})
    run, other = rng.sample(ids, 2)
    suffix = rng.choice((".json", ".json", ".json", ".npz", ".safetensors"))
    path = store / f"{run}{suffix}"
    content = originals[path.name]
    what = rng.randrange(8)
    if what <= 2 and suffix == ".json":
        path.write_bytes(mutate.mutated_json(content, rng))
    elif what == 3 and suffix == ".json":  # a record of an earlier version, damaged
        record = json.loads(content)
        del record["checksums"]
        path.write_bytes(mutate.mutated_json(json.dumps(record).encode(), rng))
        return {run}, False
    elif what == 4:
        path.write_bytes(originals[f"{other}{suffix}"])
    elif what == 5:
        path.write_bytes(originals[f"{other}{suffix}"])
        (store / f"{other}{suffix}").write_bytes(content)
        return {run, other}, True
    elif what == 6:
        path.unlink()
    else:
        path.write_bytes(mutate.mutated_bytes(content, rng))
    return {run}, True


def same(run: Run, record: dict, arrays: object = None, weights: object = None) -> bool:
    plain = json.loads(json.dumps(run.record))
    if arrays is not None and any(not np.array_equal(run.arrays[name], value) for name, value in arrays.items()):  # type: ignore[attr-defined]
        return False
    state = run.model.state_dict()
    if weights is not None and any(not bool((state[name] == value).all()) for name, value in weights.items()):  # type: ignore[attr-defined]
        return False
    return bool(record == plain)


def hunt(runs: list[Run], folder: Path, cases: int, seed: int) -> list[str]:
    """What went wrong in so many damaged stores."""
    whole, store = folder / "whole", folder / "store"
    for run in runs:
        run.save(whole)
    originals = {path.name: path.read_bytes() for path in whole.iterdir()}
    by_id = {run.record["id"]: run for run in runs}
    shutil.copytree(whole, store)
    faults = []
    for case in range(cases):
        rng = random.Random(f"{seed} {case}")
        suffered, checked = damage(store, originals, rng)
        try:
            fault = _look(store, by_id, suffered, checked, case)
        except Exception as error:
            fault = f"{type(error).__name__}: {str(error)[:200]}"
        if fault:
            faults.append(f"case {case}: {fault}")
        for name in {f"{run}{suffix}" for run in suffered for suffix in SUFFIXES}:
            (store / name).write_bytes(originals[name])
    return faults


def _look(store: Path, by_id: dict[str, Run], suffered: set[str], checked: bool, case: int) -> str:
    served = {record["id"]: record for record in Store(store).records()}
    if not by_id.keys() - suffered <= served.keys():
        return "a healthy run was not served"
    for run, record in served.items():
        if (checked or run not in suffered) and not same(by_id[run], record) and _has_checksums(store, run):
            return f"other numbers were served for {run[:12]}"
    for run in suffered:
        path = store / f"{run}.json"
        for read in (read_record, read_arrays, read_weights, load_run):
            try:
                found = read(path)
            except RecordError as error:
                if "\n" in str(error):
                    return "a message of several lines"
                continue
            if not checked or not _has_checksums(store, run):
                continue
            whole = by_id[run]
            fine = (
                same(whole, found) if read is read_record
                else same(whole, whole.record, arrays=found) if read is read_arrays
                else same(whole, whole.record, weights=found) if read is read_weights
                else same(whole, found.record, found.arrays, found.model.state_dict())
            )  # fmt: skip
            if not fine:
                return f"{read.__name__} served other numbers"
    verdicts = {Path(run.file).stem: run.state for run in verify_store(Store(store)).runs}
    if any(verdicts.get(run) != "sound" for run in by_id.keys() - suffered):
        return "verify doubts a healthy run"
    if case % 2 == 0:
        status([EXPERIMENTS["depth"]], Store(store), store)
        write_archive(store.parent / "out.gz", Store(store).records())
    return ""


def _has_checksums(store: Path, run: str) -> bool:
    try:
        return bool(json.loads((store / f"{run}.json").read_bytes()).get("checksums"))
    except (OSError, ValueError, RecursionError, AttributeError):
        return False


@pytest.mark.parametrize("cases", [200, pytest.param(4000, marks=pytest.mark.slow)])
def test_damaged_stores(runs: list[Run], tmp_path: Path, cases: int, capsys: pytest.CaptureFixture[str]) -> None:
    faults = hunt(runs, tmp_path, cases, seed=cases)
    with capsys.disabled():
        tally.report("records", cases, len(faults))
    assert faults == []


@pytest.mark.parametrize(
    ("check", "blind"),
    [("broken_seal", lambda record: None), ("checked_record", lambda record: RunRecord.model_construct(**record))],
)
def test_the_hunt_finds_what_a_missing_check_lets_through(
    runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: str, blind: Callable[[Any], Any]
) -> None:
    monkeypatch.setattr(f"ltga.train.storage.{check}", blind)
    assert hunt(runs, tmp_path, 200, seed=200)


@pytest.mark.parametrize("cases", [4, pytest.param(60, marks=pytest.mark.slow)])
def test_a_report_is_made_of_whatever_passes_the_check(tmp_path: Path, cases: int) -> None:
    """Records without checksums whose damage leaves a record: tables and figures must take those too."""
    from ltga.study.report import write_report
    from oracles.records import make_record, write_records

    made = [
        make_record(method=m, seed=s, q=1.2 if "ltga" in m else None)
        for m in ("gat", "gatv2", "ltga-head")
        for s in (1, 2)
    ]
    whole = {record["id"]: json.dumps(record).encode() for record in made}
    passed = 0
    for case in range(cases):
        rng = random.Random(case)
        store = write_records(tmp_path / f"{case}", made)
        for run in rng.sample(sorted(whole), 3):
            (store / f"{run}.json").write_bytes(mutate.mutated_json(whole[run], rng))
        passed += len(list(Store(store).records()))
        try:
            write_report([EXPERIMENTS["headline"], EXPERIMENTS["q-analysis"]], store, tmp_path / "out", tmp_path)
        except LTGAError as error:
            assert "\n" not in str(error)
    assert passed > cases * 3


def test_a_report_of_records_that_lack_what_a_record_may_lack(tmp_path: Path) -> None:
    from ltga.study.report import write_report
    from oracles.records import make_record, write_records

    names = ("frozen-q0.5", "frozen-q1.0", "ltga-head", "gat", "gatv2")
    made = [make_record(method=name, seed=seed, q=1.2) for name in names for seed in (1, 2, 3)]
    for number, record in enumerate(made):
        if number % 3 == 0:
            del record["metrics"]["test"]
        elif number % 3 == 1:
            record["metrics"]["test"] = {"accuracy": 0.5, "nll": None}
            record["attention"][0]["zero_fraction"] = [None, None]
            record["trajectory"]["q"][0]["mean"] = [[None, 1.0]] * 30
            record["trajectory"]["index_gradient_norm"] = [None] * 30
    store = write_records(tmp_path / "store", made)
    assert len(list(Store(store).records())) == len(made)
    chosen = ("headline", "frozen-q", "frozen-q-curves", "q-analysis", "q-overview", "q-trajectories", "gradient")
    write_report([EXPERIMENTS[name] for name in chosen], store, tmp_path / "out", tmp_path / "no data")
