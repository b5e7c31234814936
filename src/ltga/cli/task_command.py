"""``ltga train`` for everything but node classification: methods beside what needs no training, in one table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from ltga.cli.early_checks import parse_seconds
from ltga.cli.given_graph import load_any
from ltga.cli.next_steps import next_steps, run_to_look_at
from ltga.cli.task_plan import TaskPlan
from ltga.cli.task_report import as_json, judged_by, reference_rows, row_of, sentences, table
from ltga.cli.terminal import counted, say
from ltga.cli.unscaled import warnings_about
from ltga.data import NodeDataset, Preparation
from ltga.data.own_graph import preparation_for
from ltga.errors import InputError, LTGAError
from ltga.nn.methods import find_method
from ltga.train import Run, load_run
from ltga.train.checkpoint import Checkpoint
from ltga.train.crew import Crew, crew_here
from ltga.train.devices import find_device
from ltga.train.memory import computed_as
from ltga.train.minibatch import MiniBatch
from ltga.train.protocol import Protocol
from ltga.train.record import clean_text
from ltga.train.show import with_unit
from ltga.train.store import Store
from ltga.train.tasks.choose import choose
from ltga.train.tasks.task_run import PlannedTask, batches_for, execute_task, plan_task, take_part

METHODS = ("gatv2", "ltga-head", "entmax-head", "gatv2-temperature", "features")


def train_other_task(
    results: Console,
    messages: Console,
    plan: TaskPlan,
    store: Path,
    page: Path | None = None,
    data: Path | None = None,
    convention: str | None = None,
    fresh: bool = False,
    json_wanted: bool = False,
    checkpoint_every: str = "3min",
    device: str = "cpu",
    preparation: Preparation | None = None,
    given: NodeDataset | None = None,
    minibatch: MiniBatch | None = None,
    full_batch: bool = False,
) -> None:
    """Train every method with every seed, store the runs and print a comparison with what needs no training.

    ``given`` is the dataset, where it has been loaded already.
    """
    crew = crew_here()
    messages.quiet |= crew.rank > 0
    find_device(device)  # before anything is loaded
    preparation = preparation_for(plan.dataset, preparation, plan.task)
    loaded = load_any(plan.dataset, data, convention, preparation) if given is None else given
    dataset = choose(loaded, plan.task)
    dataset_name = clean_text(dataset.name)
    methods = plan.methods or (*METHODS, *(("gin",) if plan.task == "graph" or "graph" in str(dataset.task) else ()))
    asked = None if full_batch else minibatch or "auto"
    minibatch, why = batches_for(dataset, methods, plan.protocol, asked, device)
    minibatch = crew.from_first(lambda: minibatch)  # processes may find different memory free
    if why and minibatch is not None:
        say(messages, why)
    if minibatch is not None and plan.methods is None:
        methods = tuple(name for name in methods if computed_as(name, Protocol.recommended()) is not None)
    planned = {
        name: [
            plan_task(dataset, name, seed, None, plan.protocol, plan.options, minibatch, crew.size)
            for seed in range(1, plan.seeds + 1)
        ]
        for name in methods
    }
    runs = Store(store, "--out")
    runs.check_writable()
    every = parse_seconds(checkpoint_every)
    first = next(iter(planned.values()))
    task = first[0].task
    messages.print(
        f"[bold]{escape(dataset_name)}[/bold]: {task}; {counted(len(methods), 'method')} x "
        f"{counted(plan.seeds, 'seed')}"
    )
    for note in (*getattr(dataset, "notes", ()), *warnings_about(dataset)):
        say(messages, note)
    with crew.at_work():
        done = all_runs(planned, runs, fresh, messages, every, crew, device)
    if crew.rank:
        return
    found = [find_method(name) for name in methods]
    rows = [
        *reference_rows(first),
        *(row_of(method, [done[p.id].record for p in planned[method.name]], store) for method in found),
    ]
    metric = judged_by(task, done[first[0].id].record)
    said = sentences(task, rows, first[0], metric)
    if page is not None:
        _write_page(page, [done[planned[name][0].id] for name in methods], first[0].data)
    if json_wanted:
        print(json.dumps(as_json(dataset_name, task, metric, first[0], rows, said, store), indent=1, allow_nan=False))
        return
    results.print(table(task, rows, metric))
    for sentence in said:
        results.print(sentence, markup=False)
    where = "" if page is None else f" Open {page} to look inside one of them."
    say(results, f"Runs are in {store}/.{where}")
    attends = [done[planned[name][0].id].record.get("attention") is not None for name in methods]
    at = run_to_look_at(found, attends)
    at = len(methods) - 1 if at is None else at
    say(results, next_steps(found[at], planned[methods[at]][0].id, store, attends[at], "link" in task))


def _write_page(path: Path, runs: Sequence[Run], data: Any) -> None:
    """A page about the last method that learns q (else the last with attention), first seed."""
    from ltga.explanation.explain import explain
    from ltga.explanation.page import write_page

    methods = [find_method(run.typed.config.method) for run in runs]
    at = run_to_look_at(methods, [run.record.get("attention") is not None for run in runs])
    if at is None:
        raise InputError("--page: none of the methods has attention; add for example --method ltga-head")
    write_page(explain(runs[at], data), path)


def all_runs(
    planned: Mapping[str, list[PlannedTask]],
    store: Store,
    fresh: bool,
    messages: Console,
    checkpoint_every: float,
    crew: Crew,
    device: str = "cpu",
) -> dict[str, Run]:
    """Every run from the store, or made and stored; what another process is at is waited for."""
    wanted = {run.id: run for row in planned.values() for run in row}

    def find(run: str) -> Run | None:
        if fresh or not (store.folder / f"{run}.json").exists():
            return None
        try:
            found = load_run(store.folder / f"{run}.json")
        except LTGAError:
            return None
        return None if found.record["interrupted"] else found

    def keeper(run: str) -> Checkpoint:
        return store.checkpoint(run, checkpoint_every, partial(say, messages), fresh and crew.rank == 0, crew)

    if crew.rank:
        crew.follow(lambda run: take_part(wanted[run], (), keeper(run), crew, device))
        return {}

    def make(run: str) -> Run:
        crew.announce(run)
        checkpoint = keeper(run)
        made = execute_task(wanted[run], (), messages.is_terminal and not messages.quiet, checkpoint, crew, device)
        if made.record["interrupted"]:
            raise KeyboardInterrupt
        store.save(run, made.files())
        checkpoint.done()
        return made

    done: dict[str, Run] = {}
    for run, result, reused in store.each_once(wanted, find, make):
        done[run] = result
        config, metric = result.record["config"], judged_by(wanted[run].task, result.record)
        how = "taken from the store" if reused else f"{result.record['timing']['train_seconds']:.1f} s"
        score = with_unit(metric, result.metrics.get(metric))
        messages.print(f"{config['method']}, seed {config['seed']}: test {metric} {score} ({how})")
    crew.announce(None)
    return done
