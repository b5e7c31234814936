"""Training and predicting from a graph folder that is never loaded; hidden layers on disk where they do not fit."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from ltga.data import GraphFolder, csbm, dataset_from_data, mapped_rows, open_graph_folder
from ltga.data.graph_folder_sources import DatasetStream
from ltga.data.graph_folder_write import write_graph_folder
from ltga.errors import DataError, InputError
from ltga.explanation.explain import explain
from ltga.nn import LTGA, build_model
from ltga.train import MiniBatch, batches, fit, layerwise, load_run
from ltga.train.batches import BatchesWarning
from ltga.train.layerwise import Layerwise
from ltga.train.yardsticks import yardsticks
from oracles.records import without_surroundings

BATCHES = MiniBatch(batch_size=40, fanout=(4, 3), block=50)


def folder_of(tmp_path: Path, features: str = "float32", edge_attr: bool = False) -> GraphFolder:
    data = csbm(num_nodes=400, snr=2.0, num_splits=2, seed=5).data
    if edge_attr:
        data.edge_attr = torch.randn(data.num_edges, 2, generator=torch.Generator().manual_seed(1))
    return write_graph_folder(DatasetStream(dataset_from_data(data)), tmp_path / "graph", features)


def told(record: dict[str, Any]) -> dict[str, Any]:
    """A record apart from what tells a graph on disk from one in memory."""
    plain = json.loads(json.dumps(without_surroundings(record)))
    plain.pop("id", None)
    plain["config"]["dataset"].pop("fingerprint")
    return plain


@pytest.fixture
def never_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: GraphFolder) -> None:
        raise AssertionError("the graph was loaded")

    monkeypatch.setattr(GraphFolder, "dataset", refuse)


@pytest.mark.parametrize(
    ("method", "features", "edge_attr"),
    [("ltga-head", "float32", False), ("gatv2", "float16", False), ("ltga-head", "float32", True)],
)
def test_a_run_from_disk_is_the_run_in_memory_to_the_bit(
    tmp_path: Path, quick: dict, method: str, features: str, edge_attr: bool
) -> None:
    folder = folder_of(tmp_path, features, edge_attr)
    settings = {"protocol": {"epochs": 4, **quick}, "minibatch": BATCHES, "seed": 2}
    on_disk = fit(folder, method, **settings)
    in_memory = fit(folder.dataset(), method, **settings)
    assert told(on_disk.record) == told(in_memory.record)
    assert np.array_equal(on_disk.arrays["log_probs"], in_memory.arrays["log_probs"])
    assert on_disk.record["config"]["dataset"]["fingerprint"] == folder.fingerprint


def test_an_edge_gate_learns_the_same_and_keeps_no_row_for_each_edge(tmp_path: Path, quick: dict) -> None:
    folder = folder_of(tmp_path)
    settings = {"protocol": {"epochs": 3, **quick}, "minibatch": BATCHES}
    on_disk, in_memory = fit(folder, "ltga-edge", **settings), fit(folder.dataset(), "ltga-edge", **settings)
    for name in ("train_loss", "val_loss"):
        assert on_disk.record["trajectory"][name] == pytest.approx(in_memory.record["trajectory"][name], rel=1e-5)
    assert set(on_disk.arrays) == {"log_probs"}
    np.testing.assert_allclose(on_disk.arrays["log_probs"], in_memory.arrays["log_probs"], atol=1e-5)


def test_store_prediction_and_explanation_know_the_folder(tmp_path: Path, quick: dict, never_loaded: None) -> None:
    folder = folder_of(tmp_path)
    run = load_run(fit(folder, "ltga-head", protocol={"epochs": 2, **quick}, minibatch=BATCHES).save(tmp_path))
    expected = torch.from_numpy(run.arrays["log_probs"]).exp()
    torch.testing.assert_close(run.predict_proba(folder), expected, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(run.predict_proba(folder, batch_size=7), expected, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(run.predict_proba(folder, 100, fanout=-1), expected, atol=1e-6, rtol=1e-5)
    sampled = run.predict_proba(folder, fanout=[3, 2])
    assert sampled.equal(run.predict_proba(folder, fanout=[3, 2])) and not torch.allclose(sampled, expected, atol=1e-3)
    assert float((sampled.argmax(1) == expected.argmax(1)).double().mean()) > 0.7


def test_a_run_from_disk_can_be_explained(tmp_path: Path, quick: dict) -> None:
    folder = folder_of(tmp_path)
    run = fit(folder, "ltga-head", protocol={"epochs": 2, **quick}, minibatch=BATCHES)
    assert explain(run).weights.shape == explain(run, folder.dataset()).weights.shape
    other = folder.dataset()
    other.data.x[3, 0] += 1
    with pytest.raises(InputError, match="is not the graph of this run"):
        explain(run, other)


@pytest.mark.parametrize("kind", ["number", "labels"])
def test_memory_chooses_for_numbers_and_labels_too(kind: str, quick: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    data = csbm(num_nodes=80).data
    data.y = data.x[:, 0] if kind == "number" else (data.x[:, :3] > 0).float()
    monkeypatch.setattr(batches, "free_memory", lambda: 1000)
    monkeypatch.setattr("ltga.train.devices.free_memory", lambda: 1000, raising=False)
    with pytest.warns(BatchesWarning, match="training on sampled neighbourhoods, --batch-size"):
        run = fit(data, "gatv2", protocol={"epochs": 1, **quick})
    assert run.record["config"]["minibatch"]["batch_size"] == 512
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "minibatch" not in fit(data, "gatv2", protocol={"epochs": 1, **quick}, minibatch=None).record["config"]


def test_memory_chooses_and_says_so(
    tmp_path: Path, quick: dict, monkeypatch: pytest.MonkeyPatch, never_loaded: None
) -> None:
    folder = folder_of(tmp_path)
    monkeypatch.setattr(batches, "free_memory", lambda: 1000)
    for graph in (folder, str(folder.path), folder.path):
        with pytest.warns(BatchesWarning, match=r"from disk, --batch-size 512 --fanout 10"):
            run = fit(graph, "ltga-head", protocol={"epochs": 1, **quick})
        assert run.record["config"]["minibatch"]["batch_size"] == 512
    with pytest.warns(BatchesWarning, match="training on sampled neighbourhoods, --batch-size"):
        assert "minibatch" in fit(csbm(num_nodes=80), "gatv2", protocol={"epochs": 1, **quick}).record["config"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = fit(csbm(num_nodes=80), "gatv2", protocol={"epochs": 1, **quick}, minibatch=None)
    assert "minibatch" not in whole.record["config"]
    with pytest.raises(InputError, match="minibatch: gcn needs the whole graph at once; leave it out"):
        fit(folder, "gcn", protocol={"epochs": 1, **quick}, minibatch={})


def test_a_folder_that_fits_is_loaded_and_trained_as_a_whole(tmp_path: Path, quick: dict) -> None:
    folder = folder_of(tmp_path)
    run = fit(folder, "ltga-head", protocol={"epochs": 1, **quick})
    assert "minibatch" not in run.record["config"]
    assert run.record["config"]["dataset"]["fingerprint"] == folder.dataset().fingerprint


@pytest.mark.parametrize("method", ["ltga-edge", "gatv2"])
def test_hidden_layers_on_disk_give_the_same_bits_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    generator = torch.Generator().manual_seed(1)
    x, edges = torch.randn(300, 6, generator=generator), torch.randint(0, 300, (2, 1500), generator=generator)
    model = build_model(method, 6, 3, hidden_channels=4, heads=2, num_layers=3).eval()
    wanted = torch.randperm(300, generator=generator)[:20]
    passes = Layerwise(x, edges, block=64)
    expected = [passes.logits(model), passes.hidden(model), passes.logits(model, wanted)]
    torch.testing.assert_close(expected[2], expected[0][wanted], atol=1e-6, rtol=1e-5)
    made: list[int] = []
    original = layerwise.scratch_rows
    monkeypatch.setattr(layerwise, "scratch_rows", lambda *shape: made.append(shape) or original(*shape, tmp_path))
    monkeypatch.setattr(layerwise, "free_memory", lambda: 0)
    passes = Layerwise(x, edges, block=64)
    found = [passes.logits(model), passes.hidden(model), passes.logits(model, wanted)]
    assert len(made) == 6 and made[-1][0] < 300
    assert all(ours.equal(theirs) for ours, theirs in zip(found, expected))
    assert list(tmp_path.iterdir()) == []


def test_hidden_layers_leave_nothing_after_an_error_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, edges = torch.randn(50, 6), torch.randint(0, 50, (2, 200))
    model = LTGA(6, 3, hidden_channels=4, heads=2, num_layers=3).eval()
    original = layerwise.scratch_rows
    monkeypatch.setattr(layerwise, "scratch_rows", lambda *shape: original(*shape, tmp_path))
    monkeypatch.setattr(layerwise, "free_memory", lambda: 0)

    def fail(*_: Any) -> None:
        raise RuntimeError("in the middle")

    monkeypatch.setattr(model.convs[1], "forward", fail)
    with pytest.raises(RuntimeError, match="in the middle"):
        Layerwise(x, edges).logits(model)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_before_anything_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(mapped_rows.os, "posix_fallocate", full)
    with pytest.raises(DataError, match=r"no room for 0\.0 GiB of hidden layers .*; set TMPDIR"):
        mapped_rows.scratch_rows(10, 3)


def test_streamed_statistics_are_those_of_all_edges_at_once() -> None:
    from ltga.nn.attention_statistics import attention_statistics

    data = csbm(num_nodes=200, seed=2).data
    model = build_model("entmax-1.5", data.x.size(1), 3, hidden_channels=4, heads=2).eval()
    logits, streamed = Layerwise(data.x, data.edge_index, block=30).observed(model)
    torch.testing.assert_close(logits, model(data.x, data.edge_index), atol=1e-5, rtol=1e-5)
    whole = model.attention_weights(data.x, data.edge_index)
    for ours, (edges, weights) in zip(streamed, whole):
        for name, expected in attention_statistics(weights, edges[1], 200).items():
            torch.testing.assert_close(ours[name], expected, atol=1e-6, rtol=1e-5)


def test_yardsticks_read_the_folder(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    assert yardsticks(folder, 1) == yardsticks(folder.dataset(), 1)


def test_damaged_features_and_labels_are_named(tmp_path: Path, quick: dict) -> None:
    folder = folder_of(tmp_path)

    def spoil(name: str, at: Any, value: float) -> GraphFolder:
        array = np.load(folder.path / f"{name}.npy", mmap_mode="r+")
        array[at] = value
        array.flush()
        os.utime(folder.path / f"{name}.npy", ns=(0, 0))  # as if the disk had done it
        return open_graph_folder(folder.path)

    settings = {"protocol": {"epochs": 1, **quick}, "minibatch": BATCHES}
    with pytest.raises(DataError, match=r"features of node 7: number 2 is nan; it is damaged"):
        fit(spoil("x", (7, 2), np.nan), "ltga-head", **settings)
    with pytest.raises(DataError, match=r"split 0 has node 9 without a label"):
        fit(spoil("y", slice(9, 11), -1), "ltga-head", **settings)
    with pytest.raises(DataError, match=r"node 9 has label 55 of 2"):
        fit(spoil("y", slice(9, 11), 55), "ltga-head", **settings)
    with pytest.raises(DataError, match=r"splits.npy puts a node into part 9"):
        fit(spoil("splits", (0, 3), 9), "ltga-head", **settings)


CHILD = """
import json, sys
from pathlib import Path
from ltga.data import open_graph_folder, mapped_rows
from ltga.train import fit, layerwise, MiniBatch

def status(field):
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024

def run(path):
    protocol = {"epochs": 1, "hidden_channels": 16, "heads": 4}
    return fit(open_graph_folder(path), "ltga-head", protocol=protocol, minibatch=MiniBatch(16, (3, 2), block=64))

mapped_rows.RESIDENT, mapped_rows._CHUNK = 8 * 1024**2, 8
layerwise.free_memory = lambda: 0
run(sys.argv[1])  # loads and compiles what is needed
before = status("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
found = run(sys.argv[2])
found.predict(open_graph_folder(sys.argv[2]), batch_size=64)
print(json.dumps({"grown": status("VmHWM") - before, "accuracy": found.metrics["accuracy"]}))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="not Linux")
def test_memory_stays_far_below_the_features(tmp_path: Path) -> None:
    small = folder_of(tmp_path)
    generator = np.random.default_rng(0)
    nodes, features = 12_000, 5000  # 240 MB
    x = generator.normal(size=(nodes, features)).astype(np.float32)
    y = torch.from_numpy((x[:, :5].sum(1) > 0).astype(np.int64))
    edges = torch.from_numpy(generator.integers(0, nodes, (2, 30_000)))
    masks = {f"{part}_mask": torch.arange(nodes) % 50 == number for number, part in enumerate(("train", "val", "test"))}
    graph = Data(x=torch.from_numpy(x), y=y, edge_index=edges, **masks)
    large = write_graph_folder(DatasetStream(dataset_from_data(graph)), tmp_path / "large")
    del x, graph
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(small.path), str(large.path)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["grown"] < 4 * nodes * features / 3, found
