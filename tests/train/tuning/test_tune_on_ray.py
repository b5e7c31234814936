"""Trials on a cluster: the same search as here. Ray itself where it is installed, else one that only sends."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ltga import tune
from ltga.data import Dataset, csbm
from ltga.errors import InputError, TrainingError

pytest.importorskip("optuna")
QUICK = {"epochs": 3, "hidden_channels": 2, "heads": 1, "backend": "torch"}
METHODS = ["gatv2", "ltga-head"]


class SendingRay(ModuleType):
    """What :mod:`ltga.train.tuning.on_ray` asks of Ray; all that a worker would get or give is pickled on the way."""

    class exceptions:
        class RayError(Exception): ...

    def __init__(self) -> None:
        super().__init__("ray")
        self.up, self.under_way, self.most = False, 0, 0
        self.dies = False

    def is_initialized(self) -> bool:
        return self.up

    def init(self, **_: Any) -> None:
        self.up = True

    def shutdown(self) -> None:
        self.up = False

    def put(self, value: Any) -> bytes:
        return pickle.dumps(value)

    def cancel(self, reference: Any, force: bool) -> None: ...

    def remote(self, **_: Any) -> Any:
        def wrap(function: Any) -> Any:
            class Task:
                @staticmethod
                def remote(shared: bytes, *arguments: Any) -> Any:
                    self.under_way += 1
                    self.most = max(self.most, self.under_way)
                    return function, shared, pickle.dumps(arguments)

            return Task

        return wrap

    def get(self, reference: Any) -> Any:
        self.under_way -= 1
        if self.dies:
            raise self.exceptions.RayError
        function, shared, arguments = reference
        return pickle.loads(pickle.dumps(function(pickle.loads(shared), *pickle.loads(arguments))))


@pytest.fixture
def sending(monkeypatch: pytest.MonkeyPatch) -> SendingRay:
    made = SendingRay()
    monkeypatch.setitem(sys.modules, "ray", made)
    return made


@pytest.fixture
def graph() -> Dataset:
    return csbm(num_nodes=60, seed=3)


def what(tuned: Any) -> list[Any]:
    return [(trial.number, trial.method, dict(trial.settings), trial.run, trial.score) for trial in tuned.trials]


def test_a_cluster_tries_what_this_machine_tries(graph: Dataset, sending: SendingRay, tmp_path: Path) -> None:
    here = tune(graph, METHODS, 6, store=tmp_path / "here", protocol=QUICK, jobs=3)
    there = tune(graph, METHODS, 6, store=tmp_path / "there", protocol=QUICK, jobs=3, engine="ray")
    assert what(here) == what(there) and here.best.run == there.best.run
    assert sending.most == 3 and not sending.up  # as many at once, and the cluster is left as it was
    again = tune(graph, METHODS, 8, store=tmp_path / "there", protocol=QUICK, jobs=3, engine="ray")
    assert what(again)[:6] == what(there) and [trial.reused for trial in again.trials] == [True] * 6 + [False] * 2


def test_a_worker_that_dies_is_told(graph: Dataset, sending: SendingRay, tmp_path: Path) -> None:
    sending.dies = True
    with pytest.raises(TrainingError, match=r"engine: a worker died at run [0-9a-f]{8}"):
        tune(graph, METHODS, 2, store=tmp_path, protocol=QUICK, engine="ray")
    assert not sending.up


def test_bad_input(graph: Dataset, sending: SendingRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="engine: expected 'ray', got 'slurm'"):
        tune(graph, METHODS, 2, store=tmp_path, protocol=QUICK, engine="slurm")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="address: is that of a Ray cluster"):
        tune(graph, METHODS, 2, store=tmp_path, protocol=QUICK, address="10.0.0.1:6379")
    with pytest.raises(InputError, match="prune: a run on a cluster is not looked at"):
        tune(graph, METHODS, 2, store=tmp_path, protocol=QUICK, engine="ray", prune=True)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"engine: ray is not installed; pip install 'ltga\[ray\]'"):
        tune(graph, METHODS, 2, store=tmp_path, protocol=QUICK, engine="ray")
    assert not list(tmp_path.glob("*.json"))


@pytest.mark.slow
def test_on_ray_itself(graph: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_worker_niceness", "0")
    here = tune(graph, METHODS, 4, store=tmp_path / "here", protocol=QUICK, jobs=2)
    there = tune(graph, METHODS, 4, store=tmp_path / "there", protocol=QUICK, jobs=2, engine="ray")
    assert what(here) == what(there)
