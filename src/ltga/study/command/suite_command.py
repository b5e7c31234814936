"""``ltga suite``: the study's runs, done and counted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ltga.cli.options import Data, Json
from ltga.cli.terminal import messages, results, run_bar, say
from ltga.study.command.suite_text import print_verified, say_damaged, status_table, tally_text

if TYPE_CHECKING:
    from ltga.study.engines.engine import Engine
    from ltga.study.runner import Tally

suite_app = typer.Typer(no_args_is_help=True)

Experiments = Annotated[
    list[str] | None, typer.Argument(help="Names of experiments (default: all); see `ltga suite status`.")
]
StoreFolder = Annotated[Path, typer.Option("--store", help="Where finished runs are kept.")]
Analyses = Annotated[
    Path | None, typer.Option(help="Where results of analyses are kept (default: analyses in the store).")
]
Some = Annotated[str | None, typer.Option(help="Only these, comma-separated.")]


SETTLED = 3  # times the number of jobs: so many runs must have ended before their rate counts


class EngineName(StrEnum):
    """Who does the work."""

    IN_PROCESS = "in-process"
    PROCESSES = "processes"
    RAY = "ray"


@suite_app.command()
def run(
    experiments: Experiments = None,
    store: StoreFolder = Path("runs"),
    jobs: Annotated[int, typer.Option(min=1, help="Runs at once; each gets its share of the cores.")] = 1,
    engine: Annotated[
        EngineName | None, typer.Option(help="Default: processes with --jobs above 1, else in-process.")
    ] = None,
    address: Annotated[str | None, typer.Option(help="Ray: the cluster (default: one on this machine).")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads per run (default: cores / jobs).")] = None,
    datasets: Some = None,
    methods: Some = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Only seeds 1..N.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Do failed runs once more.")] = False,
    data: Data = None,
) -> None:
    """Do the runs that are not in the store yet. Stop and start as you like; several may work on one store.

    Example: ltga suite run headline frozen-q --jobs 2
    """
    from ltga.cli.allocator import children_keep_freed_memory, keep_freed_memory
    from ltga.study import Store, find_experiments, run_suite, runs_of
    from ltga.study.select import select

    specs = select(runs_of(find_experiments(experiments or ())), _names(datasets), _names(methods), seeds)
    worker = _engine(engine, jobs, threads, address, data)
    keep_freed_memory()
    children_keep_freed_memory()
    errors = messages()
    place = Store(store)
    with _bar(errors, jobs, store) as watch:
        tally = run_suite(specs, place, worker, root=data, retry_failed=retry_failed, watch=watch)
    say_damaged(place.damaged, store)
    for reason in tally.absent.values():
        say(errors, f"impossible: {reason}", style="yellow")
    for failure in tally.failed.values():
        say(errors, f"failed: {failure}", style="red")
    print(tally_text(tally))
    if tally.failed:
        raise typer.Exit(1)


@suite_app.command()
def status(
    experiments: Experiments = None,
    store: StoreFolder = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    data: Data = None,
) -> None:
    """Per experiment the runs done, missing, failed and impossible, and the time still needed.

    Example: ltga suite status --store runs
    """
    from ltga.study import Store, find_experiments
    from ltga.study.status import status as status_of

    chosen = find_experiments(experiments or ())
    place = Store(store)
    found = status_of(chosen, place, data)
    say_damaged(place.damaged, store)
    if as_json:
        damaged = dict(sorted(place.damaged.items()))
        print(json.dumps({"store": str(store), **found.as_json(chosen), "damaged": damaged}, indent=1))
        return
    console = results()
    console.print(status_table(found, {experiment.name: experiment.label for experiment in chosen}))
    for reason in found.absent.values():
        console.print(f"impossible: {reason}", markup=False)
    for name, original in {k: v for experiment in chosen for k, v in experiment.stand_ins.items()}.items():
        console.print(f"{name} is a stand-in for {original}; its numbers are its own.")


@suite_app.command()
def report(
    experiments: Experiments = None,
    store: StoreFolder = Path("runs"),
    out: Annotated[Path, typer.Option("--out", help="Folder to write the report to.")] = Path("report"),
    analyses: Analyses = None,
    data: Data = None,
) -> None:
    """Tables, figures and a page from the runs in the store, beside what the paper prints.

    The store may also be an archive that `ltga suite export` wrote. Analyses of trained models are made once and kept.

    Example: ltga suite report headline frozen-q --store runs --out report
    """
    from ltga.study import find_experiments
    from ltga.study.report import write_report

    with messages().status("reading the store") as said:
        written = write_report(
            find_experiments(experiments or ()), store, out, data, analyses=analyses, watch=said.update
        )
    say_damaged(written.damaged, store)
    imported = f", {written.imported} of them imported" if written.imported else ""
    print(f"{written.page}: {written.tables} tables and {written.figures} figures from {written.runs} runs{imported}")


@suite_app.command()
def export(
    out: Annotated[Path, typer.Argument(help="The archive to write, for example results/records.jsonl.gz.")],
    store: StoreFolder = Path("runs"),
    analyses: Analyses = None,
) -> None:
    """Pack the records of a store into one small file, with what analyses found but without arrays and models.

    Example: ltga suite export results/records.jsonl.gz --store runs
    """
    from ltga.cli.output import check_output
    from ltga.study import Store
    from ltga.study.analyses.kept_results import Kept, folder_of, with_results
    from ltga.study.archive import write_archive

    check_output(out, "OUT")
    _check_there(store)
    place, errors = Store(store), messages()
    records = with_results(place.records(), Kept(analyses or folder_of(store)))
    count = write_archive(out, records, left_out=lambda reason: say(errors, reason, "yellow"))
    say_damaged(place.damaged, store)
    print(f"{out}: {count} records, {out.stat().st_size / 1e6:.1f} MB")


@suite_app.command("import")
def import_(
    archive: Annotated[
        Path, typer.Argument(help="What `ltga suite export` wrote, for example results/records.jsonl.gz.")
    ],
    store: StoreFolder = Path("runs"),
) -> None:
    """Unpack records into a store, so that `ltga suite run` does only what they lack. Models are not in an archive.

    Every record is checked first, and a bad archive changes nothing. Imported runs are marked as such: tables that
    use them say so.

    Example: ltga suite import results/records.jsonl.gz --store runs
    """
    from ltga.study import Store
    from ltga.study.archive import unpack_archive

    added, already = unpack_archive(archive, Store(store))
    print(f"{store}: {added} records added" + (f", {already} were there already" if already else ""))


@suite_app.command()
def verify(store: StoreFolder = Path("runs"), json_wanted: Json = False) -> None:
    """Check every run of a store against its checksums, and say which to do again. Exit code 2 if any is damaged.

    Records, arrays and models are read whole and nothing is changed. A run that is "unchecked" can be read but has no
    checksums, because an earlier version wrote it. To do a damaged run again, delete the file that is named: `ltga
    suite run` then does it, and `ltga suite status` counts it as missing in the meantime.

    Examples:

    ltga suite verify --store runs

    ltga suite verify --store runs --json | jq -r '.again[].file'
    """
    from ltga.study import Store
    from ltga.study.verify import verify_store

    _check_there(store)
    with messages().status("reading the store") as said:
        found = verify_store(Store(store), lambda file: said.update(f"checking {file}"))
    if json_wanted:
        print(json.dumps({"store": str(store), **found.as_json()}, indent=1))
    else:
        print_verified(store, found)
    if found.of("damaged"):
        raise typer.Exit(2)


def _check_there(store: Path) -> None:
    from ltga.errors import InputError

    if not store.is_dir():
        raise InputError(f"--store: there is no folder {store}; give the one that `ltga suite run` fills")


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _engine(name: EngineName | None, jobs: int, threads: int | None, address: str | None, data: Path | None) -> Engine:
    from ltga.errors import InputError
    from ltga.study.engines.engine import InProcess

    name = name or (EngineName.PROCESSES if jobs > 1 else EngineName.IN_PROCESS)
    if address is not None and name is not EngineName.RAY:
        raise InputError("--address: belongs to --engine ray")
    if name is EngineName.RAY:
        from ltga.study.engines.ray_cluster import RayCluster

        return RayCluster(address, threads or 1, data)
    if name is EngineName.PROCESSES:
        from ltga.study.engines.processes import Processes

        return Processes(jobs, threads, data)
    if jobs > 1:
        raise InputError("--jobs: the in-process engine does one run at a time; use --engine processes")
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    return InProcess(data)


@contextmanager
def _bar(console: Console, jobs: int, store: Path) -> Iterator[Callable[[Tally], None]]:
    """A progress bar with the rate and the time left; nothing where nobody looks.

    How many runs really go on at once, on a cluster for instance, shows once some have ended.
    """
    from ltga.study import Store
    from ltga.study.durations import Durations
    from ltga.study.status import duration_text
    from ltga.train.record_schema import seconds_of

    if not console.is_terminal:
        yield lambda tally: None
        return
    durations = Durations(Store(store).records())
    with run_bar(console) as progress:
        bar = progress.add_task("looking at the store", total=None)
        started = time.monotonic()
        worked = 0.0

        def watch(tally: Tally) -> None:
            nonlocal worked
            if tally.last is not None:
                durations.learn(tally.last)
                worked += seconds_of(tally.last)
            passed = max(time.monotonic() - started, 1e-9)
            rate = 60 * tally.ended / passed
            at_once = worked / passed if tally.done >= SETTLED * jobs else jobs
            seconds, unknown = durations.total(tally.left.values())
            left = duration_text(seconds / at_once, unknown)
            failures = f", {len(tally.failed)} failed" if tally.failed else ""
            outlook = f"{rate:.1f} runs/min" + (f", {left} left" if left else "") + failures
            total = tally.ended + len(tally.left)
            progress.update(bar, description=outlook, total=total, completed=tally.ended)

        yield watch
