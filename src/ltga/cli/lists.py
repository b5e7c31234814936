"""What ``ltga datasets`` and ``ltga methods`` print."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from ltga.cli.terminal import plain_table
from ltga.data import CATALOGUE
from ltga.data.catalogue import Facts
from ltga.data.obtain import locate
from ltga.nn.methods import METHODS


def place(facts: Facts, root: Path | None) -> str:
    """Where a dataset is, or where it would come from."""
    if facts.reader == "generated":
        return "built in"
    folder = locate(facts, root)
    if folder is not None:
        return str(folder)
    wanted = facts.raw or ((facts.packed,) if facts.packed else ())
    return "to be downloaded" if all(file.url for file in wanted) else "not here, and not downloadable"


def print_datasets(console: Console, root: Path | None, json_wanted: bool) -> None:
    """One line per dataset: what it is, where it comes from, which paper, and where it lies."""
    if json_wanted:
        rows = [{**_plain(facts), "place": place(facts, root)} for facts in CATALOGUE.values()]
        print(json.dumps(rows, indent=1, allow_nan=False))
        return
    numbers = (">nodes", ">edges", ">features", ">classes", ">homophily")
    shown = plain_table("dataset", "task", ">graphs", *numbers, "what", "paper", "files from", "here")
    shown.columns[0].no_wrap = True
    for name, facts in CATALOGUE.items():
        counts = (facts.nodes, facts.edges, facts.features, facts.classes, facts.homophily)
        cells = ("" if count is None else f"{count:,}" for count in counts)
        kind = (facts.task, f"{facts.graphs:,}")
        shown.add_row(name, *kind, *cells, facts.about, facts.paper, facts.source, place(facts, root))
    console.print(shown)


def print_methods(console: Console, json_wanted: bool) -> None:
    """One line per method: what it is and which paper it comes from."""
    if json_wanted:
        keys = ("name", "label", "family", "about", "source")
        rows = [{key: getattr(method, key) for key in keys} for method in METHODS.values()]
        print(json.dumps(rows, indent=1))
        return
    shown = plain_table("method", "family", "what", "paper")
    shown.columns[0].no_wrap = True
    for method in METHODS.values():
        shown.add_row(method.name, method.family, method.about, method.source)
    console.print(shown)


def _plain(facts: Facts) -> dict[str, object]:
    """The facts without the list of files, which is long and of no use outside."""
    return {key: value for key, value in asdict(facts).items() if key not in ("packed", "raw")}
