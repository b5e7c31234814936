"""One checked download: to a temporary file, verified, then moved into place in one step."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from ltga.data.atomic import write_atomic
from ltga.data.request import Answer, open_url
from ltga.errors import DataError

CHUNK = 1 << 16
TIMEOUT = 30.0
# A file that is still not here after this long, at this many bytes a second, never will be.
_PATIENCE = 120.0
_SLOWEST = 10_000
_UNKNOWN_SIZE = 3600.0
# For a file of unknown size: nothing we fetch comes near it.
MAX_BYTES = 1 << 30


def download(
    url: str,
    target: Path,
    *,
    sha256: str | None,
    size: int | None = None,
    verify: Callable[[Path], object] | None = None,
    timeout: float = TIMEOUT,
    deadline: float | None = None,
) -> Path:
    """Fetch `url` to `target`; after any failure, interruption included, nothing is left at `target`.

    Args:
        url: an http or https address.
        target: where the file goes; its folder is made if need be.
        sha256: what the file must hash to; None if not known.
        size: its length in bytes; None if not known.
        verify: called with the finished temporary file; may raise to refuse it.
        timeout: seconds without an answer before giving up.
        deadline: seconds that the whole may take. If left out, two minutes and as long as `size` takes at
            10 kB/s, or an hour if the size is not known.
    """
    if deadline is None:
        deadline = _UNKNOWN_SIZE if size is None else _PATIENCE + size / _SLOWEST

    def fetch(sink: IO[bytes]) -> None:
        digest, received = _receive(url, sink, target.name, size, timeout, deadline)
        if size is not None and received != size:
            raise DataError(f"{url}: got {received:,} bytes instead of {size:,}; try again")
        if sha256 is not None and digest != sha256:
            raise DataError(
                f"{url}: {target.name} has sha256 {digest} instead of {sha256}; it was not kept. "
                "Either the connection is tampered with or upstream has changed"
            )

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(target, fetch, accept=verify)
    except OSError as error:
        raise DataError(f"{target.parent}: cannot write there ({error.strerror}); choose another folder") from None
    return target


def _receive(
    url: str, sink: IO[bytes], label: str, size: int | None, timeout: float, deadline: float
) -> tuple[str, int]:
    """Copy the body to `sink`; its sha256 and length."""
    limit = size if size is not None else MAX_BYTES
    digest = hashlib.sha256()
    received = 0
    with open_url(url, timeout, deadline) as answer, _progress() as progress:
        if answer.length is not None and answer.length > limit:
            raise DataError(
                f"{url}: announces {answer.length:,} bytes, more than the expected {limit:,} bytes; stopped"
            )
        task = progress.add_task(label, total=answer.length or size)
        for chunk in _chunks(answer):
            received += len(chunk)
            if received > limit:
                raise DataError(f"{url}: more than the expected {limit:,} bytes; stopped")
            digest.update(chunk)
            try:
                sink.write(chunk)
            except OSError as error:
                raise DataError(f"{url}: could not be stored ({error})") from None
            progress.update(task, completed=received)
        if answer.length is not None and received < answer.length:
            raise DataError(f"{url}: broke off after {received:,} of {answer.length:,} bytes; try again")
    return digest.hexdigest(), received


def _chunks(answer: Answer) -> Iterator[bytes]:
    while chunk := answer.read(CHUNK):
        yield chunk


def _progress() -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
