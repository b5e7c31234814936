"""One run on another task than node classification: planned, done, stored and loaded as every run is."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from ltga.data import Dataset, GraphCollection, GraphFolder, LinkSplit, NodeDataset, Triples
from ltga.errors import InputError, LTGAError, RecordError
from ltga.kernels.runtime.compile_time import compiling
from ltga.nn.build import accepted_arguments, form
from ltga.nn.composed import initialize_composed
from ltga.nn.interface import Network
from ltga.nn.methods import find_method
from ltga.train.batches import check_batched, choose_batches
from ltga.train.crew import Crew
from ltga.train.devices import Device, find_device, free_bytes, own_random_numbers
from ltga.train.finished import Run, check_sizes
from ltga.train.left_to_the_graph import settle
from ltga.train.loop import Callback, Keeper, Outcome, train
from ltga.train.minibatch import MiniBatch, as_minibatch
from ltga.train.planned import check_seed
from ltga.train.predict import check_preparation
from ltga.train.progress import ProgressLine
from ltga.train.protocol import RECOMMENDED, Protocol
from ltga.train.record import configuration, make_record, run_id, timing_since
from ltga.train.record_schema import RunRecord, checked_configuration
from ltga.train.tasks import graph_task, link_task, node_task, typed_task
from ltga.train.tasks.choose import Anything, fingerprint
from ltga.train.tasks.objectives import Scale
from ltga.train.tasks.prepared import Prepared
from ltga.train.tasks.run_data import data_of, links_of
from ltga.train.tasks.task_options import TaskOptions, as_options

LINK_SPLITS = 10  # ways in which the edges of a graph are divided, by number
KINDS: Mapping[str, ModuleType] = {
    "node regression": node_task,
    "multi-label nodes": node_task,
    "graph classification": graph_task,
    "graph regression": graph_task,
    "multi-label graphs": graph_task,
    "link prediction": link_task,
    "typed link prediction": typed_task,
}
# Many small graphs mean many steps an epoch, so their network is smaller and their epochs fewer.
_GRAPHS: Mapping[str, Any] = {
    "hidden_channels": 16, "heads": 4, "num_layers": 3, "lr": 3e-3, "dropout": 0.1, "epochs": 150, "patience": 30,
}  # fmt: skip
TASK_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "node regression": {"residual": True},
    "multi-label nodes": {"residual": True},
    "graph classification": _GRAPHS,
    "graph regression": _GRAPHS,
    "multi-label graphs": _GRAPHS,
    "link prediction": {"residual": True, "weight_decay": 0.0, "epochs": 150, "patience": 30},
    "typed link prediction": {
        "hidden_channels": 16,
        "heads": 4,
        "epochs": 300,
        "patience": 50,
        "weight_decay": 0.0,
        "dropout": 0.2,
    },
}
"""What differs from the recommended protocol for a task, unless the caller says otherwise."""


@dataclass(frozen=True, eq=False)
class PlannedTask:
    """Data, how to learn from it, and the configuration that the record will have."""

    data: NodeDataset | GraphCollection | Triples | LinkSplit
    task: str
    protocol: Protocol
    options: TaskOptions
    minibatch: MiniBatch | None
    config: dict[str, Any]

    @cached_property
    def id(self) -> str:
        return run_id(self.config)


@dataclass(frozen=True, eq=False, repr=False)
class TaskRun(Run):
    """A finished run on nodes' numbers or labels, whole graphs, or links.

    Attributes:
        record: as of every run; ``record["config"]["task"]`` says which task, ``record["target"]`` what is predicted.
        arrays: ``outputs`` of all nodes or graphs; for links, ``nodes`` as encoded.
    """

    @property
    def task(self) -> str:
        return str(self.record["config"]["task"])

    def _own_data(self) -> Any:
        try:
            return data_of(self)
        except LTGAError:
            return None

    def predict(self, data: Any, pairs: Any = None) -> Tensor:  # type: ignore[override]
        """What the task asks for: numbers in their units, 0 or 1 per label, classes; for links see ``pairs``.

        Args:
            data: nodes: a graph; graphs: one, a list or a collection; links: the graph with its known edges.
            pairs: for links the pairs ``[2, P]`` to judge, which gives whether each is an edge; for typed links
                (head, relation) ``[2, P]``, which gives the most probable tail.
        """
        kind = self.record["target"]["kind"]
        out = self.predict_proba(data, pairs)
        if kind in ("labels", "link"):
            return (out > 0.5).long()
        return out if kind == "number" else out.argmax(1)

    def predict_proba(self, data: Any, pairs: Any = None) -> Tensor:  # type: ignore[override]
        """Probabilities of classes, labels, edges or tails; for a number, the number."""
        said, kind, shape = self.record["target"], KINDS[self.task], self.typed.model
        check_preparation(self.typed, data)
        if (pairs is None) == (kind in (link_task, typed_task)):
            wanted = "for links give the pairs to judge" if pairs is None else f"{self.task} has no pairs"
            raise InputError(f"pairs: {wanted}")
        if kind is link_task:
            return link_task.probabilities(self.model, shape, data, pairs)
        if kind is typed_task:
            return typed_task.answers(self.model, shape, data, pairs).softmax(-1)
        out: Tensor = kind.outputs(self.model, shape, data)
        if said["kind"] == "number":
            return Scale.said(said).predicted(out.squeeze(-1)).float()
        return out.sigmoid() if said["kind"] == "labels" else out.softmax(-1)


def plan_task(
    data: Anything,
    method: str,
    seed: int = 1,
    split: int | None = None,
    protocol: Protocol | Mapping[str, Any] | None = None,
    options: TaskOptions | Mapping[str, Any] | None = None,
    minibatch: MiniBatch | None = None,
    workers: int = 1,
) -> PlannedTask:
    """A run on any task but node classification; a graph with classes is asked for its links."""
    check_seed(seed)
    data = data.dataset() if isinstance(data, GraphFolder) else data
    splits = getattr(data, "num_splits", 1)
    task = str(data.task)
    if isinstance(data, Dataset):
        task, splits = "link prediction", LINK_SPLITS
    split = (seed - 1) % splits if split is None else split
    if isinstance(data, Dataset):
        if isinstance(split, bool) or not isinstance(split, int) or split < 0:
            raise InputError(f"split: got {split!r}; give a whole number from 0, which decides what edges are held out")
        data = links_of(data, split)
    elif not isinstance(data, LinkSplit):
        data.split(split)  # complains about a split that is not there
    if minibatch is not None and KINDS[task] is not node_task:
        raise InputError(f"minibatch: is for nodes; {task} has none")
    if KINDS[task] is not node_task and "num_nodes" in accepted_arguments(find_method(method).network):
        raise InputError(
            f"method: {method} has a weight for every node of one graph and is not for {task}; take another"
        )
    chosen = as_options(options, task)
    left_open = protocol is None or (isinstance(protocol, Mapping) and "residual" not in protocol)
    protocol = protocol_for(task, protocol, method)
    if left_open and isinstance(data, LinkSplit) and link_task.only_names(data):
        protocol = protocol.with_overrides(residual=False)
    teaching = float(data.split(split)[0].double().mean()) if isinstance(data, NodeDataset) else 1.0
    if protocol.class_weights and ("regression" in task or "link" in task):
        raise InputError(f"class_weights: {task} has no classes to weigh; leave it out")
    protocol, _ = settle(protocol, _nodes(data), teaching)
    config = configuration(data.name, fingerprint(data), split, find_method(method).name, protocol.settings(), seed) | {
        "task": task,
        "options": chosen.of_task(task),
    }
    if minibatch is not None:
        check_batched([method], protocol)
        config["minibatch"] = minibatch.as_settings()
    if workers > 1:
        config["workers"] = workers
    try:
        checked_configuration(config)
    except ValueError as error:
        raise InputError(f"{data.name}: cannot be run as it is ({error})") from None
    return PlannedTask(data, task, protocol, chosen, minibatch, config)


def _nodes(data: NodeDataset | GraphCollection | Triples | LinkSplit) -> int:
    """How large a graph is; of many, how large they are on average."""
    if isinstance(data, GraphCollection):
        return sum(graph.x.shape[0] for graph in data) // len(data)
    return data.num_nodes if isinstance(data, Triples) else int(data.data.x.shape[0])


def protocol_for(task: str, protocol: Protocol | Mapping[str, Any] | None, method: str = "ltga-head") -> Protocol:
    """The protocol of a task: what is given over what suits the task over what is recommended.

    A residual connection is a default only for methods that have one.

    >>> protocol_for("graph regression", {"epochs": 3}).epochs, protocol_for("graph regression", None).heads
    (3, 4)
    """
    if isinstance(protocol, Protocol):
        return protocol
    if protocol is not None and not isinstance(protocol, Mapping):
        raise InputError(f"protocol: expected a Protocol or a mapping, got {type(protocol).__name__}")
    below = {**RECOMMENDED, **TASK_DEFAULTS.get(task, {})}
    if "residual" not in accepted_arguments(form(find_method(method), str(below["init"]))[0]):
        below.pop("residual", None)
    return Protocol(**{**below, **(protocol or {})})


def batches_for(
    data: Anything,
    methods: Iterable[str],
    protocol: Protocol | Mapping[str, Any] | None,
    asked: MiniBatch | Mapping[str, Any] | str | None = "auto",
    device: Device = "cpu",
) -> tuple[MiniBatch | None, str]:
    """Batches as asked, or, for numbers and labels of nodes, as memory allows; and a line that says why."""
    if asked != "auto":
        return as_minibatch(asked), ""  # type: ignore[arg-type]
    if not isinstance(data, NodeDataset):
        return None, ""
    task = str(data.task)
    place = find_device(device)
    return choose_batches(data, methods, lambda method: protocol_for(task, protocol, method), free_bytes(place))


def execute_task(
    planned: PlannedTask,
    callbacks: Iterable[Callback] = (),
    progress: bool = False,
    keeper: Keeper | None = None,
    crew: Crew | None = None,
    device: Device = "cpu",
) -> TaskRun:
    """Do a run that is planned; the first of a ``crew`` does this while the others :func:`take_part`."""
    place = find_device(device, planned.protocol.init, planned.protocol.backend)
    config = planned.config
    title = f"{planned.data.name}, {config['method']}, seed {config['seed']}"
    started = time.perf_counter()
    shown = ProgressLine(title, method=config["method"]) if progress else nullcontext()
    with shown as line, compiling() as spent:
        model, prepared, outcome = take_part(planned, (*callbacks, *([line] if line else [])), keeper, crew, place)
    trained = time.perf_counter()
    observed, arrays = prepared.observe(model)
    timing = timing_since(started, trained, outcome, spent.seconds)
    reading = getattr(planned.data, "reading", None)
    if reading is not None and reading.get("format") != "named":  # how to find and read it again
        observed["reading"] = dict(reading)
    observed |= {"target": prepared.target, "metric": prepared.task.target.metric}
    if at_bound := model.heads_at_bound():
        observed["heads_at_bound"] = at_bound
    shape = KINDS[planned.task].shape(planned.data)
    described = {**shape, "parameters": sum(parameter.numel() for parameter in model.parameters())}
    return TaskRun(make_record(config, described, outcome, observed, timing, place), model, arrays)


def take_part(
    planned: PlannedTask,
    callbacks: Iterable[Callback] = (),
    keeper: Keeper | None = None,
    crew: Crew | None = None,
    device: Device = "cpu",
) -> tuple[Network, Prepared, Outcome]:
    """Build and train what is planned, without a look at the result."""
    kind, protocol, config = KINDS[planned.task], planned.protocol, planned.config
    seed = int(config["seed"])
    place = find_device(device, protocol.init, protocol.backend)
    with own_random_numbers(place):
        torch.manual_seed(seed)
        model = kind.build(config["method"], protocol, kind.shape(planned.data), planned.options)
        initialize_composed(model, seed, protocol.init)
        model.to(place)
        prepared = kind.prepare(
            planned.data, config["split"], model, protocol, planned.options, seed, planned.minibatch
        )
        return model, prepared, train(model, prepared.task, protocol, seed, callbacks, keeper, crew)


def rebuild(record: RunRecord, weights: Mapping[str, Tensor], where: Any) -> Network:
    """The network that a record describes, with stored weights; ``where`` opens the error message."""
    try:
        config = record.config
        assert config.task is not None
        options = TaskOptions.of_record(config.options)
        protocol = config.as_protocol()

        def build() -> Network:
            return KINDS[str(config.task)].build(config.method, protocol, record.model, options)  # type: ignore[no-any-return]

        check_sizes(build, protocol.num_layers, weights)
        with torch.random.fork_rng(devices=[]):
            model = build()
        model.load_state_dict(weights)
    except (RuntimeError, KeyError, TypeError, ValueError, ArithmeticError, MemoryError) as error:
        reason = " ".join(str(error).split())
        raise RecordError(f"{where}: the stored weights do not fit the model ({reason})") from None
    return model.eval()
