"""``ltga explain``: what attention did in a stored run, in the terminal, as files, and as a page."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ltga.cli.given_graph import load_given
from ltga.cli.output import check_output
from ltga.cli.terminal import plain_table, say
from ltga.data import Preparation
from ltga.errors import InputError
from ltga.explanation.explain import explain
from ltga.explanation.result import Explanation
from ltga.nn.methods import find_method
from ltga.train.find_run import find_run
from ltga.train.fitting import load_run
from ltga.train.run_graph import graph_of

MOST_ROWS = 20


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
) -> None:
    """Print a summary (and a node's neighbourhood) and write what was asked for."""
    for path, option in ((page, "--page"), (parquet, "--parquet"), (graphml, "--graphml")):
        check_output(path, option)
    finished = load_run(_record(run), device)
    if graph is not None and (convention or preparation):
        dataset = load_given(graph, data, convention, preparation)
    else:
        dataset = graph_of(finished, graph, data)
    inside = explain(finished, dataset)
    around = None if node is None else _neighbourhood(inside, dataset.position(node))
    _summary(console, inside)
    if around is not None:
        console.print(around)
    if page is not None:
        from ltga.explanation.page import write_page

        write_page(inside, page)
    if parquet is not None:
        inside.to_parquet(parquet)
    if graphml is not None:
        inside.to_graphml(graphml)
    for path in (page, parquet, graphml):
        if path is not None:
            size = path.stat().st_size / 1e6
            say(console, f"Wrote {path} ({size:.1f} MB).")


def _record(run: Path) -> Path:
    """The record meant by RUN: a path, with or without ``.json``, or a folder with a single record."""
    if run.is_dir():
        records = sorted(run.glob("*.json"))
        if len(records) == 1:
            return records[0]
        example = f", for example {records[0]}" if records else ""
        raise InputError(f"RUN: {run} is a folder with {len(records)} records; give the path of one{example}")
    beside = run.with_name(f"{run.name}.json")
    return beside if not run.exists() and beside.exists() else find_run(run)


def _summary(console: Console, inside: Explanation) -> None:
    run, loops = inside.typed, inside.self_loop
    scores = next(run.metrics[part] for part in ("test", "train", "val") if part in run.metrics)
    metric = run.metric or inside.dataset.metric
    score = getattr(scores, metric)
    shown = "not defined" if score is None else f"{100 * score:.1f} %"
    console.print(
        f"[bold]{escape(find_method(run.config.method).label)}[/bold] on {escape(inside.dataset.name)}, seed "
        f"{run.config.seed}: {metric} {shown}",
    )
    letter = "alpha" if inside.normalizer == "entmax" else "q"
    heads = plain_table(">layer", ">head", f">{letter}", ">exact zeros", ">effective neighbours")
    for row in inside.heads().to_dict("records"):
        cells = (f"{row['q']:.2f}", f"{100 * row['zero_fraction']:.1f} %", f"{row['effective_neighbors']:.2f}")
        heads.add_row(str(row["layer"]), str(row["head"]), *cells)
    console.print(heads)
    edges, everyone = int((~loops).sum()), int((inside.unanimous & ~loops).sum())
    some = int(((inside.ignored_by.sum(axis=0) > 0) & ~loops).sum())
    console.print(
        f"Of {edges:,} edges, {some:,} are ignored by some head and {everyone:,} by every head of every layer.",
    )
    planted, zeros = inside.planted, int(inside.ignored[:, ~loops].sum())
    if planted is not None and zeros:
        noise, share = int(inside.ignored[:, planted].sum()), float(planted[~loops].mean())
        console.print(
            f"{noise:,} of the {zeros:,} zero weights lie on planted noise edges ({100 * share:.0f} % of all edges are "
            "planted).",
        )
    if zeros:
        _print_pairs(console, inside)


def _print_pairs(console: Console, inside: Explanation) -> None:
    headings = ("class", "neighbour's class", ">edges", ">ignored")
    pairs = plain_table(*headings, title="Most ignored class pairs", title_justify="left")
    for row in inside.class_pairs().head(5).to_dict("records"):
        cells = (f"{row['edges']:,}", f"{100 * row['ignored']:.1f} %")
        pairs.add_row(escape(row["target_class"]), escape(row["source_class"]), *cells)
    console.print(pairs)


def _neighbourhood(inside: Explanation, node: int) -> Table:
    frame, shown = inside.neighbourhood(node), inside.nodes().iloc[node]
    ids = inside.dataset.node_ids
    title = f"Node {node if ids is None else ids[node]}: class {shown['class']}, predicted {shown['predicted']}"
    layers = range(1, inside.num_layers + 1)
    weights = [f">weight, layer {layer}" for layer in layers]
    around = plain_table(">neighbour", "class", *weights, ">ignored by", title=escape(title), title_justify="left")
    heads = inside.num_layers * inside.num_heads
    for row in frame.head(MOST_ROWS).to_dict("records"):
        name = "itself" if row["self_loop"] else str(row["source"] if ids is None else ids[row["source"]])
        cells = (f"{row[f'mean_weight_layer{layer}']:.3f}" for layer in layers)
        around.add_row(escape(name), escape(row["source_class"]), *cells, f"{row['ignored_by']} of {heads}")
    if len(frame) > MOST_ROWS:
        around.caption = f"and {len(frame) - MOST_ROWS} more"
    return around
