"""Several ``ltga train`` on one folder at the same time: each run is done once, by whoever comes first."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.graphs import QUICK, write_graph

Start = Callable[..., "subprocess.Popen[str]"]
SECONDS = 240


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """``ltga train`` in a process of its own; whatever still runs at the end of the test is killed."""
    graph = write_graph(tmp_path / "graph.npz")
    started: list[subprocess.Popen[str]] = []

    def train(*options: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "ltga", "train", graph, "--json", *QUICK[2:], *options]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(list(map(str, command)), cwd=tmp_path, text=True, **pipes))  # type: ignore[call-overload]
        return started[-1]

    yield train
    for process in started:
        process.kill()
        process.communicate()


def epochs(number: int) -> tuple[str, ...]:
    return ("--set", f"epochs={number}", "--set", f"patience={number}")


def runs_of(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, err
    return [run for method in json.loads(out)["methods"] for run in method["runs"]]


def until(process: subprocess.Popen[str], said: str) -> None:
    assert process.stderr is not None
    while said not in (line := process.stderr.readline()):
        assert line, "it ended by itself"


def leftovers(store: Path) -> list[str]:
    return [path.name for path in store.rglob("*") if path.is_file() and path.parent.name == ".claims"] + [
        path.name for path in store.rglob("*.part")
    ]


def test_two_commands_share_the_work(start: Start, tmp_path: Path) -> None:
    options = ("--method", "gcn,gatv2,ltga-head", "--seeds", 3, *epochs(200))
    first, second = (runs_of(process) for process in [start(*options), start(*options)])
    assert len(first) == len(second) == 9
    for ours, theirs in zip(first, second):
        assert ours["reused"] != theirs["reused"], "done twice, or by nobody"
        assert {**ours, "reused": None} == {**theirs, "reused": None}
    assert len(list((tmp_path / "runs").glob("*.json"))) == 9
    assert leftovers(tmp_path / "runs") == []


def stopped_at_its_first_run(start: Start, folder: Path) -> subprocess.Popen[str]:
    """A command that holds a claim and does nothing, until it is told to go on."""
    process = start("--method", "gatv2", "--seeds", 1, *epochs(1000))
    claims = folder / "runs" / ".claims"
    while not (claims.is_dir() and list(claims.iterdir())):
        assert process.poll() is None
    time.sleep(0.2)  # the file is there a moment before its lock
    process.send_signal(signal.SIGSTOP)
    assert list(claims.iterdir()) and not list((folder / "runs").glob("*.json"))
    return process


def test_a_run_that_another_command_is_at_is_waited_for_and_taken_from_it(start: Start, tmp_path: Path) -> None:
    first = stopped_at_its_first_run(start, tmp_path)
    second = start("--method", "gatv2,gcn", "--seeds", 1, *epochs(1000))
    until(second, "gcn, seed 1: test accuracy")  # what is free comes first
    until(second, "Waiting for a run that another process is at.")
    first.send_signal(signal.SIGCONT)
    (made,), (taken, own) = runs_of(first), runs_of(second)
    assert (made["reused"], taken["reused"], own["reused"]) == (False, True, False)
    assert made["metrics"] == taken["metrics"] and leftovers(tmp_path / "runs") == []


def test_what_a_killed_command_was_at_is_done_by_the_one_that_waits(start: Start, tmp_path: Path) -> None:
    dying = stopped_at_its_first_run(start, tmp_path)
    heir = start("--method", "gatv2", "--seeds", 1, *epochs(1000))
    until(heir, "Waiting for a run that another process is at.")
    dying.send_signal(signal.SIGKILL)
    dying.wait()
    assert [run["reused"] for run in runs_of(heir)] == [False]
    assert len(list((tmp_path / "runs").glob("*.json"))) == 1 and leftovers(tmp_path / "runs") == []
