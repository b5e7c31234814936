"""A finished run: its record, its network, its arrays; what it can do, and how it is read from its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from ltga.errors import LTGAError, RecordError
from ltga.nn.interface import Network
from ltga.train.assembly import make_model
from ltga.train.devices import Device, device_of, find_device
from ltga.train.find_run import find_run
from ltga.train.plots import plot_run
from ltga.train.predict import Graph, predict_log_probs
from ltga.train.record import Record
from ltga.train.record_schema import RunRecord, typed
from ltga.train.show import html_table, summary
from ltga.train.storage import encode_run, read_arrays, read_stored, read_weights, write_run


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

    def plot(self, dataset: Any = None) -> Any:
        """A matplotlib figure: the courses of loss and q and, given the data, what is said beside what is true.

        That is who is taken for whom and whether probabilities are calibrated, or numbers beside the true ones; for
        links it is the courses alone. A run on files or on a known dataset finds its data itself.

        >>> from ltga import fit
        >>> from ltga.data import csbm
        >>> run = fit(csbm(num_nodes=60), "ltga-head", protocol={"epochs": 2, "hidden_channels": 4})
        >>> len(run.plot(csbm(num_nodes=60)).axes)
        5
        """
        return plot_run(self.record, self.arrays, self._own_data() if dataset is None else dataset)

    def _own_data(self) -> Any:
        """What the run was made on, if its record says where to find it; ``None`` if it is not there any more."""
        from ltga.train.run_graph import graph_of  # it stands on this file

        try:
            found = graph_of(self)
        except LTGAError:
            return None
        return found if found.fingerprint == self.typed.config.dataset.fingerprint else None

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

        >>> from ltga import fit
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

    def predict_table(
        self,
        graph: Any = None,
        *,
        pairs: Any = None,
        prepare: Mapping[str, Any] | None = None,
        new_category: str | None = None,
        batch_size: int | None = None,
        fanout: int | Sequence[int] | None = None,
        root: str | Path | None = None,
    ) -> Any:
        """A data frame: the ids people have, what is predicted, and every probability, as ``ltga predict`` writes them.

        Nodes whose labels are known have a column ``label``, on the run's own graph ``part`` (train, val, test) too.

        Args:
            graph: a path (tables are prepared as the run's own were), a PyG ``Data``, or what ``as_graph`` takes; the
                run's own graph if left out. A run on many graphs takes a folder of them, a collection or a list of
                ``Data``.
            pairs: for a run on links, the pairs to judge: a data frame or the file of one, with columns ``source`` and
                ``target``, for typed links ``head`` and ``relation``.
            prepare: options of the preparation that are others for this table than for the run's: how it is written
                (``{"decimal": ","}``), or what becomes of odd rows (``{"bad_smiles": "drop"}``).
            new_category: short for the one about a category that the run has not seen, ``"error"`` or ``"other"``.
            batch_size, fanout: as in :meth:`predict`.
            root: folder to look for known datasets in.

        >>> from ltga import fit
        >>> from ltga.data import csbm
        >>> run = fit(csbm(num_nodes=60), protocol={"epochs": 2, "hidden_channels": 4})
        >>> list(run.predict_table(csbm(num_nodes=80, seed=1).data).columns)
        ['node', 'predicted', 'p_0', 'p_1', 'label']
        """
        from ltga.train.predicted import predicted  # it stands on this file

        changes = {**(prepare or {}), **({} if new_category is None else {"new_category": new_category})}
        return predicted(self, graph, root, pairs=pairs, changes=changes, batch_size=batch_size, fanout=fanout).frame()

    def to(self, device: Device) -> Self:
        """The same run with its model on ``device``, where it then predicts and is explained.

        >>> from ltga import fit
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


def load_run(path: str | Path, device: Device = "cpu") -> Run:
    """A stored run, its model rebuilt without training, to compute on ``device``, wherever it was trained.

    ``path`` is that of its record, or the first digits of its id, as ``ltga runs`` shows them: of a run in ``runs/``,
    or in a folder that is named, ``"old-runs/1c556dcb"``.
    """
    return _stored_run(find_run(path)).to(device)


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
