"""A line that shows how training goes: loss, validation and q."""

from __future__ import annotations

import math
import sys
import time
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.status import Status

from ltga.nn.methods import find_method
from ltga.train.loop import EpochInfo

NOTEBOOK_SECONDS = 0.25  # between two states of the line in a notebook, whose every state is sent to the browser


class ProgressLine:
    """A callback for ``fit`` that keeps one line up to date, of the terminal or of a notebook.

    ``method`` tells what the learned index is called.

    >>> with ProgressLine("cora, ltga-head, seed 1") as line:
    ...     pass
    """

    def __init__(self, title: str, console: Console | None = None, method: str | None = None) -> None:
        console = console or Console(stderr=True)
        self._title = title
        self._symbol = "q" if method is None else index_symbol(method)
        # Rich needs ipywidgets in a notebook, and warns at every state of the line where they are missing.
        self._line: Status | RewrittenLine = (
            RewrittenLine(title) if console.is_jupyter else Status(title, console=console)
        )

    def __enter__(self) -> ProgressLine:
        self._line.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.stop()

    def __call__(self, info: EpochInfo) -> None:
        self._line.update(f"{self._title}  {describe(info, self._symbol)}")


class RewrittenLine:
    """One line of plain text that is written over itself, a few times a second at most."""

    def __init__(self, text: str, stream: TextIO | None = None) -> None:
        self._text, self._stream = text, stream or sys.stdout
        self._written, self._width = -math.inf, 0

    def start(self) -> None:
        self._write()

    def update(self, text: str) -> None:
        self._text = text
        if time.monotonic() - self._written >= NOTEBOOK_SECONDS:
            self._write()

    def stop(self) -> None:
        self._write()
        self._stream.write("\n")
        self._stream.flush()

    def _write(self) -> None:
        self._stream.write("\r" + self._text.ljust(self._width))
        self._stream.flush()
        self._written, self._width = time.monotonic(), max(self._width, len(self._text))


def index_symbol(method: str) -> str:
    """What a method's learned index is called.

    >>> index_symbol("ltga-head"), index_symbol("entmax-head")
    ('q', 'α')
    """
    return "α" if find_method(method).family == "learned α" else "q"


def describe(info: EpochInfo, symbol: str = "q") -> str:
    """An epoch in one line.

    >>> describe(EpochInfo(3, 1.2, 1.3, 0.5, None, 2, [{"mean": [1.0, 1.5]}], 0.0, 0.1))
    'epoch 3  loss 1.200  val loss 1.300  val acc 50.0 %  best epoch 2  q 1.250'
    """
    means = [sum(layer["mean"]) / len(layer["mean"]) for layer in info.q if layer.get("mean")]
    q = f"  {symbol} " + " ".join(f"{mean:.3f}" for mean in means) if means else ""
    hits = "" if math.isnan(info.val_accuracy) else f"val acc {100 * info.val_accuracy:.1f} %  "
    return (
        f"epoch {info.epoch}  loss {info.train_loss:.3f}  val loss {info.val_loss:.3f}  "
        f"{hits}best epoch {info.best_epoch}{q}"
    )
