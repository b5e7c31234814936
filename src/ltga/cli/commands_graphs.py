"""Commands about graphs and this machine: check, convert, datasets, methods, bench, doctor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ltga.cli.early_checks import check_conversion, check_graph
from ltga.cli.options import (
    Convention,
    Data,
    Json,
    Prepare,
    complete_dataset,
    preparation,
)
from ltga.cli.terminal import messages, results


def check(
    graph: Annotated[
        str, typer.Argument(help="Your own graph, as for `ltga train`, or a dataset's name.", show_default=False)
    ],
    convention: Convention = None,
    prepare: Prepare = None,
    json_wanted: Json = False,
    data: Data = None,
) -> None:
    """Read a graph whole and say everything that is wrong with it, what is done about it, and what it looks like then.

    Exit code 2 if it cannot be trained on as it is.

    Examples:

    ltga check my-folder/

    ltga check people.graphml --prepare label=club
    """
    check_graph(graph, convention, bool(prepare))
    options = preparation(prepare)
    from ltga.cli.check_command import check_graph_source

    check_graph_source(results(), graph, options, convention, data, json_wanted)


def convert(
    source: Annotated[
        str,
        typer.Argument(
            help="A folder with edges.csv and nodes.csv (or .parquet), an .npz file, a dataset's name, or a synthetic "
            "graph such as power-law:num_nodes=1000000,num_edges=10000000. With --check: a graph folder.",
            autocompletion=complete_dataset,
        ),
    ],
    folder: Annotated[Path | None, typer.Argument(help="The graph folder to write; must not exist.")] = None,
    features: Annotated[str, typer.Option(help="Kind of the stored features: float32 or float16.")] = "float32",
    memory: Annotated[str, typer.Option(help="Memory to sort edges in, for example 512M or 2G.")] = "1G",
    convention: Convention = None,
    prepare: Prepare = None,
    check: Annotated[bool, typer.Option("--check", help="Compare a graph folder with its checksums instead.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the results only, no progress.")] = False,
    data: Data = None,
) -> None:
    """Write a graph to a folder on disk that is trained from by batches, without ever loading it.

    Tables and .npz files are read in a stream: memory does not grow with the number of edges. Tables with text,
    gaps, repeated edges or numbers to be scaled need --prepare, which reads them whole and prepares them as `ltga
    train` does (--prepare scale=standard changes nothing else).

    Examples:

    ltga convert my-tables/ my-graph --features float16

    ltga convert my-graph --check
    """
    if check != (folder is None):
        raise typer.BadParameter("give SOURCE and FOLDER, or --check and one graph folder")
    if folder is None:
        from ltga.cli.convert_command import check_folder

        check_folder(results(), Path(source))
    else:
        check_conversion(source, folder, features, memory, convention, bool(prepare))
        where = (convention, data, preparation(prepare))
        from ltga.cli.convert_command import convert_graph

        convert_graph(results(), messages(quiet), source, folder, features, memory, *where)


def datasets(json_wanted: Json = False, data: Data = None) -> None:
    """List the datasets: what they are, where they come from, which paper, and whether they are here.

    Example: ltga datasets --data my-datasets
    """
    from ltga.cli.lists import print_datasets

    print_datasets(results(), data, json_wanted)


def methods(json_wanted: Json = False) -> None:
    """List the methods: what they are and which paper they come from.

    Example: ltga methods --json
    """
    from ltga.cli.lists import print_methods

    print_methods(results(), json_wanted)


def bench(
    work: Annotated[str, typer.Option(help="Works, comma-separated; see `ltga bench --list`.")] = "gum-syntax,cora",
    quick: Annotated[bool, typer.Option(help="Skip the large graphs and bandwidth.")] = False,
    list_works: Annotated[bool, typer.Option("--list", help="List the works and stop.")] = False,
    json_out: Annotated[Path | None, typer.Option("--json", help="Write all measurements here.")] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda (which is also ROCm's name).")] = "cpu",
    data: Data = None,
) -> None:
    """Measure speed and memory against PyG's GATv2Conv, as ratios in one run.

    Example: ltga bench --work cora --quick
    """
    from ltga.bench.on_device import device_table, run_on_device
    from ltga.bench.run import run_benchmarks, table
    from ltga.bench.works import WORKS
    from ltga.cli.output import check_output, write_text

    check_output(json_out, "--json")
    console = results()
    if list_works:
        for entry in WORKS.values():
            console.print(f"{entry.name}: {entry.what}")
        return
    with messages().status("measuring") as status:
        folder = None if data is None else str(data)
        if device == "cpu":
            measured = run_benchmarks(work.split(","), data=folder, extras=not quick, say=status.update)
        else:
            measured = run_on_device(work.split(","), device, folder, say=status.update)
    print(table(measured) if device == "cpu" else device_table(measured))
    if json_out is not None:
        write_text(json_out, json.dumps(measured, indent=1) + "\n")


def doctor(json_wanted: Json = False, data: Data = None) -> None:
    """Look at versions, kernels, threads and data, and test the kernels against the definition.

    Takes about two seconds once the kernels are compiled. Exit code 1 if something is broken.

    Example: ltga doctor --json
    """
    from ltga.cli.doctor import report

    if not report(results(), data, json_wanted):
        raise typer.Exit(1)
