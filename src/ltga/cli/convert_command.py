"""``ltga convert``: a graph to a folder on disk that batches are read from."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from ltga.cli.early_checks import parse_size
from ltga.cli.given_graph import mended_is_said
from ltga.cli.terminal import say
from ltga.data import Preparation
from ltga.data.graph_folder import open_graph_folder
from ltga.data.graph_folder_sources import open_source
from ltga.data.graph_folder_tables import TableStream
from ltga.data.graph_folder_write import write_graph_folder


def convert_graph(
    results: Console,
    messages: Console,
    source: str,
    folder: Path,
    features: str,
    memory: str,
    convention: str | None = None,
    data: Path | None = None,
    preparation: Preparation | None = None,
) -> None:
    """Write the graph folder and say what it holds."""
    room = parse_size(memory)
    with mended_is_said(messages):
        stream = open_source(source, convention, data, preparation)
    if isinstance(stream, TableStream):
        say(
            messages,
            "Numbers are written as they are, in float32; with --prepare scale=standard scaled as by `ltga train`.",
        )
    made = write_graph_folder(stream, folder, features, room, lambda line: say(messages, line))
    size = sum(file.stat().st_size for file in made.path.iterdir())
    dropped = made.manifest["provenance"]["repeats_dropped"]
    repeats = f"; {dropped:,} repeated edges dropped" if dropped else ""
    say(
        results,
        f"{made.path}: {made.num_nodes:,} nodes, {made.num_edges:,} edges, {made.num_features} features "
        f"({made.x.dtype}), {made.num_classes} classes, {size / 1024**2:,.1f} MiB{repeats}",
    )


def check_folder(results: Console, folder: Path) -> None:
    """Compare a graph folder with its checksums."""
    graph = open_graph_folder(folder)
    graph.verify()
    say(results, f"{folder}: whole; {graph.num_nodes:,} nodes, {graph.num_edges:,} edges")
