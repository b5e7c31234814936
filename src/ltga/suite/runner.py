"""Doing the runs of a suite: what is missing, once, whoever else is at it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from ltga.suite.engine import Engine, Finished, InProcess, Job
from ltga.suite.spec import RunSpec, identify
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
    tally = Tally(impossible=len(specs) - len(identified.ids), absent=identified.absent)
    known_failures = {}
    for run, spec in {run: spec for spec, run in identified.ids.items()}.items():
        failure = known_failures[run] = store.failure(run)
        if store.record(run) is not None:
            tally.already += 1
        elif failure is not None and not failure.get("died") and not retry_failed:
            tally.failed_before += 1
        else:
            tally.left[run] = spec
    watch(tally)
    claims: dict[str, Claim] = {}

    def settled(run: str) -> bool:
        return store.record(run) is not None or store.failure(run) != known_failures[run]

    def claimed() -> Iterator[Job]:
        """The runs left that nobody else is at."""
        for run, claim in store.take(list(tally.left), settled):
            if claim is not None:
                claims[run] = claim
                yield Job(run, tally.left[run])
            else:
                tally.elsewhere += 1
                tally.last = None
                del tally.left[run]
                watch(tally)

    def end(finished: Finished) -> None:
        run, spec = finished.job.id, finished.job.spec
        if finished.files is None:
            store.fail(run, str(spec), finished.error or "", finished.died)
            tally.failed[run] = f"{spec}: {(store.failure(run) or {}).get('error')}"
            tally.last = None
        else:
            store.save(run, finished.files)
            tally.done += 1
            tally.last = json.loads(finished.files[".json"])
        del tally.left[run]
        claims.pop(run).release()
        watch(tally)

    try:
        while tally.left:
            with closing((engine or InProcess(root)).results(claimed())) as results:
                for finished in results:
                    end(finished)
            if tally.left:
                time.sleep(POLL_SECONDS)
    finally:
        for claim in claims.values():
            claim.release()
    return tally
