"""A run before it is run: which graph, method, seed, split and protocol, all of it checked; and its id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from torch_geometric.data import Data

from ltga.data import Dataset, GraphFolder, dataset_from_data
from ltga.data.load import load_graph
from ltga.errors import InputError
from ltga.nn.methods import find_method
from ltga.train.left_to_the_graph import settle
from ltga.train.minibatch import MiniBatch
from ltga.train.protocol import Protocol
from ltga.train.record import clean_text, configuration, run_id
from ltga.train.record_schema import checked_configuration


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """A graph, how to train on it, and the configuration that its record will have.

    >>> from ltga.data import csbm
    >>> planned = plan_run(csbm(num_nodes=60), "GCN", 3)
    >>> planned.method, planned.seed, len(planned.id)
    ('gcn', 3, 64)
    """

    dataset: Dataset | GraphFolder
    protocol: Protocol
    minibatch: MiniBatch | None
    config: dict[str, Any]
    asked: Mapping[str, Any] = field(default_factory=dict)  # settings that were left to the graph, as they were given

    @cached_property
    def id(self) -> str:
        return run_id(self.config)

    @property
    def method(self) -> str:
        return str(self.config["method"])

    @property
    def seed(self) -> int:
        return int(self.config["seed"])

    @property
    def title(self) -> str:
        return f"{self.dataset.name}, {self.method}, seed {self.seed}"

    @property
    def split(self) -> int:
        return int(self.config["split"])


def plan_run(
    dataset: Dataset | GraphFolder,
    method: str,
    seed: int,
    split: int | None = None,
    protocol: Protocol | None = None,
    minibatch: MiniBatch | None = None,
    fingerprint: str | None = None,
    workers: int = 1,
) -> PlannedRun:
    """A run as :func:`~ltga.train.fit` would do it; whoever plans many on one graph gives its ``fingerprint``.

    Several ``workers`` take other batches than one does, so theirs is another run.
    """
    protocol = protocol or Protocol.recommended()
    check_seed(seed)
    if isinstance(dataset, GraphFolder) and minibatch is None:
        raise InputError(
            "dataset: a graph on disk is trained by batches; give minibatch, or dataset.dataset() to load it"
        )
    split = (seed - 1) % dataset.num_splits if split is None else split
    if not isinstance(dataset.name, str):
        raise InputError(f"dataset: its name must be text, got {type(dataset.name).__name__}")
    teaching = float(dataset.split(split)[0].double().mean())
    protocol, asked = settle(protocol, dataset.num_nodes, teaching)
    name = find_method(method).name
    config = configuration(dataset.name, fingerprint or dataset.fingerprint, split, name, protocol.settings(), seed)
    if minibatch is not None:  # only then, so that the ids of full-batch runs stay what they are
        minibatch.per_layer(protocol.num_layers)  # complains about numbers for another number of layers
        config["minibatch"] = minibatch.as_settings()
    if workers > 1:
        config["workers"] = workers
    try:
        checked_configuration(config)  # now, rather than when a finished run is to be stored
    except ValueError as error:
        raise InputError(f"{clean_text(dataset.name)}: cannot be run as it is ({error})") from None
    return PlannedRun(dataset, protocol, minibatch, config, asked)


def check_seed(seed: object) -> None:
    """Raise unless a seed is one."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed: expected a whole number from 0, got {seed!r}")


def as_dataset(dataset: Dataset | GraphFolder | Data | str) -> Dataset:
    """A dataset from what ``fit`` takes."""
    if isinstance(dataset, Dataset):
        return dataset
    if isinstance(dataset, GraphFolder):
        return dataset.dataset()
    if isinstance(dataset, str):
        return load_graph(dataset)
    if isinstance(dataset, Data):
        return dataset_from_data(dataset)
    raise InputError(f"dataset: expected a Dataset, a PyG Data or a name, got {type(dataset).__name__}")


def as_protocol(protocol: Protocol | Mapping[str, Any] | None) -> Protocol:
    """A protocol from what ``fit`` takes: settings that differ from the recommended ones."""
    if isinstance(protocol, Protocol):
        return protocol
    if protocol is not None and not isinstance(protocol, Mapping):
        raise InputError(f"protocol: expected a Protocol or a mapping, got {type(protocol).__name__}")
    return Protocol.recommended(**(protocol or {}))
