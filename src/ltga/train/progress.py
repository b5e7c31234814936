"""A line that shows how training goes: loss, validation and q."""

from __future__ import annotations

import math
from types import TracebackType

from rich.console import Console
from rich.status import Status

from ltga.train.loop import EpochInfo


class ProgressLine:
    """A callback for ``fit`` that keeps one line of the terminal up to date.

    >>> with ProgressLine("cora, ltga-head, seed 1") as line:
    ...     pass
    """

    def __init__(self, title: str, console: Console | None = None) -> None:
        self._title = title
        self._status = Status(title, console=console or Console(stderr=True))

    def __enter__(self) -> ProgressLine:
        self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._status.stop()

    def __call__(self, info: EpochInfo) -> None:
        self._status.update(f"{self._title}  {describe(info)}")


def describe(info: EpochInfo) -> str:
    """An epoch in one line.

    >>> describe(EpochInfo(3, 1.2, 1.3, 0.5, None, 2, [{"mean": [1.0, 1.5]}], 0.0, 0.1))
    'epoch 3  loss 1.200  val loss 1.300  val acc 50.0 %  best epoch 2  q 1.250'
    """
    means = [sum(layer["mean"]) / len(layer["mean"]) for layer in info.q if layer.get("mean")]
    q = "  q " + " ".join(f"{mean:.3f}" for mean in means) if means else ""
    hits = "" if math.isnan(info.val_accuracy) else f"val acc {100 * info.val_accuracy:.1f} %  "
    return (
        f"epoch {info.epoch}  loss {info.train_loss:.3f}  val loss {info.val_loss:.3f}  "
        f"{hits}best epoch {info.best_epoch}{q}"
    )
