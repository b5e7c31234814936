"""``ltga explain``: what attention did in a stored run, in the terminal, as files, and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from ltga.cli.explain_summary import look_closely, print_summary
from ltga.cli.given_graph import load_given
from ltga.cli.output import check_output
from ltga.cli.terminal import say
from ltga.data import Preparation
from ltga.errors import InputError
from ltga.explanation.explain import explain
from ltga.train.find_run import find_run
from ltga.train.finished import Run, load_run
from ltga.train.run_graph import graph_of
from ltga.train.tasks.run_data import data_of

SUFFIXES = {
    "--page": (".html", ".htm"), "--parquet": (".parquet",), "--csv": (".csv",), "--graphml": (".graphml", ".xml"),
}  # fmt: skip


def explain_run(
    console: Console,
    run: Path,
    page: Path | None,
    parquet: Path | None,
    graphml: Path | None,
    node: str | None,
    data: Path | None,
    graph: str | None,
    convention: str | None = None,
    preparation: Preparation | None = None,
    device: str = "cpu",
    csv: Path | None = None,
    runs: Path = Path("runs"),
) -> None:
    """Print a summary (and what is asked for closely) and write what was asked for."""
    for path, option in ((page, "--page"), (parquet, "--parquet"), (csv, "--csv"), (graphml, "--graphml")):
        check_output(path, option, SUFFIXES[option])
    finished = load_run(_record(run, runs), device)
    inside = explain(finished, _data_of(finished, graph, data, convention, preparation))
    closely = None if node is None else look_closely(inside, node)
    print_summary(console, inside)
    if closely is not None:
        console.print(closely)
    if page is not None:
        from ltga.explanation.page import write_page

        write_page(inside, page)
    for path, write in ((parquet, inside.to_parquet), (csv, inside.to_csv), (graphml, inside.to_graphml)):
        if path is not None:
            write(path)
    for path in (page, parquet, csv, graphml):
        if path is not None:
            size = path.stat().st_size / 1e6
            say(console, f"Wrote {path} ({size:.1f} MB).")


def _data_of(
    run: Run, graph: str | None, data: Path | None, convention: str | None, preparation: Preparation | None
) -> Any:
    if graph is None and (convention or preparation):
        option = "--convention" if convention else "--prepare"
        raise InputError(f"{option}: the run's own graph is read as it was then; give --graph, or leave it out")
    if convention or preparation:
        return load_given(str(graph), data, convention, preparation)
    return graph_of(run, graph, data) if run.typed.config.task is None else data_of(run, graph, data)


def _record(run: Path, folder: Path) -> Path:
    """The record meant by RUN: a path, with or without ``.json``, or a folder with a single record."""
    if run.is_dir():
        records = sorted(run.glob("*.json"))
        if len(records) == 1:
            return records[0]
        example = f", for example {records[0]}" if records else ""
        raise InputError(f"RUN: {run} is a folder with {len(records)} records; give the path of one{example}")
    beside = run.with_name(f"{run.name}.json")
    return beside if not run.exists() and beside.exists() else find_run(run, folder)
