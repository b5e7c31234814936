"""Finding the records of an experiment among many, without its datasets at hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ltga.data import CATALOGUE
from ltga.errors import RecordError
from ltga.study.spec import RunSpec
from ltga.train.record import Record
from ltga.train.record_schema import configuration_of


def find_records(specs: Iterable[RunSpec], records: Iterable[Record]) -> dict[RunSpec, Record]:
    """The record of every spec that has one, in the order of the specs.

    Unlike an id, this does not contain the graph's fingerprint, so it works where the data is not. Two
    records of one spec mean two graphs of one name: that is an error.

    >>> find_records([RunSpec("cora", "gat", 1)], [])
    {}
    """
    return find_among(specs, by_spec(records))


def by_spec(records: Iterable[Record]) -> dict[RunSpec, list[Record]]:
    """The records by the specs that they answer, for whoever looks more than once."""
    found: dict[RunSpec, list[Record]] = {}
    for record in records:
        config = configuration_of(record)
        if config.minibatch is not None:  # the study trains on whole graphs
            continue
        made = RunSpec.of(config)
        answers = [made, *([replace(made, split=None)] if _is_the_seeds_own(made) else [])]
        if asked := record.get("asked"):  # what a setting left to the graph came to is in the configuration
            answers += [replace(spec, protocol=spec.protocol.with_overrides(**asked)) for spec in answers]
        for spec in answers:
            found.setdefault(spec, []).append(record)
    return found


def find_among(specs: Iterable[RunSpec], known: Mapping[RunSpec, Sequence[Record]]) -> dict[RunSpec, Record]:
    """The same as :func:`find_records`, from what :func:`by_spec` gives."""
    found: dict[RunSpec, Record] = {}
    for spec in specs:
        for record in known.get(spec, ()):
            before = found.setdefault(spec, record)
            if before["id"] != record["id"]:
                raise RecordError(
                    f"{spec}: records {before['id'][:12]} and {record['id'][:12]} are of different graphs or "
                    "splits; move one of them out of the store"
                )
    return found


def _is_the_seeds_own(made: RunSpec) -> bool:
    """Whether the split is the one that belongs to the seed; any will do where it is not known how many there are."""
    facts = CATALOGUE.get(made.dataset)
    return facts is None or made.split == (made.seed - 1) % facts.splits
