"""Runs side by side: what they are, in which settings they differ, and every metric; one run alone in full."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from ltga.cli.terminal import plain_table
from ltga.train.find_run import SHORT
from ltga.train.protocol import Protocol
from ltga.train.record import Record
from ltga.train.show import shown

PARTS = ("test", "val", "train")


def side_by_side(records: Sequence[Record], rows: Sequence[dict[str, Any]]) -> Table:
    """A column per run; ``rows`` are those of the list, of the same runs."""
    made = plain_table("", *(row["id"][:SHORT] for row in rows))

    def add(name: str, cells: Sequence[str]) -> None:
        made.add_row(escape(name), *map(escape, cells))

    for name in ("dataset", "method", "seed", "split"):
        add(name, [str(row[name]) for row in rows])
    if len({row["fingerprint"] for row in rows}) > 1:
        add("data (sha256)", [row["fingerprint"][:SHORT] for row in rows])
    add("protocol", [row["protocol"] for row in rows])
    for name, values in _settings(records, rows).items():
        add(name, [_said(value) for value in values])
    made.add_section()
    for part in PARTS:
        scores = [record["metrics"].get(part) or {} for record in records]
        for metric in dict.fromkeys(name for found in scores for name in found):
            add(f"{part} {metric}", [_score(metric, found.get(metric)) for found in scores])
    made.add_section()
    add("best epoch", [f"{record['best_epoch']} of {record['epochs']}" for record in records])
    add("seconds", [f"{record['timing']['train_seconds']:.1f}" for record in records])
    add("written", [time.strftime("%Y-%m-%d %H:%M", time.localtime(row["written"])) for row in rows])
    return made


def _settings(records: Sequence[Record], rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """What differs among several runs; of one run alone, what is not as usual."""
    if len(records) == 1:
        chosen = {**rows[0]["settings"], **{f"--prepare {key}": value for key, value in rows[0]["prepared"].items()}}
        return {name: [value] for name, value in chosen.items()}
    every = [_all_settings(record, row) for record, row in zip(records, rows)]
    names = dict.fromkeys(name for one in every for name in one)
    found = {name: [one.get(name) for one in every] for name in names}
    return {name: values for name, values in found.items() if any(value != values[0] for value in values)}


def _all_settings(record: Record, row: dict[str, Any]) -> dict[str, Any]:
    config = record["config"]
    usual = Protocol().model_dump()  # a record leaves out a later setting where it is the paper's
    batches = {key: value for key, value in (config.get("minibatch") or {}).items() if key in ("batch_size", "fanout")}
    return {
        **usual, **config["protocol"], **(config.get("options") or {}), **batches,
        "workers": config.get("workers", 1),
        **{f"--prepare {key}": value for key, value in row["prepared"].items()},
    }  # fmt: skip


def _said(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _score(metric: str, value: Any) -> str:
    return shown(metric, value) if isinstance(value, int | float) else "-" if value is None else str(value)
