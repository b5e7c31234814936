"""``ltga train``: several methods, a few seeds, live progress, and a table that says what q did."""

from __future__ import annotations

import json
import re
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from ltga.cli.allocator import keep_freed_memory
from ltga.cli.kernels import compiled_kernels
from ltga.cli.output import check_folder, check_output
from ltga.cli.plan import Plan, check_plan
from ltga.cli.summary import Finished, Group, as_json, finished, score_name, sentences, table
from ltga.data import Dataset, load_dataset
from ltga.errors import InputError, LTGAError
from ltga.nn.methods import find_method
from ltga.train import EpochInfo, Run, fit, load_run
from ltga.train.fit import run_configuration
from ltga.train.record import clean_text, run_id

LONGEST_NAME = 100  # of a graph in the name of its page; a file name has 255 bytes


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
) -> None:
    """Train every method with every seed, store the runs, print a comparison and write a page.

    Runs that ``store`` already holds are taken from there unless ``fresh``.
    """
    graph = load_dataset(plan.dataset, data, convention=convention)
    graph.name = clean_text(graph.name)  # it comes from a file's name, which need not be text
    check_plan(plan, graph)
    check_folder(store, "--out")
    check_output(page, "--page")
    keep_freed_memory()
    messages.print(
        f"[bold]{escape(graph.name)}[/bold]: {graph.data.num_nodes:,} nodes, {graph.data.num_edges:,} edges, "
        f"{graph.num_classes} classes; {len(plan.methods)} methods x {plan.seeds} seeds",
        highlight=False,
    )
    groups = [Group(find_method(name), []) for name in plan.methods]
    with _Live(messages, plan, graph) as live:
        for group in groups:
            for seed in range(1, plan.seeds + 1):
                done = _one_run(graph, group.method.name, seed, plan, store, fresh, live)
                group.runs.append(done)
                live.finished(done)
    page = _page(graph, groups, store, page, messages)
    if json_wanted:
        print(json.dumps(as_json(graph, plan, groups, store, page), indent=1, allow_nan=False))
        return
    results.print(table(graph, groups))
    for sentence in sentences(graph, plan, groups):
        results.print(sentence, markup=False, highlight=False)
    where = f"Runs are in {store}/." + ("" if page is None else f" Open {page} to walk through the graph.")
    results.print(where, markup=False, highlight=False, soft_wrap=True)


def _one_run(graph: Dataset, method: str, seed: int, plan: Plan, store: Path, fresh: bool, live: _Live) -> Finished:
    """A run from the store, or a new one that is stored as soon as it is done."""
    config = run_configuration(graph, method, seed, None, plan.protocol)
    path = store / f"{run_id(config)}.json"
    run = None if fresh else _stored(path)
    reused = run is not None
    if run is None:
        live.starts(method, seed)
        run = fit(graph, method, seed, protocol=plan.protocol, callbacks=(live.epoch,))
        if run.record["interrupted"]:
            raise KeyboardInterrupt  # a comparison needs whole runs; those finished are in the store
        _save(run, path)
    return finished(run, path, graph, reused)


def _stored(path: Path) -> Run | None:
    if not path.exists():
        return None
    try:
        run = load_run(path)
    except LTGAError:
        return None  # damaged: run it again
    return None if run.record["interrupted"] else run


def _save(run: Run, path: Path) -> None:
    """Store a run; if that fails, leave no part of it behind."""
    known = path.exists()
    try:
        run.save(path.parent)
    except LTGAError as error:
        if not known:
            for suffix in (".safetensors", ".npz"):
                path.with_suffix(suffix).unlink(missing_ok=True)
        raise InputError(f"--out: {error}") from None


def _page(graph: Dataset, groups: list[Group], store: Path, path: Path | None, messages: Console) -> Path | None:
    """A page about the last method that learns q (else the last with attention), first seed."""
    looks = [group for group in groups if "attention" in group.runs[0].record]
    learned = [group for group in looks if group.method.family == "learned q"]
    if not looks:
        return None
    chosen = (learned or looks)[-1]
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", graph.name).strip("-.") or "graph"
    plain = plain[:LONGEST_NAME]
    try:
        return _write_page(chosen.runs[0].path, graph, path or store / f"{plain}-{chosen.method.name}.html")
    except (InputError, UnicodeError) as error:  # for example too large for a page; the results do not depend on it
        if path is not None:
            raise InputError(f"--page: {error}") if isinstance(error, UnicodeError) else error from None
        messages.print(f"no page: {error}", markup=False, highlight=False)
        return None


def _write_page(record: Path, graph: Dataset, path: Path) -> Path:
    from ltga.analysis.explain import explain
    from ltga.report.page import write_page

    return write_page(explain(record, graph), path)


class _Live:
    """What is seen while training: a bar with loss, validation and q on a terminal, a line per run everywhere."""

    def __init__(self, console: Console, plan: Plan, graph: Dataset) -> None:
        self._console, self._plan, self._graph = console, plan, graph
        column = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        self._progress = Progress(
            BarColumn(bar_width=16), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("{task.description}", table_column=column, markup=False),
            console=console, transient=True, expand=True, disable=console.quiet or not console.is_terminal,
        )  # fmt: skip
        self._bar: TaskID = self._progress.add_task("", total=len(plan.methods) * plan.seeds)
        self._title = ""

    def __enter__(self) -> _Live:
        self._progress.start()
        if self._plan.protocol.backend != "torch" and not compiled_kernels():
            self._console.print("Compiling the kernels: about a minute, the first time only.", highlight=False)
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def starts(self, method: str, seed: int) -> None:
        self._title = f"{method} seed {seed}"
        self._progress.update(self._bar, description=self._title)

    def epoch(self, info: EpochInfo) -> None:
        means = [sum(layer["mean"]) / len(layer["mean"]) for layer in info.q if layer.get("mean")]
        q = f"  q {' '.join(f'{mean:.2f}' for mean in means)}" if means else ""
        self._progress.update(
            self._bar,
            description=f"{self._title}  epoch {info.epoch}  loss {info.train_loss:.2f}  "
            f"val {100 * info.val_accuracy:.1f} %{q}",
        )

    def finished(self, done: Finished) -> None:
        self._progress.advance(self._bar)
        config = done.record["config"]
        q = f", q {done.mean_q:.2f}" if done.mean_q is not None else ""
        part, metric = score_name(self._graph, [done])
        how = "taken from the store" if done.reused else f"{done.record['timing']['train_seconds']:.1f} s"
        self._console.print(
            f"{config['method']}, seed {config['seed']}: {part} {metric} {100 * done.score(part, metric):.1f} %, "
            f"best epoch {done.record['best_epoch']}{q} ({how})",
            highlight=False,
        )
