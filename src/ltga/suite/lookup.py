"""Finding the records of an experiment among many, without its datasets at hand."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from ltga.data import CATALOGUE
from ltga.errors import RecordError
from ltga.suite.spec import RunSpec
from ltga.train.record import Record


def find_records(specs: Iterable[RunSpec], records: Iterable[Record]) -> dict[RunSpec, Record]:
    """The record of every spec that has one, in the order of the specs.

    Unlike an id, this does not contain the graph's fingerprint, so it works where the data is not. Two
    records of one spec mean two graphs of one name: that is an error.

    >>> find_records([RunSpec("cora", "gat", 1)], [])
    {}
    """
    specs = list(dict.fromkeys(specs))
    wanted: dict[Hashable, list[RunSpec]] = {}
    for spec in specs:
        key = _key(spec.dataset, spec.method, spec.seed, spec.protocol.model_dump(), spec.split)
        wanted.setdefault(key, []).append(spec)
    found: dict[RunSpec, Record] = {}
    for record in records:
        config = record["config"]
        if config.get("minibatch") is not None:  # the study trains on whole graphs
            continue
        what = config["dataset"]["name"], config["method"], config["seed"], config["protocol"]
        matching = list(wanted.get(_key(*what, config["split"]), ()))
        if _is_the_seeds_own(config):
            matching += wanted.get(_key(*what, None), ())
        for spec in matching:
            if spec in found and found[spec]["id"] != record["id"]:
                raise RecordError(
                    f"{spec}: records {found[spec]['id'][:12]} and {record['id'][:12]} are of different graphs or "
                    "splits; move one of them out of the store"
                )
            found[spec] = record
    return {spec: found[spec] for spec in specs if spec in found}


def _key(dataset: str, method: str, seed: int, protocol: dict[str, Any], split: int | None) -> Hashable:
    return dataset, method, seed, tuple(sorted(protocol.items())), split


def _is_the_seeds_own(config: dict[str, Any]) -> bool:
    """Whether the split is the one that belongs to the seed; any will do where it is not known how many there are."""
    facts = CATALOGUE.get(config["dataset"]["name"])
    return facts is None or config["split"] == (config["seed"] - 1) % facts.splits
