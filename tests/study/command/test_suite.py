"""``ltga suite``: run, status, exit codes, Ctrl-C."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

from ltga.cli.app import app
from ltga.study import EXPERIMENTS, Experiment, RunSpec, Store
from ltga.study.archive import read_archive, write_archive
from ltga.study.command.suite_command import _bar
from ltga.study.runner import Tally
from ltga.train import Protocol
from oracles.records import make_record

TINY = Protocol(epochs=2, hidden_channels=4, heads=2)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> str:
    """An experiment of two runs that work and one that cannot."""
    graph = "csbm:num_nodes=60"
    broken = RunSpec(graph, "linkx", 1, TINY.with_overrides(residual=True))  # linkx has no residual
    runs = (RunSpec(graph, "gcn", 1, TINY), broken, RunSpec(graph, "gcn", 2, TINY))
    monkeypatch.setitem(EXPERIMENTS, "tiny", Experiment("tiny", "Tiny", "tab:tiny", "nothing", runs))  # type: ignore[arg-type]
    threads = torch.get_num_threads()
    yield "tiny"  # type: ignore[misc]
    torch.set_num_threads(threads)


def ltga(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["suite", *map(str, arguments)])


def test_run_does_what_it_can_and_status_counts_it(tiny: str, tmp_path: Path) -> None:
    result = ltga("run", tiny, "--store", tmp_path, "--threads", 1)
    assert result.exit_code == 1  # something failed
    assert "runs: 2 done, 1 failed" in result.stdout
    assert "failed: csbm:num_nodes=60, linkx, seed 1" in result.stderr and "residual" in result.stderr
    again = ltga("run", tiny, "--store", tmp_path)
    assert again.exit_code == 0
    assert "2 already in the store, 1 failed before (--retry-failed to try again)" in again.stdout
    assert ltga("run", tiny, "--store", tmp_path, "--retry-failed").exit_code == 1

    found = json.loads(ltga("status", tiny, "--store", tmp_path, "--json").stdout)
    (row,) = found["experiments"]
    assert (row["name"], row["done"], row["missing"], row["failed"], row["impossible"]) == ("tiny", 2, 0, 1, 0)
    table = ltga("status", tiny, "--store", tmp_path).stdout
    assert "tab:tiny" in table and "all, shared runs once" in table


def test_a_part_of_an_experiment(tiny: str, tmp_path: Path) -> None:
    result = ltga("run", tiny, "--store", tmp_path, "--methods", "gcn", "--datasets", "csbm", "--seeds", 1)
    assert result.exit_code == 0 and "runs: 1 done" in result.stdout
    assert [record["config"]["seed"] for record in Store(tmp_path).records()] == [1]


def test_nothing_is_printed_on_the_way_where_nobody_looks(tiny: str, tmp_path: Path) -> None:
    result = ltga("run", tiny, "--store", tmp_path, "--methods", "gcn")
    assert result.stdout == "runs: 2 done\n" and result.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "headlin"], "did you mean 'headline'"),
        (["run", "tiny", "--jobs", "2", "--engine", "in-process"], "--jobs: the in-process engine"),
        (["run", "tiny", "--address", "auto"], "--address: belongs to --engine ray"),
        (["run", "tiny", "--methods", "gat"], "methods: no chosen experiment uses 'gat'"),
    ],
)
def test_bad_usage_is_one_line(tiny: str, tmp_path: Path, arguments: list[str], message: str) -> None:
    error = ltga(*arguments, "--store", tmp_path).exception
    assert message in str(error) and "\n" not in str(error)


def test_export_packs_the_records(tiny: str, tmp_path: Path) -> None:
    assert ltga("run", tiny, "--store", tmp_path / "runs").exit_code == 1  # one run cannot work
    out = tmp_path / "records.jsonl.gz"
    assert ltga("export", out, "--store", tmp_path / "runs").exit_code == 0
    packed = {record["id"] for record in read_archive(out)}
    assert packed == {record["id"] for record in Store(tmp_path / "runs").records()} != set()
    assert "there is no folder" in str(ltga("export", out, "--store", tmp_path / "nowhere").exception)


def test_import_lets_a_suite_go_on_where_an_archive_ends(tiny: str, tmp_path: Path) -> None:
    ltga("run", tiny, "--store", tmp_path / "runs", "--seeds", 1)
    out, again = tmp_path / "records.jsonl.gz", tmp_path / "again"
    ltga("export", out, "--store", tmp_path / "runs")
    assert "1 records added" in ltga("import", out, "--store", again).stdout
    assert "0 records added, 1 were there already" in ltga("import", out, "--store", again).stdout
    assert "1 already in the store" in ltga("run", tiny, "--store", again).stdout
    (forged,) = read_archive(out)
    claim = Store(tmp_path / "busy").claim(forged["id"])  # a runner is at it
    assert claim is not None and "0 records added" in ltga("import", out, "--store", tmp_path / "busy").stdout
    claim.release()
    assert "1 records added" in ltga("import", out, "--store", tmp_path / "busy").stdout
    forged["config"]["seed"] = 7
    write_archive(out, [forged])
    assert "is not of the run it says" in str(ltga("import", out, "--store", tmp_path / "third").exception)
    assert "there is no such file" in str(ltga("import", tmp_path / "nothing.gz", "--store", again).exception)


SCRIPT = """
from ltga.cli import main
from ltga.study import EXPERIMENTS, Experiment, RunSpec
from ltga.train import Protocol

if __name__ == "__main__":
    quick, endless = ({"epochs": n, "patience": n, "hidden_channels": 4, "heads": 2} for n in (2, 10_000_000))
    protocols = {1: Protocol(**quick), 2: Protocol(**endless), 3: Protocol(**endless)}
    runs = tuple(RunSpec("csbm:num_nodes=60", "gcn", seed, protocol) for seed, protocol in protocols.items())
    EXPERIMENTS["tiny"] = Experiment("tiny", "Tiny", "tab:tiny", "nothing", runs)
    main()
"""


def heed_interrupts() -> None:
    """A shell's background jobs, and all they start, ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_ctrl_c_ends_with_130_and_keeps_what_is_finished(tmp_path: Path, jobs: int) -> None:
    script, store = tmp_path / "script.py", tmp_path / "store"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), "suite", "run", "tiny", "--store", str(store), "--jobs", str(jobs)]
    process = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heed_interrupts
    )  # fmt: skip
    try:
        end = time.monotonic() + 300
        while not list(store.glob("*.json")):
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.1)
        time.sleep(2)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the parent and all its workers
        _, errors = process.communicate(timeout=300)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert errors.decode().startswith("interrupted; what is finished is kept")
    assert [record["config"]["seed"] for record in Store(store).records()] == [1]
    assert not list(store.glob(".*.part")) and not (store / "failed").exists()


def test_the_bar_tells_rate_and_time_left_from_what_really_goes_on_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three runs of 30 seconds end after 30 seconds: whatever --jobs says, ten more of them take 100 seconds."""
    clock = [0.0]
    monkeypatch.setattr("ltga.study.command.suite_command.time.monotonic", lambda: clock[0])
    screen = Console(file=io.StringIO(), force_terminal=True, width=150)
    specs = {str(seed): RunSpec("cora", "gat", seed) for seed in range(14)}
    record = {**make_record("cora", "gat"), "timing": {"train_seconds": 29.0, "observe_seconds": 1.0}}
    with _bar(screen, 1, tmp_path) as watch:
        tally = Tally(left=specs)
        watch(tally)
        clock[0] = 30.0
        for done in (1, 2, 3):
            tally.left.popitem()
            tally.done, tally.last = done, record
            watch(tally)
        tally.left.popitem()
        tally.failed, tally.last = {"one": "no"}, None
        watch(tally)
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "8.0 runs/min, 2 min left" in shown and "1 failed" in shown and "4/14" in shown
