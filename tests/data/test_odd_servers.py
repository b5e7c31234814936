"""Servers that lie about lengths, send in circles or never come to an end: one line of error, nothing kept."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz.odd_server import OddServer, Script, odd_server
from ltga.data.download import download
from ltga.data.request import open_url
from ltga.errors import DataError

BODY = bytes(range(256)) * 40
SHA256 = hashlib.sha256(BODY).hexdigest()


@pytest.fixture(scope="module")
def server() -> Iterator[OddServer]:
    with odd_server() as running:
        yield running


def answer(*headers: str | bytes, status: str = "200 OK", body: bytes = BODY) -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers, "Connection: close"]
    return (
        b"".join((line.encode("latin-1") if isinstance(line, str) else line) + b"\r\n" for line in lines)
        + b"\r\n"
        + body
    )


def fetch(
    server: OddServer, folder: Path, *scripts: Script, deadline: float | None = 5, size: int | None = None
) -> Path:
    return download(server.play(*scripts), folder / "file.bin", sha256=SHA256, size=size, timeout=2, deadline=deadline)


def refused(server: OddServer, folder: Path, message: str, *scripts: Script, deadline: float = 5) -> None:
    began = time.monotonic()
    with pytest.raises(DataError, match=message) as caught:
        fetch(server, folder, *scripts, deadline=deadline)
    assert "\n" not in str(caught.value) and "127.0.0.1" in str(caught.value)
    assert list(folder.iterdir()) == []
    assert time.monotonic() - began < deadline + 3


@pytest.mark.parametrize("length", ["-1", "-10240", "²", "1²", "ten", "+10240", "1_0", "0x10", "9" * 5000, "10240.0"])
def test_lengths_that_are_no_number(length: str, server: OddServer, tmp_path: Path) -> None:
    refused(server, tmp_path, "announces a length of", Script([answer(f"Content-Length: {length}")]))


def test_lengths_that_contradict_each_other_or_are_too_large(server: OddServer, tmp_path: Path) -> None:
    twice = answer("Content-Length: 10240", "Content-Length: 7")
    refused(server, tmp_path, "announces a length of '10240' and '7'", Script([twice]))
    large = answer(f"Content-Length: {10**15}")
    refused(server, tmp_path, "announces 1,000,000,000,000,000 bytes, more than", Script([large]))
    assert (
        fetch(server, tmp_path, Script([answer("Content-Length: 10240", "Content-Length: 10240")])).read_bytes() == BODY
    )


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        (b"-1\r\n" + BODY, "negative number of bytes"),
        (b"-5\r\n" + BODY, "negative number of bytes|no connection"),
        (b"zz\r\n" + BODY, "no connection"),
        (b"FFFFFFFFFFFFFFFF\r\n" + BODY, "no connection|sha256"),
        (b"10\r\nshort", "no connection"),
        (b"9" * 70_000, "no connection"),
    ],
)
def test_chunks_of_odd_sizes(chunks: bytes, message: str, server: OddServer, tmp_path: Path) -> None:
    refused(server, tmp_path, message, Script([answer("Transfer-Encoding: chunked", body=chunks)]))


def test_good_chunks_arrive(server: OddServer, tmp_path: Path) -> None:
    body = b"2800\r\n" + BODY + b"\r\n0\r\n\r\n"
    assert fetch(server, tmp_path, Script([answer("Transfer-Encoding: chunked", body=body)])).read_bytes() == BODY


def redirect(target: str, code: int = 302) -> Script:
    return Script([answer(f"Location: {target}", status=f"{code} Moved", body=b"")])


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("ftp://127.0.0.1/file", "only http and https addresses are fetched, not ftp://"),
        ("file:///etc/passwd", "only http and https addresses are fetched, not file://"),
        ("data:text/plain,hello", "only http and https addresses are fetched, not data:"),
        ("javascript:alert(1)", "only http and https"),
        ("http://[::1", "no connection"),
        ("http://127.0.0.1:99999/", "no connection"),
        ("http://127.0.0.1:port/", "no connection"),
        ("http://" + "a" * 70 + ".invalid/", "no connection"),
        ("http:///nowhere", "in circles"),
        ("http://\xff\xfe/", "no connection"),
    ],
)
def test_redirects_to_nowhere_good(target: str, message: str, server: OddServer, tmp_path: Path) -> None:
    refused(server, tmp_path, message, redirect(target))


def test_redirects_in_circles_and_too_far(server: OddServer, tmp_path: Path) -> None:
    refused(server, tmp_path, "in circles", redirect("/file"))
    refused(server, tmp_path, "in circles", redirect("/a"), redirect("/file"), redirect("/a"))
    refused(server, tmp_path, "too far", *(redirect(f"/{i}") for i in range(50)))
    assert server.requests == 11
    refused(server, tmp_path, "answered 302 Moved", Script([answer(status="302 Moved", body=b"")]))


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_an_ordinary_redirect_is_followed(code: int, server: OddServer, tmp_path: Path) -> None:
    good = Script([answer("Content-Length: 10240")])
    assert fetch(server, tmp_path, redirect("there", code), redirect("/a/../b ü", code), good).read_bytes() == BODY


def test_the_endless_body_of_a_redirect_is_not_read(server: OddServer, tmp_path: Path) -> None:
    endless = Script([answer("Location: /there", status="302 Moved", body=b""), b"x" * 65536], for_ever=True)
    assert fetch(server, tmp_path, endless, Script([answer()])).read_bytes() == BODY


@pytest.mark.parametrize(
    "status", ["204 No Content", "206 Partial Content", "201 Created", "404 \x1b[31mGone", "500 ", "999 ?"]
)
def test_only_200_is_an_answer(status: str, server: OddServer, tmp_path: Path) -> None:
    refused(server, tmp_path, f"answered {status[:3]}", Script([answer(status=status)]))


DRIPS = {
    "body": Script([answer(body=b""), b"x"], pause=0.1, for_ever=True),
    "status line": Script([b"H", b"T", b"T", b"P", b"/", b"1"], pause=0.1, for_ever=True),
    "headers": Script([b"HTTP/1.1 200 OK\r\nX: ", b"y"], pause=0.1, for_ever=True),
    "continue": Script([b"HTTP/1.1 100 Continue\r\n\r\n"], pause=0.01, for_ever=True),
    "chunk": Script([answer("Transfer-Encoding: chunked", body=b"1"), b"0"], pause=0.1, for_ever=True),
    "trailer": Script([answer("Transfer-Encoding: chunked", body=b"0\r\n"), b"X: y\r\n"], pause=0.1, for_ever=True),
}


@pytest.mark.parametrize("where", sorted(DRIPS))
def test_a_drip_ends_at_the_deadline(where: str, server: OddServer, tmp_path: Path) -> None:
    refused(server, tmp_path, "took longer than 1 seconds", DRIPS[where], deadline=0.6)


def test_the_deadline_follows_from_the_size(server: OddServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []

    def spy(url: str, timeout: float, deadline: float):  # type: ignore[no-untyped-def]
        seen.append(deadline)
        return open_url(url, timeout, deadline)

    monkeypatch.setattr("ltga.data.download.open_url", spy)
    for size in (len(BODY), None):
        fetch(server, tmp_path, Script([answer()]), deadline=None, size=size)
    assert seen == [120 + 10240 / 10_000, 3600]


def test_resets_and_garbage(server: OddServer, tmp_path: Path) -> None:
    for script in (
        Script([], reset=True),
        Script([answer("Content-Length: 20000")], reset=True),
        Script([b"\x16\x03\x01garbage\r\n\r\n"]),
        Script([b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n"]),
        Script([b"HTTP/1.1 abc\r\n\r\n"]),
        Script([b""]),
    ):
        refused(server, tmp_path, "no connection|broke off", script)
