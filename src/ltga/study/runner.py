"""Doing the runs of a suite: what is missing, once, whoever else is at it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from ltga.study.engines.engine import Ended, Engine, InProcess, Job
from ltga.study.spec import RunSpec, identify
from ltga.train.record import Record
from ltga.train.store import POLL_SECONDS, Claim, Store


@dataclass
class Tally:
    """Where a suite stands.

    Attributes:
        already: runs that were in the store.
        failed_before: runs left alone because they failed earlier.
        impossible: runs whose data is absent.
        absent: the reason per absent dataset.
        left: runs to do, those under way included.
        done, failed: runs that ended here, well or badly.
        elsewhere: runs that another runner did meanwhile.
        last: the record of the run that ended last, if it ended well.
    """

    already: int = 0
    failed_before: int = 0
    impossible: int = 0
    absent: Mapping[str, str] = field(default_factory=dict)
    left: dict[str, RunSpec] = field(default_factory=dict)
    done: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    elsewhere: int = 0
    last: Record | None = None

    @property
    def ended(self) -> int:
        return self.done + len(self.failed) + self.elsewhere


Watch = Callable[[Tally], None]


def run_suite(
    specs: Iterable[RunSpec],
    store: Store | str | Path,
    engine: Engine | None = None,
    *,
    root: str | Path | None = None,
    retry_failed: bool = False,
    watch: Watch = lambda tally: None,
) -> Tally:
    """Do the runs that are not in the store yet; each is stored as soon as it ends.

    Several runners may work on one store. A run that fails is noted there, and the others go on; one that
    another runner is at is waited for, and taken over if that runner dies. A run whose worker process died
    is done again when the suite is started again; one that failed by itself only with ``retry_failed``.

    Args:
        specs: the runs, in the order in which they are wanted.
        store: where finished runs are kept.
        engine: what does the work; this process if left out.
        root: folder with datasets; what is missing is downloaded.
        retry_failed: do the runs that failed before once more.
        watch: called at the start and whenever a run has ended.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run_suite([RunSpec("csbm:num_nodes=60", "gcn", 1)], folder).done
    1
    """
    store = store if isinstance(store, Store) else Store(store)
    store.check_writable()
    specs = list(dict.fromkeys(specs))
    identified = identify(specs, root, download=True)
    work = _Work(store, watch, Tally(impossible=len(specs) - len(identified.ids), absent=identified.absent))
    work.look_through({run: spec for spec, run in identified.ids.items()}, retry_failed)
    try:
        while work.tally.left:
            with closing((engine or InProcess(root)).results(work.claimed())) as results:
                for finished in results:
                    work.end(finished)
            if work.tally.left:
                time.sleep(POLL_SECONDS)
    finally:
        work.let_go()
    return work.tally


class _Work:
    """The runs of a suite under way: what is left of them, and the claims held."""

    def __init__(self, store: Store, watch: Watch, tally: Tally) -> None:
        self.tally = tally
        self._store, self._watch = store, watch
        self._known_failures: dict[str, object] = {}
        self._claims: dict[str, Claim] = {}

    def look_through(self, specs: Mapping[str, RunSpec], retry_failed: bool) -> None:
        """See which runs are left to do."""
        for run, spec in specs.items():
            failure = self._known_failures[run] = self._store.failure(run)
            if self._store.record(run) is not None:
                self.tally.already += 1
            elif failure is not None and not failure.get("died") and not retry_failed:
                self.tally.failed_before += 1
            else:
                self.tally.left[run] = spec
        self._watch(self.tally)

    def claimed(self) -> Iterator[Job]:
        """The runs left that nobody else is at."""
        for run, claim in self._store.take(list(self.tally.left), self._settled):
            if claim is not None:
                self._claims[run] = claim
                yield Job(run, self.tally.left[run])
            else:
                self.tally.elsewhere += 1
                self._leave(run, None)

    def end(self, finished: Ended) -> None:
        """Store what became of a run."""
        run, spec, record = finished.job.id, finished.job.spec, None
        if finished.files is None:
            self._store.fail(run, str(spec), finished.error or "", finished.died)
            self.tally.failed[run] = f"{spec}: {(self._store.failure(run) or {}).get('error')}"
        else:
            self._store.save(run, finished.files)
            self.tally.done += 1
            record = json.loads(finished.files[".json"])
        self._claims.pop(run).release()
        self._leave(run, record)

    def let_go(self) -> None:
        """Leave what was not done to others."""
        for claim in self._claims.values():
            claim.release()

    def _settled(self, run: str) -> bool:
        return self._store.record(run) is not None or self._store.failure(run) != self._known_failures[run]

    def _leave(self, run: str, record: Record | None) -> None:
        self.tally.last = record
        del self.tally.left[run]
        self._watch(self.tally)
