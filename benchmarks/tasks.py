"""One table of methods x tasks, paired by seed or fold: softmax, learned q, learned alpha, temperature, and baselines.

    ltga suite import results/tasks.jsonl.gz --store runs-tasks    # what has been run
    python benchmarks/tasks.py --seeds 10 --store runs-tasks       # then: python docs/tables.py
    ltga suite export results/tasks.jsonl.gz --store runs-tasks
    python benchmarks/tasks.py --tasks mutag esol --seeds 2 --set epochs=3 --store /tmp/runs --out /tmp/tasks.json

Runs are kept in the store, so the same command goes on where it was stopped, and more seeds need the new runs only
(transfer needs their models too, which an archive has not). Tasks that --out has already, with the same settings, stay
in it when others are added with --tasks; each says its seeds. So several commands may share both.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock

from ltga.cli.plan import parse_changes
from ltga.cli.task_command import METHODS
from ltga.cli.task_plan import setting_value
from ltga.cli.task_report import SHOWN, Row, reference_rows, row_of
from ltga.data import Dataset, load_dataset, neighbour_classes
from ltga.data.atomic import write_atomic
from ltga.nn.methods import find_method
from ltga.train import Protocol, load_run
from ltga.train.fitting import execute_and_store
from ltga.train.linear import class_logits
from ltga.train.metrics import classification_metrics
from ltga.train.planned import plan_run
from ltga.train.record import Record, environment, plain
from ltga.train.show import shown
from ltga.train.store import Store
from ltga.train.tasks.task_options import USED, TaskOptions
from ltga.train.tasks.task_run import PlannedTask, execute_task, plan_task

SOFTMAX = "gatv2"
# Node regression, several labels, graphs, links, typed links.
NAMES = (
    "twitch-de:target=views", "twitch-de:target=days", "twitch-engb:target=views", "twitch-engb:target=days",
    "mutag", "proteins", "enzymes:attributes=1", "enzymes:attributes=1,scale=1", "mutagenicity", "aids", "esol",
    "tox21", "umls", "kinships",
)  # fmt: skip
MADE: Mapping[str, Callable[[], Any]] = {
    "labels:cora": lambda: neighbour_classes(load_dataset("cora")),
    "labels:citeseer": lambda: neighbour_classes(load_dataset("citeseer")),
    **{f"links:{name}": lambda name=name: load_dataset(name) for name in ("cora", "citeseer", "pubmed")},  # type: ignore[misc]
}
TRANSFER = "transfer:twitch-de>twitch-engb"
EVERY = (*NAMES, *MADE, TRANSFER)


def compare(name: str, methods: Sequence[str], seeds: int, given: Mapping[str, str], store: Store) -> dict[str, Any]:
    """The rows of one task, and each method's difference from softmax, seed by seed."""
    if name == TRANSFER:
        return _entry("inductive transfer", "accuracy", _transfer(methods, seeds, given, store))
    data = MADE[name]() if name in MADE else load_dataset(name)
    task = "link prediction" if name.startswith("links:") else str(data.task)
    if "graph" in task:
        methods = (*methods, "gin")
    known = {field.name for field in fields(TaskOptions)}
    options = {key: setting_value(key, text) for key, text in given.items() if key in USED[task]}
    protocol = {key: text for key, text in given.items() if key not in known}
    planned = {
        method: [plan_task(data, method, seed, None, protocol, options) for seed in range(1, seeds + 1)]
        for method in methods
    }
    done = _records(planned, store)
    rows = [*reference_rows(planned[methods[0]])]
    rows += [row_of(find_method(method), [done[run.id] for run in planned[method]], store.folder) for method in methods]
    return _entry(task, SHOWN[task][0], rows)


def _records(planned: Mapping[str, Sequence[PlannedTask]], store: Store) -> dict[str, Record]:
    """The record of every run, by id: from the store, or of a run made now and stored. Seed by seed."""
    wanted = {run.id: run for of_seed in zip(*planned.values(), strict=True) for run in of_seed}

    def make(run: str) -> Record:
        checkpoint = store.checkpoint(run)
        made = execute_task(wanted[run], keeper=checkpoint)
        if made.record["interrupted"]:
            raise KeyboardInterrupt
        store.save(run, made.files())
        checkpoint.done()
        config = made.record["config"]
        seconds = made.record["timing"]["train_seconds"]
        print(config["dataset"]["name"], config["method"], config["seed"], f"{seconds:.0f} s", flush=True)
        return made.record

    return {run: record for run, record, _ in store.each_once(wanted, store.record, make)}


def _transfer(methods: Sequence[str], seeds: int, given: Mapping[str, str], store: Store) -> list[Row]:
    """Node classifiers trained on one graph, scored on every node of another that they have not seen."""
    here, there = load_dataset("twitch-de"), load_dataset("twitch-engb")
    known = {field.name for field in fields(TaskOptions)}
    protocol = Protocol.recommended(**{key: text for key, text in given.items() if key not in known})
    rows = _untrained(here, there, seeds)
    for method in methods:
        planned = {
            run.id: run for run in (plan_run(here, method, seed, None, protocol) for seed in range(1, seeds + 1))
        }
        runs = {}
        for run, result, _ in store.each_once(
            planned,
            lambda run: load_run(path) if (path := store.folder / f"{run}.json").exists() else None,
            lambda run, planned=planned: execute_and_store(planned[run], store),  # type: ignore[misc]
        ):
            runs[run] = result
        row = row_of(find_method(method), [runs[run].record for run in planned], store.folder)
        y = there.data.y
        scores = [
            classification_metrics(runs[run].predict_proba(there).double().log().log_softmax(-1)[y >= 0], y[y >= 0])
            for run in planned
        ]
        rows.append(Row(row.name, row.label, [dict(found) for found in scores], row.q, row.seconds, row.records))
    return rows


def _untrained(here: Dataset, there: Dataset, seeds: int) -> list[Row]:
    """On every node of another graph: the classes' shares, and a linear model of features, both of the first graph."""
    x, y = torch.cat([here.data.x, there.data.x]), there.data.y
    known = (y >= 0).nonzero().squeeze(1)
    scores: dict[str, list[dict[str, float | None]]] = {"commonest class": [], "linear on features": []}
    for seed in range(1, seeds + 1):
        train = here.split((seed - 1) % here.num_splits)[0]
        shares = here.data.y[train].bincount(minlength=here.num_classes).double()
        constant = (shares / shares.sum()).log().expand(len(known), -1)
        rows = train.nonzero().squeeze(1)
        linear = class_logits(x, here.data.y.numpy(), rows, known + here.data.num_nodes, here.num_classes)
        for name, logits in zip(scores, (constant, linear), strict=True):
            scores[name].append(dict(classification_metrics(logits, y[known])))
    return [Row(name, name, found) for name, found in scores.items()]


def _entry(task: str, metric: str, rows: Sequence[Row]) -> dict[str, Any]:
    base = next((row.values(metric) for row in rows if row.name == SOFTMAX), None)
    return {"task": task, "metric": metric, "rows": [_as_json(row, metric, base) for row in rows]}


def _as_json(row: Row, metric: str, base: list[float] | None) -> dict[str, Any]:
    values = row.values(metric)
    paired = None
    if base is not None and row.seconds is not None and len(values) == len(base):
        gaps = [value - other for value, other in zip(values, base)]
        paired = {"mean": statistics.fmean(gaps), "sd": statistics.stdev(gaps) if len(gaps) > 1 else None, "gaps": gaps}
    return {
        "method": row.name, "label": row.label, "trained": row.seconds is not None, "values": values,
        "mean": row.mean(metric), "sd": statistics.stdev(values) if len(values) > 1 else None,
        "against_softmax": paired, "q": row.q, "seconds": row.seconds, "runs": row.scores, "records": row.records,
    }  # fmt: skip


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Tasks as rows and methods as columns, in Markdown; references show the best of them, by name."""
    columns = list(dict.fromkeys(row["method"] for entry in found.values() for row in entry["rows"] if row["trained"]))
    lines = ["| task | metric | " + " | ".join(columns) + " | without training |", "| --- " * (len(columns) + 3) + "|"]
    for name, entry in found.items():
        metric, rows = entry["metric"], {row["method"]: row for row in entry["rows"]}
        cells = [_cell(metric, rows.get(column)) for column in columns]
        untrained = [row for row in entry["rows"] if not row["trained"] and row["mean"] is not None]
        sign = -1 if metric in ("mae", "rmse") else 1
        best = max(untrained, key=lambda row: sign * row["mean"], default=None)
        cells.append("" if best is None else f"{_cell(metric, best)} ({best['label']})")
        lines.append(f"| {name} | {metric} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(metric: str, row: Mapping[str, Any] | None) -> str:
    if row is None or row["mean"] is None:
        return ""
    return shown(metric, row["mean"]) + ("" if row["sd"] is None else f" ± {shown(metric, row['sd'])}")


def earlier(path: Path, settings: Sequence[str]) -> dict[str, Any]:
    """Tasks that were compared before with the same settings."""
    try:
        stored = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return dict(stored["tasks"]) if stored.get("settings") == list(settings) else {}


def add(path: Path, settings: Sequence[str], name: str, entry: Mapping[str, Any]) -> None:
    """Put one task into the file of results, read anew because other commands may have added to it."""
    found = earlier(path, settings) | {name: plain(entry)}
    in_order = {task: found[task] for task in EVERY if task in found}
    content = {"settings": settings, "environment": environment(), "tasks": in_order}
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    write_atomic(path, lambda stream: stream.write(text.encode()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=EVERY, metavar="TASK", help="default: all")
    parser.add_argument("--methods", default=",".join(METHODS), help="comma-separated; graphs get gin as well")
    parser.add_argument("--seeds", type=int, default=10, help="seeds, each with its split or fold")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of every protocol")
    parser.add_argument("--store", type=Path, default=Path("runs-tasks"))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "tasks.json")
    given = parser.parse_args()
    unknown = [name for name in given.tasks if name not in EVERY]
    if unknown:
        parser.error(f"--tasks: no task is called {unknown[0]!r}; known are {', '.join(EVERY)}")
    for name in given.tasks:
        store = Store(given.store, "--store")
        entry = compare(name, given.methods.split(","), given.seeds, parse_changes(given.set), store)
        with FileLock(given.store / "tasks.lock"):
            add(given.out, given.set, name, {"seeds": given.seeds, **entry})
    print(table(earlier(given.out, given.set)))


if __name__ == "__main__":
    main()
