"""``ltga reproduce``: the paper's cells, rerun and printed beside the published ones."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.progress import TimeRemainingColumn

from ltga.cli.allocator import keep_freed_memory
from ltga.cli.output import check_output, write_text
from ltga.cli.terminal import run_bar
from ltga.data import load_graph
from ltga.kernels.operators.bernoulli import draws_like_the_paper
from ltga.nn.methods import METHODS, find_method
from ltga.study.paper.cells import PAPER_CELLS
from ltga.study.reproduce import reproduction_table, to_csv, to_markdown
from ltga.train.record import Record
from ltga.train.record_schema import typed
from ltga.train.store import Store


def reproduce_cells(
    console: Console,
    methods: list[str],
    datasets: list[str],
    seeds: int,
    store: Path,
    out: Path | None,
    data: Path | None,
) -> None:
    """Run what is not in the store yet, with progress on ``console``, then print (and write) the table."""
    check_output(out, "--out")
    runs = Store(store, "--store")
    runs.check_writable()
    keep_freed_memory()
    if not draws_like_the_paper():
        console.print(
            "Here torch draws dropout from MKL (an Intel processor), the paper's machine did not: "
            "cells will agree in distribution, not to the digit.",
            style="yellow",
        )  # fmt: skip
    methods = list(METHODS) if methods == ["all"] else [find_method(name).name for name in methods]
    graphs = [load_graph(name, data) for name in datasets]
    with run_bar(console, TimeRemainingColumn()) as progress:
        bar = progress.add_task("runs", total=len(methods) * len(graphs) * seeds)

        def done(record: Record) -> None:
            config = typed(record).config
            progress.update(bar, description=f"{config.dataset.name}, {config.method}, seed {config.seed}")
            progress.advance(bar)

        cells = reproduction_table(methods, graphs, range(1, seeds + 1), store=runs, on_run=done)
    print(to_markdown(cells, PAPER_CELLS))
    if out is not None:
        write_text(out, to_csv(cells, PAPER_CELLS) if out.suffix == ".csv" else to_markdown(cells, PAPER_CELLS))
