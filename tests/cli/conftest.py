"""The command line as a user meets it: arguments in; exit code, stdout and stderr out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def ltga(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Runs ``ltga ARGUMENTS`` in an empty folder, in this process."""
    monkeypatch.setattr("ltga.cli.train.keep_freed_memory", lambda: None)  # this process is not ours alone
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Outcome:
        from ltga.cli import main

        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        code = stopped.value.code
        return Outcome(code if isinstance(code, int) else 0, captured.out, captured.err)

    return run
