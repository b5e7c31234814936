"""The commands of ``ltga``; heavy imports wait until a command runs, so that --help is quick."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Annotated

import typer

from ltga import __version__
from ltga.cli.launch import launched, on_ray
from ltga.cli.options import (
    Address,
    CheckpointEvery,
    Data,
    Device,
    EngineOption,
    Json,
    Workers,
    batches,
    complete_dataset,
    complete_methods,
    complete_setting,
    preparation,
)
from ltga.cli.terminal import messages, results
from ltga.errors import InputError

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
        help="A dataset's name (see `ltga datasets`), or your own graph: a folder with edges.csv and nodes.csv (or "
        ".parquet), or a .graphml, .gexf, .gml, .mtx, .edges, .npz or .safetensors file. "
        "Default: digits-noise, the embedded demo.",
        autocompletion=complete_dataset,
    ),
]
Methods = Annotated[
    str | None,
    typer.Option(
        help="Methods, comma-separated (see `ltga methods`). Default: gatv2,ltga-head,entmax-head.",
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
RunFolder = Annotated[Path, typer.Option(help="Folder where short ids are looked up.")]
Convention = Annotated[
    str | None,
    typer.Option(help="Your own graph: what a row of edges means: 'directed', 'undirected, once', 'both directions'."),
]


Prepare = Annotated[
    list[str] | None,
    typer.Option(
        "--prepare",
        metavar="OPTION=VALUE",
        help="Your own tables: how they become numbers, for example label=churned or scale=none; repeatable. "
        "`ltga check` says what is done.",
    ),
]


@app.command()
def train(
    context: typer.Context,
    dataset: Graph = None,
    method: Methods = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="How many seeds, from 1 on. Default: 3.")] = None,
    protocol: Annotated[
        str | None, typer.Option(help="'recommended' or 'paper': the settings to start from. Default: recommended.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="What chooses the best epoch and fills the table: 'auto' (follows the labels), 'accuracy', "
            "'balanced_accuracy', 'macro_f1', 'roc_auc', 'average_precision', or 'loss' to choose."
        ),
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
    batch_size: Annotated[
        int | None,
        typer.Option(min=1, help="Train on sampled neighbourhoods of so many nodes; chosen if memory demands it."),
    ] = None,
    fanout: Annotated[
        str | None,
        typer.Option(help="Neighbours drawn per node: one number, or one per layer, the last layer's first."),
    ] = None,
    full_batch: Annotated[bool, typer.Option("--full-batch", help="The whole graph at once, come what may.")] = False,
    checkpoint_every: CheckpointEvery = "3min",
    workers: Workers = None,
    engine: EngineOption = None,
    address: Address = None,
    convention: Convention = None,
    prepare: Prepare = None,
    task: Annotated[
        str | None, typer.Option(help="'node', 'link' or 'graph', where it does not follow from the data.")
    ] = None,
    device: Device = "auto",
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

    ltga train graph-folder/ --batch-size 1024 --fanout 10,5 (a folder of `ltga convert` is then trained from disk)

    ltga train mutag (also esol, umls, twitch-de:target=days; links: ltga train cora --task link)
    """
    from ltga.cli.plan import graph_asked_for, make_plan
    from ltga.data.dataset_names import is_node_classification

    changes = [*(settings or ()), *([] if metric is None else [f"metric={metric}"])]
    names = None if method is None else method.split(",")
    if not is_node_classification(graph_asked_for(dataset, config), task):
        from ltga.cli.task_command import other_task_plan, train_other_task

        other = other_task_plan(dataset, names, seeds, changes, config, protocol, task)
        if engine is not None:
            raise InputError("--engine: is for a class per node so far; leave it out, --workers divides graphs")
        if launched(workers, context.obj):
            return
        place = (out, page, data, convention, fresh, json_wanted)
        train_other_task(results(), messages(quiet), other, *place, checkpoint_every, device)
        return
    plan = make_plan(dataset, names, seeds, changes, config, protocol)
    prepared = preparation(prepare)
    cluster = on_ray(engine, workers, address, device)
    if cluster is None and launched(workers, context.obj):
        return
    from ltga.cli.train_command import train_and_compare  # now, so that a typo above does not wait for torch

    minibatch = batches(batch_size, fanout, full_batch)
    where = (out, page, data, convention, fresh, json_wanted, prepared)
    how = (minibatch, full_batch, checkpoint_every, cluster, device)
    train_and_compare(results(), messages(quiet), plan, *where, *how)


@app.command()
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
    from ltga.data.dataset_names import check_name

    check_name(graph)
    from ltga.cli.check_command import check_graph_source

    check_graph_source(results(), graph, preparation(prepare), convention, data, json_wanted)


@app.command()
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
    check: Annotated[bool, typer.Option("--check", help="Compare a graph folder with its checksums instead.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the results only, no progress.")] = False,
    data: Data = None,
) -> None:
    """Write a graph to a folder on disk that is trained from by batches, without ever loading it.

    Tables and .npz files are read in a stream: memory does not grow with the number of edges.

    Examples:

    ltga convert my-tables/ my-graph --features float16

    ltga convert my-graph --check
    """
    from ltga.cli.convert_command import check_folder, convert_graph

    if check != (folder is None):
        raise typer.BadParameter("give SOURCE and FOLDER, or --check and one graph folder")
    if folder is None:
        check_folder(results(), Path(source))
    else:
        convert_graph(results(), messages(quiet), source, folder, features, memory, convention, data)


@app.command()
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


@app.command()
def explain(
    run: Annotated[Path, typer.Argument(help="A stored run: the path of its record, or its first digits in runs/.")],
    page: Annotated[Path | None, typer.Option(help="Write a page to look at (.html).")] = None,
    parquet: Annotated[Path | None, typer.Option(help="Write every edge, layer and head (.parquet).")] = None,
    graphml: Annotated[Path | None, typer.Option(help="Write the graph with its weights (.graphml).")] = None,
    node: Annotated[str | None, typer.Option(help="Show what this node attends to: its id, or its number.")] = None,
    graph: Annotated[str | None, typer.Option(help="The graph, if the run was made on your own.")] = None,
    convention: Convention = None,
    prepare: Prepare = None,
    device: Device = "auto",
    data: Data = None,
) -> None:
    """Show what attention did in a run, and which edges it ignored.

    Example: ltga explain runs/1c556dcb.json --page out.html
    """
    from ltga.cli.explain_command import explain_run

    explain_run(results(), run, page, parquet, graphml, node, data, graph, convention, preparation(prepare), device)


@app.command()
def predict(
    run: Annotated[str, typer.Argument(help="A stored run: the path of its record, or the first digits of its id.")],
    graph: Annotated[
        str | None,
        typer.Argument(help="The graph to predict on, read and prepared as the run's own. Default: that one."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where to write the predictions: .csv or .parquet.")] = Path(
        "predictions.csv"
    ),
    runs: RunFolder = Path("runs"),
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Compute so many nodes at a time, for a graph larger than memory allows.")
    ] = None,
    fanout: Annotated[
        str | None,
        typer.Option(help="Estimate from so many sampled neighbours of every node, as for `ltga train`, not from all."),
    ] = None,
    device: Device = "auto",
    data: Data = None,
) -> None:
    """Write every node's id, most probable class and probabilities, for the run's graph, a grown one or another.

    Example: ltga predict 1c556dcb my-graph/ --out predictions.csv
    """
    from ltga.train.find_run import find_run

    record = find_run(run, runs)
    from ltga.cli.predict_command import predict_to_file

    sampled = None
    if fanout is not None:
        from ltga.train.batches import parse_fanout

        sampled = parse_fanout(fanout)
    predict_to_file(results(), record, graph, out, data, batch_size, device, sampled)


@app.command()
def runs(
    folder: Annotated[Path, typer.Argument(help="A folder of runs.")] = Path("runs"),
    chosen: Annotated[
        list[str] | None, typer.Argument(help="Only these, by the first digits of their ids.", show_default=False)
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the runs that are named.")] = False,
    json_wanted: Json = False,
) -> None:
    """List stored runs with their short ids, scores and settings, compare a few of them, or delete them.

    Examples:

    ltga runs

    ltga runs runs 1c55 9f02

    ltga runs runs 1c55 --delete
    """
    from ltga.train.find_run import check_folder

    check_folder(folder)
    from ltga.cli.runs_command import delete_runs, list_runs

    if delete:
        delete_runs(results(), folder, chosen or ())
    else:
        list_runs(results(), messages(), folder, chosen or (), json_wanted)


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
