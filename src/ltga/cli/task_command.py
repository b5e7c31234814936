"""``ltga train`` for everything but node classification: methods beside what needs no training, in one table."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ltga.cli.given_graph import load_any
from ltga.cli.output import check_output
from ltga.cli.plan import DEMO, PROTOCOLS, SEEDS, parse_changes, read_config, with_metric
from ltga.cli.terminal import plain_table, say
from ltga.data import NodeDataset, Preparation
from ltga.data.own_graph import preparation_for
from ltga.errors import InputError, LTGAError
from ltga.nn.methods import Method, find_method
from ltga.train import Run, load_run
from ltga.train.checkpoint import Checkpoint, parse_seconds
from ltga.train.crew import Crew, crew_here
from ltga.train.devices import find_device
from ltga.train.memory import computed_as
from ltga.train.minibatch import MiniBatch
from ltga.train.protocol import Protocol
from ltga.train.record import clean_text, kept_index, plain
from ltga.train.store import Store
from ltga.train.tasks.choose import choose
from ltga.train.tasks.references import references
from ltga.train.tasks.task_options import TaskOptions
from ltga.train.tasks.task_run import PlannedTask, batches_for, execute_task, plan_task, take_part

METHODS = ("gatv2", "ltga-head", "entmax-head", "gatv2-temperature", "features")
SHOWN: Mapping[str, tuple[str, ...]] = {
    "node regression": ("mae", "r2", "log_mae", "log_r2"),
    "multi-label nodes": ("micro_f1", "macro_f1", "average_precision"),
    "graph classification": ("accuracy", "macro_f1"),
    "graph regression": ("rmse", "mae", "r2"),
    "multi-label graphs": ("roc_auc", "average_precision"),
    "link prediction": ("mrr", "hits_at_1", "hits_at_10", "roc_auc", "average_precision"),
    "typed link prediction": ("mrr", "hits_at_1", "hits_at_3", "hits_at_10"),
}
"""The columns of a task's table; the first is what a method is judged by."""
ERRORS = ("mae", "rmse", "log_mae", "log_rmse")  # lower is better, in units of the target


@dataclass(frozen=True)
class TaskPlan:
    """Which methods to train on what, how often and how; settings are what differs from the task's defaults."""

    dataset: str
    task: str | None
    methods: tuple[str, ...] | None
    seeds: int
    protocol: Mapping[str, Any]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """A method's, or a reference's, test metrics of every seed."""

    name: str
    label: str
    scores: list[dict[str, float | None]]
    q: float | None = None
    seconds: float | None = None
    records: tuple[str, ...] = ()

    def mean(self, metric: str) -> float | None:
        known = self.values(metric)
        return statistics.fmean(known) if known else None

    def values(self, metric: str) -> list[float]:
        return [float(found[metric]) for found in self.scores if found.get(metric) is not None]  # type: ignore[arg-type]


def other_task_plan(
    dataset: str | None,
    methods: Sequence[str] | None,
    seeds: int | None,
    changes: Iterable[str],
    config: Path | None,
    base: str | None,
    task: str | None,
    metric: str | None = None,
) -> TaskPlan:
    """What is asked for, as :func:`~ltga.cli.plan.make_plan` reads it.

    >>> other_task_plan("cora", None, None, ["each=5", "epochs=3"], None, None, "link").options
    {'each': 5}
    """
    stored = {} if config is None else read_config(config)
    dataset = dataset or stored.get("dataset", DEMO)
    base = base or stored.get("base", "recommended")
    if base not in PROTOCOLS:
        raise InputError(f"--protocol: expected 'recommended' or 'paper', got {base!r}")
    given = with_metric(parse_changes(changes), metric)
    known = {field.name for field in fields(TaskOptions)}
    options = {name: setting_value(name, text) for name, text in given.items() if name in known}
    below = {} if base == "recommended" else {"metric": "loss", **PROTOCOLS[base]}
    protocol = {**below, **stored.get("protocol", {}), **{k: v for k, v in given.items() if k not in known}}
    names = methods or stored.get("method")
    found = None if names is None else tuple(dict.fromkeys(find_method(name).name for name in names))
    return TaskPlan(dataset, task, found, seeds or stored.get("seeds", SEEDS), protocol, options)


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
    check_output(page, "--page")
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
    messages.print(f"[bold]{escape(dataset_name)}[/bold]: {task}; {len(methods)} methods x {plan.seeds} seeds")
    for note in getattr(dataset, "notes", ()):
        say(messages, note)
    with crew.at_work():
        done = all_runs(planned, runs, fresh, messages, every, crew, device)
    if crew.rank:
        return
    rows = [
        *reference_rows(first),
        *(row_of(find_method(name), [done[p.id] for p in planned[name]], store) for name in methods),
    ]
    said = sentences(task, rows, first[0])
    if page is not None:
        _write_page(page, [done[planned[name][0].id] for name in methods], first[0].data)
    if json_wanted:
        print(json.dumps(as_json(dataset_name, task, first[0], rows, said, store), indent=1, allow_nan=False))
        return
    results.print(table(task, rows))
    for sentence in said:
        results.print(sentence, markup=False)
    where = "" if page is None else f" Open {page} to look inside one of them."
    say(results, f"Runs are in {store}/.{where}")


def _write_page(path: Path, runs: Sequence[Run], data: Any) -> None:
    """A page about the last method that learns q (else the last with attention), first seed."""
    from ltga.explanation.explain import explain
    from ltga.explanation.page import write_page

    looks = [run for run in runs if run.record.get("attention") is not None]
    if not looks:
        raise InputError("--page: none of the methods has attention; add for example --method ltga-head")
    learned = [run for run in looks if find_method(run.typed.config.method).learns_index]
    write_page(explain((learned or looks)[-1], data), path)


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
        config, metric = result.record["config"], SHOWN[wanted[run].task][0]
        how = "taken from the store" if reused else f"{result.record['timing']['train_seconds']:.1f} s"
        score = shown(metric, result.metrics.get(metric))
        messages.print(f"{config['method']}, seed {config['seed']}: test {metric} {score} ({how})")
    crew.announce(None)
    return done


def reference_rows(planned: Sequence[PlannedTask]) -> list[Row]:
    found = [references(run) for run in planned]
    return [Row(name, name, [one[name]["test"] for one in found if "test" in one[name]]) for name in found[0]]  # type: ignore[misc]


def row_of(method: Method, runs: Sequence[Run], store: Path) -> Row:
    q = [
        value
        for run in runs
        if run.model.normalizer in ("q_softmax", "entmax")
        for layer in kept_index(run.record)
        for value in layer.get("mean", [])
        if value is not None
    ]
    return Row(
        method.name,
        method.label,
        [dict(run.metrics) for run in runs],
        statistics.fmean(q) if q else None,
        statistics.median(run.record["timing"]["train_seconds"] for run in runs),
        tuple(str(store / f"{run.record['id']}.json") for run in runs),
    )


def table(task: str, rows: Sequence[Row]) -> Table:
    """A row per reference and method, mean ± sample s.d. over seeds (folds) on the test part."""
    metrics = [metric for metric in SHOWN[task] if any(row.mean(metric) is not None for row in rows)]
    made = plain_table("method", *(f">test {metric}" for metric in metrics), ">mean q or α", ">seconds a run")
    made.columns[0].no_wrap = True
    for row in rows:
        q = "" if row.q is None else f"{row.q:.2f}"
        seconds = "" if row.seconds is None else f"{row.seconds:.1f}"
        made.add_row(escape(row.label), *(_spread(metric, row.values(metric)) for metric in metrics), q, seconds)
    return made


def sentences(task: str, rows: Sequence[Row], planned: PlannedTask) -> list[str]:
    """What a reader must know: against what links are told, and which methods do not beat what needs no training."""
    said = []
    if task == "link prediction":
        options = planned.options
        said.append(f"Every edge stands against {options.each} {options.negatives} pairs without one.")
    metric, sign = SHOWN[task][0], -1 if SHOWN[task][0] in ERRORS else 1
    plain_rows = [row for row in rows if row.seconds is None and row.mean(metric) is not None]
    if plain_rows:
        best = max(plain_rows, key=lambda row: sign * float(row.mean(metric) or 0))
        bar = sign * float(best.mean(metric) or 0)
        short = [row.label for row in rows if row.seconds is not None and sign * float(row.mean(metric) or 0) <= bar]
        if short:
            said.append(
                f"No better than {best.label} ({metric} {shown(metric, best.mean(metric))}): {', '.join(short)}."
            )
    return said


def as_json(
    name: str, task: str, planned: PlannedTask, rows: Sequence[Row], said: Sequence[str], store: Path
) -> dict[str, Any]:
    """The comparison for scripts; scores as they are, neither per cent nor rounded."""
    listed = [
        {
            "method": row.name,
            "label": row.label,
            "trained": row.seconds is not None,
            "mean": {metric: row.mean(metric) for metric in SHOWN[task]},
            "runs": row.scores,
            "records": row.records,
            "q": row.q,
            "seconds": row.seconds,
        }
        for row in rows
    ]
    return plain(  # type: ignore[no-any-return]
        {
            "dataset": {"name": name, "fingerprint": planned.config["dataset"]["fingerprint"]},
            "task": task,
            "part": "test",
            "metric": SHOWN[task][0],
            "options": planned.config["options"],
            "protocol": planned.config["protocol"],
            "methods": listed,
            "sentences": list(said),
            "store": str(store),
        }
    )


def shown(metric: str, value: float | None) -> str:
    """A score as tables print it: shares in per cent, errors in their units, R2 as it is.

    >>> shown("accuracy", 0.8512), shown("mae", 213275.94), shown("r2", 0.5), shown("mrr", None)
    ('85.1', '2.133e+05', '0.500', '')
    """
    if value is None:
        return ""
    if metric in ERRORS:
        return f"{value:.4g}"
    return f"{value:.3f}" if metric.endswith("r2") else f"{100 * value:.1f}"


def _spread(metric: str, values: Sequence[float]) -> str:
    if not values:
        return ""
    return shown(metric, statistics.fmean(values)) + (
        f" ± {shown(metric, statistics.stdev(values))}" if len(values) > 1 else ""
    )


def setting_value(name: str, text: str) -> Any:
    """A setting of the task from the command line."""
    if name == "log":
        if text.lower() not in ("true", "false"):
            raise InputError(f"--set log: expected true or false, got {text!r}")
        return text.lower() == "true"
    if name in ("batch_size", "each"):
        if not text.isdecimal():
            raise InputError(f"--set {name}: expected a whole number, got {text!r}")
        return int(text)
    return text
