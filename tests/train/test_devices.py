"""Where a run is computed: names of devices, what only the CPU has, and whole runs on a stand-in for a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

import ltga
from ltga import LTGAError
from ltga.data import csbm
from ltga.kernels import SparseFeatures, neighbourhoods
from ltga.kernels.operators.sparse_product import SparseRows
from ltga.train import LTGAClassifier, load_run
from ltga.train.devices import find_device, free_bytes, moved, own_random_numbers, pinned
from ltga.train.loop import Task

QUICK = {"epochs": 1, "hidden_channels": 4, "heads": 2}
META = torch.device("meta")


def two_gpus(monkeypatch: pytest.MonkeyPatch, count: int = 2) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)


def test_names_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    two_gpus(monkeypatch)
    cuda = torch.device("cuda", 1)
    for asked, place in {
        "auto": torch.device("cuda", 1), "cpu": torch.device("cpu"), "cuda": cuda, "cuda:0": torch.device("cuda", 0),
        cuda: cuda, torch.device("cpu"): torch.device("cpu"),
    }.items():  # fmt: skip
        assert find_device(asked) == place
    two_gpus(monkeypatch, 0)
    assert find_device("auto") == torch.device("cpu")


@pytest.mark.parametrize("device", ["gpu", "tpu:0", "meta", "mps", "cuda:x", "", 3, None, torch.device("meta")])
def test_other_names_are_refused_by_name(device: object) -> None:
    with pytest.raises(LTGAError, match=r"device: expected 'auto', 'cpu', 'cuda' or one like 'cuda:1', got"):
        find_device(device)  # type: ignore[arg-type]


def test_what_is_not_here_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    two_gpus(monkeypatch)
    with pytest.raises(LTGAError, match="device: 'cuda:7' is not here, torch finds 2"):
        find_device("cuda:7")
    two_gpus(monkeypatch, 0)
    for call in (
        lambda: find_device("cuda"),
        lambda: ltga.fit(csbm(num_nodes=60), device="cuda"),
        lambda: LTGAClassifier(device="cuda", **QUICK).fit(torch.eye(4), [0, 1, 0, 1], [[0, 1], [1, 0]]),
    ):
        with pytest.raises(LTGAError, match="device: torch finds no GPU here, got 'cuda'"):
            call()


def test_what_only_the_cpu_has_says_so_and_auto_stays_there(monkeypatch: pytest.MonkeyPatch) -> None:
    two_gpus(monkeypatch)
    with pytest.raises(LTGAError, match="device: init='paper' needs the paper's random numbers"):
        find_device("cuda", init="paper")
    with pytest.raises(LTGAError, match="device: backend='numba' is compiled for the CPU only"):
        find_device("cuda:0", backend="numba")
    for settings in ({"init": "paper"}, {"backend": "numba"}):
        assert find_device("auto", **settings) == find_device("cpu", **settings) == torch.device("cpu")


def test_the_device_is_no_part_of_a_runs_id_and_the_record_says_it() -> None:
    runs = [ltga.fit(csbm(num_nodes=60), protocol=QUICK, device=name) for name in ("cpu", torch.device("cpu"))]
    assert runs[0].record["id"] == runs[1].record["id"]
    assert "device" not in str(runs[0].record["config"])
    assert runs[0].record["environment"]["machine"]["device"] == "cpu"


def test_a_stored_run_goes_where_it_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two_gpus(monkeypatch, 0)
    path = ltga.fit(csbm(num_nodes=60), protocol={**QUICK, "init": "paper"}).save(tmp_path)
    assert load_run(path, "auto").model is not None
    with pytest.raises(LTGAError, match="device: torch finds no GPU"):
        load_run(path, "cuda")


def test_every_tensor_is_moved_and_nothing_else() -> None:
    task = Task(torch.ones(3, 2), torch.zeros(2, 4).long(), None, torch.zeros(3).long(), *torch.ones(3, 1).long())
    there = moved(task, META)
    assert {value.device for value in vars(there).values() if isinstance(value, Tensor)} == {META}
    assert there.edge_attr is None and there.target is task.target
    assert moved(task, torch.device("cpu")) is task
    rows = SparseRows.of(SparseFeatures.from_dense(torch.eye(3)), torch.tensor([2, 0]))
    assert moved(rows, META).whole.values.device == moved(rows, META).stored.device == META
    batch = Batch.from_data_list([Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]))] * 2)
    sent = moved(batch, META)
    assert sent.x.device == sent.batch.device == META and sent.num_graphs == 2 and batch.x.device.type == "cpu"


def test_batches_for_a_gpu_are_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    pins: list[Tensor] = []
    monkeypatch.setattr(Tensor, "pin_memory", lambda self: pins.append(self) or self.clone())
    given = (torch.ones(2), [torch.zeros(1)], "text")
    assert pinned(given, torch.device("cpu")) is given and not pins
    assert pinned(given, torch.device("cuda"))[0].equal(given[0]) and len(pins) == 2


def test_generators_are_left_as_they_were_found(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_rng_state()
    with own_random_numbers(torch.device("cpu")):
        torch.manual_seed(5)
    assert torch.equal(before, torch.get_rng_state())
    forked = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: forked.append(device) or torch.zeros(1))
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: forked.append(device))
    with own_random_numbers(torch.device("cuda", 1)):
        pass
    assert forked == [0, 1, 0, 1]
    assert free_bytes(torch.device("cpu")) is None


def test_edges_of_an_inference_tensor_are_looked_at_anew_off_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a tensor does not count writes, and hashing it would mean waiting."""
    monkeypatch.setattr(Tensor, "is_cpu", False)
    with torch.inference_mode():
        edges = torch.tensor([[0, 1], [1, 2]])
        assert neighbourhoods(edges, 4, 4, False).col.tolist() == [0, 1]
        edges[0, 0] = 3
        assert neighbourhoods(edges, 4, 4, False).col.tolist() == [3, 1]


@pytest.mark.parametrize("part", ["quick", pytest.param("slow", marks=pytest.mark.slow)])
def test_runs_on_a_stand_in(part: str) -> None:
    """In a process of its own: what makes torch take the stand-in for a device cannot be undone."""
    file = Path(__file__).with_name("on_a_stand_in.py")
    chosen = ["-m", "slow" if part == "slow" else "not slow"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *chosen, str(file)],
        capture_output=True, text=True, cwd=file.parents[2], env={**os.environ, "LTGA_STAND_IN": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
