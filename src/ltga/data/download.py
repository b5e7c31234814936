"""One checked download: to a temporary file, verified, then moved into place in one step."""

from __future__ import annotations

import hashlib
import http.client
import os
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from ltga.errors import DataError

CHUNK = 1 << 16
TIMEOUT = 30.0
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
) -> Path:
    """Fetch `url` to `target`; after any failure, interruption included, nothing is left at `target`.

    Args:
        url: an http or https address.
        target: where the file goes; its folder is made if need be.
        sha256: what the file must hash to; None if not known.
        size: its length in bytes; None if not known.
        verify: called with the finished temporary file; may raise to refuse it.
        timeout: seconds without an answer before giving up.
    """
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise DataError(f"{url}: only http and https addresses are fetched")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, part_name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise DataError(f"{target.parent}: cannot write there ({error}); choose another folder") from None
    part = Path(part_name)
    try:
        with os.fdopen(handle, "wb") as sink:
            digest, received = _receive(url, sink, target.name, size, timeout)
            sink.flush()
            os.fsync(sink.fileno())
        if size is not None and received != size:
            raise DataError(f"{url}: got {received:,} bytes instead of {size:,}; try again")
        if sha256 is not None and digest != sha256:
            raise DataError(
                f"{url}: {target.name} has sha256 {digest} instead of {sha256}; it was not kept. "
                "Either the connection is tampered with or upstream has changed"
            )
        if verify is not None:
            verify(part)
        part.chmod(0o644)  # mkstemp gives 0600; caches are often shared
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return target


def _receive(url: str, sink: IO[bytes], label: str, size: int | None, timeout: float) -> tuple[str, int]:
    """Copy the body to `sink`; its sha256 and length."""
    limit = size if size is not None else MAX_BYTES
    digest = hashlib.sha256()
    received = 0
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "ltga"})
        with urllib.request.urlopen(request, timeout=timeout) as response, _progress() as progress:
            announced = response.headers.get("Content-Length")
            expected = int(announced) if announced and announced.isdigit() else None
            task = progress.add_task(label, total=expected or size)
            while chunk := response.read(CHUNK):
                received += len(chunk)
                if received > limit:
                    raise DataError(f"{url}: more than the expected {limit:,} bytes; stopped")
                digest.update(chunk)
                sink.write(chunk)
                progress.update(task, completed=received)
    except urllib.error.HTTPError as error:
        raise DataError(f"{url}: the server answered {error.code} {error.reason}") from None
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error
        raise DataError(f"{url}: no connection ({reason})") from None
    except OSError as error:
        raise DataError(f"{url}: could not be stored ({error})") from None
    if expected is not None and received < expected:
        raise DataError(f"{url}: broke off after {received:,} of {expected:,} bytes; try again")
    return digest.hexdigest(), received


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
