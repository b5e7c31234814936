"""What ``ltga train`` is asked to do on everything but node classification, checked before a graph is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ltga.cli.plan import DEMO, PROTOCOLS, SEEDS, parse_changes, read_config, with_metric
from ltga.errors import InputError
from ltga.nn.methods import find_method
from ltga.train.protocol import RECOMMENDED, Protocol
from ltga.train.tasks.task_options import TaskOptions


@dataclass(frozen=True)
class TaskPlan:
    """Which methods to train on what, how often and how; settings are what differs from the task's defaults."""

    dataset: str
    task: str | None
    methods: tuple[str, ...] | None
    seeds: int
    protocol: Mapping[str, Any]
    options: Mapping[str, Any]


def other_task_plan(
    dataset: str | None,
    methods: Sequence[str] | None,
    seeds: int | None,
    changes: Iterable[str],
    config: Path | None,
    base: str | None,
    task: str | None,
    metric: str | None = None,
) -> TaskPlan:
    """What is asked for, as :func:`~ltga.cli.plan.make_plan` reads it.

    >>> other_task_plan("cora", None, None, ["each=5", "epochs=3"], None, None, "link").options
    {'each': 5}
    """
    stored = {} if config is None else read_config(config)
    dataset = dataset or stored.get("dataset", DEMO)
    base = base or stored.get("base", "recommended")
    if base not in PROTOCOLS:
        raise InputError(f"--protocol: expected 'recommended' or 'paper', got {base!r}")
    given = with_metric(parse_changes(changes), metric)
    known = {field.name for field in fields(TaskOptions)}
    options = {name: setting_value(name, text) for name, text in given.items() if name in known}
    below = {} if base == "recommended" else {"metric": "loss", **PROTOCOLS[base]}
    protocol = {**below, **stored.get("protocol", {}), **{k: v for k, v in given.items() if k not in known}}
    try:
        Protocol(**{**RECOMMENDED, **protocol})  # a typo should not wait for the graph
    except InputError as error:
        name = str(error).partition(":")[0]
        option = "--" if metric is not None and name == "metric" else "--set " if name in given else f"{config}: "
        raise InputError(f"{option}{error}") from None
    names = methods or stored.get("method")
    found = None if names is None else tuple(dict.fromkeys(find_method(name).name for name in names))
    return TaskPlan(dataset, task, found, seeds or stored.get("seeds", SEEDS), protocol, options)


def setting_value(name: str, text: str) -> Any:
    """A setting of the task from the command line."""
    if name == "log":
        if text.lower() not in ("true", "false"):
            raise InputError(f"--set log: expected true or false, got {text!r}")
        return text.lower() == "true"
    if name in ("batch_size", "each"):
        if not text.isdecimal():
            raise InputError(f"--set {name}: expected a whole number, got {text!r}")
        return int(text)
    return text
