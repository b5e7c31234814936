"""A folder of finished runs that several runners may fill at once.

    <id>.json, .npz, .safetensors   a finished run, as ``Run.save`` writes it
    failed/<id>.json                why a run failed
    .claims/<id>                    locked by the runner that is at it

A claim is an operating-system lock, so it ends with the process that holds it, however that ends.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ltga.errors import InputError, RecordError
from ltga.train.record import Record, clean_text
from ltga.train.storage import check_writable, read_record, write_atomic, write_files


class Claim:
    """The right to do one run; held until it is released or dropped, or the process ends."""

    def __init__(self, lock: FileLock) -> None:
        self._lock = lock

    def release(self, *, done: bool = False) -> None:
        """Let go of the run; ``done`` says that its record is in the store, so nobody needs the lock again."""
        if done:
            Path(self._lock.lock_file).unlink(missing_ok=True)
        self._lock.release()


class Store:
    """The runs in ``folder``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store, other = Store(folder), Store(folder)
    ...     claim = store.claim("a" * 64)
    ...     print(other.claim("a" * 64))
    ...     claim.release()
    None
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.damaged: dict[str, str] = {}
        """Files met so far that are no sound records, by name, and what is wrong with each."""
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"store: {folder} is a file; give a folder")

    def record(self, run: str) -> Record | None:
        """The record of a finished run; ``None`` if there is none, or one that was cut short or is damaged.

        What is damaged is noted in ``damaged``, until it is sound again.
        """
        path = self.folder / f"{run}.json"
        if not os.path.lexists(path):
            return None
        try:
            record = read_record(path)
        except RecordError as error:
            self.damaged[path.name] = str(error)
            return None
        self.damaged.pop(path.name, None)
        return None if record["interrupted"] else record

    def records(self) -> Iterator[Record]:
        """All finished runs; damaged ones are left out and noted in ``damaged``."""
        for path in sorted(self.folder.glob("*.json")):
            record = self.record(path.stem)
            if record is not None:
                yield record

    def save(self, run: str, files: Mapping[str, bytes]) -> None:
        """Keep a finished run (see :func:`~ltga.train.storage.encode_run`) and forget that it failed before."""
        with self._writing():
            write_files(self.folder, run, files)
            self._failure_path(run).unlink(missing_ok=True)
        self.damaged.pop(f"{run}.json", None)

    def check_writable(self) -> None:
        """Raise now what would otherwise lose the first finished run."""
        try:
            check_writable(self.folder)
        except RecordError as error:
            raise RecordError(f"store: {error}; mend that and start again") from None

    def failure(self, run: str) -> dict[str, Any] | None:
        """Why a run failed: ``error`` in one line, ``traceback``, ``died``, ``spec``, ``when`` and ``host``."""
        try:
            failure = json.loads(self._failure_path(run).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        return failure if isinstance(failure, dict) else None

    def fail(self, run: str, spec: str, traceback: str, died: bool = False) -> None:
        """Note that a run failed, or that its process ``died``."""
        error = traceback.strip().splitlines()[-1] if traceback.strip() else "unknown error"
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        traceback, spec = clean_text(traceback), clean_text(spec)
        failure = {"id": run, "spec": spec, "error": error, "traceback": traceback, "died": died, "when": when}
        text = json.dumps({**failure, "host": platform.node(), "attempt": time.time_ns()}, indent=1) + "\n"
        with self._writing():
            self._failure_path(run).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(self._failure_path(run), lambda stream: stream.write(text.encode()))

    def claim(self, run: str) -> Claim | None:
        """The right to do a run, or ``None`` while another process has it."""
        with self._writing():
            (self.folder / ".claims").mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / ".claims" / run, blocking=False)
            try:
                lock.acquire()
            except Timeout:
                return None
            for part in self.folder.glob(f".{run}.*.part"):  # left by a process that died while writing
                part.unlink(missing_ok=True)
        return Claim(lock)

    def _failure_path(self, run: str) -> Path:
        return self.folder / "failed" / f"{run}.json"

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or os.strerror(error.errno or 0)
            name = "" if error.filename is None else f", file {Path(error.filename).name}"
            remedy = "mend that and start again, finished runs are kept"
            raise RecordError(f"store: cannot write to {self.folder} ({reason}){name}; {remedy}") from error
