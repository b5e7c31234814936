"""The commands of ``ltga``; heavy imports wait until a command runs, so that --help is quick."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Annotated

import typer

from ltga import __version__
from ltga.cli.options import Data, Json, complete_dataset, complete_methods, complete_setting
from ltga.cli.terminal import messages, results

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# The study of the paper is a building of its own: it uses the rest, and this is the only door to it.
importlib.import_module("ltga.study.command").add_to(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"ltga {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Graph attention that learns how sparse to be. Start with: ltga train"""


Graph = Annotated[
    str | None,
    typer.Argument(
        help="A dataset's name (see `ltga datasets`), or your own graph: an .npz or .safetensors file, or a folder "
        "with edges.csv and nodes.csv (or .parquet). Default: digits-noise, the embedded demo.",
        autocompletion=complete_dataset,
    ),
]
Methods = Annotated[
    str | None,
    typer.Option(
        help="Methods, comma-separated (see `ltga methods`). Default: gatv2,ltga-head,ltga-edge.",
        autocompletion=complete_methods,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting of the protocol, for example epochs=500; repeatable. Wins over --config.",
        autocompletion=complete_setting,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(help="TOML file with dataset, method, seeds and a table \\[protocol]. Loses to the command line."),
]
Convention = Annotated[
    str | None,
    typer.Option(help="Your own graph: what a row of edges means: 'directed', 'undirected, once', 'both directions'."),
]


@app.command()
def train(
    dataset: Graph = None,
    method: Methods = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="How many seeds, from 1 on. Default: 3.")] = None,
    protocol: Annotated[
        str | None, typer.Option(help="'recommended' or 'paper': the settings to start from. Default: recommended.")
    ] = None,
    settings: Settings = None,
    config: Config = None,
    out: Annotated[
        Path, typer.Option(help="Folder where runs are stored; those already there are not run again.")
    ] = Path("runs"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Run again what is already stored.")] = False,
    page: Annotated[
        Path | None, typer.Option(help="Where to write the page to look at. Default: inside --out.")
    ] = None,
    convention: Convention = None,
    task: Annotated[
        str | None, typer.Option(help="'node', 'link' or 'graph', where it does not follow from the data.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the results only, no progress.")] = False,
    json_wanted: Json = False,
    data: Data = None,
) -> None:
    """Train methods on a graph and compare them; without arguments, the one-minute demo.

    Settings come from, first to last: --set and the other options, the --config file, for digits-noise a smaller and
    quicker network, the recommended protocol (or the paper's, with paired initialisation: --protocol paper).

    Examples:

    ltga train

    ltga train cora --method gatv2,ltga-edge --seeds 10

    ltga train my-graph.npz --set epochs=500 --set hidden_channels=32

    ltga train my-folder/ --config settings.toml --json > summary.json

    ltga train mutag (also esol, umls, twitch-de:target=days; links: ltga train cora --task link)
    """
    from ltga.cli.plan import make_plan
    from ltga.cli.task_command import other_task_plan, train_other_task
    from ltga.cli.train_command import train_and_compare

    names = None if method is None else method.split(",")
    other = other_task_plan(dataset, names, seeds, settings or (), config, protocol, task)
    if other is not None:
        train_other_task(results(), messages(quiet), other, out, page, data, convention, fresh, json_wanted)
        return
    plan = make_plan(dataset, names, seeds, settings or (), config, protocol)
    train_and_compare(results(), messages(quiet), plan, out, page, data, convention, fresh, json_wanted)


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
    console = results()
    if list_works:
        for entry in WORKS.values():
            console.print(f"{entry.name}: {entry.what}")
        return
    with messages().status("measuring") as status:
        folder = None if data is None else str(data)
        measured = run_benchmarks(work.split(","), data=folder, extras=not quick, say=status.update)
    print(table(measured))
    if json_out is not None:
        write_text(json_out, json.dumps(measured, indent=1) + "\n")


@app.command()
def explain(
    run: Annotated[Path, typer.Argument(help="A stored run: the path of its record.")],
    page: Annotated[Path | None, typer.Option(help="Write a page to look at (.html).")] = None,
    parquet: Annotated[Path | None, typer.Option(help="Write every edge, layer and head (.parquet).")] = None,
    graphml: Annotated[Path | None, typer.Option(help="Write the graph with its weights (.graphml).")] = None,
    node: Annotated[int | None, typer.Option(help="Show what this node attends to.")] = None,
    graph: Annotated[str | None, typer.Option(help="The graph, if the run was made on your own.")] = None,
    data: Data = None,
) -> None:
    """Show what attention did in a run, and which edges it ignored.

    Example: ltga explain runs/1c556dcb.json --page out.html
    """
    from ltga.cli.explain_command import explain_run

    explain_run(results(), run, page, parquet, graphml, node, data, graph)


@app.command()
def datasets(json_wanted: Json = False, data: Data = None) -> None:
    """List the datasets: what they are, where they come from, which paper, and whether they are here.

    Example: ltga datasets --data my-datasets
    """
    from ltga.cli.lists import print_datasets

    print_datasets(results(), data, json_wanted)


@app.command()
def methods(json_wanted: Json = False) -> None:
    """List the methods: what they are and which paper they come from.

    Example: ltga methods --json
    """
    from ltga.cli.lists import print_methods

    print_methods(results(), json_wanted)


@app.command()
def doctor(json_wanted: Json = False, data: Data = None) -> None:
    """Look at versions, kernels, threads and data, and test the kernels against the definition.

    Takes about two seconds once the kernels are compiled. Exit code 1 if something is broken.

    Example: ltga doctor --json
    """
    from ltga.cli.doctor import report

    if not report(results(), data, json_wanted):
        raise typer.Exit(1)
