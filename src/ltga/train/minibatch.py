"""Training on sampled neighbourhoods instead of the whole graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data import GraphFolder, NeighborSampler, Sample
from ltga.data.mapped_rows import MappedRows
from ltga.data.sampling import check_fanout, check_whole, rows_of
from ltga.errors import InputError
from ltga.kernels import SparseFeatures
from ltga.nn.attention_inputs import Attention
from ltga.nn.interface import LayerWeights, Network
from ltga.train.devices import device_of, moved, pinned
from ltga.train.layerwise import BLOCK, Layerwise, check_layered
from ltga.train.loop import Task
from ltga.train.targets import Objective


@dataclass(frozen=True)
class MiniBatch:
    """How training nodes are taken a few at a time.

    Args:
        batch_size: training nodes per gradient step; an epoch visits all of them.
        fanout: incoming edges that every reached node draws, for all layers or one number per layer,
            the last layer's first; -1 for all.
        block: nodes computed at a time in evaluation, which is exact.

    >>> MiniBatch(batch_size=256, fanout=10).per_layer(2)
    (10, 10)
    """

    batch_size: int = 512
    fanout: int | tuple[int, ...] = 10
    block: int = BLOCK

    def __post_init__(self) -> None:
        if isinstance(self.fanout, list):
            object.__setattr__(self, "fanout", tuple(self.fanout))
        check_whole("batch_size", self.batch_size, 1)
        check_whole("block", self.block, 1)
        check_fanout(self.fanout if isinstance(self.fanout, tuple) else (self.fanout,))

    def per_layer(self, num_layers: int) -> tuple[int, ...]:
        """The fan-out of every hop for a network of so many layers."""
        if not isinstance(self.fanout, tuple):
            return (self.fanout,) * num_layers
        if len(self.fanout) != num_layers:
            raise InputError(f"fanout: has {len(self.fanout)} numbers, but the network has {num_layers} layers")
        return self.fanout

    def as_settings(self) -> dict[str, Any]:
        """What a record says about it; ``draws`` tells the present sampler's runs from those of the one before it."""
        return {**asdict(self), "draws": 2}


def as_minibatch(given: MiniBatch | Mapping[str, Any] | None) -> MiniBatch | None:
    """Mini-batch settings from what ``fit`` takes."""
    if given is None or isinstance(given, MiniBatch):
        return given
    if not isinstance(given, Mapping):
        raise InputError(f"minibatch: expected a MiniBatch or a mapping, got {type(given).__name__}")
    known = [field.name for field in fields(MiniBatch)]
    for key in given:
        if key not in known:
            raise InputError(f"minibatch: has no setting {key!r}; it has {', '.join(known)}")
    return MiniBatch(**given)


@dataclass(frozen=True, eq=False)
class BatchedTask(Task):
    """A task that is trained batch by batch and evaluated layer by layer.

    Attributes:
        sampler: draws the batches of an epoch around the training nodes.
        block: nodes computed at a time in evaluation.
        device: where batches are sent; the graph stays where it is.
    """

    sampler: NeighborSampler
    block: int
    device: torch.device

    @property
    def on_disk(self) -> bool:
        return isinstance(self.x, MappedRows)

    @classmethod
    def of(cls, task: Task, settings: MiniBatch, model: Network, seed: int) -> BatchedTask:
        """``task``, whose features must be dense, in batches for ``model``."""
        graph = Data(edge_index=task.edge_index, num_nodes=len(task.y))
        return cls._of(task, graph, settings, model, seed)

    @classmethod
    def of_folder(
        cls, folder: GraphFolder, split: int, target: Objective, settings: MiniBatch, model: Network, seed: int
    ) -> BatchedTask:
        """A graph that stays on disk."""
        parts = (mask.nonzero().squeeze(1) for mask in folder.split(split))
        rows, attributes = folder.feature_rows, folder.attribute_rows
        # Whoever wants its edge_index is to notice that there is none.
        whole: Any = (rows, None, attributes, folder.target.y, *parts)
        return cls._of(Task(*whole, target=target), folder, settings, model, seed)

    @classmethod
    def _of(cls, task: Task, graph: Data | GraphFolder, settings: MiniBatch, model: Network, seed: int) -> BatchedTask:
        fanout = settings.per_layer(len(check_layered(model)))
        sampler = NeighborSampler(graph, fanout, task.train, settings.batch_size, seed=seed)
        return cls(**vars(task), sampler=sampler, block=settings.block, device=device_of(model))

    def share(self, rank: int, size: int) -> BatchedTask:
        """The part of one of ``size`` processes: every so many-th training node, sampled by a stream of its own."""
        return replace(self, train=self.train[rank::size], sampler=self.sampler.share(rank, size))

    def steps(self, epoch: int) -> Iterator[Task]:
        device = self.device
        for step in self.sampler.prepared(epoch, lambda sample: pinned(self._step(sample), device)):
            yield moved(step, device)

    def _step(self, sample: Sample) -> Task:
        assert not isinstance(self.x, SparseFeatures)
        attributes = None if self.edge_attr is None else rows_of(self.edge_attr, sample.edges)
        none = sample.seeds[:0]
        x, y = (rows_of(values, sample.nodes) for values in (self.x, self.y))
        return Task(x, sample.edge_index, attributes, y, sample.seeds, none, none, target=self.target)

    def logits(self, model: Network) -> Tensor:
        return self._passes.logits(model)

    def val_logits(self, model: Network) -> Tensor:
        """Of no more of the graph than the validation nodes read, unless the course of an edge gate's q is followed.

        On disk it is followed on the edges that they read.
        """
        if model.edge_gates() and not self.on_disk:
            return super().val_logits(model)
        return self._passes.logits(model, self.val)

    def hidden(self, model: Network) -> Tensor:
        return self._passes.hidden(model)

    def attend(self, model: Network) -> list[Attention]:
        return self._passes.attend(model)

    def attention_weights(self, model: Network) -> LayerWeights:
        return self._passes.attention_weights(model)

    def observed(self, model: Network) -> tuple[Tensor, list[dict[str, Tensor]]]:
        return self._passes.observed(model)

    @cached_property
    def _passes(self) -> Layerwise:
        assert not isinstance(self.x, SparseFeatures)
        return Layerwise(self.x, self.sampler, self.edge_attr, self.block)
