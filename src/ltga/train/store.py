"""A folder of finished runs that several processes may fill at once.

    <id>.json, .npz, .safetensors   a finished run, as ``Run.save`` writes it
    failed/<id>.json                why a run failed
    .claims/<id>                    locked by the process that is at it
    .checkpoints/<id>.safetensors   where a long run that is under way would go on

A claim is an operating-system lock, so it ends with the process that holds it, however that ends.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from filelock import FileLock, Timeout

from ltga.data.atomic import write_atomic
from ltga.errors import InputError, RecordError
from ltga.train.record import Record, clean_text
from ltga.train.storage import read_stored, write_files

if TYPE_CHECKING:
    from ltga.train.checkpoint import Checkpoint
    from ltga.train.crew import Crew

POLL_SECONDS = 1.0  # between looks at runs that another process is at

Result = TypeVar("Result")


class Claim:
    """The right to do one run; held until it is released or dropped, or the process ends."""

    def __init__(self, lock: FileLock) -> None:
        self._lock = lock

    def release(self) -> None:
        """Let go of the run, done or not."""
        # Before the lock ends: whoever has opened the file by then sees that it is gone, and tries again.
        with suppress(OSError):  # not on Windows, where a file in use stays
            Path(self._lock.lock_file).unlink(missing_ok=True)
        self._lock.release()


class Store:
    """The runs in ``folder``; ``label`` opens the messages about it, an option of the command line for example.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store, other = Store(folder), Store(folder)
    ...     claim = store.claim("a" * 64)
    ...     print(other.claim("a" * 64))
    ...     claim.release()
    None
    """

    def __init__(self, folder: str | Path, label: str = "store") -> None:
        self.folder = Path(folder)
        self._label = label
        self.damaged: dict[str, str] = {}
        """Files met so far that are no sound records, by name, and what is wrong with each."""
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{label}: {folder} is a file; give a folder")

    def record(self, run: str) -> Record | None:
        """The record of a finished run; ``None`` if there is none, or one that was cut short or is damaged.

        What is damaged is noted in ``damaged``, until it is sound again.
        """
        path = self.folder / f"{run}.json"
        if not os.path.lexists(path):
            return None
        try:
            stored = read_stored(path)
        except RecordError as error:
            self.damaged[path.name] = str(error)
            return None
        self.damaged.pop(path.name, None)
        return None if stored.typed.interrupted else stored.record

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
        """Raise now what would otherwise lose the first finished run; the folder need not exist yet."""
        existing = next(place for place in (self.folder, *self.folder.absolute().parents) if place.exists())
        try:
            # A file without a name: it leaves no trace, and tells more than permissions do.
            with tempfile.TemporaryFile(dir=existing) as probe:
                probe.write(b"probe")
                probe.flush()
        except OSError as error:
            reason = f"{error.strerror}: {existing}"
            raise RecordError(f"{self._label}: cannot write in {self.folder} ({reason}); give another folder") from None

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
        from ltga.train.checkpoint import FOLDER  # now: whoever lists runs need not wait for torch

        with self._writing():
            (self.folder / ".claims").mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / ".claims" / run, blocking=False)
            try:
                lock.acquire()
            except Timeout:
                return None
            for place in (self.folder, self.folder / FOLDER):
                for part in place.glob(f".{run}.*.part"):  # left by a process that died while writing
                    part.unlink(missing_ok=True)
        return Claim(lock)

    def checkpoint(
        self,
        run: str,
        every: float | None = None,
        say: Callable[[str], Any] | None = None,
        fresh: bool = False,
        crew: Crew | None = None,
    ) -> Checkpoint:
        """The checkpoint of a run, for whoever has claimed it; ``fresh`` throws away what is there."""
        from ltga.train.checkpoint import EVERY, FOLDER, Checkpoint

        checkpoint = Checkpoint(self.folder / FOLDER, run, EVERY if every is None else every, say, crew)
        if fresh:
            checkpoint.discard()
        return checkpoint

    def take(self, runs: Iterable[str], settled: Callable[[str], bool]) -> Iterator[tuple[str, Claim | None]]:
        """Look at every run once: one that is settled comes without a claim, one that is to be done with it.

        Those that another process is at are passed over.
        """
        for run in runs:
            if settled(run):
                yield run, None
            elif (claim := self.claim(run)) is not None:
                if settled(run):  # by another process, just before the claim
                    claim.release()
                    yield run, None
                else:
                    yield run, claim

    def each_once(
        self,
        runs: Iterable[str],
        find: Callable[[str], Result | None],
        make: Callable[[str], Result],
        waiting: Callable[[int], Any] = lambda left: None,
    ) -> Iterator[tuple[str, Result, bool]]:
        """The result of every run as it comes, and whether it was found: made once, however many processes ask.

        Args:
            runs: their ids, in the order in which they are wanted.
            find: what the store has of a run; ``None`` if that does not do.
            make: does a run and stores it.
            waiting: told how many runs are left when other processes are at all of them. They are found
                when those are done, and made here if those die.
        """
        found: dict[str, Result] = {}

        def settled(run: str) -> bool:
            if (result := find(run)) is not None:
                found[run] = result
            return result is not None

        left, told = dict.fromkeys(runs), False
        while left:
            for run, claim in self.take(list(left), settled):
                del left[run]
                if claim is None:
                    yield run, found.pop(run), True
                    continue
                try:
                    made = make(run)
                finally:
                    claim.release()
                yield run, made, False
            if left:
                if not told:
                    waiting(len(left))
                told = True
                time.sleep(POLL_SECONDS)

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
            raise RecordError(f"{self._label}: {self.folder}: cannot be written ({reason}){name}; {remedy}") from error
