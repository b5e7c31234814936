"""What ``ltga suite`` says: counts of runs, the state of a store, and which of its files are not sound."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from ltga.cli.terminal import messages, plain_table, results, say

if TYPE_CHECKING:
    from ltga.study.runner import Tally
    from ltga.study.status import Status
    from ltga.study.verify import Verified

SHOWN = 5  # damaged files by name


def tally_text(tally: Tally) -> str:
    """What became of the runs, in a line."""
    parts = {
        "done": tally.done,
        "failed": len(tally.failed),
        "already in the store": tally.already,
        "done by another runner": tally.elsewhere,
        "failed before (--retry-failed to try again)": tally.failed_before,
        "impossible (data absent)": tally.impossible,
    }
    return "runs: " + (", ".join(f"{count} {what}" for what, count in parts.items() if count) or "none")


def status_table(found: Status, labels: dict[str, str]) -> Table:
    """A row per experiment."""
    from ltga.study.status import duration_text

    shown = plain_table("experiment", "in the paper", ">done", ">missing", ">failed", ">impossible", ">time needed")
    shown.columns[0].no_wrap = True
    rows = [(name, labels[name], row) for name, row in found.experiments.items()]
    for name, label, row in (*rows, ("all, shared runs once", "", found.total)):
        counts = (row.done, row.missing, row.failed, row.impossible)
        shown.add_row(name, label, *map(str, counts), duration_text(row.seconds, row.unknown))
    return shown


def print_verified(store: Path, found: Verified) -> None:
    """The runs to do again, a line each, and how many there are of each kind."""
    console = results()
    for run in found.of("damaged"):
        say(console, f"do again: {run.run}: {run.problem}", "red")
    for name in found.leftover:
        say(console, f"left over: {name} has no record; the run was cut short")
    counts = found.as_json()
    parts = [f"{counts[name]} {name}" for name in ("sound", "unchecked", "interrupted", "damaged") if counts[name]]
    imported = f" ({counts['imported']} of them imported)" if counts["imported"] else ""
    say(console, f"{store}: {counts['runs']} runs{imported}: {', '.join(parts) or 'none'}")


def say_damaged(damaged: Mapping[str, str], store: Path) -> None:
    """On stderr, the files of a store that were left out because they are not sound: the first few, and how many."""
    errors = messages()
    for problem in list(damaged.values())[:SHOWN]:
        say(errors, f"left out: {problem}", style="yellow")
    if len(damaged) > SHOWN:
        more = (
            f"left out: {len(damaged) - SHOWN} more damaged files; `ltga suite verify --store {store}` names them all"
        )
        say(errors, more, style="yellow")
