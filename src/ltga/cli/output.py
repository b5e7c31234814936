"""Files the command line writes: refused before the work if they cannot be written, whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ltga.errors import InputError


def check_output(path: Path | None, option: str) -> None:
    """Raise unless a file can be written at ``path``; called before hours of work, not after."""
    if path is not None and (path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK)):
        raise InputError(f"{option}: cannot write {path}; its folder must exist and be writable")


def check_folder(path: Path, option: str) -> None:
    """Raise unless files can be written in the folder ``path``, which need not exist yet."""
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    try:
        # A file without a name: it leaves no trace, and tells more than permissions do.
        with tempfile.TemporaryFile(dir=existing) as probe:
            probe.write(b"probe")
    except OSError as error:
        raise InputError(f"{option}: cannot write in {path} ({error.strerror}: {existing})") from None


def write_text(path: Path, text: str) -> None:
    """Write ``text`` to ``path``, whole or not at all."""
    from ltga.data.atomic import write_atomic

    write_atomic(path, lambda stream: stream.write(text.encode()))
