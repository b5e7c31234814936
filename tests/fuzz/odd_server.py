"""A server on this machine that answers every request with the bytes it was told to, at the pace it was told to."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Script:
    """What to do with one connection: send the parts with pauses between them, then close or reset."""

    parts: list[bytes]
    pause: float = 0.0
    reset: bool = False
    for_ever: bool = False  # repeat the last part until the other side hangs up


@dataclass
class OddServer:
    """Plays `scripts` one after the other, the last one again and again; `requests` counts connections."""

    url: str
    scripts: list[Script] = field(default_factory=list)
    requests: int = 0

    def play(self, *scripts: Script) -> str:
        """The address to ask, after which the scripts are played."""
        self.scripts, self.requests = list(scripts), 0
        return f"{self.url}/file"


@contextlib.contextmanager
def odd_server() -> Iterator[OddServer]:
    """The server, for as long as the block lasts; connections it still has end with it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = OddServer(f"http://127.0.0.1:{listening.getsockname()[1]}")
        over = threading.Event()

        def accept() -> None:
            while True:
                try:
                    line, _ = listening.accept()
                except OSError:
                    return
                script = server.scripts[min(server.requests, len(server.scripts) - 1)]
                server.requests += 1
                threading.Thread(target=_play, args=(line, script, over), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            over.set()
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def _play(line: socket.socket, script: Script, over: threading.Event) -> None:
    stop = time.monotonic() + 20  # nobody waits for longer, so nobody is served for longer
    with line, contextlib.suppress(OSError):
        line.settimeout(5)
        line.recv(1 << 16)
        parts = list(script.parts)
        while parts and not over.is_set() and time.monotonic() < stop:
            line.sendall(parts[0])
            if script.pause:
                over.wait(script.pause)
            if len(parts) > 1 or not script.for_ever:
                del parts[0]
        if script.reset:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
