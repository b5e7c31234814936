"""``fit``: one run, from a graph and a method's name to a trained model and its record."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

import torch

from ltga.data import Dataset, GraphFolder
from ltga.errors import InputError
from ltga.kernels.runtime.compile_time import compiling
from ltga.nn.initialize import initialize
from ltga.nn.interface import Network
from ltga.train.assembly import make_model, shape_for, task_of
from ltga.train.batches import BatchesWarning, graph_and_batches
from ltga.train.checkpoint import EVERY, Checkpoint, checkpoint_in
from ltga.train.crew import Crew
from ltga.train.devices import Device, find_device, free_bytes, own_random_numbers
from ltga.train.finished import Run
from ltga.train.loop import Callback, Keeper, Outcome, Task, train
from ltga.train.minibatch import MiniBatch
from ltga.train.observe import observe
from ltga.train.planned import PlannedRun, as_protocol, plan_run
from ltga.train.progress import ProgressLine
from ltga.train.protocol import Protocol
from ltga.train.record import make_record, timing_since
from ltga.train.store import Store


def fit(
    dataset: Any,
    method: str = "ltga-edge",
    seed: int = 1,
    split: int | None = None,
    protocol: Protocol | Mapping[str, Any] | None = None,
    callbacks: Iterable[Callback] = (),
    progress: bool = False,
    minibatch: MiniBatch | Mapping[str, Any] | Literal["auto"] | None = "auto",
    *,
    task: Literal["node", "link", "graph"] | None = None,
    options: Mapping[str, Any] | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = EVERY,
    device: Device = "auto",
) -> Run:
    """Train a method on a graph.

    Args:
        dataset: a dataset of any task, its name, a PyG ``Data`` (see :func:`ltga.data.dataset_from_data`), a list
            of them with a target each, or a graph on disk (:func:`ltga.data.open_graph_folder`), which stays there if
            it is trained by batches.
        method: a name of ``ltga.nn.methods.METHODS``.
        seed: decides weights and dropout. torch's global generator is left as it was found.
        split: which split of the dataset; (seed - 1) mod their number if left out, as in the paper.
        protocol: settings that differ from the recommended ones; ``Protocol.paper()`` for the paper's.
        callbacks: called with :class:`~ltga.train.EpochInfo` after every epoch.
        progress: show a line with loss, validation and q.
        minibatch: train an attention method on sampled neighbourhoods and evaluate it layer by layer, for
            a graph whose activations do not fit into memory (see :class:`~ltga.train.MiniBatch`). If left out, that
            is chosen, with a warning, where training on the whole graph would not fit; ``None`` for the whole graph.
        task: what to learn, if it does not follow from the data: ``"link"`` for the links of a graph with classes.
        options: settings of the task (:class:`~ltga.train.tasks.task_options.TaskOptions`).
        checkpoint: a folder in which a long run keeps a checkpoint: the same call after a crash goes on from there to
            the same result (see :mod:`ltga.train.checkpoint`). It goes away when the run is done.
        checkpoint_every: seconds from one checkpoint to the next.
        device: where to compute: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, or ``"auto"``, a GPU if there is one. It decides
            nothing but rounding, except for dropout that torch draws (networks other than ours).

    >>> from ltga.data import csbm
    >>> run = fit(csbm(num_nodes=60), "ltga-head", protocol={"epochs": 2, "hidden_channels": 4})
    >>> run.record["epochs"], "accuracy" in run.metrics
    (2, True)
    """
    from ltga.train.tasks.choose import choose  # tasks are built of what is in this file
    from ltga.train.tasks.task_run import batches_for, execute_task, plan_task

    chosen = choose(dataset, task)
    if not isinstance(chosen, Dataset | GraphFolder) or task == "link":
        batches, why = batches_for(chosen, [method], protocol, minibatch, device)
        if why:
            warnings.warn(why, BatchesWarning, stacklevel=2)
        other = plan_task(chosen, method, seed, split, protocol, options, batches)
        keeper = checkpoint_in(checkpoint, other.id, checkpoint_every)
        return _settled(execute_task(other, callbacks, progress, keeper, device=device), keeper)
    if options is not None:
        raise InputError("options: node classification has none")
    settings = as_protocol(protocol)
    free = free_bytes(find_device(device, settings.init, settings.backend))
    graph, batches, why = graph_and_batches(chosen, [method], settings, minibatch, free)
    if why:
        warnings.warn(why, BatchesWarning, stacklevel=2)
    planned = plan_run(graph, method, seed, split, settings, batches)
    keeper = checkpoint_in(checkpoint, planned.id, checkpoint_every)
    return _settled(execute(planned, callbacks, progress, keeper, device=device), keeper)


def _settled(run: Run, keeper: Checkpoint | None) -> Run:
    """A run that is done needs no checkpoint any more; one that was interrupted may go on from it."""
    if keeper is not None and not run.record["interrupted"]:
        keeper.done()
    return run


def execute(
    planned: PlannedRun,
    callbacks: Iterable[Callback] = (),
    progress: bool = False,
    keeper: Keeper | None = None,
    crew: Crew | None = None,
    device: Device = "cpu",
) -> Run:
    """Do a run that is planned; the first of a ``crew`` does this while the others :func:`take_part`."""
    place = find_device(device, planned.protocol.init, planned.protocol.backend)
    dataset = planned.dataset
    started = time.perf_counter()
    shown = ProgressLine(planned.title, method=planned.method) if progress else nullcontext()
    with shown as line, compiling() as spent:
        model, task, outcome = take_part(planned, (*callbacks, *([line] if line else [])), keeper, crew, place)
    trained = time.perf_counter()
    observed, arrays = observe(model, task)
    timing = timing_since(started, trained, outcome, spent.seconds)
    shape = shape_for(dataset)
    described = {**shape, "parameters": sum(parameter.numel() for parameter in model.parameters())}
    if task.target.metric != "loss":
        observed["metric"] = task.target.metric
    if planned.asked:
        observed["asked"] = dict(planned.asked)
    if dataset.reading is not None and dataset.reading.get("format") != "named":  # how to find and read it again
        observed |= {"reading": dataset.reading, "class_names": list(dataset.class_names)}
    return Run(make_record(planned.config, described, outcome, observed, timing, place), model, arrays)


def take_part(
    planned: PlannedRun,
    callbacks: Iterable[Callback] = (),
    keeper: Keeper | None = None,
    crew: Crew | None = None,
    device: Device = "cpu",
) -> tuple[Network, Task, Outcome]:
    """Build and train what is planned, without a look at the result."""
    dataset, protocol, seed = planned.dataset, planned.protocol, planned.seed
    place = find_device(device, protocol.init, protocol.backend)
    with own_random_numbers(place):
        torch.manual_seed(seed)
        model = initialize(make_model(planned.method, protocol, shape_for(dataset)), seed, protocol.init).to(place)
        task = task_of(planned, model)
        return model, task, train(model, task, protocol, seed, callbacks, keeper, crew)


def execute_and_store(
    planned: PlannedRun,
    store: Store,
    callbacks: Iterable[Callback] = (),
    keeper: Checkpoint | None = None,
    crew: Crew | None = None,
    device: Device = "cpu",
) -> Run:
    """Do a run that is planned and store it. Ctrl-C stores nothing of it: who compares runs needs whole ones."""
    run = execute(planned, callbacks, keeper=keeper, crew=crew, device=device)
    if run.typed.interrupted:
        raise KeyboardInterrupt
    store.save(planned.id, run.files())
    if keeper is not None:
        keeper.done()
    return run
