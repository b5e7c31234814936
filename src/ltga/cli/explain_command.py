"""``ltga explain``: what attention did in a stored run, in the terminal, as files, and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from ltga.cli.explain_summary import look_closely, print_summary
from ltga.cli.given_graph import load_given
from ltga.cli.output import keep_inputs
from ltga.cli.terminal import say
from ltga.data import Preparation
from ltga.explanation.explain import explain
from ltga.train.finished import Run, load_run
from ltga.train.run_graph import graph_of
from ltga.train.tasks.run_data import data_of


def explain_run(
    console: Console,
    record: Path,
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
) -> None:
    """Print a summary (and what is asked for closely) and write what was asked for."""
    finished = load_run(record, device)
    read = (record, graph, (finished.typed.reading or {}).get("path"))
    for path, option in ((page, "--page"), (parquet, "--parquet"), (csv, "--csv"), (graphml, "--graphml")):
        keep_inputs(path, option, read)
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
    if convention or preparation:
        return load_given(str(graph), data, convention, preparation)
    return graph_of(run, graph, data) if run.typed.config.task is None else data_of(run, graph, data)
