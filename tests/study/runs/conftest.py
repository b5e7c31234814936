"""Tiny runs, other processes, and a ``fit`` that leaves a trace."""

from __future__ import annotations

import multiprocessing as mp
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import ltga.study.engines.engine
from ltga.study import RunSpec
from ltga.train import Protocol

TINY = Protocol(epochs=2, hidden_channels=4, heads=2)


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    """Other processes are forked here, and threads do not survive that."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def tiny() -> Callable[..., RunSpec]:
    def make(seed: int = 1, method: str = "ltga-head", dataset: str = "csbm:num_nodes=60", **settings: Any) -> RunSpec:
        return RunSpec(dataset, method, seed, TINY.with_overrides(**settings))

    return make


@pytest.fixture
def executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[int]]:
    """Seeds of every ``fit`` that was begun, in this process or in one forked from it."""
    log, fit = tmp_path / "executed", ltga.study.engines.engine.fit

    def traced(dataset: Any, method: str, seed: int, **settings: Any) -> Any:
        with log.open("a") as stream:
            stream.write(f"{seed}\n")
        return fit(dataset, method, seed, **settings)

    monkeypatch.setattr(ltga.study.engines.engine, "fit", traced)
    return lambda: [int(line) for line in log.read_text().split()] if log.exists() else []


@pytest.fixture
def in_other_process() -> Any:
    """Start a function in a forked process; whatever still runs at the end of the test is killed."""
    started: list[Any] = []

    def start(target: Callable[..., Any], *arguments: Any) -> Any:
        process = mp.get_context("fork").Process(target=target, args=arguments)
        process.start()
        started.append(process)
        return process

    yield start
    for process in started:
        if process.is_alive():
            os.kill(process.pid, 9)
        process.join()


@pytest.fixture
def wait_for() -> Callable[[Callable[[], Any]], None]:
    def wait(condition: Callable[[], Any], seconds: float = 60.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.02)

    return wait
