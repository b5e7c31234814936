"""Known files that upstream keeps inside a zip archive."""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from ltga.data.atomic import write_atomic
from ltga.data.bounds import in_a_line
from ltga.data.download import download
from ltga.data.facts import KnownFile
from ltga.errors import DataError


def download_members(url: str, files: Sequence[KnownFile], folder: Path) -> None:
    """Fetch the archive at `url` and put its `files` into `folder`; none of them unless all are what they should be."""
    with tempfile.TemporaryDirectory() as scratch:
        path = download(url, Path(scratch) / url.rsplit("/", 1)[-1], sha256=None)
        try:
            with zipfile.ZipFile(path) as archive:
                contents = [_member(archive, file, url) for file in files]
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
            raise DataError(f"{url}: damaged or not a zip archive ({in_a_line(error)}); try again") from None
    for file, content in zip(files, contents):
        target = folder / file.path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(target, partial(_write, content))
        except OSError as error:
            raise DataError(f"{target.parent}: cannot write there ({error.strerror}); choose another folder") from None


def _write(content: bytes, stream: BinaryIO) -> None:
    stream.write(content)


def _member(archive: zipfile.ZipFile, file: KnownFile, url: str) -> bytes:
    """The bytes of one file, never more than it is known to have."""
    assert file.upstream_path is not None and file.size is not None
    try:
        with archive.open(file.upstream_path) as stream:
            content = stream.read(file.size + 1)
    except KeyError:
        raise DataError(f"{url}: {file.upstream_path} is not in the archive; upstream has changed") from None
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise DataError(
            f"{url}: {file.upstream_path} has sha256 {found} instead of {file.sha256}; nothing was kept. "
            "Either the connection is tampered with or upstream has changed"
        )
    return content
