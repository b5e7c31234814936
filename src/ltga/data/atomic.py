"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO


def write_atomic(path: Path, write: Callable[[BinaryIO], Any], accept: Callable[[Path], Any] | None = None) -> None:
    """Write beside ``path`` and move into place, so that nobody ever sees half a file.

    ``accept`` is called with the finished file before it gets its name, and may raise to refuse it. An ``OSError``
    names the file that was to be written, which the system does not if a disk is full.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomic(Path(folder, "a.txt"), lambda stream: stream.write(b"whole"))
    ...     [path.name for path in Path(folder).iterdir()]
    ['a.txt']
    """
    # Not the process's number: another thread, or another machine on this disk, may be writing the same file.
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())  # else a power cut may leave the new name on an empty file
        if accept is not None:
            accept(part)
        part.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with suppress(OSError):  # whatever kept the file from being written has been raised already
            part.unlink(missing_ok=True)
