"""``ltga train`` by several processes: one record, exact on one rank, and a killed rank is named and costs little."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cli.graphs import write_graph
from cli.test_resume import epochs_kept, results
from ltga.cli import main

SECONDS = 300
QUICK = ["--set", "hidden_channels=2", "--set", "heads=2", "--set", "backend=torch", "--seeds", "1"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone"]


def train(graph: Path, out: Path, epochs: int) -> list[str]:
    length = ["--set", f"epochs={epochs}", "--set", f"patience={epochs}"]
    return ["train", str(graph), "--method", "ltga-head", "--batch-size", "4", *length, *QUICK, "--out", str(out)]


def record_in(out: Path) -> dict[str, Any]:
    (record,) = out.glob("*.json")
    found: dict[str, Any] = json.loads(record.read_text())
    return found


def run(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=SECONDS)


@pytest.mark.slow
def test_two_ranks_write_one_record_and_one_rank_is_todays_run(tmp_path: Path) -> None:
    graph = write_graph(tmp_path / "graph.npz")
    done = run([*TORCHRUN, "--nproc-per-node", "2", "-m", "ltga", *train(graph, tmp_path / "two", 6), "--json"])
    assert done.returncode == 0, done.stderr
    two = record_in(tmp_path / "two")
    assert two["config"]["workers"] == 2 and two["epochs"] == 6
    assert json.loads(done.stdout)["methods"][0]["runs"], "printed once, or this would not be JSON"
    done = run([*TORCHRUN, "--nproc-per-node", "1", "-m", "ltga", *train(graph, tmp_path / "one", 6)])
    assert done.returncode == 0, done.stderr
    done = run([sys.executable, "-m", "ltga", *train(graph, tmp_path / "alone", 6)])
    assert done.returncode == 0, done.stderr
    one, alone = record_in(tmp_path / "one"), record_in(tmp_path / "alone")
    assert results(one) == results(alone) and one["checksums"]["weights"] == alone["checksums"]["weights"]
    assert one["id"] != two["id"], "other batches, another run"


def process_of_rank(rank: int, out: Path) -> int | None:
    """The process with this rank that writes into a folder."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            surroundings = (place / "environ").read_bytes().split(b"\0")
            words = (place / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"RANK={rank}".encode() in surroundings and os.fsencode(out) in words:
            return int(place.name)
    return None


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")
def test_a_killed_rank_is_named_and_the_run_goes_on(tmp_path: Path) -> None:
    graph, out = write_graph(tmp_path / "graph.npz"), tmp_path / "runs"
    words = [sys.executable, "-m", "ltga", *train(graph, out, 150), "--workers", "2", "--checkpoint-every", "0s"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + SECONDS
        while epochs_kept(out) < 20:
            assert process.poll() is None and time.monotonic() < end, process.communicate()[1]
            time.sleep(0.01)
        doomed = process_of_rank(1, out)
        assert doomed is not None
        os.kill(doomed, signal.SIGKILL)
        said = process.communicate(timeout=SECONDS)[1]
    assert process.returncode == 2
    errors = [line for line in said.splitlines() if "error" in line]
    assert errors == [
        "error: rank 1: killed by SIGKILL; out of memory?; the same command goes on from the last checkpoint"
    ], said
    done = run(words)
    assert done.returncode == 0, done.stderr
    record = record_in(out)
    assert record["epochs"] == 150 and 20 <= record["resumed"][0]["epoch"] < 150
    assert not list((out / ".checkpoints").glob("*"))


@pytest.mark.parametrize(("sent", "code", "line"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 2, "ended by SIGTERM")])
def test_a_signal_to_the_launcher_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], sent: str, code: int, line: str
) -> None:
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.launcher.api import elastic_launch

    def signalled(self: Any, *words: str) -> None:
        raise SignalException("", sigval=signal.Signals[sent])

    monkeypatch.setattr(elastic_launch, "__call__", signalled)
    with pytest.raises(SystemExit) as ended:
        main(["train", "csbm", "--workers", "2"])
    said = capsys.readouterr().err
    assert ended.value.code == code and line in said and len(said.splitlines()) == 1


@pytest.mark.slow
def test_an_error_of_a_rank_is_one_line(tmp_path: Path) -> None:
    graph, out = write_graph(tmp_path / "graph.npz"), tmp_path / "runs"
    words = train(graph, out, 5)
    done = run([sys.executable, "-m", "ltga", *words, "--set", "lr=1e30", "--workers", "2"])
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if "error" in line]
    assert line.startswith("error: rank 0: the ") and "loss is" in line, done.stderr
    assert not list(out.glob("*.json"))
    done = run([*TORCHRUN, "--nproc-per-node", "2", "-m", "ltga", *words[:4], *words[6:]])  # without --batch-size
    assert done.returncode != 0
    assert "error: rank 0: workers: several processes divide batches" in done.stderr


def test_workers_that_contradict_torchrun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(SystemExit, match="2"):
        main([*train(write_graph(tmp_path / "graph.npz"), tmp_path / "runs", 2), "--workers", "2"])
    said = "error: rank 0: --workers: 2, but torchrun has started 3 processes; leave --workers out\n"
    assert capsys.readouterr().err == said
