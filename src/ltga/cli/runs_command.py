"""``ltga runs``: what is stored in a folder, newest last, to list, compare and delete."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from ltga.cli.output import page_name
from ltga.cli.runs_compare import side_by_side
from ltga.cli.terminal import plain_table, say
from ltga.data import Preparation
from ltga.errors import InputError
from ltga.train.find_run import SHORT, find_run
from ltga.train.protocol import RECOMMENDED, Protocol
from ltga.train.record import Record, headline_score
from ltga.train.show import shown as shown_value
from ltga.train.store import Store

LONGEST_OPTION = 30  # characters of an option of --prepare in the list; all of it for one run and in --json


def list_runs(console: Console, messages: Console, folder: Path, chosen: Sequence[str], json_wanted: bool) -> None:
    """A row per run; or those whose ids begin as ``chosen`` says, side by side."""
    store = Store(folder, "folder")
    if chosen:
        records = [record for path in (find_run(one, folder) for one in chosen) if (record := store.record(path.stem))]
    else:
        records = list(store.records())
    rows = [_row(record, folder) for record in records]
    if not chosen:
        rows.sort(key=lambda row: row["written"])
    for name, why in store.damaged.items():
        say(messages, f"left out {name}: {why}")
    if json_wanted:
        print(json.dumps(rows, indent=1, allow_nan=False))
        return
    if chosen and rows:
        console.print(side_by_side(records, rows))
        return
    shown = plain_table("run", "dataset", "method", ">seed", ">split", ">score", "metric", "protocol", "written")
    several = _under_one_name(rows)
    for row in rows:
        score = shown_value(row["metric"], row["score"])
        changes = [f"{key}={value}" for key, value in row["settings"].items()]
        changes += _shortened(row["prepared"])
        name = row["dataset"]
        if name in several:  # les.graphml beside les.edges
            name = f"{name} ({row['format'] if row['path'] is None else os.path.relpath(row['path'])})"
        shown.add_row(
            row["id"][:SHORT], escape(name), row["method"], str(row["seed"]), str(row["split"]), score,
            row["metric"], escape(", ".join([row["protocol"], *changes])),
            time.strftime("%Y-%m-%d %H:%M", time.localtime(row["written"])),
        )  # fmt: skip
    console.print(shown)


def delete_runs(console: Console, folder: Path, chosen: Sequence[str]) -> None:
    """Remove the files of runs and their pages, the record first: a run half removed is not taken for a whole one."""
    if not chosen:
        raise InputError("delete: say which runs, by the first digits of their ids")
    paths = [find_run(one, folder) for one in chosen]
    for path in paths:
        page = _page_of(path)
        for suffix in (".json", ".npz", ".safetensors"):
            path.with_suffix(suffix).unlink(missing_ok=True)
        say(console, f"deleted {path.stem[:SHORT]}")
        if page is not None and page.is_file():
            page.unlink()
            say(console, f"deleted its page {page.name}")


def _page_of(path: Path) -> Path | None:
    """Where ``ltga train`` writes a run's page; ``None`` if the record does not say what it is of."""
    try:
        config = json.loads(path.read_bytes())["config"]
        return path.with_name(page_name(config["dataset"]["name"], config["method"], path.stem))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _shortened(prepared: dict[str, Any]) -> list[str]:
    """How tables were prepared, in a few words: a row of the list is for one line."""
    if not prepared:
        return []
    name, value = next(iter(prepared.items()))
    text = str(value)
    first = f"--prepare {name}={text if len(text) <= LONGEST_OPTION else text[:LONGEST_OPTION] + '...'}"
    return [first, f"{len(prepared) - 1} more"] if len(prepared) > 1 else [first]


def _row(record: Record, folder: Path) -> dict[str, Any]:
    config = record["config"]
    part, metric, score = headline_score(record)
    return {
        "id": record["id"],
        "dataset": config["dataset"]["name"],
        "method": config["method"],
        "seed": config["seed"],
        "split": config["split"],
        "part": part,
        "metric": metric,
        "score": score,
        "metrics": record["metrics"],
        "best_epoch": record["best_epoch"],
        **_changed(record),
        "path": _reading(record).get("path"),
        "format": _reading(record).get("format", "by name"),
        "fingerprint": config["dataset"]["fingerprint"],
        "prepared": _prepared(record),
        "written": (folder / f"{record['id']}.json").stat().st_mtime,
    }


def _reading(record: Record) -> dict[str, Any]:
    return record.get("reading") or {}


def _prepared(record: Record) -> dict[str, Any]:
    """How tables were prepared, where that is not as usual."""
    chosen = _reading(record).get("preparation", {}).get("options", {})
    usual = Preparation().model_dump(mode="json")
    changed = {key: value for key, value in chosen.items() if value != usual.get(key)}
    return {key: ",".join(value) if isinstance(value, list) else value for key, value in changed.items()}


def _under_one_name(rows: Sequence[dict[str, Any]]) -> set[str]:
    """Names that stand for graphs from more than one place."""
    places: dict[str, set[Any]] = {}
    for row in rows:
        places.setdefault(row["dataset"], set()).add(row["path"])
    return {name for name, found in places.items() if len(found) > 1}


def _changed(record: Record) -> dict[str, Any]:
    """The nearer of the two protocols, and the settings by which a run differs from it, batches included."""
    given = {**record["config"]["protocol"], **(record.get("asked") or {})}
    bases = {"recommended": {**Protocol().model_dump(), **RECOMMENDED}, "paper": Protocol().model_dump()}
    found = {
        name: {key: value for key, value in {**base, **given}.items() if value != base[key]}
        for name, base in bases.items()
    }
    # A record leaves out a later setting where it is the paper's, so that one counts as given.
    later = {key: value for key, value in bases["paper"].items() if key not in given}
    found["recommended"] |= {key: value for key, value in later.items() if value != bases["recommended"][key]}
    name = min(found, key=lambda one: len(found[one]))
    batches = record["config"].get("minibatch") or {}
    chosen = {key: batches[key] for key in ("batch_size", "fanout") if key in batches}
    return {"protocol": name, "settings": found[name] | chosen}
