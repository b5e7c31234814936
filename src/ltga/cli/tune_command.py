"""``ltga tune``: trials with live progress, then the chosen settings as a command, beside what needs no training."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console

from ltga.cli.allocator import keep_freed_memory
from ltga.cli.early_checks import labelled
from ltga.cli.given_graph import load_any
from ltga.cli.options import preparation
from ltga.cli.plan import make_plan, parse_changes, read_config
from ltga.cli.task_plan import other_task_plan
from ltga.cli.terminal import run_bar, say
from ltga.cli.tune_report import Request, as_json, sentences, table
from ltga.data import NodeDataset
from ltga.data.own_graph import is_for_links, preparation_for
from ltga.train import EpochInfo, MiniBatch, Protocol
from ltga.train.batches import choose_batches
from ltga.train.record import clean_text
from ltga.train.store import Store
from ltga.train.tasks.choose import Anything, choose
from ltga.train.tasks.task_run import batches_for
from ltga.train.tuning.search import tune
from ltga.train.tuning.search_space import METHODS, SPACE, parse_search, search_space
from ltga.train.tuning.trials import Trial

HELPER = "LTGA_TUNE_HELPER"  # names the process that a helping one was started by
LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class _Work:
    """What is tuned: data, methods, the protocol to start from, and the settings that stay as they are."""

    dataset: Anything
    methods: Sequence[str]
    protocol: Protocol | Mapping[str, Any]
    fixed: set[str]
    options: Mapping[str, Any] | None = None


def tune_graph(
    results: Console,
    messages: Console,
    asked: Request,
    node_classes: bool,
    minibatch: MiniBatch | None,
    json_wanted: bool = False,
) -> None:
    """Search, print the outcome and the command that trains the chosen settings."""
    wished = labelled(parse_search, asked.search)
    work = _node_work(asked, wished) if node_classes else _other_work(asked, wished)
    dataset, methods = work.dataset, work.methods
    if minibatch is None and not asked.full_batch:
        if isinstance(work.protocol, Protocol):
            minibatch, why = choose_batches(dataset, methods, work.protocol)  # type: ignore[arg-type]
        else:
            minibatch, why = batches_for(dataset, methods, work.protocol)
        if minibatch is not None:
            say(messages, why)
            asked = replace(asked, batch_size=minibatch.batch_size, fanout=str(minibatch.fanout))
    space = {**wished, **{name: None for name in work.fixed if name in SPACE}}
    searched = ", ".join(search_space(methods, (), space))
    say(messages, f"{dataset.name}: {asked.trials} trials of {', '.join(methods)}; searched: {searched}")
    for note in getattr(dataset, "notes", ()):
        say(messages, note)
    keep_freed_memory()
    with _helpers(asked), _Live(messages, asked.trials) as live:
        tuned = tune(
            dataset, methods, asked.trials, store=Store(asked.out, "--out"), protocol=work.protocol, search=space,
            timeout=asked.timeout, seed=asked.seed, prune=asked.prune, jobs=asked.jobs,
            engine=asked.engine, address=asked.address, minibatch=minibatch,  # type: ignore[arg-type]
            task=asked.task, options=work.options,  # type: ignore[arg-type]
            watch=live.ended, callbacks=(live.epoch,),
        )  # fmt: skip
    if HELPER in os.environ:
        return
    if json_wanted:
        print(json.dumps(as_json(tuned, asked), indent=1, allow_nan=False))
        return
    results.print(table(tuned))
    for sentence in sentences(tuned, asked):
        say(results, sentence)


def _node_work(asked: Request, wished: Mapping[str, Any]) -> _Work:
    """Classes of nodes, unless the tables turn out to hold something else."""
    plan = make_plan(asked.dataset, _names(asked), 1, asked.settings, asked.config, asked.protocol, asked.metric)
    stored = {} if asked.config is None else read_config(asked.config)
    fixed = {*parse_changes(asked.settings), *stored.get("protocol", {})}
    labelled(search_space, plan.methods, fixed, wished)  # a typo should not wait for the graph
    graph = load_any(plan.dataset, asked.data, asked.convention, preparation(list(asked.prepare)))
    if isinstance(graph, NodeDataset):
        return _other_work(asked, wished, graph)
    if is_for_links(graph):
        return _other_work(replace(asked, task="link"), wished, graph)
    graph.name = clean_text(graph.name)
    return _Work(graph, plan.methods, plan.protocol, fixed)


def _other_work(asked: Request, wished: Mapping[str, Any], given: Any = None) -> _Work:
    plan = other_task_plan(
        asked.dataset, _names(asked), 1, asked.settings, asked.config, asked.protocol, asked.task, asked.metric
    )  # fmt: skip
    methods, fixed = plan.methods or METHODS, set(plan.protocol)
    labelled(search_space, methods, fixed, wished)
    prepared = preparation(list(asked.prepare))
    prepared = preparation_for(plan.dataset, prepared, plan.task)
    loaded = load_any(plan.dataset, asked.data, asked.convention, prepared) if given is None else given
    return _Work(choose(loaded, plan.task), methods, plan.protocol, fixed, plan.options)


def _names(asked: Request) -> list[str] | None:
    return None if asked.method is None else asked.method.split(",")


@contextmanager
def _helpers(asked: Request) -> Iterator[None]:
    """Further processes that do the same search on the same store, and so share its runs."""
    if HELPER in os.environ:
        _end_with_parent(int(os.environ[HELPER]))
    if asked.jobs == 1 or asked.engine is not None or HELPER in os.environ:
        yield
        return
    command = [sys.executable, "-m", "ltga", "tune", *_tune_words(asked)]
    surroundings = {**os.environ, HELPER: str(os.getpid())}
    started = [
        subprocess.Popen(command, env=surroundings, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for _ in range(asked.jobs - 1)
    ]
    try:
        yield
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()


def _tune_words(asked: Request) -> Sequence[str]:
    options: list[tuple[str, Any]] = [
        ("--method", asked.method), ("--trials", asked.trials), ("--timeout", asked.timeout), ("--seed", asked.seed),
        ("--jobs", asked.jobs), *(("--search", word) for word in asked.search),
    ]  # fmt: skip
    words = [str(word) for option, value in options if value is not None for word in (option, value)]
    return [*asked.words(), *words, *(["--prune"] if asked.prune else []), "--quiet"]


def _end_with_parent(parent: int) -> None:
    """End this process soon after ``parent`` has ended, however that ended."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()


class _Live:
    """A bar on a terminal, and a line per trial everywhere."""

    def __init__(self, console: Console, trials: int) -> None:
        self._console, self._trials = console, trials
        self._progress = run_bar(console)
        self._bar = self._progress.add_task("", total=trials)
        self._best: float | None = None

    def __enter__(self) -> _Live:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def epoch(self, info: EpochInfo) -> None:
        self._progress.update(self._bar, description=f"epoch {info.epoch}  loss {info.train_loss:.3g}")

    def ended(self, trial: Trial) -> None:
        self._progress.advance(self._bar)
        settings = ", ".join(f"{name} {value}" for name, value in trial.settings.items())
        how = "taken from the store" if trial.reused else "" if trial.seconds is None else f"{trial.seconds:.1f} s"
        score = trial.state if trial.score is None else f"val {trial.score:.4g}"
        if trial.state == "cut short":
            score += ", cut short"
        line = f"trial {trial.number} of {self._trials}: {trial.method}, {settings}: {score}"
        say(self._console, line + (f" ({how})" if how else ""))
