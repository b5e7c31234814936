"""``ltga train`` killed in the middle of a run: the same command goes on from the last checkpoint."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open

from cli.graphs import write_graph
from ltga.cli import main

SETTINGS = ["epochs=300", "patience=300", "hidden_channels=2", "heads=2", "backend=torch", "init=paper", "warmup=20"]
SECONDS = 240


def command(graph: Path, out: Path, *options: str) -> list[str]:
    words = [word for setting in SETTINGS for word in ("--set", setting)]
    train = [sys.executable, "-m", "ltga", "train", str(graph), "--method", "ltga-head", "--seeds", "1", "--json"]
    return [*train, *words, "--out", str(out), *options]


def epochs_kept(out: Path) -> int:
    """The epoch of the checkpoint in a folder of runs; 0 if there is none."""
    for path in (out / ".checkpoints").glob("*.safetensors"):
        with safe_open(path, "pt") as stream:
            return len(json.loads(stream.metadata()["state"])["history"])
    return 0


def killed_after(epochs: int, words: list[str], out: Path) -> None:
    """Start a command and kill it -9 as soon as a checkpoint has so many epochs."""
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + SECONDS
        while epochs_kept(out) < epochs:
            assert process.poll() is None and time.monotonic() < end, process.communicate()[1]
            time.sleep(0.002)
        process.kill()


def finished(words: list[str], out: Path) -> tuple[dict[str, Any], str]:
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    (record,) = out.glob("*.json")
    assert not list((out / ".checkpoints").glob("*")), "the checkpoint goes away"
    return json.loads(record.read_text()), done.stderr


def results(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in ("timing", "resumed", "checksums")}


@pytest.mark.parametrize("options", [(), pytest.param(("--batch-size", "5", "--fanout", "2"), marks=pytest.mark.slow)])
def test_killed_and_started_again(tmp_path: Path, options: tuple[str, ...]) -> None:
    graph = write_graph(tmp_path / "graph.npz")
    uninterrupted = subprocess.Popen(command(graph, tmp_path / "whole", *options), stdout=subprocess.DEVNULL)
    out = tmp_path / "killed"
    words = command(graph, out, *options, "--checkpoint-every", "0s")
    killed_after(50, words, out)
    if options:
        killed_after(120, words, out)
    record, said = finished(words, out)
    assert uninterrupted.wait(SECONDS) == 0
    whole = json.loads(next((tmp_path / "whole").glob("*.json")).read_text())
    assert results(record) == results(whole)
    assert record["checksums"]["weights"] == whole["checksums"]["weights"]
    after = [entry["epoch"] for entry in record["resumed"]]
    assert len(after) == (2 if options else 1) and 50 <= after[0] < 300 and after == sorted(after)
    assert not any(entry["changed"] for entry in record["resumed"])
    assert f"ltga-head seed 1: going on after epoch {after[-1]}, from {out}" in said
    assert "resumed" not in whole


@pytest.mark.slow
def test_fresh_does_not_go_on(tmp_path: Path) -> None:
    graph, out = write_graph(tmp_path / "graph.npz"), tmp_path / "runs"
    words = command(graph, out, "--checkpoint-every", "0s", "--fresh")
    killed_after(10, words, out)
    record, said = finished(words, out)
    assert "resumed" not in record and "going on" not in said


def test_a_bad_time_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = command(write_graph(tmp_path / "graph.npz"), tmp_path / "runs", "--checkpoint-every", "often")
    with pytest.raises(SystemExit, match="2"):
        main(words[3:])
    said = "error: --checkpoint-every: expected a time like 90s, 3min or 1h, got 'often'\n"
    assert capsys.readouterr().err == said
    assert not (tmp_path / "runs").exists()
