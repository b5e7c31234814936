"""What ``ltga explain`` prints: an overview of attention for each task, and a close look at one thing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ltga.cli.terminal import plain_table
from ltga.errors import InputError
from ltga.explanation.graphs import Graphs
from ltga.explanation.node_classes import NodeClasses
from ltga.explanation.pairs_of_nodes import Links, PlainLinks
from ltga.explanation.result import Explanation
from ltga.nn.methods import find_method
from ltga.train.record import headline_score
from ltga.train.show import number, with_unit

MOST_ROWS = 20


def print_summary(console: Console, inside: Explanation) -> None:
    run, loops = inside.typed, inside.self_loop
    console.print(
        f"[bold]{escape(find_method(run.config.method).label)}[/bold] on {escape(inside.dataset.name)}, seed "
        f"{run.config.seed}: {_score(inside)}",
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
    if isinstance(inside, NodeClasses) and zeros:
        console.print(_class_pairs(inside))
    elif isinstance(inside, Links):
        console.print(_hardest_pairs(inside))
    elif isinstance(inside, Graphs) and zeros:
        console.print(_most_ignored_graphs(inside))


def look_closely(inside: Explanation, item: str) -> Table:
    """The neighbourhood of a node, both ends of a pair, or the edges of one graph of many."""
    if isinstance(inside, Graphs):
        return _one_graph(inside, item)
    try:
        return _neighbourhood(inside, inside.find(item))
    except InputError:
        ends = [end.strip() for end in item.split(",")]
        if not isinstance(inside, Links) or len(ends) != 2:
            raise
        return _pair(inside, inside.find(ends[0]), inside.find(ends[1]))


def _score(inside: Explanation) -> str:
    run = inside.typed
    if run.config.task is None:
        scores = next(run.metrics[part] for part in ("test", "train", "val") if part in run.metrics)
        metric = run.metric or inside.dataset.metric
        score = getattr(scores, metric)
        return f"{metric} {'not defined' if score is None else f'{100 * score:.1f} %'}"
    part, metric, score = headline_score(inside.record)
    if score is None:
        return f"{run.config.task}"
    return f"{run.config.task}, {part} {metric} {with_unit(metric, score)}"


def _class_pairs(inside: NodeClasses) -> Table:
    headings = ("class", "neighbour's class", ">edges", ">ignored")
    pairs = plain_table(*headings, title="Most ignored class pairs", title_justify="left")
    for row in inside.class_pairs().head(5).to_dict("records"):
        cells = (f"{row['edges']:,}", f"{100 * row['ignored']:.1f} %")
        pairs.add_row(escape(row["target_class"]), escape(row["source_class"]), *cells)
    return pairs


def _hardest_pairs(inside: Links) -> Table:
    frame = inside.candidates()
    worst = frame[frame["edge"]].sort_values("rank", ascending=False, kind="stable").head(5)
    typed = "relation" in frame
    relation = ("relation",) if typed else ()
    headings = ("node", *relation, "node", ">rank", ">of", ">probability", ">common neighbours")
    table = plain_table(*headings, title="Held-out edges that are ranked last", title_justify="left")
    for row in worst.to_dict("records"):
        middle = (escape(row["relation"]),) if typed else ()
        ends = [escape(_name(inside, row[end])) for end in ("first", "second")]
        cells = (f"{row['rank']:g}", str(row["among"]), f"{row['probability']:.3f}", str(row["common"]))
        table.add_row(ends[0], *middle, ends[1], *cells)
    return table


def _most_ignored_graphs(inside: Graphs) -> Table:
    frame = inside.graphs().sort_values("ignored_share", ascending=False, kind="stable").head(5)
    headings = ("graph", "target", "predicted", ">edges", ">ignored by all", ">zero weights")
    table = plain_table(*headings, title="Graphs of which most is ignored", title_justify="left")
    for row in frame.to_dict("records"):
        cells = (f"{row['edges']:,}", f"{row['ignored']:,}", f"{100 * row['ignored_share']:.1f} %")
        table.add_row(escape(row["name"]), *_judged(row), *cells)
    return table


def _judged(row: dict[Any, Any]) -> tuple[str, str]:
    true = next(row[name] for name in ("class", "value", "labels") if name in row)
    return escape(_value(true)), escape(_value(row["predicted"]))


def _value(value: object) -> str:
    if isinstance(value, float):
        return "unknown" if value != value else number(value)
    return str(value) or "none"


def _neighbourhood(inside: Explanation, node: int) -> Table:
    shown = inside.nodes().iloc[node].to_dict()
    known = [f"{name} {_value(shown[name])}" for name in inside.about_nodes()]
    said = [f"predicted {_value(shown['predicted'])}"] if "predicted" in shown else []
    title = f"Node {_name(inside, node)}" + (": " + ", ".join([*known, *said]) if known or said else "")
    return _edge_table(inside, inside.neighbourhood(node), title)


def _pair(inside: Links, first: int, second: int) -> Table:
    common = inside.common(first, second)
    chance = ""
    if isinstance(inside, PlainLinks):
        chance = f", probability of an edge {float(inside.probability(np.array([first, second]))):.3f}"
    title = f"Nodes {_name(inside, first)} and {_name(inside, second)}: {len(common)} common neighbours{chance}"
    return _edge_table(inside, inside.pair(first, second), title, attending=True)


def _one_graph(inside: Graphs, item: str) -> Table:
    graph = inside.find_graph(item)
    row = inside.graphs().iloc[graph].to_dict()
    true, said = _judged(row)
    title = (
        f"Graph {row['name']}: target {true}, predicted {said}, {row['edges']} edges, {row['ignored']} ignored by all"
    )
    frame = inside.edges_of(graph).sort_values("ignored_by", ascending=False, kind="stable")
    return _edge_table(inside, frame, title, attending=True)


def _edge_table(inside: Explanation, frame: pd.DataFrame, title: str, attending: bool = False) -> Table:
    """Edges that attending nodes read, a row each."""
    layers = range(1, inside.num_layers + 1)
    extra = [name for name in (*inside.about_nodes(), *inside.about_edges(), "common") if _column(frame, name)]
    extra = [name for name in extra if name not in ("graph", "graph_number", "source_name", "target_name")]
    headings = ([">node"] if attending else []) + [">neighbour", *extra]
    headings += [f">weight, layer {layer}" for layer in layers] + [">ignored by"]
    table = plain_table(*headings, title=escape(title), title_justify="left")
    heads = inside.num_layers * inside.num_heads
    for at, row in zip(frame.index[:MOST_ROWS], frame.head(MOST_ROWS).to_dict("records")):
        source, target = inside.edge_index[:, at]
        names = [_name(inside, target)] if attending else []
        names.append("itself" if row["self_loop"] else _name(inside, source))
        known = (_cell(row[_column(frame, name)]) for name in extra)
        weights = (f"{row[f'mean_weight_layer{layer}']:.3f}" for layer in layers)
        table.add_row(*map(escape, (*names, *known)), *weights, f"{row['ignored_by']} of {heads}")
    if len(frame) > MOST_ROWS:
        table.caption = f"and {len(frame) - MOST_ROWS} more"
    return table


def _cell(value: object) -> str:
    return ("yes" if value else "") if isinstance(value, bool | np.bool_) else _value(value)


def _column(frame: pd.DataFrame, name: str) -> str:
    """The column that tells ``name`` of a neighbour or an edge; empty if there is none."""
    found: Iterable[str] = (column for column in (f"source_{name}", name) if column in frame)
    return next(iter(found), "")


def _name(inside: Explanation, node: int) -> str:
    """What people call a node: in a molecule its element and number."""
    if isinstance(inside, Graphs) and inside.node_names is None:
        number = str(inside.numbers[node])
        return number if inside.symbols is None else f"{inside.symbols[node]}{number}"
    ids = inside.node_ids if inside.node_ids is not None else inside.node_names
    return str(node) if ids is None else str(ids[node])
