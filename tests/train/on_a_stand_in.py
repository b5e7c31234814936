"""Runs on another device than the CPU, without one: the numbers are the CPU's, and nothing is of two devices at a time.

Run by test_devices.py in a process of its own (see fixtures/stand_in_device.py), or by hand:

    LTGA_STAND_IN=1 pytest tests/train/on_a_stand_in.py

Without that variable it is not even imported (conftest.py), because what it sets up stays in the process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fixtures"))
from stand_in_device import DEVICE, Elsewhere, calls, set_up, stand_in, waits

set_up()

import ltga  # noqa: E402
from ltga.data import Dataset, collection_from_data, csbm, make_target, split_links  # noqa: E402
from ltga.data.node_dataset import NodeDataset  # noqa: E402
from ltga.data.triples import Triples  # noqa: E402
from ltga.explanation.explain import explain  # noqa: E402
from ltga.kernels import NORMALIZERS, SCORINGS  # noqa: E402
from ltga.kernels.operators import attention_triton, checks, dropout, program_launch, trust  # noqa: E402
from ltga.kernels.operators.operands import Kind, Needed, Operands, Structure  # noqa: E402
from ltga.nn import adjacency, entitlement  # noqa: E402
from ltga.nn.baselines import propagation  # noqa: E402
from ltga.train import LTGAClassifier, Protocol, assembly, finished, fitting, load_run  # noqa: E402
from ltga.train.devices import device_of, moved  # noqa: E402
from ltga.train.focus import FocusedTask  # noqa: E402
from ltga.train.optimizer import DecoupledAdam  # noqa: E402
from ltga.train.planned import plan_run  # noqa: E402
from ltga.train.tasks import task_run  # noqa: E402

QUICK = {"epochs": 3, "hidden_channels": 4, "heads": 2}
METHODS = (
    "ltga-head", "ltga-edge", "entmax-head", "gatv2", "classic-q", "gcn",
    *(pytest.param(name, marks=pytest.mark.slow) for name in (
        "ltga-global", "entmax-edge", "gat", "gatv2-edge-scale", "gatv2-temperature", "dot-ltga-head", "frozen-q2.0",
        "sparsemax", "separated-alpha", "separated-temperature", "gin", "h2gcn", "gprgnn", "fagcn", "linkx", "features",
    )),
)  # fmt: skip


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.device]:
    """The stand-in, by the name of cuda."""
    torch.set_num_threads(1)

    def find(device: Any, *_: Any, **__: Any) -> torch.device:
        return torch.device("cpu") if str(device) == "cpu" else DEVICE

    for module in (fitting, finished, task_run):
        monkeypatch.setattr(module, "find_device", find)
    with stand_in() as place:
        yield place


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the stand-in had Triton: layers call the registered operators, which compute on the CPU."""
    for module in (entitlement, checks, dropout):
        monkeypatch.setattr(module, "runs_triton", lambda device: True)
    ordinary = entitlement.is_ordinary
    monkeypatch.setattr(entitlement, "is_ordinary", lambda value: isinstance(value, Elsewhere) or ordinary(value))
    monkeypatch.setattr(adjacency, "is_observed", lambda: False)  # a GPU is not a dispatch mode


def both(data: Any, method: str = "ltga-head", **arguments: Any) -> tuple[ltga.Run, ltga.Run]:
    """The run on the CPU and the one on the stand-in, found to be the same."""
    arguments = {"protocol": QUICK, **arguments}
    here, there = (ltga.fit(data, method, device=place, **arguments) for place in ("cpu", "cuda"))
    assert device_of(there.model) == DEVICE and device_of(here.model).type == "cpu"
    assert here.record["id"] == there.record["id"]
    assert there.record["environment"]["machine"]["device"] != here.record["environment"]["machine"]["device"] == "cpu"
    for name in ("train_loss", "val_loss"):
        assert there.record["trajectory"][name] == pytest.approx(here.record["trajectory"][name], rel=1e-4)
    for name, value in here.metrics.items():
        assert there.metrics[name] == pytest.approx(value, rel=1e-3, abs=1e-6, nan_ok=True), name
    assert here.arrays.keys() == there.arrays.keys()
    return here, there


def graph(**arguments: Any) -> Dataset:
    return csbm(num_nodes=60, seed=1, **arguments)


def with_edge_attributes() -> Dataset:
    found = graph()
    found.data.edge_attr = torch.rand(found.data.num_edges, 2)
    return found


@pytest.mark.parametrize("method", METHODS)
def test_every_method(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def dense(matrix: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return torch.from_numpy(matrix.toarray()).to(dtype).to(device)

    monkeypatch.setattr(propagation, "_to_torch_csr", dense)  # the stand-in has no sparse tensors
    both(graph(), method)


@pytest.mark.parametrize("method", ["ltga-head", "ltga-edge", "entmax-head", "dot-ltga-head", "classic-q"])
def test_fused_kernels(method: str, kernels: None) -> None:
    here, there = both(graph(), method, protocol=QUICK)
    there = ltga.fit(graph(), method, protocol={**QUICK, "backend": "triton"}, device="cuda")
    assert {"ltga::attend", "ltga::attend_backward"} <= calls()
    losses = (run.record["trajectory"]["train_loss"] for run in (here, there))
    assert next(losses) == pytest.approx(next(losses), rel=1e-4)


def test_settings_that_bring_tensors_of_their_own() -> None:
    both(with_edge_attributes(), "ltga-edge", protocol={**QUICK, "class_weights": True, "prior": 0.1})
    both(graph(), "ltga-head", protocol={**QUICK, "metric": "macro_f1"})


def test_sparse_features_get_the_masks_that_they_get_on_the_cpu() -> None:
    words = csbm(num_nodes=600, seed=1)
    words.data.x = (torch.rand(600, 120, generator=torch.Generator().manual_seed(0)) < 0.05).float()
    both(Dataset("words", words.data, *(mask.clone() for mask in words.split(0))), "ltga-head")


@pytest.mark.parametrize("method", ["ltga-edge", "entmax-head"])
def test_mini_batches(method: str) -> None:
    both(with_edge_attributes(), method, minibatch={"batch_size": 8, "fanout": 3, "block": 16})


def small_graphs() -> Any:
    torch.manual_seed(0)
    graphs = []
    for number in range(24):
        nodes = 4 + number % 3
        edge_index = torch.randint(0, nodes, (2, 8))
        graphs.append(Data(x=torch.randn(nodes, 3), edge_index=edge_index, y=torch.tensor([number % 2])))
    return collection_from_data(graphs)


def numbers() -> NodeDataset:
    found = graph()
    return NodeDataset("numbers", found.data, make_target(torch.randn(60), "y"))


def labels() -> NodeDataset:
    found = graph()
    return NodeDataset("labels", found.data, make_target(torch.randint(0, 2, (60, 3)).float(), "y"))


def facts() -> Triples:
    kind, number = torch.arange(2).repeat_interleave(15), torch.arange(30)
    edges = torch.stack([number % 15, (number + 1 + kind) % 15])
    val, test = number % 7 == 0, number % 7 == 3
    return Triples("facts", edges, kind, ~val & ~test, val, test, list(map(str, range(15))), ["next", "skip"])


@pytest.mark.parametrize("data", [small_graphs, numbers, labels, facts], ids=lambda make: make.__name__)
def test_other_tasks(data: Any) -> None:
    torch.manual_seed(1)
    given = data()
    here, there = both(given, "ltga-head", options={"batch_size": 8} if data is small_graphs else None)
    asked = (given, torch.tensor([[0, 1], [2, 1]])) if data is facts else (given,)
    assert torch.allclose(there.predict_proba(*asked), here.predict_proba(*asked), atol=1e-4)


def test_links() -> None:
    here, there = both(split_links(graph().data), "ltga-head", task="link", options={"each": 5})
    pairs = torch.tensor([[0, 1], [2, 3]])
    assert torch.allclose(*(run.predict_proba(graph().data, pairs) for run in (here, there)), atol=1e-4)


def test_predictions_and_explanations_come_back(tmp_path: Path) -> None:
    here, there = both(graph(), "ltga-edge")
    other = csbm(num_nodes=40, seed=2)
    for batch_size in (None, 16):
        found = there.predict_proba(other, batch_size)
        assert found.device.type == "cpu" and torch.allclose(found, here.predict_proba(other, batch_size), atol=1e-4)
    inside, wanted = explain(there, graph()), explain(here, graph())
    assert inside.weights == pytest.approx(wanted.weights, abs=1e-4) and inside.q == pytest.approx(wanted.q, abs=1e-4)
    plain = ltga.fit(graph(), "gcn", protocol=QUICK, device="cuda")
    assert plain.predict(other).device.type == "cpu"


def test_stored_runs_and_classifiers_move_between_devices(tmp_path: Path) -> None:
    _, there = both(graph(), "ltga-head")
    back = load_run(there.save(tmp_path))
    assert device_of(back.model).type == "cpu"
    again = load_run(there.save(tmp_path), "cuda")
    assert device_of(again.model) == DEVICE and device_of(again.to("cpu").model).type == "cpu"
    other = csbm(num_nodes=40, seed=2)
    assert torch.allclose(back.predict_proba(other), again.predict_proba(other), atol=1e-5)
    data = graph().data
    classifier = LTGAClassifier("ltga-head", **QUICK, device="cuda").fit(data.x, data.y, data.edge_index)
    assert device_of(classifier.run_.model) == DEVICE
    wanted = classifier.predict_proba(other.data.x, other.data.edge_index)
    path = classifier.save(tmp_path / "classifier.safetensors")
    for place in ("cpu", "cuda"):
        loaded = LTGAClassifier.load(path, device=place)
        assert loaded.predict_proba(other.data.x, other.data.edge_index) == pytest.approx(wanted, abs=1e-5)
        assert loaded.predict_proba(data.x, data.edge_index) == pytest.approx(
            classifier.predict_proba(data.x, data.edge_index), abs=1e-6
        )


def test_a_checkpoint_of_one_device_is_gone_on_from_on_another(tmp_path: Path) -> None:
    arguments = {"protocol": {**QUICK, "epochs": 4}, "checkpoint": tmp_path, "checkpoint_every": 0.0}
    wanted = ltga.fit(graph(), "ltga-head", device="cpu", protocol=arguments["protocol"])

    def dies(info: Any) -> None:
        if info.epoch == 3:
            raise MemoryError

    for first, second in (("cuda", "cpu"), ("cpu", "cuda")):
        with pytest.raises(MemoryError):
            ltga.fit(graph(), "ltga-head", device=first, callbacks=[dies], **arguments)
        run = ltga.fit(graph(), "ltga-head", device=second, **arguments)
        (resumed,) = run.record["resumed"]
        assert resumed["epoch"] == 2 and any(line.startswith("device: ") for line in resumed["changed"])
        assert run.record["trajectory"]["train_loss"] == pytest.approx(
            wanted.record["trajectory"]["train_loss"], rel=1e-4
        )


@pytest.mark.parametrize("method", ["ltga-head", "ltga-edge", "entmax-head", "gatv2", "classic-q", "gcn"])
def test_a_training_step_does_not_wait(method: str, kernels: None) -> None:
    """Once the structure is known: from the features to the changed weights nothing asks the device for a number."""
    protocol = Protocol.recommended(**QUICK, backend="triton" if method != "gcn" else "auto")
    planned = plan_run(graph() if method in ("gcn", "classic-q") else with_edge_attributes(), method, 1, None, protocol)
    model = assembly.make_model(method, planned.protocol, assembly.shape_of(planned.dataset.data, 2)).to(DEVICE)
    model.dropout_key = (1, 1)
    task = moved(assembly.make_task(planned.dataset, 0, model, planned.protocol), DEVICE)
    if model.computes_parts:
        task = moved(FocusedTask.of(moved(task, torch.device("cpu")), model, protocol), DEVICE)
    optimizer = DecoupledAdam(model.train(), planned.protocol)
    calls()
    for _ in range(2):
        waits()
        optimizer.zero_grad()
        task.target.loss(task.train_logits(model), task.y[task.train]).backward()
        optimizer.step(30)
    assert waits() == []
    assert ("ltga::attend" in calls()) == (method != "gcn")


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_starting_the_programs_does_not_wait(scoring: str, normalizer: str) -> None:
    """What stands around the kernels: arrays, plans for long rows, sums of parts."""
    setting = trust.Configuration(scoring, normalizer, 2, 4, 0 if scoring == "given" else 2, torch.float32)
    graph, operands = trust._example(setting, True)
    graph = Structure(*(array.to(DEVICE) for array in graph))
    operands = Operands(*(None if value is None else value.to(DEVICE) for value in operands))
    kind = Kind(SCORINGS[scoring], NORMALIZERS[normalizer], 0.2, 0.5, False, backend="triton")
    waits()
    with program_launch.written_down() as started:
        results = attention_triton.forward(operands, graph, kind)
        need = Needed(True, True, True, True, True)
        attention_triton.backward(torch.ones_like(results.out), None, operands, graph, results, kind, need)
    assert waits() == [] and len(started) > 3
    for _, arguments in started:
        assert all(isinstance(value, Elsewhere) for value in arguments.values() if isinstance(value, torch.Tensor))


def test_the_stand_in_itself_refuses_and_counts() -> None:
    here, there = torch.ones(2), torch.ones(2, device=DEVICE)
    with pytest.raises(RuntimeError, match="two devices"):
        here + there
    with pytest.raises(TypeError, match="numpy"):
        there.numpy()
    waits()
    there.sum().item(), there[there > 0], there.cpu()
    assert len(waits()) == 3
    there * 2 + torch.ones(())
    assert waits() == []
