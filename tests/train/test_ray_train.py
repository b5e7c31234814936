"""Ray Train, for real: two workers on this machine, one of them killed while it is at a run."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ltga.data import csbm
from ltga.errors import InputError, TrainingError
from ltga.train.loop import EpochInfo
from ltga.train.minibatch import MiniBatch
from ltga.train.planned import PlannedRun, plan_run
from ltga.train.protocol import Protocol
from ltga.train.ray_train import RayWorkers

ray = pytest.importorskip("ray")
pytest.importorskip("ray.train.torch")
EPOCHS = 30


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")  # else a busy machine starves them
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
        yield
        ray.shutdown()


def planned(**settings: Any) -> PlannedRun:
    protocol = Protocol(
        **{"epochs": EPOCHS, "patience": EPOCHS, "hidden_channels": 4, "heads": 2, "backend": "torch", **settings}
    )
    return plan_run(csbm(num_nodes=120, seed=3), "ltga-head", 1, 0, protocol, MiniBatch(16, 3), workers=2)


def test_a_cluster_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"address: cannot reach a Ray cluster at '127\.0\.0\.1:1' \(.*refused"):
        RayWorkers(2, "127.0.0.1:1", tmp_path).files(planned())
    assert not ray.is_initialized()


@pytest.mark.slow
def test_a_killed_worker_costs_at_most_an_epoch(cluster: None, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("")

    def note(info: EpochInfo) -> None:
        with log.open("a") as stream:
            stream.write(f"{info.epoch} {os.getpid()}\n")
        time.sleep(0.2)

    def kill() -> None:
        while len(lines := log.read_text().splitlines()) < 5:
            time.sleep(0.05)
        os.kill(int(lines[-1].split()[1]), signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    run = planned()
    said: list[str] = []
    files = RayWorkers(2, None, tmp_path).files(run, [note], say=said.append)
    assert not thread.is_alive()
    record = json.loads(files[".json"])
    assert record["id"] == run.id and record["config"]["workers"] == 2 and record["epochs"] == EPOCHS
    (resumed,) = record["resumed"]
    assert 4 <= resumed["epoch"] < EPOCHS  # killed while in epoch 5, or soon after
    done = Counter(int(line.split()[0]) for line in log.read_text().splitlines())
    assert sorted(done) == list(range(1, EPOCHS + 1))
    assert done.total() <= EPOCHS + 1, "at most one epoch was done twice"
    assert len({line.split()[1] for line in log.read_text().splitlines()}) == 2, "nobody was killed"
    assert {".json", ".npz", ".safetensors"} == set(files)
    assert not list((tmp_path / ".checkpoints").iterdir())
    assert len(said) == 1 and said[0].startswith(f"going on after epoch {resumed['epoch']}, from {tmp_path}")


@pytest.mark.slow
def test_an_error_of_the_run_is_one_line_and_is_not_tried_again(cluster: None, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"^the (training|validation) loss is .* at epoch \d") as error:
        RayWorkers(2, None, tmp_path).files(planned(lr=1e30))
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_more_workers_than_cores(cluster: None, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--workers: 3 need a core each, and the cluster has 2; take fewer"):
        RayWorkers(3, None, tmp_path).files(planned())
