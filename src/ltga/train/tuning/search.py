"""``tune``: Optuna asks, runs answer, the store remembers.

A search is a function of its arguments: with the same graph, space and seed Optuna asks for the same settings in the
same order, as long as the answers are the same, and the answers are runs that the store keeps. So a search that was
killed is started again, asks again, finds its answers in the store and goes on where it was; and several processes that
do the same search on one store share its runs.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ltga.errors import InputError, TrainingError
from ltga.nn.methods import find_method
from ltga.train.loop import Callback, EpochInfo
from ltga.train.minibatch import MiniBatch, as_minibatch
from ltga.train.planned import PlannedRun, check_seed
from ltga.train.progress import ProgressLine
from ltga.train.protocol import Protocol
from ltga.train.record import Record
from ltga.train.store import Store
from ltga.train.tasks.choose import choose
from ltga.train.tasks.task_run import PlannedTask
from ltga.train.tuning.on_ray import RayTrials
from ltga.train.tuning.search_space import METHODS, Space, search_space
from ltga.train.tuning.trials import (
    Candidates,
    State,
    Trial,
    cut_before,
    do,
    merit,
    merits,
    metric_of_run,
    note_cut,
    shown_score,
)
from ltga.train.tuning.tuning_result import Tuned

LOOK_EVERY, FIRST_LOOK = 10, 30  # epochs between looks at whether a trial is worth going on with, and before the first


def tune(
    dataset: Any,
    methods: Sequence[str] = METHODS,
    trials: int = 30,
    *,
    store: str | Path | Store = "runs",
    protocol: Protocol | Mapping[str, Any] | None = None,
    search: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    seed: int = 1,
    prune: bool = False,
    jobs: int = 1,
    engine: Literal["ray"] | None = None,
    address: str | None = None,
    minibatch: MiniBatch | Mapping[str, Any] | None = None,
    task: Literal["node", "link", "graph"] | None = None,
    options: Mapping[str, Any] | None = None,
    progress: bool = False,
    watch: Callable[[Trial], Any] = lambda trial: None,
    callbacks: Iterable[Callback] = (),
) -> Tuned:
    """Look for good settings, by the validation part alone; every trial is a run in ``store``.

    The first trials are each method with its usual settings, so what is chosen is never worse than those on the
    validation part. All trials are made on the first split with seed 1; the test part is not looked at.

    Args:
        dataset, task, options, minibatch: as for :func:`ltga.fit`.
        methods: what to choose among.
        trials: how many, those that the store has included: started again with more, a search goes on.
        store: folder of runs.
        protocol: settings that stay as they are given; a :class:`~ltga.Protocol` is where the search starts from.
        search: what to try beside or instead of the usual (``ltga.train.tuning.search_space.SPACE``):
            ``{"lr": (0.001, 0.1), "heads": [1, 2]}``, a pair for a range and a list for a choice.
        timeout: seconds after which no further trial is begun.
        seed: of the search, which decides what is tried.
        prune: cut a trial short when it does worse than half of the finished ones at the same epoch. Such trials are
            no runs of the store; what they had come to is noted below ``tuning`` in its folder.
        jobs: trials that are asked for at once, before any of them is answered: what is tried depends on this number
            and on the seed, not on who is quicker. So many processes that call ``tune`` with the same arguments share
            the work; what one of them is at the others leave to it.
        engine: ``"ray"`` has the ``jobs`` trials of a round made on a Ray cluster; the same settings are tried as by
            processes here.
        address: of the cluster; one on this machine if left out.
        progress: show a line with loss, validation and q.
        watch: called with every :class:`~ltga.train.tuning.trials.Trial` as it ends.
        callbacks: called with :class:`~ltga.train.EpochInfo` after every epoch of a run that is made here.

    >>> import tempfile
    >>> from ltga.data import csbm
    >>> quick = {"epochs": 2, "hidden_channels": 4, "heads": 2}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tuned = tune(csbm(num_nodes=60), ["gatv2", "ltga-head"], trials=3, store=folder, protocol=quick)
    ...     tuned.metric, len(tuned.trials), sorted(tuned.best.settings)
    ('accuracy', 3, ['dropout', 'lr', 'num_layers', 'residual', 'weight_decay'])
    """
    _check(trials, jobs, timeout, seed)
    cluster = _cluster(engine, address, prune)
    names = list(dict.fromkeys(find_method(name).name for name in methods))
    if not names:
        raise InputError("methods: give at least one")
    if protocol is not None and not isinstance(protocol, Protocol | Mapping):
        raise InputError(f"protocol: expected a Protocol or a mapping, got {type(protocol).__name__}")
    fixed = () if protocol is None or isinstance(protocol, Protocol) else protocol.keys()
    space = search_space(names, fixed, search)
    candidates = Candidates.of(choose(dataset, task), task == "link", protocol or {}, options, as_minibatch(minibatch))
    runs = store if isinstance(store, Store) else Store(store)
    runs.check_writable()
    work = _Search(candidates, names, space, runs, seed, prune, tuple(callbacks), progress, cluster)
    stop = math.inf if timeout is None else time.monotonic() + timeout
    with nullcontext() if cluster is None else cluster.at_work(candidates):
        while len(work.ended) < trials and time.monotonic() < stop:
            for trial in work.round(min(jobs, trials - len(work.ended))):
                watch(trial)
    return work.result()


def _cluster(engine: Any, address: str | None, prune: bool) -> RayTrials | None:
    if engine not in (None, "ray"):
        raise InputError(f"engine: expected 'ray', got {engine!r}; leave it out for processes on this machine")
    if engine is None:
        if address is not None:
            raise InputError("address: is that of a Ray cluster; give engine='ray' too")
        return None
    if prune:
        raise InputError("prune: a run on a cluster is not looked at before it ends; leave out prune or the engine")
    return RayTrials(address)


@dataclass(frozen=True)
class _Answer:
    """What the store, or a run made now, says to a trial: its merit after every epoch, and in the end."""

    state: State
    course: list[float]
    worth: float
    metric: str | None = None
    seconds: float | None = None


class _CutShort(Exception):
    """Raised out of a run that is not worth going on with."""


class _Search:
    """A search under way."""

    def __init__(
        self,
        candidates: Candidates,
        methods: Sequence[str],
        space: Space,
        store: Store,
        seed: int,
        prune: bool,
        callbacks: tuple[Callback, ...],
        progress: bool,
        cluster: RayTrials | None = None,
    ) -> None:
        self._cluster = cluster
        self._optuna = _import_optuna()
        self._candidates, self._methods, self._space, self._store = candidates, methods, space, store
        self._callbacks, self._progress, self._prune = callbacks, progress, prune
        self._cuts = store.folder / "tuning" / _key(candidates, methods, space, seed, self._optuna.__version__)
        self._study = _make_study(self._optuna, seed, prune, len(methods))
        self._metric = ""
        self._best: tuple[float, Trial] | None = None
        self._unscored = False  # whether a run ended without what runs are compared by
        self.ended: list[Trial] = []
        for method in methods:
            usual = candidates.plan(method, {}).protocol
            known = {name: getattr(usual, name) for name in space}
            self._study.enqueue_trial(
                {"method": method, **{name: value for name, value in known.items() if space[name].holds(value)}}
            )

    def round(self, count: int) -> Iterator[Trial]:
        """So many trials, asked for together and answered in their order, whoever makes their runs."""
        asked = [self._ask() for _ in range(count)]
        trials = {planned.id: (trial, planned, settings) for trial, planned, settings in asked}
        if self._cluster is not None:
            missing = [(run, found) for run, found in trials.items() if self._find(run) is None]
            self._cluster.begin([(run, str(planned.config["method"]), how) for run, (_, planned, how) in missing])

        def make(run: str) -> _Answer:
            trial, planned, how = trials[run]
            return self._make(trial, planned) if self._cluster is None else self._wait(self._cluster, planned, how)

        answers = {run: (answer, reused) for run, answer, reused in self._store.each_once(trials, self._find, make)}
        for trial, planned, settings in asked:
            yield self._tell(trial, planned, settings, *answers[planned.id])

    def result(self) -> Tuned:
        if self._best is None:
            if self._unscored:
                fault = f"the validation part has no {self._metric}, as where it has one class only"
                raise TrainingError(f"tune: {fault}; choose another metric, or label more nodes")
            raise TrainingError(
                f"tune: none of {len(self.ended)} trials came to an end; allow lower rates, or more time"
            )
        return Tuned(self._metric, tuple(self.ended), self._best[1], self._store.folder, self._candidates)

    def _ask(self) -> tuple[Any, PlannedRun | PlannedTask, dict[str, Any]]:
        trial = self._study.ask()
        method = trial.suggest_categorical("method", self._methods)
        settings = {name: values.draw(trial, name) for name, values in self._space.items()}
        return trial, self._candidates.plan(method, settings), settings

    def _find(self, run: str) -> _Answer | None:
        """What the store has: a whole run, a failure that will not be another one next time, or that it was cut."""
        record = self._store.record(run)
        if record is not None:
            return _answer(record)
        failure = self._store.failure(run)
        if failure is not None and TrainingError.__name__ in str(failure.get("error")):
            return _Answer("failed", [], -math.inf)
        course = cut_before(self._cuts, run) if self._prune else None
        return None if course is None else _Answer("cut short", course, max(course))

    def _make(self, trial: Any, planned: PlannedRun | PlannedTask) -> _Answer:
        """Do a trial's run and keep it."""
        course: list[float] = []

        def look(info: EpochInfo) -> None:
            course.append(-info.val_loss if info.val_score is None else info.val_score)
            if len(course) % LOOK_EVERY == 0:
                trial.report(max(course), len(course))
                if trial.should_prune():
                    raise _CutShort

        title = f"trial {trial.number + 1}, {planned.config['method']}"
        try:
            with ProgressLine(title, method=planned.config["method"]) if self._progress else nullcontext() as line:
                watching: list[Callback] = [
                    *self._callbacks,
                    *([line] if line else []),
                    *([look] if self._prune else []),
                ]
                run = do(planned, watching)
        except TrainingError:
            self._store.fail(planned.id, title, traceback.format_exc())
            return _Answer("failed", [], -math.inf)
        except _CutShort:
            note_cut(self._cuts, planned.id, course)
            return _Answer("cut short", course, max(course))
        self._store.save(planned.id, run.files())
        return _answer(run.record)

    def _wait(self, cluster: RayTrials, planned: PlannedRun | PlannedTask, settings: Mapping[str, Any]) -> _Answer:
        """Keep a run that the cluster made."""
        method = str(planned.config["method"])
        record, files, failure = cluster.wait(planned.id, method, settings)
        if files is None:
            self._store.fail(planned.id, method, failure)
            return _Answer("failed", [], -math.inf)
        self._store.save(planned.id, files)
        return _answer(record)

    def _tell(
        self, trial: Any, planned: PlannedRun | PlannedTask, settings: dict[str, Any], answer: _Answer, reused: bool
    ) -> Trial:
        """Pass an answer on to Optuna, which then knows what to ask next."""
        states = self._optuna.trial.TrialState
        if self._prune and (reused or not self._study.trials[trial.number].intermediate_values):
            for epoch in range(LOOK_EVERY, len(answer.course) + 1, LOOK_EVERY):
                trial.report(max(answer.course[:epoch]), epoch)
        self._metric = answer.metric or self._metric
        score, state = shown_score(self._metric, answer.worth), answer.state
        if score is None:
            self._unscored |= state == "done"
            state = "failed"
        if state == "done":
            self._study.tell(trial, answer.worth)
        else:
            self._study.tell(trial, state=states.PRUNED if state == "cut short" else states.FAIL)
        found = Trial(
            trial.number + 1, str(planned.config["method"]), settings, planned.id, score, state, reused, answer.seconds
        )
        if state == "done" and (self._best is None or answer.worth > self._best[0]):
            self._best = answer.worth, found
        self.ended.append(found)
        return found


def _answer(record: Record) -> _Answer:
    return _Answer("done", merits(record), merit(record), metric_of_run(record), record["timing"]["train_seconds"])


def _check(trials: Any, jobs: Any, timeout: Any, seed: Any) -> None:
    for name, value in (("trials", trials), ("jobs", jobs)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{name}: expected a whole number from 1, got {value!r}")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0):
        raise InputError(f"timeout: expected seconds above 0, got {timeout!r}")
    check_seed(seed)
    if seed >= 1 << 32:
        raise InputError(f"seed: of a search must be below {1 << 32}, got {seed}")


def _import_optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise InputError("tune: optuna is not installed; pip install 'ltga[tune]'") from None
    return optuna


def _make_study(optuna: Any, seed: int, prune: bool, methods: int) -> Any:
    """A study in memory: what it must remember is in the store."""
    pruner = optuna.pruners.MedianPruner(methods + 2, FIRST_LOOK) if prune else optuna.pruners.NopPruner()
    loud = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed), pruner=pruner
        )  # fmt: skip
    finally:
        optuna.logging.set_verbosity(loud)


def _key(candidates: Candidates, methods: Sequence[str], space: Space, seed: int, version: str) -> str:
    """What tells one search from another: a run cut short in one may be worth finishing in another."""
    first = candidates.plan(methods[0], {}).config
    text = json.dumps([first, list(methods), repr(space), seed, version], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
