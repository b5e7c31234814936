"""One GET request that ends: no other scheme than http(s), few redirects, and a deadline for the whole."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import string
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ltga.data.bounds import in_a_line
from ltga.errors import DataError

_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 10


@dataclass(frozen=True)
class Answer:
    """The body of an answer, and how long it says it is (None if it does not)."""

    length: int | None
    _response: Any
    _url: str
    _alarm: _Alarm

    def read(self, count: int) -> bytes:
        """At most `count` further bytes; none at the end."""
        with _in_our_words(self._url, self._alarm):
            # Not read(), which fetches all there is if a chunk claims a size of -1.
            data: bytes = self._response.read1(count)
            self._alarm.check()
            left = getattr(self._response, "chunk_left", None)
            if isinstance(left, int) and left < 0:
                raise _Refused("the server announces a negative number of bytes; try again")
            return data


@contextlib.contextmanager
def open_url(url: str, timeout: float, deadline: float) -> Iterator[Answer]:
    """The answer to a GET of `url`, every fault as a :class:`DataError` that names it.

    Args:
        url: an http or https address; redirects to others are refused, as are those from https to http.
        timeout: seconds without an answer before giving up.
        deadline: seconds that all of it may take, reading the body included.
    """
    with contextlib.closing(_Alarm(deadline)) as alarm, contextlib.ExitStack() as stack:
        with _in_our_words(url, alarm):
            response = stack.enter_context(contextlib.closing(_follow(url, timeout, alarm)))
            length = _announced_length(response.headers)
        yield Answer(length, response, url, alarm)


def _follow(url: str, timeout: float, alarm: _Alarm) -> Any:
    """The response behind the redirects of `url`; their bodies, which may have no end, are not read."""
    opener = _opener(alarm)
    at, seen = url, {url}
    while True:
        if urllib.parse.urlsplit(at).scheme not in ("http", "https"):
            raise _Refused("only http and https addresses are fetched" + ("" if at == url else f", not {at}"))
        request = urllib.request.Request(at, headers={"User-Agent": "ltga"})
        try:
            response = opener.open(request, timeout=timeout)
        except urllib.error.HTTPError as error:
            target = error.headers.get("Location") if error.code in _REDIRECTS else None
            error.close()
            if target is None:
                raise _Refused(f"the server answered {error.code} {error.reason}") from None
        else:
            if response.status == 200:
                return response
            response.close()
            raise _Refused(f"the server answered {response.status} {response.reason}")
        quoted = urllib.parse.quote(target, safe=string.punctuation, encoding="iso-8859-1")
        before, at = at, urllib.parse.urljoin(at, quoted)
        if at in seen or len(seen) > _MOST_REDIRECTS:
            raise _Refused(f"the server sends in circles or too far ({len(seen)} redirects)")
        if urllib.parse.urlsplit(before).scheme == "https" and urllib.parse.urlsplit(at).scheme == "http":
            raise _Refused(f"the server sends from https to {at}, which anybody on the way can change")
        seen.add(at)


def _announced_length(headers: http.client.HTTPMessage) -> int | None:
    """What Content-Length says, if it says something; not int() alone, which takes signs and other scripts' digits."""
    if headers.get("Transfer-Encoding") is not None:  # which then counts instead
        return None
    given = {text.strip() for text in headers.get_all("Content-Length", [])}
    if not given:
        return None
    if len(given) > 1 or not all(re.fullmatch("[0-9]{1,18}", text) for text in given):
        raise _Refused(f"the server announces a length of {' and '.join(sorted(map(repr, given)))}; try again")
    return int(given.pop())


class _Refused(Exception):
    """What we do not accept of a server, in words for the user."""


@contextlib.contextmanager
def _in_our_words(url: str, alarm: _Alarm) -> Iterator[None]:
    try:
        yield
    # What an odd server makes of http.client (ValueError, UnicodeError, ...) is as much its fault as a broken line.
    except Exception as error:
        if alarm.rang:
            problem = f"took longer than {alarm.seconds:,.0f} seconds; try again later"
        elif isinstance(error, _Refused):
            problem = str(error)
        else:
            reason = getattr(error, "reason", None) or error
            problem = f"no connection ({in_a_line(reason) or type(error).__name__})"
        raise DataError(f"{in_a_line(url)}: {in_a_line(problem)}") from None


class _Alarm:
    """Hangs up when the time is over.

    A timeout of the socket alone does not do: it starts anew with every byte, so a server that sends one now and
    then holds the line for ever.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.rang = False
        self._lines: list[socket.socket] = []
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._ring)
        self._timer.daemon = True
        self._timer.start()

    def watch(self, line: socket.socket) -> None:
        """Hang up `line` too. A duplicate is kept, because TLS takes the original over."""
        with self._lock:
            self._lines.append(line.dup())
        self.check()

    def check(self) -> None:
        """Raise if the time is over."""
        if self.rang:
            raise TimeoutError

    def _ring(self) -> None:
        self.rang = True
        with self._lock:
            for line in self._lines:
                with contextlib.suppress(OSError):  # it may have ended by itself
                    line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Stop watching."""
        self._timer.cancel()
        with self._lock:
            for line in self._lines:
                line.close()
            self._lines.clear()


def _opener(alarm: _Alarm) -> urllib.request.OpenerDirector:
    """Opens http and https, through the proxies of the environment; knows nothing of ftp, files or redirects."""

    def connect(*arguments: Any, **settings: Any) -> socket.socket:
        alarm.check()
        line = socket.create_connection(*arguments, **settings)
        alarm.watch(line)
        return line

    def watched(base: Any) -> Any:
        def make(host: str, **settings: Any) -> Any:
            connection = base(host, **settings)
            connection._create_connection = connect  # where http.client lets one in, before TLS and proxies talk
            return connection

        return make

    class Plain(urllib.request.HTTPHandler):
        def http_open(self, request: urllib.request.Request) -> Any:
            return self.do_open(watched(http.client.HTTPConnection), request)

    class Secure(urllib.request.HTTPSHandler):
        def https_open(self, request: urllib.request.Request) -> Any:
            return self.do_open(watched(http.client.HTTPSConnection), request)

    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(), Plain(), Secure(), urllib.request.UnknownHandler(),
        urllib.request.HTTPDefaultErrorHandler(), urllib.request.HTTPErrorProcessor(),
    ):  # fmt: skip
        opener.add_handler(handler)
    return opener
