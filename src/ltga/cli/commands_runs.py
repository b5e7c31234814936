"""Commands about finished runs: explain, predict, runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltga.cli.early_checks import check_device, check_graph, parse_fanout
from ltga.cli.options import (
    Convention,
    Data,
    Device,
    Json,
    Prepare,
    RunFolder,
    prediction_options,
    preparation,
)
from ltga.cli.output import PAGES, TABLES, check_output
from ltga.cli.terminal import messages, results
from ltga.errors import InputError

WRITTEN = {"--page": PAGES, "--parquet": (".parquet",), "--csv": (".csv",), "--graphml": (".graphml", ".xml")}


def explain(
    run: Annotated[Path, typer.Argument(help="A stored run: the path of its record, or the first digits of its id.")],
    page: Annotated[Path | None, typer.Option(help="Write a page to look at (.html).")] = None,
    parquet: Annotated[Path | None, typer.Option(help="Write every edge, layer and head (.parquet).")] = None,
    graphml: Annotated[Path | None, typer.Option(help="Write the graph with its weights (.graphml).")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write every edge, a row each (.csv).")] = None,
    node: Annotated[
        str | None,
        typer.Option(
            "--node", "--item", help="Look closely at a node (id or number), two nodes (A,B), or a graph of many."
        ),
    ] = None,
    graph: Annotated[str | None, typer.Option(help="The graph, if the run was made on your own.")] = None,
    convention: Convention = None,
    prepare: Prepare = None,
    runs: RunFolder = Path("runs"),
    device: Device = "auto",
    data: Data = None,
) -> None:
    """Show what attention did in a run, and which edges it ignored.

    Example: ltga explain runs/1c556dcb.json --page out.html
    """
    from ltga.train.find_run import record_of

    for path, option in ((page, "--page"), (parquet, "--parquet"), (csv, "--csv"), (graphml, "--graphml")):
        check_output(path, option, WRITTEN[option])
    check_device(device)
    if graph is None and (convention or prepare):
        option = "--convention" if convention else "--prepare"
        raise InputError(f"{option}: the run's own graph is read as it was then; give --graph, or leave it out")
    if graph is not None:
        check_graph(graph, convention, bool(prepare))
    record, prepared = record_of(run, runs), preparation(prepare)
    from ltga.cli.explain_command import explain_run

    explain_run(results(), record, page, parquet, graphml, node, data, graph, convention, prepared, device, csv)


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
    new_category: Annotated[
        str | None,
        typer.Option(help="A category that the run has not seen: 'error' or 'other'. Default: as for the run."),
    ] = None,
    prepare: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OPTION=VALUE",
            help="What differs from the run's own tables: how these are written (encoding, decimal, thousands, "
            "date_format), or what becomes of odd rows (bad_smiles=drop, stray_cells=empty, unknown_ids=drop, "
            "repeated_ids=first, missing_labels, new_category).",
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            help="Links: a table of the pairs to judge, with columns source and target (typed: head, relation)."
        ),
    ] = None,
    data: Data = None,
) -> None:
    """Write every node's id, most probable class and probabilities, for the run's graph, a grown one or another.

    A run on a folder of many graphs predicts those of another one; a run on links judges --pairs.

    Examples:

    ltga predict 1c556dcb my-graph/ --out predictions.csv

    ltga predict 9f02ab77 more-graphs/ --out graphs.csv

    ltga predict 77aa01cd --pairs candidates.csv --out links.csv
    """
    from ltga.train.find_run import find_run

    if new_category not in (None, "error", "other"):
        raise typer.BadParameter(f"--new-category: got {new_category!r}; use 'error' or 'other'")
    changes = prediction_options(prepare, new_category)
    check_output(out, "--out", TABLES, "predictions are")
    check_device(device)
    sampled = None if fanout is None else parse_fanout(fanout)
    if graph is not None:
        check_graph(graph)
    record = find_run(run, runs)
    from ltga.cli.predict_command import predict_to_file

    predict_to_file(results(), record, graph, out, data, batch_size, device, sampled, changes, pairs)


def runs(
    folder: Annotated[Path, typer.Argument(help="A folder of runs.")] = Path("runs"),
    chosen: Annotated[
        list[str] | None, typer.Argument(help="Only these, by the first digits of their ids.", show_default=False)
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the runs that are named.")] = False,
    json_wanted: Json = False,
) -> None:
    """List stored runs with their short ids, scores and settings; look at some, side by side; or delete them.

    Examples:

    ltga runs

    ltga runs 1c55 9f02 (all metrics of both, and the settings in which they differ)

    ltga runs 1c55 --delete

    ltga runs old-runs 1c55 --delete
    """
    from ltga.train.find_run import check_folder, is_short_id

    if not folder.exists() and is_short_id(str(folder)) and Path("runs").is_dir():
        folder, chosen = Path("runs"), [str(folder), *(chosen or ())]  # the folder was left out
    check_folder(folder)
    from ltga.cli.runs_command import delete_runs, list_runs

    if delete:
        delete_runs(results(), folder, chosen or ())
    else:
        list_runs(results(), messages(), folder, chosen or (), json_wanted)
