"""``fit``: one run, from a graph and a method's name to a trained model and its record."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data import Dataset, GraphFolder
from ltga.errors import InputError, RecordError
from ltga.kernels import SparseFeatures, assume_constant, compact_form
from ltga.nn.build import accepted_arguments, build_model, form
from ltga.nn.initialize import initialize
from ltga.nn.interface import Network
from ltga.nn.methods import find_method
from ltga.train.batches import BatchesWarning, graph_and_batches
from ltga.train.checkpoint import EVERY, Checkpoint, checkpoint_in
from ltga.train.crew import Crew
from ltga.train.devices import Device, device_of, find_device, free_bytes, moved, own_random_numbers
from ltga.train.focus import FocusedTask
from ltga.train.loop import Callback, Keeper, Outcome, Task, train
from ltga.train.minibatch import BatchedTask, MiniBatch, as_minibatch
from ltga.train.observe import observe
from ltga.train.planned import PlannedRun, as_protocol, plan_run
from ltga.train.predict import Graph, predict_log_probs
from ltga.train.progress import ProgressLine
from ltga.train.protocol import Protocol
from ltga.train.record import Record, make_record
from ltga.train.record_schema import RunRecord, typed
from ltga.train.show import html_table, plot_run, summary
from ltga.train.storage import encode_run, read_arrays, read_stored, read_weights, write_run
from ltga.train.store import Store
from ltga.train.targets import Classes


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A finished run.

    Attributes:
        record: configuration, metrics, trajectories, timing: a plain dictionary.
        model: the network at its best epoch, in evaluation mode.
        arrays: ``log_probs`` ``[N, C]`` of all nodes; edge covariates for edge-gated models.
    """

    record: Record
    model: Network
    arrays: Mapping[str, np.ndarray]

    def __repr__(self) -> str:
        config = self.record["config"]
        return (
            f"Run({config['method']!r} on {config['dataset']['name']!r}, seed {config['seed']}: {summary(self.record)})"
        )

    def _repr_html_(self) -> str:
        return html_table(self.record)

    def plot(self, dataset: Dataset | None = None) -> Any:
        """A matplotlib figure: the course of the loss and of q and, given the graph, who is taken for whom.

        >>> from ltga.data import csbm
        >>> run = fit(csbm(num_nodes=60), "ltga-head", protocol={"epochs": 2, "hidden_channels": 4})
        >>> len(run.plot(csbm(num_nodes=60)).axes)
        4
        """
        return plot_run(self.record, self.arrays, dataset)

    @cached_property
    def typed(self) -> RunRecord:
        """The record by its attributes: ``run.typed.config.dataset.name``."""
        return typed(self.record)

    @property
    def metrics(self) -> dict[str, float]:
        """Metrics on the test nodes."""
        return self.record["metrics"].get("test", {})  # type: ignore[no-any-return]

    def predict(self, data: Graph, batch_size: int | None = None, fanout: int | Sequence[int] | None = None) -> Tensor:
        """The most probable class ``[N]`` of every node of a graph, which may be one never seen before.

        Args:
            data: a graph with as many node features (and edge attributes) as the one trained on; one on disk is
                computed from there.
            batch_size: compute so many nodes at a time, for a graph whose activations do not fit into memory.
            fanout: estimate from so many sampled neighbours of every node instead of from all.

        >>> from ltga.data import csbm
        >>> run = fit(csbm(num_nodes=60), protocol={"epochs": 2, "hidden_channels": 4})
        >>> run.predict(csbm(num_nodes=80, seed=1)).shape
        torch.Size([80])
        """
        return self.predict_proba(data, batch_size, fanout).argmax(1)

    def predict_proba(
        self, data: Graph, batch_size: int | None = None, fanout: int | Sequence[int] | None = None
    ) -> Tensor:
        """The probability of every class ``[N, C]``; see :meth:`predict`."""
        return predict_log_probs(self.model, self.typed, data, batch_size, fanout).exp()

    def to(self, device: Device) -> Self:
        """The same run with its model on ``device``, where it then predicts and is explained.

        >>> from ltga.data import csbm
        >>> fit(csbm(num_nodes=60), protocol={"epochs": 1, "hidden_channels": 4}).to("cpu").model.training
        False
        """
        place = find_device(device, backend=self.typed.config.as_protocol().backend)
        return self if device_of(self.model) == place else replace(self, model=deepcopy(self.model).to(place))

    def files(self) -> dict[str, bytes]:
        """What the run's files hold, by suffix (see :meth:`~ltga.train.store.Store.save`)."""
        return encode_run(self.record, self.arrays, self.model)

    def save(self, folder: str | Path) -> Path:
        """Store the run in ``folder`` under its id; returns the path of the record."""
        return write_run(folder, self.typed.id, self.files())


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
    from ltga.train.tasks.task_run import execute_task, plan_task

    chosen = choose(dataset, task)
    if not isinstance(chosen, Dataset | GraphFolder) or task == "link":
        batches = None if minibatch == "auto" else as_minibatch(minibatch)
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
    with ProgressLine(planned.title) if progress else nullcontext() as line:
        model, task, outcome = take_part(planned, (*callbacks, *([line] if line else [])), keeper, crew, place)
    trained = time.perf_counter()
    observed, arrays = observe(model, task)
    epochs = [info.seconds for info in outcome.history]
    timing = {
        "train_seconds": outcome.seconds_before + trained - started,
        "observe_seconds": time.perf_counter() - trained,
        "median_epoch_seconds": float(np.median(epochs)),
    }
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


def load_run(path: str | Path, device: Device = "cpu") -> Run:
    """A stored run, its model rebuilt without training, to compute on ``device``, wherever it was trained."""
    return _stored_run(path).to(device)


def _stored_run(path: str | Path) -> Run:
    stored = read_stored(path)
    weights, arrays = read_weights(path, stored.checksums), read_arrays(path, stored.checksums)
    if stored.typed.config.task is not None:
        from ltga.train.tasks.task_run import TaskRun, rebuild

        return TaskRun(stored.record, rebuild(stored.typed, weights, path), arrays)
    return Run(stored.record, rebuild_model(stored.typed, weights, path), arrays)


def rebuild_model(record: RunRecord, weights: Mapping[str, Tensor], where: str | Path) -> Network:
    """The network that a record describes, with stored weights; ``where`` opens the error message."""
    try:
        described = record.config.method, record.config.as_protocol(), record.model
        check_sizes(lambda: make_model(*described), described[1].num_layers, weights)
        with torch.random.fork_rng(devices=[]):
            model = make_model(*described)
        model.load_state_dict(weights)
    except (RuntimeError, KeyError, TypeError, ValueError, ArithmeticError, MemoryError) as error:
        reason = " ".join(str(error).split())
        raise RecordError(f"{where}: the stored weights do not fit the model ({reason})") from None
    return model.eval()


def check_sizes(build: Callable[[], Network], num_layers: int, weights: Mapping[str, Tensor]) -> None:
    """Compare the sizes that a record states with the weights, before a network of such sizes is made."""
    if num_layers > len(weights):
        raise ValueError(f"{num_layers} layers, but {len(weights)} tensors of weights")
    with torch.device("meta"), torch.random.fork_rng(devices=[]):  # where tensors have shapes but no content
        expected = build().state_dict()
    for name in sorted(expected.keys() | weights.keys()):
        told, found = (tuple(part[name].shape) if name in part else None for part in (expected, weights))
        if told != found:
            raise ValueError(f"weights {name} of shape {found} instead of {told}")


def make_model(method: str, protocol: Protocol, shape: Mapping[str, Any]) -> Network:
    """The network of a method for a graph of this shape, under a protocol."""
    known = accepted_arguments(form(find_method(method), protocol.init)[0])
    settings: dict[str, Any] = {
        name: getattr(protocol, name) for name in ("hidden_channels", "heads", "num_layers", "dropout")
    }
    optional = {
        "delta": protocol.delta,
        "index_form": protocol.index_form,
        "index_start": protocol.index_start,
        "norm": protocol.norm,
        "backend": protocol.backend,
        "edge_dim": shape["edge_dim"],
        "num_nodes": shape["num_nodes"],
    }
    settings |= {name: value for name, value in optional.items() if name in known}
    if protocol.residual:  # build_model objects where there is no such thing
        settings["residual"] = True
    return build_model(method, shape["in_channels"], shape["num_classes"], init=protocol.init, **settings)


def task_of(planned: PlannedRun, model: Network) -> Task:
    """What a planned run trains ``model`` on."""
    dataset, batches, protocol = planned.dataset, planned.minibatch, planned.protocol
    if isinstance(dataset, GraphFolder):
        assert batches is not None
        target = Classes.of(dataset, planned.split, protocol)
        return BatchedTask.of_folder(dataset, planned.split, target, batches, model, planned.seed)
    task = make_task(dataset, planned.split, model, protocol)
    if batches is not None:
        return BatchedTask.of(replace(task, x=dataset.data.x.contiguous()), batches, model, planned.seed)
    return moved(FocusedTask.of(task, model, protocol) if model.computes_parts else task, device_of(model))


def make_task(dataset: Dataset, split: int, model: Network, protocol: Protocol) -> Task:
    """The graph and a split as the loop wants them."""
    nodes = (mask.nonzero().squeeze(1) for mask in dataset.split(split))
    target = Classes.of(dataset, split, protocol)
    return Task(*inputs_of(dataset.data, model, protocol), dataset.data.y, *nodes, target=target)


def inputs_of(data: Data, model: Network, protocol: Protocol) -> tuple[Tensor | SparseFeatures, Tensor, Tensor | None]:
    """Features, edges and edge attributes of a graph as ``model`` takes them."""
    # dropout draws in the order of memory, which must not decide a run
    dense = assume_constant(data.x.detach().contiguous())
    edge_attr = data.get("edge_attr")
    if edge_attr is not None:
        edge_attr = edge_attr.to(data.x.dtype).reshape(data.edge_index.size(1), -1)
    # The paper's dropout draws a number for zeros too, so under its initialisation features stay dense.
    compact = compact_form(dense) if protocol.init == "paired" and model.reads_sparse else None
    x = compact if isinstance(compact, SparseFeatures) else dense
    return x, assume_constant(data.edge_index), edge_attr


def shape_for(dataset: Dataset | GraphFolder) -> dict[str, Any]:
    """The sizes that a network for the classes of a graph needs."""
    if isinstance(dataset, Dataset):
        return shape_of(dataset.data, dataset.num_classes)
    sizes = {"in_channels": dataset.num_features, "num_classes": dataset.num_classes, "num_nodes": dataset.num_nodes}
    return {**sizes, "edge_dim": len(dataset.edge_columns) or None}


def shape_of(data: Data, outputs: int) -> dict[str, Any]:
    """The sizes that a network for this graph needs."""
    edge_attr = data.get("edge_attr")
    return {
        "in_channels": data.x.size(1),
        "num_classes": outputs,
        "num_nodes": data.x.size(0),
        "edge_dim": None if edge_attr is None else (edge_attr.size(1) if edge_attr.dim() == 2 else 1),
    }
