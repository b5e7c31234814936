"""The TensorBoard callback, read back with TensorBoard's own reader."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ltga.data import Dataset
from ltga.errors import InputError
from ltga.train import Protocol, TensorBoard, fit


def test_the_event_file_says_what_the_record_says(small: Dataset, quick: dict, tmp_path: Path) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with TensorBoard(tmp_path / "board") as board:
        run = fit(small, "ltga-edge", protocol=Protocol(epochs=4, warmup=1, **quick), callbacks=[board])
    events = reader.EventAccumulator(str(tmp_path / "board")).Reload()
    trajectory = run.record["trajectory"]
    expected = {
        "loss/train": trajectory["train_loss"],
        "loss/validation": trajectory["val_loss"],
        "accuracy/validation": trajectory["val_accuracy"],
        "index/gradient_norm": trajectory["index_gradient_norm"],
    }
    for layer in (1, 2):
        for head in (1, 2):
            for kind, name in (("mean", "q"), ("std", "q_std")):
                values = trajectory["q"][layer - 1][kind]
                expected[f"{name}/layer{layer}/head{head}"] = [epoch[head - 1] for epoch in values]
    assert set(events.Tags()["scalars"]) == set(expected)
    for name, values in expected.items():
        scalars = events.Scalars(name)
        assert [scalar.step for scalar in scalars] == [1, 2, 3, 4]
        assert [scalar.value for scalar in scalars] == pytest.approx(values, rel=1e-6)


def test_a_missing_package_and_a_folder_that_cannot_be_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"folder: .*file.* cannot be written"):
        TensorBoard(tmp_path / "file" / "board")
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(InputError, match=r"pip install 'ltga\[tensorboard\]'"):
        TensorBoard(tmp_path / "board")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
