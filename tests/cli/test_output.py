"""Output files of the command line: refused early, written whole."""

import os
from pathlib import Path

import pytest

from ltga import LTGAError
from ltga.cli.output import check_output, write_text


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(LTGAError, match=r"--out: cannot write .*nowhere"):
        check_output(tmp_path / "nowhere" / "table.md", "--out")
    with pytest.raises(LTGAError, match="--json"):
        check_output(tmp_path, "--json")
    check_output(tmp_path / "table.md", "--out")
    check_output(None, "--out")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.md"
    write_text(path, "old")

    def full_disk(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full_disk)
    monkeypatch.setattr(Path, "replace", full_disk)
    with pytest.raises(OSError, match="no space"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
