"""What ``ltga reproduce`` shows while it works: the run in words."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ltga.study.command import reproduce_command
from oracles.records import make_record


def test_the_bar_names_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=120)

    def one_run(*_: Any, on_run: Any, **settings: Any) -> list[Any]:
        on_run(make_record("texas", "gat", 2))
        return []

    monkeypatch.setattr(reproduce_command, "reproduction_table", one_run)
    monkeypatch.setattr(reproduce_command, "keep_freed_memory", lambda: None)
    reproduce_command.reproduce_cells(screen, ["gat"], ["csbm:num_nodes=60"], 2, tmp_path / "runs", None, None)
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "texas, gat, seed 2" in shown and "{" not in shown and "1/2" in shown
