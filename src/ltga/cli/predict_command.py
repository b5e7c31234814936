"""``ltga predict``: a stored run on the same graph, a grown one or another, as a table of classes and probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from ltga.cli.given_graph import mended_is_said
from ltga.cli.output import keep_inputs
from ltga.cli.terminal import messages, say
from ltga.data.atomic import write_atomic
from ltga.train.finished import load_run
from ltga.train.predicted import predicted


def predict_to_file(
    console: Console,
    record: Path,
    graph: str | None,
    out: Path,
    data: Path | None,
    batch_size: int | None,
    device: str = "cpu",
    fanout: int | Sequence[int] | None = None,
    changes: Mapping[str, str] | None = None,
    pairs: Path | None = None,
) -> None:
    """Write a row per node (graph, pair): its id, what is predicted, and every class's probability."""
    run = load_run(record, device)
    keep_inputs(out, "--out", (record, graph, (run.typed.reading or {}).get("path"), pairs))
    with mended_is_said(messages()):
        table = predicted(
            run, graph, data, pairs=pairs, changes=changes, batch_size=batch_size, fanout=fanout
        )  # fmt: skip
    write_atomic(out, table.write_csv if out.suffix == ".csv" else table.write_parquet)
    if run.typed.config.task == "link prediction":
        meant = "p_edge was learned where one of three pairs is an edge"
        say(console, f"{meant}: rank pairs by it; among all pairs edges are rarer.")
    say(console, f"{len(table):,} predictions of {run.typed.config.method} are in {out}.")
