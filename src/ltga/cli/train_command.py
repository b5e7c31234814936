"""``ltga train``: several methods, a few seeds, live progress, and a table that says what q did."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.markup import escape
from rich.progress import TaskID

from ltga.cli.allocator import keep_freed_memory
from ltga.cli.compiled import compiled_kernels
from ltga.cli.early_checks import parse_seconds
from ltga.cli.given_graph import open_given
from ltga.cli.next_steps import next_steps, run_to_look_at
from ltga.cli.output import page_name
from ltga.cli.plan import Plan, check_plan
from ltga.cli.summary import Finished, Group, as_json, finished, score_name, sentences, simple_rows, table
from ltga.cli.terminal import counted, run_bar, say
from ltga.cli.unscaled import warnings_about
from ltga.data import Dataset, GraphFolder, NodeDataset, Preparation
from ltga.errors import InputError, LTGAError
from ltga.nn.methods import find_method
from ltga.train import EpochInfo, Run, load_run
from ltga.train.batches import graph_and_batches
from ltga.train.checkpoint import Checkpoint
from ltga.train.crew import Crew, crew_here
from ltga.train.devices import find_device, free_bytes
from ltga.train.fitting import execute_and_store, take_part
from ltga.train.minibatch import MiniBatch
from ltga.train.planned import PlannedRun, plan_run
from ltga.train.progress import index_symbol
from ltga.train.ray_train import RayWorkers
from ltga.train.record import clean_text
from ltga.train.store import Store


def train_and_compare(
    results: Console,
    messages: Console,
    plan: Plan,
    store: Path,
    page: Path | None = None,
    data: Path | None = None,
    convention: str | None = None,
    fresh: bool = False,
    json_wanted: bool = False,
    preparation: Preparation | None = None,
    minibatch: MiniBatch | None = None,
    full_batch: bool = False,
    checkpoint_every: str = "3min",
    cluster: tuple[int, str | None] | None = None,
    device: str = "cpu",
    otherwise: Callable[[NodeDataset], None] | None = None,
) -> None:
    """Train every method with every seed, store the runs, print a comparison and write a page.

    Runs that ``store`` already holds are taken from there unless ``fresh``. Tables that turn out to hold numbers or
    several labels to predict are handed to ``otherwise``.
    """
    crew = crew_here()
    messages.quiet |= crew.rank > 0
    if cluster is not None and device not in ("auto", "cpu"):
        raise InputError("--device: the workers of a Ray cluster compute on the CPU so far; leave it out")
    place = find_device("cpu" if cluster is not None else device, plan.protocol.init, plan.protocol.backend)
    given = open_given(plan.dataset, data, convention, preparation)
    if isinstance(given, NodeDataset) and otherwise is not None:
        otherwise(given)
        return
    given.name = clean_text(given.name)  # it comes from a file's name, which need not be text
    check_plan(plan, given)
    runs = Store(store, "--out")
    runs.check_writable()
    every = parse_seconds(checkpoint_every)
    keep_freed_memory()
    asked = None if full_batch else minibatch or "auto"
    graph, minibatch, why = graph_and_batches(given, plan.methods, plan.protocol, asked, free_bytes(place))
    minibatch = crew.from_first(lambda: minibatch)  # processes may find different memory free
    if page is not None and isinstance(graph, GraphFolder):
        raise InputError("--page: shows every edge, and this graph stays on disk; leave it out, or give --full-batch")
    messages.print(
        f"[bold]{escape(graph.name)}[/bold]: {graph.num_nodes:,} nodes, {graph.num_edges:,} edges, "
        f"{graph.num_classes} classes; {counted(len(plan.methods), 'method')} x "
        f"{counted(plan.seeds, 'seed')}",
    )
    for note in graph.notes:
        say(messages, note)
    for line in warnings_about(graph):
        say(messages, line)
    if why:
        say(messages, why)
    groups = _all_runs(graph, plan, runs, fresh, messages, minibatch, every, crew, cluster, place)
    if crew.rank:
        return
    page = _page(graph, groups, store, page, messages)
    simple = simple_rows(graph, groups)
    if json_wanted:
        print(json.dumps(as_json(graph, plan, groups, simple, store, page), indent=1, allow_nan=False))
        return
    results.print(table(graph, groups, simple))
    for sentence in sentences(graph, plan, groups, simple):
        results.print(sentence, markup=False)
    where = f"Runs are in {store}/." + ("" if page is None else f" Open {page} to walk through the graph.")
    say(results, where)
    looked = _group_to_look_at(groups)
    chosen = looked or groups[-1]
    say(results, next_steps(chosen.method, chosen.runs[0].record.id, store, looked is not None))


def _all_runs(
    graph: Dataset | GraphFolder,
    plan: Plan,
    store: Store,
    fresh: bool,
    messages: Console,
    minibatch: MiniBatch | None,
    checkpoint_every: float,
    crew: Crew,
    cluster: tuple[int, str | None] | None,
    device: torch.device,
) -> list[Group]:
    """Every run from the store, or made and stored; what another process is at is waited for."""
    fingerprint, workers = graph.fingerprint, crew.size if cluster is None else cluster[0]
    rows = [
        [
            plan_run(graph, name, seed, None, plan.protocol, minibatch, fingerprint, workers)
            for seed in range(1, plan.seeds + 1)
        ]
        for name in plan.methods
    ]
    planned = {run.id: run for row in rows for run in row}
    done: dict[str, Finished] = {}
    with _Live(messages, plan, graph) as live, crew.at_work():

        def keeper(run: str) -> Checkpoint:
            return store.checkpoint(run, checkpoint_every, live.says, fresh and crew.rank == 0, crew)

        if crew.rank:
            crew.follow(lambda run: take_part(planned[run], (), keeper(run), crew, device))
            return []

        def find(run: str) -> Run | None:
            return None if fresh else _whole_run(store, run)

        def make(run: str) -> Run:
            live.starts(planned[run].method, planned[run].seed)
            if cluster is not None:
                return on_cluster(planned[run], store, RayWorkers(*cluster, store.folder), fresh, live.says)
            crew.announce(run)
            return execute_and_store(planned[run], store, (live.epoch,), keeper(run), crew, device)

        for run, result, reused in store.each_once(planned, find, make, live.waits):
            done[run] = finished(result, store.folder / f"{run}.json", graph, reused)
            live.finished(done[run])
        crew.announce(None)
    return [Group(find_method(name), [done[run.id] for run in row]) for name, row in zip(plan.methods, rows)]


def on_cluster(planned: PlannedRun, store: Store, workers: RayWorkers, fresh: bool, says: Callable[[str], None]) -> Run:
    """Have a run done by a cluster, and store it."""
    if planned.minibatch is None and workers.workers > 1:
        raise InputError("--workers: several divide batches; give --batch-size")
    store.save(planned.id, workers.files(planned, (), fresh, says))
    return load_run(store.folder / f"{planned.id}.json")


def _whole_run(store: Store, run: str) -> Run | None:
    """A stored run with its model; ``None`` if it is to be run, because it is damaged for example."""
    path = store.folder / f"{run}.json"
    if not path.exists():
        return None
    try:
        found = load_run(path)
    except LTGAError:
        return None
    return None if found.record["interrupted"] else found


def _group_to_look_at(groups: list[Group]) -> Group | None:
    at = run_to_look_at(
        [group.method for group in groups], [one.runs[0].record.attention is not None for one in groups]
    )
    return None if at is None else groups[at]


def _page(
    graph: Dataset | GraphFolder, groups: list[Group], store: Path, path: Path | None, messages: Console
) -> Path | None:
    """A page about the last method that learns q (else the last with attention), first seed; not for one on disk."""
    if isinstance(graph, GraphFolder):
        return None
    chosen = _group_to_look_at(groups)
    if chosen is None:
        return None
    try:
        record = chosen.runs[0].path
        return _write_page(record, graph, path or store / page_name(graph.name, chosen.method.name, record.stem))
    except (InputError, UnicodeError) as error:  # for example too large for a page; the results do not depend on it
        if path is not None:
            raise InputError(f"--page: {error}") if isinstance(error, UnicodeError) else error from None
        messages.print(f"no page: {error}", markup=False)
        return None


def _write_page(record: Path, graph: Dataset, path: Path) -> Path:
    from ltga.explanation.explain import explain
    from ltga.explanation.page import write_page

    return write_page(explain(record, graph), path)


class _Live:
    """What is seen while training: a bar with loss, validation and q on a terminal, a line per run everywhere."""

    def __init__(self, console: Console, plan: Plan, graph: Dataset | GraphFolder) -> None:
        self._console, self._plan, self._graph = console, plan, graph
        self._progress = run_bar(console)
        self._bar: TaskID = self._progress.add_task("", total=len(plan.methods) * plan.seeds)
        self._title, self._symbol = "", "q"

    def __enter__(self) -> _Live:
        self._progress.start()
        if self._plan.protocol.backend != "torch" and not compiled_kernels():
            self._console.print("Compiling the kernels: about a minute, the first time only.")
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def starts(self, method: str, seed: int) -> None:
        self._title, self._symbol = f"{method} seed {seed}", index_symbol(method)
        self._progress.update(self._bar, description=self._title)

    def says(self, line: str) -> None:
        say(self._console, f"{self._title}: {line}")

    def waits(self, left: int) -> None:
        runs = "a run" if left == 1 else f"{left} runs"
        self._console.print(f"Waiting for {runs} that another process is at.")

    def epoch(self, info: EpochInfo) -> None:
        means = [sum(layer["mean"]) / len(layer["mean"]) for layer in info.q if layer.get("mean")]
        q = f"  {self._symbol} {' '.join(f'{mean:.2f}' for mean in means)}" if means else ""
        self._progress.update(
            self._bar,
            description=f"{self._title}  epoch {info.epoch}  loss {info.train_loss:.2f}  "
            f"val {100 * info.val_accuracy:.1f} %{q}",
        )

    def finished(self, done: Finished) -> None:
        self._progress.advance(self._bar)
        record, config = done.record, done.record.config
        q = f", {index_symbol(config.method)} {done.mean_q:.2f}" if done.mean_q is not None else ""
        part, metric = score_name(self._graph, [done])
        how = "taken from the store" if done.reused else f"{record.timing.own_seconds:.1f} s"
        self._console.print(
            f"{config.method}, seed {config.seed}: {part} {metric} {100 * done.score(part, metric):.1f} %, "
            f"best epoch {record.best_epoch}{q} ({how})",
        )
