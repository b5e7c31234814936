"""Commands that train: train, tune."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ltga.cli.early_checks import check_graph, check_hops, check_search, check_training
from ltga.cli.launch import launched, on_ray
from ltga.cli.options import (
    Address,
    CheckpointEvery,
    Config,
    Convention,
    Data,
    Device,
    EngineOption,
    Graph,
    Json,
    Methods,
    Prepare,
    Settings,
    Workers,
    batches,
    complete_methods,
    preparation,
)
from ltga.cli.output import PAGES, check_output
from ltga.cli.terminal import messages, results
from ltga.errors import InputError


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
            "'balanced_accuracy', 'macro_f1', 'roc_auc', 'average_precision' (of the rarer class), or 'loss' to choose."
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

    # A typo should not wait for torch, nor for a graph: first everything that can be told from the words alone.
    name = graph_asked_for(dataset, config)
    check_graph(name, convention, bool(prepare))
    check_training(device, batch_size, fanout, full_batch, out, checkpoint_every)
    check_output(page, "--page", PAGES)
    changes = settings or ()
    names = None if method is None else method.split(",")
    prepared = preparation(prepare)
    if prepared is not None and prepared.predict == "links" and task is None:
        task = "link"

    def train_other(given: Any = None, minibatch: Any = None) -> None:
        from ltga.cli.task_plan import other_task_plan

        other = other_task_plan(dataset, names, seeds, changes, config, protocol, task, metric)
        if engine is not None:
            raise InputError("--engine: is for a class per node so far; leave it out, --workers divides graphs")
        if given is None and launched(workers, context.obj):
            return
        from ltga.cli.task_command import train_other_task

        place = (out, page, data, convention, fresh, json_wanted)
        if given is None:
            minibatch = batches(messages(quiet), batch_size, fanout, full_batch)
        how = (checkpoint_every, device, prepared, given, minibatch, full_batch)
        train_other_task(results(), messages(quiet), other, *place, *how)

    if not is_node_classification(name, task):
        train_other()
        return
    plan = make_plan(dataset, names, seeds, changes, config, protocol, metric)
    check_hops(fanout, plan.protocol.num_layers)
    cluster = on_ray(engine, workers, address, device)
    if cluster is None and launched(workers, context.obj):
        return
    from ltga.cli.train_command import train_and_compare

    minibatch = batches(messages(quiet), batch_size, fanout, full_batch)
    where = (out, page, data, convention, fresh, json_wanted, prepared)
    how = (minibatch, full_batch, checkpoint_every, cluster, device, lambda given: train_other(given, minibatch))
    train_and_compare(results(), messages(quiet), plan, *where, *how)


def tune(
    dataset: Graph = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="Methods to choose among, comma-separated. Default: gatv2,ltga-head,entmax-head.",
            autocompletion=complete_methods,
        ),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="How many settings to try, those of earlier calls included.")] = 30,
    timeout: Annotated[float | None, typer.Option(help="Seconds after which no further trial is begun.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides what is tried.")] = 1,
    jobs: Annotated[
        int,
        typer.Option(
            min=1,
            help="Settings that are tried at the same time, by processes here or on a cluster. What is tried "
            "depends on this number, not on who is quicker.",
        ),
    ] = 1,
    engine: Annotated[
        str | None, typer.Option(help="'ray': on a Ray cluster, --jobs at a time (pip install 'ltga\\[ray]').")
    ] = None,
    address: Address = None,
    prune: Annotated[bool, typer.Option("--prune", help="Cut short what does worse than half of the others.")] = False,
    search: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=LOW..HIGH|A,B",
            help="What to try of a setting, for example lr=0.001..0.1 or heads=1,2; repeatable.",
        ),
    ] = None,
    metric: Annotated[str | None, typer.Option(help="What settings are chosen by, as for `ltga train`.")] = None,
    settings: Settings = None,
    protocol: Annotated[str | None, typer.Option(help="'recommended' or 'paper': the settings to start from.")] = None,
    config: Config = None,
    out: Annotated[Path, typer.Option(help="Folder where runs are stored; a trial that is there is not run again.")] = (
        Path("runs")
    ),
    task: Annotated[
        str | None, typer.Option(help="'node', 'link' or 'graph', where it does not follow from the data.")
    ] = None,
    convention: Convention = None,
    prepare: Prepare = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="As for `ltga train`.")] = None,
    fanout: Annotated[str | None, typer.Option(help="As for `ltga train`.")] = None,
    full_batch: Annotated[bool, typer.Option("--full-batch", help="As for `ltga train`.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the results only, no progress.")] = False,
    json_wanted: Json = False,
    data: Data = None,
) -> None:
    r"""Look for settings that suit a graph, by its validation part; needs Optuna (pip install 'ltga\[tune]').

    Every trial is a run as `ltga train` makes them. The same command goes on where it was stopped; with more --trials
    it looks further. A setting given with --set is left as it is. The chosen settings are printed as a command.

    Examples:

    ltga tune my-folder/ --trials 50

    ltga tune cora --method ltga-head,gcn --search lr=0.001..0.1 --search heads=1,2,4 --timeout 600
    """
    from ltga.cli.plan import graph_asked_for, make_plan
    from ltga.cli.task_plan import other_task_plan
    from ltga.data.dataset_names import is_node_classification

    name = graph_asked_for(dataset, config)
    check_graph(name, convention, bool(prepare))
    check_training("auto", batch_size, fanout, full_batch, out)
    check_search(search or (), timeout)
    node_classes = is_node_classification(name, task)
    methods = None if method is None else method.split(",")
    if node_classes:
        make_plan(dataset, methods, 1, settings or (), config, protocol, metric)
    else:
        other_task_plan(dataset, methods, 1, settings or (), config, protocol, task, metric)
    if engine not in (None, "ray"):
        raise InputError(f"--engine: expected 'ray', got {engine!r}; leave it out for processes on this machine")
    if engine is None and address is not None:
        raise InputError("--address: is that of a Ray cluster; give --engine ray too")
    from ltga.cli.tune_command import tune_graph
    from ltga.cli.tune_report import Request

    asked = Request(
        dataset, method, trials, timeout, seed, jobs, prune, tuple(search or ()), tuple(settings or ()), metric,
        protocol, config, task, out, convention, tuple(prepare or ()), batch_size, fanout, full_batch, data, engine,
        address,
    )  # fmt: skip
    minibatch = batches(messages(quiet), batch_size, fanout, full_batch)
    tune_graph(results(), messages(quiet), asked, node_classes, minibatch, json_wanted)
