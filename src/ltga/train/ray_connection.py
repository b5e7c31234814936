"""A connection to a Ray cluster, or one started on this machine; Ray is imported only here and where it is used."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ltga.errors import InputError

CONNECT_SECONDS = 10.0


def load_ray() -> Any:
    """The package; an error that says what to install if it is not there."""
    try:
        import ray
    except ImportError:
        raise InputError("engine: ray is not installed; pip install 'ltga[ray]'") from None
    return ray


@contextmanager
def connected(ray: Any, address: str | None) -> Iterator[None]:
    """A cluster that is up, ended afterwards unless it was up before."""
    ours = not ray.is_initialized()
    if ours:
        _connect(ray, address)
    try:
        yield
    finally:
        if ours:
            ray.shutdown()


def _connect(ray: Any, address: str | None) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody asked us to report usage
    try:
        _knock(address)
        ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level="error")
    except (OSError, ValueError) as error:
        raise InputError(f"address: cannot reach a Ray cluster at {address!r} ({error})") from None


def _knock(address: str | None) -> None:
    """Raise ``OSError`` unless something listens there: Ray itself would try for ten minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
