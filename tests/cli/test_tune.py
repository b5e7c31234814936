"""``ltga tune``: the command it prints, one look at the test part, other tasks, and processes that share the work."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.graphs import write_collection, write_graph, write_tables
from ltga import load_run

QUICK = ("--set", "epochs=3", "--set", "hidden_channels=2", "--set", "heads=2", "--set", "backend=torch")


@pytest.fixture(autouse=True)
def ordinary_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ltga.cli.tune_command.keep_freed_memory", lambda: None)


def test_the_printed_command_trains_the_chosen_run(ltga: Callable[..., Any], tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "my graph")
    asked = ("tune", f"{folder}/", "--method", "gatv2,ltga-head", "--trials", "4", *QUICK, "--metric", "macro_f1",
             "--search", "lr=0.01..0.1", "--prepare", "scale=none", "--out", "kept")  # fmt: skip
    outcome = ltga(*asked)
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["val", "macro_f1", "test", "macro_f1"]
    trained = [line.split() for line in lines if ", trial " in line]
    assert len(trained) == 2 and "(chosen)" in trained[1] and "(chosen)" not in trained[0]
    assert len(trained[1]) - len(trained[0]) == 2  # "(chosen)", and the only test score of a trained network
    assert any(line.split()[:2] == ["features", "only"] for line in lines)
    command = shlex.split(lines[-1])
    assert command[:2] == ["ltga", "train"]
    again = ltga(*command[1:], "--seeds", "1")
    assert "taken from the store" in again.err, again.err
    first = json.loads(ltga(*asked, "--json", "-q").out)
    assert all(trial["reused"] for trial in first["trials"]) and first["command"] == lines[-1]
    assert first["rows"][-1]["test"] == load_run(Path("kept", f"{first['run']}.json")).metrics["macro_f1"]
    assert len(json.loads(ltga("runs", "kept", "--json").out)) == len({trial["run"] for trial in first["trials"]})


@pytest.mark.parametrize(
    ("make", "options", "metric"),
    [
        (lambda f: f"{write_collection(f / 'graphs')}/", ("--set", "batch_size=16"), "accuracy"),
        (lambda f: f"{write_collection(f / 'graphs', 'mass')}/", ("--set", "log=false"), "rmse"),
        (lambda f: write_graph(f / "ring.npz", nodes=60), ("--task", "link", "--set", "each=3"), "mrr"),
    ],
)
def test_other_tasks(
    ltga: Callable[..., Any], tmp_path: Path, make: Callable[[Path], Any], options: tuple[str, ...], metric: str
) -> None:
    asked = ("tune", make(tmp_path), *options, "--method", "ltga-head", "--trials", "2", "-q", *QUICK)
    found = json.loads(ltga(*asked, "--json").out)
    assert found["metric"] == metric and [row["trained"] for row in found["rows"]].count(True) == 1
    record = load_run(Path("runs", f"{found['run']}.json")).record
    assert found["rows"][-1]["val"] == pytest.approx(record["metrics"]["val"][metric], rel=1e-4)
    again = ltga(*shlex.split(found["command"])[1:], "--seeds", "1")
    assert "taken from the store" in again.err, again.err


@pytest.mark.slow
def test_two_processes_share_a_search_and_a_killed_one_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ltga", "tune", "digits-noise", "--method", "gatv2", "--trials", "6",
               "--jobs", "2", "--json", "-q", "--set", "epochs=20", "--set", "hidden_channels=4"]  # fmt: skip
    first = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    stop = time.monotonic() + 300
    while len(list(tmp_path.glob("runs/*.json"))) < 2 and time.monotonic() < stop and first.poll() is None:
        time.sleep(0.05)
    assert first.poll() is None
    helpers = children(first.pid)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    assert len(helpers) == 1
    while any(Path(f"/proc/{helper}").exists() for helper in helpers) and time.monotonic() < stop:
        time.sleep(0.1)
    assert not any(Path(f"/proc/{helper}").exists() for helper in helpers)  # nothing goes on behind our back
    again = json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, timeout=300).stdout)
    other = tmp_path / "other"
    other.mkdir()
    straight = json.loads(subprocess.run(command, cwd=other, capture_output=True, check=True, timeout=300).stdout)
    same = ("trial", "method", "settings", "val", "state", "run")
    assert [{key: t[key] for key in same} for t in again["trials"]] == [
        {key: t[key] for key in same} for t in straight["trials"]
    ]
    assert sum(trial["reused"] for trial in again["trials"]) >= 2 and again["command"] == straight["command"]


def children(pid: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(folder.name))
        except OSError:
            pass
    return found
