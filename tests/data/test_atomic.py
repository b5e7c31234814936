"""Files that are whole or not there, whoever else is writing them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import pytest

from ltga.data.atomic import write_atomic


def test_many_writers_of_one_file_leave_one_whole_content(tmp_path: Path) -> None:
    contents = [bytes([number]) * 50_000 for number in range(16)]
    target = tmp_path / "file"

    def write(content: bytes) -> None:
        write_atomic(target, lambda stream: [stream.write(content[i : i + 5000]) for i in range(0, 50_000, 5000)])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, contents))
    assert target.read_bytes() in contents and list(tmp_path.iterdir()) == [target]


def test_what_is_refused_or_breaks_off_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")

    def refuse(part: Path) -> None:
        assert part.read_bytes() == b"new"
        raise ValueError("not this one")

    with pytest.raises(ValueError, match="not this one"):
        write_atomic(target, lambda stream: stream.write(b"new"), accept=refuse)

    def break_off(stream: BinaryIO) -> None:
        stream.write(b"ha")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomic(target, break_off)
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]


def test_an_error_names_the_file_and_others_may_read_what_is_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere") as caught:
        write_atomic(tmp_path / "nowhere" / "file", lambda stream: stream.write(b""))
    assert caught.value.filename == str(tmp_path / "nowhere" / "file")
    umask = os.umask(0o022)
    try:
        write_atomic(tmp_path / "file", lambda stream: stream.write(b""))
    finally:
        os.umask(umask)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644
