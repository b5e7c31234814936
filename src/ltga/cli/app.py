"""The commands of ``ltga``; heavy imports wait until a command runs, so that --help is quick."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(
    help="Graph attention that learns how sparse to be. Start with: ltga train",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Data = Annotated[
    Path | None, typer.Option("--data", help="Folder with datasets (default: $LTGA_DATA, then the cache).")
]
HEADLINE = "gcn,gat,gatv2,ltga-global,ltga-layer,ltga-head,ltga-edge"
SMALL = "texas,wisconsin,cornell,cora,citeseer,pubmed"


@app.command()
def train(
    dataset: Annotated[str, typer.Argument(help="A dataset's name, or a path to your own graph.")] = "digits-noise",
    method: Annotated[str, typer.Option(help="One or more methods, comma-separated.")] = "gatv2,ltga-head",
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from 1 on.")] = 2,
    init: Annotated[
        str, typer.Option(help="paired: all attention methods start alike; paper: as published.")
    ] = "paired",
    out: Annotated[Path, typer.Option(help="Where the runs are stored.")] = Path("runs"),
    data: Data = None,
) -> None:
    """Train methods on a graph and compare them.

    Example: ltga train cora --method gatv2,ltga-edge --seeds 10
    """
    from ltga.cli.train import train_and_compare

    train_and_compare(Console(), dataset, method.split(","), seeds, init, out, data)


@app.command()
def reproduce(
    methods: Annotated[str, typer.Option(help="Methods, comma-separated.")] = HEADLINE,
    datasets: Annotated[str, typer.Option(help="Datasets, comma-separated.")] = SMALL,
    seeds: Annotated[int, typer.Option(min=2, help="Seeds 1..N; the paper has 10.")] = 10,
    store: Annotated[Path, typer.Option(help="Finished runs are kept here and not run again.")] = Path("runs"),
    out: Annotated[Path | None, typer.Option(help="Write the table here (.md or .csv) as well.")] = None,
    data: Data = None,
) -> None:
    """Rerun the paper's cells and print them beside the published ones.

    Example: ltga reproduce --datasets texas,cora --methods gatv2,ltga-head
    """
    from ltga.cli.reproduce import reproduce_cells

    reproduce_cells(Console(), methods.split(","), datasets.split(","), seeds, store, out, data)


@app.command()
def bench(
    work: Annotated[str, typer.Option(help="Works, comma-separated; see `ltga bench --list`.")] = "gum-syntax,cora",
    quick: Annotated[bool, typer.Option(help="Skip the large graphs and bandwidth.")] = False,
    list_works: Annotated[bool, typer.Option("--list", help="List the works and stop.")] = False,
    json_out: Annotated[Path | None, typer.Option("--json", help="Write all measurements here.")] = None,
    data: Data = None,
) -> None:
    """Measure speed and memory against PyG's GATv2Conv, as ratios in one run.

    Example: ltga bench --work cora --quick
    """
    from ltga.bench.run import run_benchmarks, table
    from ltga.bench.works import WORKS
    from ltga.cli.output import check_output, write_text

    check_output(json_out, "--json")
    console = Console()
    if list_works:
        for entry in WORKS.values():
            console.print(f"{entry.name}: {entry.what}", highlight=False)
        return
    with console.status("measuring") as status:
        folder = None if data is None else str(data)
        results = run_benchmarks(work.split(","), data=folder, extras=not quick, say=status.update)
    print(table(results))
    if json_out is not None:
        write_text(json_out, json.dumps(results, indent=1) + "\n")


@app.command()
def datasets() -> None:
    """List the datasets and what is known about them."""
    from ltga.cli.lists import print_datasets

    print_datasets(Console())


@app.command()
def methods() -> None:
    """List the methods, what they are and where they come from."""
    from ltga.cli.lists import print_methods

    print_methods(Console())


def main() -> None:
    """Entry point: exit code 0, 2 with a one-line error, or 130 after Ctrl-C."""
    from ltga.errors import LTGAError

    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    try:
        app(standalone_mode=True)
    except LTGAError as error:
        if debug:
            raise
        Console(stderr=True).print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted; finished runs are kept", style="yellow")
        sys.exit(130)
