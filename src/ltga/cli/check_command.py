"""``ltga check``: what is wrong with a graph, what is done about it, and what it looks like then."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from ltga.cli.terminal import plain_table, say
from ltga.data.collection_tables import is_collection, read_collection
from ltga.data.dataset_names import looks_like_a_path
from ltga.data.graph_files import is_table_source
from ltga.data.graph_folder_files import is_graph_folder
from ltga.data.preparation import Preparation
from ltga.data.prepare import FittedPreparation, PreparedGraph, prepare
from ltga.data.problems import Problems
from ltga.data.sources import as_tables
from ltga.data.triples_table import triples_file
from ltga.errors import DataError, InputError, LTGAError
from ltga.train.show import number

if TYPE_CHECKING:  # what is wrong with tables is told without torch
    from ltga.data import Dataset, GraphCollection, NodeDataset
    from ltga.data.graph_summary import GraphSummary
    from ltga.data.prepare_collection import FittedCollection

MOST_CLASSES = 10
LONGEST_CELL = 100  # characters of a class, or of a column's name
_WEIGHTS = {"error": "for you to mend", "mended": "mended", "note": "as it is"}


def check_graph_source(
    results: Console, graph: str, options: Preparation | None, convention: str | None, data: Path | None, as_json: bool
) -> None:
    """Print what was found, what is done by default and what comes of it; raise if that cannot be trained on."""
    path = Path(graph).expanduser()
    own = looks_like_a_path(graph) and path.exists()
    if not (own and is_table_source(path)) or is_graph_folder(path) or triples_file(path) is not None:
        from ltga.cli.given_graph import load_any

        _show_loaded(results, load_any(graph, data, convention, options), as_json)
        return
    chosen = options or Preparation()
    if convention is not None:
        chosen = chosen.with_convention(convention)
    if is_collection(path):
        _check_collection(results, path, chosen, as_json)
        return
    tables = as_tables(path, chosen)
    outcome = prepare(tables, chosen)
    if outcome.graph is not None:
        try:
            from ltga.data import NodeDataset

            dataset = outcome.graph.dataset()
            if chosen.predict == "links":
                from ltga.train.tasks.run_data import links_of

                links_of(dataset, 0)  # as training does before it starts
        except LTGAError as error:
            said = str(error).removeprefix(f"{tables.where}: ").removeprefix(f"{tables.name}: ")
            what, _, action = said.partition("; ")
            outcome.problems.add(tables.where, what, 1, action or "mend it", "error")
        else:
            if chosen.predict == "links":
                show_links(results, dataset, outcome.problems, as_json)
            elif isinstance(dataset, NodeDataset):
                show_values(results, dataset, outcome.problems, as_json)
            else:
                _show(results, dataset, outcome.problems, outcome.graph, as_json)
            return
    _refuse(results, outcome.problems, tables.where, as_json)


def _refuse(results: Console, found: Problems, where: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"trainable": False, "problems": found.as_json()}, indent=1))
    else:
        _problems(results, found)
    found.refuse(where)
    raise InputError(f"{where}: cannot be prepared")


def _check_collection(results: Console, path: Path, options: Preparation, as_json: bool) -> None:
    from ltga.data.prepare_collection import prepare_collection

    tables = read_collection(path, options)
    problems, prepared = prepare_collection(tables, options)
    if prepared is not None:
        try:
            collection = prepared.collection()
        except DataError as error:
            where, _, what = str(error).partition(": ")
            problems.add(where, what, 1, "mend it", "error")
        else:
            show_collection(results, collection, as_json, problems, prepared.fitted)
            return
    _refuse(results, problems, str(path), as_json)


def _show_loaded(console: Console, dataset: Any, as_json: bool) -> None:
    """What is read as it is: whatever is wrong with it has been raised."""
    from ltga.data import Dataset, GraphCollection, NodeDataset

    if isinstance(dataset, Dataset):
        _show(console, dataset, Problems(), None, as_json)
    elif isinstance(dataset, NodeDataset):
        show_values(console, dataset, Problems(), as_json)
    elif isinstance(dataset, GraphCollection):
        show_collection(console, dataset, as_json)
    else:
        facts = {"nodes": dataset.num_nodes, "relations": dataset.num_relations, "triples": len(dataset.edge_type)}
        _plain(console, dataset.name, {"task": dataset.task, **facts}, as_json, notes=dataset.notes)


def show_collection(
    console: Console,
    collection: GraphCollection,
    as_json: bool,
    found: Problems | None = None,
    fitted: FittedCollection | None = None,
) -> None:
    """Many graphs with a target each; `found` and `fitted` of tables that were prepared."""
    first, target = collection[0], collection.target
    sizes = [int(graph.num_nodes) for graph in collection]
    train, val, test = (int(mask.sum()) for mask in collection.split(0))
    summary = {"task": collection.task, "graphs": len(sizes), "nodes": sum(sizes),
               "features": int(first.x.size(1)), "targets": list(target.names)}  # fmt: skip
    split = {"train": train, "val": val, "test": test}
    summary |= {**split, "left_out": len(collection.left_out)}
    kept = {} if fitted is None else {"preparation": fitted.model_dump(mode="json")}
    if found is not None and not as_json:
        _problems(console, found)
    if fitted is not None and fitted.graph is not None and not as_json:
        _done(console, fitted.graph, fitted.options)
    names = {} if collection.feature_names is None else {"features": list(collection.feature_names)}
    _plain(console, collection.name, summary, as_json, found, {**names, **kept})


def _plain(
    console: Console,
    name: str,
    summary: Mapping[str, Any],
    as_json: bool,
    found: Problems | None = None,
    further: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> None:
    if as_json:
        problems = [] if found is None else found.as_json()
        told = {"notes": list(notes)} if notes else {}
        answer = {"trainable": True, "problems": problems, "summary": dict(summary), **told, **(further or {})}
        print(json.dumps(answer, indent=1, allow_nan=False))
        return
    for note in notes:
        say(console, f"{note}.")
    shown = (", ".join(value[:MOST_CLASSES]) if isinstance(value, list) else value for value in summary.values())
    said = (f"{key.replace('_', ' ')} {value:,}" if isinstance(value, int) else f"{key} {value}"
            for key, value in zip(summary, shown) if value != "")  # fmt: skip
    say(console, "; ".join(said) + ".")
    say(console, f"{name} can be trained on.")


def _show(console: Console, dataset: Dataset, found: Problems, graph: PreparedGraph | None, as_json: bool) -> None:
    from ltga.data.graph_summary import summarise

    summary = summarise(dataset)
    if not summary.val:
        raise DataError(
            f"{dataset.name}: the first split has no validation nodes, by which the best epoch is chosen; label more "
            "nodes of a class, or name some in a column split"
        )
    if as_json:
        prepared = {} if graph is None else {
            "preparation": graph.fitted.model_dump(mode="json"), "edge_attributes": list(graph.edge_names),
            "features": list(dataset.feature_names or ()),
        }  # fmt: skip
        answer = {"trainable": True, "problems": found.as_json(), "summary": asdict(summary), **prepared}
        print(json.dumps(answer, indent=1, allow_nan=False))
        return
    _problems(console, found)
    if graph is not None:
        _done(console, graph.fitted, graph.fitted.options)
    _summary(console, dataset, summary)
    say(console, f"{dataset.name} can be trained on.")


def _problems(console: Console, found: Problems) -> None:
    if not len(found):
        say(console, "Nothing is wrong with it.")
        return
    table = plain_table("where", ">count", "first rows", "what", "what is done", "")
    order = list(_WEIGHTS)
    for problem in sorted(found, key=lambda problem: order.index(problem.weight)):
        rows = ", ".join(map(str, problem.rows)) + (", ..." if problem.count > len(problem.rows) > 0 else "")
        cells = (problem.where, f"{problem.count:,}", rows, problem.what, problem.action, _WEIGHTS[problem.weight])
        table.add_row(*map(escape, cells))
    console.print(table)


def _done(console: Console, fitted: FittedPreparation, options: Preparation) -> None:
    """What was done by default or by wish, every option by its name."""
    wished = options.changed
    said: dict[str, Any] = {
        "convention": fitted.convention,
        "scale": options.scale,
        "structure": ",".join(fitted.nodes.structure) or "none",
        **{name: getattr(options, name) for name in (
            "repeated_edges", "reversed_edges", "unknown_ids", "repeated_ids", "missing_labels", "categories",
            "new_category", "empty_cells", "stray_cells", "decimal", "dates",
        )},
    }  # fmt: skip
    said |= {name: ",".join(v) if isinstance(v, list) else v for name, v in wished.items() if name not in said}
    shown = (f"{name}={value}{' (chosen)' if name in wished else ''}" for name, value in said.items())
    say(console, "Preparation: " + "; ".join(shown) + ".")
    say(console, "Another choice: --prepare OPTION=VALUE.")


def _summary(console: Console, dataset: Dataset, summary: GraphSummary) -> None:
    table = plain_table("", ">", title=escape(dataset.name), title_justify="left", show_header=False)
    shares = [f"{name[:LONGEST_CELL]} {100 * share:.1f} %" for name, share in summary.classes.items()]
    more = f", and {len(shares) - MOST_CLASSES} more" if len(shares) > MOST_CLASSES else ""
    homophily = "not defined"
    if summary.homophily is not None:
        homophily = f"{summary.homophily:.3f} ({summary.by_chance:.3f} by chance)"
    rows = {
        "nodes": f"{summary.nodes:,}",
        "edges (messages)": f"{summary.edges:,}",
        "features": f"{summary.features:,}",
        "edge attributes": f"{summary.edge_attributes:,}",
        "labelled nodes": f"{summary.labelled:,}",
        "classes": f"{len(summary.classes):,}: " + ", ".join(shares[:MOST_CLASSES]) + more,
        "median degree": f"{summary.median_degree:g}",
        "nodes without edges": f"{summary.isolated:,}",
        "nodes nothing points to": f"{summary.unreached:,}",
        "homophily of edges": homophily,
        "first split": f"{summary.train:,} train, {summary.val:,} val, {summary.test:,} test",
    }
    for name, value in rows.items():
        table.add_row(name, escape(value))
    table.columns[1].justify = "left"
    console.print(table)
    if summary.untested:
        missing = ", ".join(name[:LONGEST_CELL] for name in summary.untested[:MOST_CLASSES])
        say(console, f"Not in the test part of the first split: {missing}. No score there speaks of them.")


def show_links(console: Console, dataset: Any, found: Problems, as_json: bool) -> None:
    """A graph whose edges are to be learned; labels play no part."""
    data, features = dataset.data, list(dataset.feature_names or ())
    if as_json:
        summary = {"nodes": data.num_nodes, "edges": data.num_edges, "task": "link prediction", "features": features}
        print(json.dumps({"trainable": True, "problems": found.as_json(), "summary": summary}, indent=1))
        return
    _problems(console, found)
    say(console, f"{data.num_nodes:,} nodes, {data.num_edges:,} edges (messages), {data.x.size(1)} features.")
    say(console, f"{dataset.name} can be trained on for its links (ltga train ... --task link).")


def show_values(console: Console, dataset: NodeDataset, found: Problems, as_json: bool) -> None:
    """A graph whose nodes have a number or several labels."""
    y, target = dataset.target.y.double(), dataset.target
    train, val, test = (int(mask.sum()) for mask in dataset.split(0))
    if target.kind == "number":
        known = y[~y.isnan()]
        said = {"lowest": known.min(), "mean": known.mean(), "highest": known.max()}
        shares = {name: float(value) for name, value in said.items()}
    else:
        shares = {name: float(share) for name, share in zip(target.names, y.nanmean(0))}
    if as_json:
        summary = {"nodes": dataset.data.num_nodes, "edges": dataset.data.num_edges, "task": dataset.task,
                   "features": list(dataset.feature_names or ()), "target": shares}  # fmt: skip
        print(json.dumps({"trainable": True, "problems": found.as_json(), "summary": summary}, indent=1))
        return
    _problems(console, found)
    listed = ", ".join(f"{name[:LONGEST_CELL]} {number(value)}" for name, value in list(shares.items())[:MOST_CLASSES])
    say(console, f"{dataset.data.num_nodes:,} nodes, {dataset.data.num_edges:,} edges (messages), "
                 f"{dataset.data.x.size(1)} features; {dataset.task}: {listed}.")  # fmt: skip
    say(console, f"First split: {train:,} train, {val:,} val, {test:,} test. {dataset.name} can be trained on.")
