"""Thousands of odd answers from a server on this machine: the right file or one line of error, nothing left over."""

from __future__ import annotations

import hashlib
import random
import threading
import time
import tracemalloc
from pathlib import Path

import pytest

from fuzz import tally
from fuzz.mutations import spoil_bytes, spoil_text
from fuzz.odd_server import OddServer, Script, odd_server
from ltga.data.download import download
from ltga.errors import DataError

BODY = b"The right file.\n" * 20
SHA256 = hashlib.sha256(BODY).hexdigest()
TIMEOUT, DEADLINE = 0.5, 1.0
MOST_SECONDS = 4.0
MOST_BYTES = 16 * 1024**2
LENGTHS = [
    str(len(BODY)),
    "0",
    "-1",
    "7",
    "9" * 30,
    "²",
    "ten",
    "",
    " 320 ",
    "320, 320",
    "0x140",
    "+320",
    "3_20",
    "320.0",
]
STATUSES = [
    "200 OK", "200", "100 Continue", "204 No Content", "206 Partial", "301 Moved", "302 Found", "304 Same",
    "307 Go", "308 Go", "404 Gone", "416 Range", "500 Oops", "999 ?", "0 zero", "-200 OK", "2²0 OK", "20000 OK", "",
]  # fmt: skip
TARGETS = [
    "/file", "/next", "there", "", "//127.0.0.1:1/", "ftp://127.0.0.1/f", "file:///etc/passwd", "data:,x", "http://[",
    "?q", "#f", "http://127.0.0.1:0/", "http://127.0.0.1:99999/", "http:///x", "https://127.0.0.1:1/", "\xff\xfe",
    "http://a b/", "/" * 5000, "http://user:pass@127.0.0.1:1/",
]  # fmt: skip


def headers(rng: random.Random) -> list[str]:
    """A few headers, likely and unlikely ones, some of them twice."""
    chosen = []
    if rng.random() < 0.7:
        chosen += [f"Content-Length: {rng.choice(LENGTHS)}" for _ in range(rng.choice([1, 1, 1, 2]))]
    if rng.random() < 0.2:
        chosen.append(f"Transfer-Encoding: {rng.choice(['chunked', 'Chunked', 'gzip', 'chunked, chunked', '²'])}")
    if rng.random() < 0.3:
        chosen.append(f"Location: {rng.choice(TARGETS)}")
    if rng.random() < 0.2:
        chosen.append(
            rng.choice(["X" * 70_000, "no colon", ": no name", "A: b\r\n c", "Content-Encoding: gzip", "\x00: \x00"])
        )
    if rng.random() < 0.02:
        chosen += ["X: y"] * 200
    return rng.sample(chosen, len(chosen))


def body(rng: random.Random) -> bytes:
    """The right body, cut, doubled, or in chunks whose sizes may lie."""
    kind = rng.randrange(5)
    if kind == 0:
        return BODY[: rng.randrange(len(BODY))]
    if kind == 1:
        return BODY + rng.randbytes(rng.choice([1, 100, 100_000]))
    if kind == 2:
        size = rng.choice([f"{len(BODY):x}", "-1", "-5", "ffffffffffffffff", "zz", "", "1", "²", "0"])
        return size.encode("latin-1") + b"\r\n" + BODY + b"\r\n0\r\n\r\n"
    return BODY


def answer(rng: random.Random) -> Script:
    """One odd answer, at an odd pace."""
    lines = [f"HTTP/1.{rng.choice('0119')} {rng.choice(STATUSES) if rng.random() < 0.5 else '200 OK'}", *headers(rng)]
    head = "\r\n".join([*lines, "Connection: close", "", ""])
    if rng.random() < 0.1:
        head = spoil_text(head, rng)
    whole = head.encode("latin-1", "replace") + body(rng)
    if rng.random() < 0.1:
        whole = spoil_bytes(whole, rng)
    parts, pause, for_ever = [whole], 0.0, False
    if rng.random() < 0.03:  # few, because each takes until the deadline
        at = rng.randrange(len(whole) + 1)
        parts, pause, for_ever = [whole[:at], whole[at:] or b"x", b"x"], 0.05, rng.random() < 0.7
    return Script(parts, pause, reset=rng.random() < 0.1, for_ever=for_ever)


def one_case(server: OddServer, rng: random.Random, folder: Path) -> tuple[bool, str]:
    """Whether the file arrived, and the fault if there is one."""
    url = server.play(*(answer(rng) for _ in range(rng.choice([1, 1, 2, 4]))))
    target, known = folder / "file.bin", rng.random() < 0.5
    began = time.monotonic()
    fault, arrived = "", False
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        download(url, target, sha256=SHA256, size=len(BODY) if known else None, timeout=TIMEOUT, deadline=DEADLINE)
        arrived = True
        if target.read_bytes() != BODY:
            fault = "the wrong file was kept"
    except DataError as error:
        if (
            "\n" in str(error)
            or len(str(error)) > 2000
            or not str(error).isprintable()
            or "127.0.0.1" not in str(error)
        ):
            fault = f"not one line about the address: {error!r}"
    except BaseException as error:
        fault = f"{type(error).__name__}: {error}"
    if (seconds := time.monotonic() - began) > MOST_SECONDS:
        fault = f"took {seconds:.1f} s; {fault}"
    if (taken := tracemalloc.get_traced_memory()[1] - before) > MOST_BYTES:
        fault = f"took {taken:,} bytes; {fault}"
    target.unlink(missing_ok=True)
    if left := [path.name for path in folder.iterdir()]:
        fault = f"left {left}; {fault}"
    return arrived, fault


def fuzz(cases: int, seed: int, folder: Path) -> None:
    faults, arrived = [], 0
    threads = threading.active_count()
    tracemalloc.start()
    try:
        with odd_server() as server:
            for case in range(cases):
                good, fault = one_case(server, random.Random(f"{seed} {case}"), folder)
                arrived += good
                if fault:
                    faults.append(f"seed {seed}, case {case}: {fault}")
    finally:
        tracemalloc.stop()
    tally.report("downloads", cases, len(faults))
    print(f"  {arrived} files arrived")
    assert not faults, "\n".join(faults[:10])
    assert 0 < arrived < cases
    ends = time.monotonic() + 10
    while threading.active_count() > threads and time.monotonic() < ends:
        time.sleep(0.05)
    assert threading.active_count() <= threads  # no alarm is left ticking


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_some_odd_answers(tmp_path: Path) -> None:
    fuzz(200, 0, tmp_path)


@pytest.mark.slow
def test_many_odd_answers(tmp_path: Path) -> None:
    fuzz(3000, 1, tmp_path)
