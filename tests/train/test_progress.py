"""The line that shows how training goes: one line everywhere, in a notebook without widgets too."""

from __future__ import annotations

import io
import sys
import warnings

import pytest
from rich.console import Console

from ltga import fit
from ltga.data import csbm
from ltga.train import progress
from ltga.train.progress import ProgressLine, RewrittenLine

QUICK = {"epochs": 30, "hidden_channels": 4, "heads": 2, "backend": "torch"}


def test_a_notebook_gets_one_line_that_is_written_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "Console", lambda **_: Console(force_jupyter=True))
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(csbm(num_nodes=60), "entmax-head", protocol=QUICK, progress=True)
    shown = capsys.readouterr()
    assert shown.out.count("\n") == 1 and shown.out.endswith("\n") and "epoch 30" in shown.out.rpartition("\r")[2]
    assert "α " in shown.out and "  q " not in shown.out and shown.err == ""


def test_states_come_a_few_times_a_second_and_hide_longer_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    stream = io.StringIO()
    line = RewrittenLine("start", stream)
    line.start()
    for step in range(1000):
        now = step / 1000
        line.update(f"a long state {step}" if step < 900 else "short")
    line.stop()
    states = stream.getvalue().rstrip("\n").split("\r")[1:]
    assert states[0] == "start" and len(states) <= 7 and states[-1].strip() == "short"
    assert len(states[-1]) == max(map(len, states))


def test_a_terminal_gets_a_status_line() -> None:
    console = Console(file=io.StringIO(), force_terminal=True)
    with ProgressLine("title", console) as line:
        assert type(line._line).__name__ == "Status"
