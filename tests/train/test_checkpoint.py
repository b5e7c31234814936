"""A run whose process dies goes on from its checkpoint to the numbers it would have had, bit by bit."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from ltga.data import Dataset, csbm, load_dataset
from ltga.errors import InputError
from ltga.train import Run, fit
from ltga.train.checkpoint import Checkpoint
from ltga.train.loop import EpochInfo


class Died(BaseException):
    """A process that ends without a word: no handler of the library may catch it."""


def dies_at(*epochs: int) -> Any:
    def callback(info: EpochInfo) -> None:
        if info.epoch in epochs:
            raise Died

    return callback


def results(run: Run) -> dict[str, Any]:
    """A record without what may differ: times, and that it was resumed."""
    return {key: value for key, value in run.record.items() if key not in ("timing", "resumed")}


def same(left: Run, right: Run) -> None:
    assert results(left) == results(right)
    weights = right.model.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in left.model.state_dict().items())
    assert all(np.array_equal(value, right.arrays[name], equal_nan=True) for name, value in left.arrays.items())


SETTINGS: list[tuple[str, dict[str, Any], dict[str, Any] | None]] = [
    ("ltga-head", {"init": "paper", "warmup": 3}, None),  # dropout draws from torch's generator, q wakes up at epoch 4
    ("ltga-edge", {"init": "paired", "prior": 0.1}, None),
    ("gcn", {"init": "paper"}, None),
    ("ltga-head", {"init": "paper"}, {"batch_size": 16, "fanout": 3}),
    ("separated-q", {"init": "paper", "num_layers": 3}, None),  # batch norm: buffers
]


@pytest.mark.parametrize(("method", "settings", "minibatch"), SETTINGS)
def test_a_resumed_run_is_the_uninterrupted_one(
    small: Dataset, quick: dict[str, Any], tmp_path: Path, method: str, settings: dict[str, Any], minibatch: Any
) -> None:
    protocol = {**quick, "epochs": 12, "patience": 6, "dropout": 0.3, **settings}
    whole = fit(small, method, protocol=protocol, minibatch=minibatch)
    given = {"protocol": protocol, "minibatch": minibatch, "checkpoint": tmp_path, "checkpoint_every": 0}
    before = torch.get_rng_state()
    for epoch in (5, 8):  # the epoch that it dies in is lost, so the next process goes on after the one before
        with pytest.raises(Died):
            fit(small, method, callbacks=[dies_at(epoch)], **given)
        torch.rand(7)  # another process has another generator
    torch.set_rng_state(before)
    resumed = fit(small, method, **given)
    same(resumed, whole)
    assert [entry["epoch"] for entry in resumed.record["resumed"]] == [4, 7]
    assert [entry.changed for entry in resumed.typed.resumed or []] == [[], []]
    assert "resumed" not in whole.record
    assert torch.equal(torch.get_rng_state(), before), "the caller's generator is left as it was"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["mutag", "cora-links", "umls", "numbers"])
def test_every_task_resumes(name: str, tmp_path: Path) -> None:
    protocol = {"hidden_channels": 4, "heads": 2, "epochs": 4, "init": "paper", "dropout": 0.3}
    task = None
    if name == "cora-links":
        data: Any = csbm(num_nodes=80, seed=2)
        task = "link"
    elif name == "numbers":
        from ltga.data import NodeDataset, Target

        graph = csbm(num_nodes=80, seed=2)
        y = graph.data.x.sum(1)
        data = NodeDataset("numbers", graph.data, Target("number", y, ("sum",)))
    else:
        try:
            data = load_dataset(name)
        except Exception as error:
            pytest.skip(f"{name} is not here ({error})")
    given: dict[str, Any] = {"protocol": protocol, "task": task}
    whole = fit(data, "ltga-head", **given)
    kept: dict[str, Any] = {"checkpoint": tmp_path, "checkpoint_every": 0, **given}
    with pytest.raises(Died):
        fit(data, "ltga-head", callbacks=[dies_at(3)], **kept)
    resumed = fit(data, "ltga-head", **kept)
    same(resumed, whole)
    assert [entry["epoch"] for entry in resumed.record["resumed"]] == [2]


def test_a_stored_run_says_that_it_was_resumed(small: Dataset, quick: dict[str, Any], tmp_path: Path) -> None:
    from ltga.train import load_run

    given: dict[str, Any] = {"protocol": {**quick, "epochs": 3}, "checkpoint": tmp_path, "checkpoint_every": 0}
    with pytest.raises(Died):
        fit(small, callbacks=[dies_at(2)], **given)
    run = fit(small, **given)
    assert load_run(run.save(tmp_path)).record["resumed"] == [{"epoch": 1, "changed": []}]


def test_a_short_run_writes_nothing(
    small: Dataset, quick: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Checkpoint, "write", lambda *_: pytest.fail("wrote a checkpoint"))
    fit(small, protocol={**quick, "epochs": 3}, checkpoint=tmp_path / "none")
    assert not (tmp_path / "none").exists()


def interrupted(small: Dataset, quick: dict[str, Any], folder: Path) -> tuple[Path, dict[str, Any]]:
    given: dict[str, Any] = {"protocol": {**quick, "epochs": 4}, "checkpoint": folder, "checkpoint_every": 0}
    with pytest.raises(Died):
        fit(small, callbacks=[dies_at(3)], **given)
    (path,) = folder.iterdir()
    return path, given


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(bytes(content))


def of_another_run(path: Path) -> None:
    with safe_open(path, "pt") as stream:
        metadata = stream.metadata()
    from ltga.train.checkpoint import digest

    text = metadata["state"].replace(path.stem, "0" * 64)
    tensors = load_file(path)
    save_file(tensors, path, {**metadata, "state": text, "sha256": digest(tensors, text)})


def of_another_network(path: Path) -> None:
    with safe_open(path, "pt") as stream:
        metadata = stream.metadata()
    from ltga.train.checkpoint import digest

    tensors = load_file(path)
    tensors["model/extra"] = torch.zeros(2)
    save_file(tensors, path, {**metadata, "sha256": digest(tensors, metadata["state"])})


def with_moments(change: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[Path], None]:
    """A checkpoint whose optimiser is that of another network."""

    def spoil(path: Path) -> None:
        with safe_open(path, "pt") as stream:
            metadata = stream.metadata()
        from ltga.train.checkpoint import digest

        tensors = load_file(path)
        change(tensors)
        save_file(tensors, path, {**metadata, "sha256": digest(tensors, metadata["state"])})

    return spoil


MOMENT = "optimizer/weights/0/exp_avg"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            with_moments(lambda kept: kept.update({MOMENT: torch.zeros(3)})),
            "does not fit the optimiser .weights/0/exp_avg",
        ),
        (
            with_moments(lambda kept: kept.update({MOMENT: kept[MOMENT].double()})),
            "float64 .* instead of torch.float32",
        ),
        (with_moments(lambda kept: kept.pop(MOMENT)), "weights/0/exp_avg is missing"),
        (with_moments(lambda kept: kept.update({"optimizer/weights/99/step": torch.zeros(())})), "no such moment"),
        (with_moments(lambda kept: kept.update({"optimizer/odd": torch.zeros(())})), "odd: no such moment"),
        (cut_in_half, "damaged or not a safetensors file"),
        (flip_a_bit, "checksum differs"),
        (of_another_run, "of another run, 000000000000"),
        (of_another_network, "does not fit the network .extra"),
        (lambda path: path.write_text("{}"), "damaged or not a safetensors file"),
    ],
)
def test_an_unsound_checkpoint_is_told_and_not_used(
    small: Dataset, quick: dict[str, Any], tmp_path: Path, spoil: Any, said: str
) -> None:
    path, given = interrupted(small, quick, tmp_path)
    spoil(path)
    with pytest.warns(UserWarning, match=f"{path.name}: .*{said}.*the run starts afresh"):
        afresh = fit(small, **given)
    same(afresh, fit(small, protocol=given["protocol"]))
    assert "resumed" not in afresh.record
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told_and_the_run_goes_on(
    small: Dataset, quick: dict[str, Any], tmp_path: Path
) -> None:
    folder = tmp_path / "lost"
    protocol = {**quick, "epochs": 3}

    def lose_it(info: EpochInfo) -> None:
        if info.epoch == 2:
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()
            folder.write_text("a shared folder that went away")

    with pytest.warns(UserWarning) as told:
        run = fit(small, protocol=protocol, checkpoint=folder, checkpoint_every=0, callbacks=[lose_it])
    same(run, fit(small, protocol=protocol))
    for line, epoch in zip(told, (2, 3)):
        assert re.search(f"no checkpoint after epoch {epoch}: .*; the run goes on without", str(line.message))
    assert re.search("cannot be deleted", str(told[2].message))


def test_what_has_changed_meanwhile_is_in_the_record(
    small: Dataset, quick: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ltga.train import checkpoint
    from ltga.train.record import environment

    _, given = interrupted(small, quick, tmp_path)
    now = environment()
    now["versions"]["torch"], now["machine"]["threads"] = "99.0", 64
    monkeypatch.setattr(checkpoint, "environment", lambda device: now)
    changed = fit(small, **given).record["resumed"][0]["changed"]
    assert changed == [f"torch: {torch.__version__} -> 99.0", "threads: 1 -> 64"]


def test_bad_settings(small: Dataset, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="checkpoint_every: expected seconds, got -1"):
        fit(small, checkpoint=tmp_path, checkpoint_every=-1)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"checkpoint: .*file is a file; give a folder"):
        fit(small, checkpoint=tmp_path / "file")
