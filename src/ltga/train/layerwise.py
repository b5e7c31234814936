"""A trained network on a graph whose activations do not fit into memory: layer by layer, block by block.

Every layer is computed for all nodes, or those that are needed, a block of them at a time with all their incoming
edges, before the next layer begins. No more than two layers' outputs and one block's inside exist at any time, on disk
where they do not fit into memory, and the numbers are those of the whole graph at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Data

from ltga.data import GraphFolder, NeighborSampler, Sample
from ltga.data.mapped_rows import MappedRows, scratch_rows
from ltga.errors import InputError
from ltga.nn.attention_inputs import Attention
from ltga.nn.attention_statistics import attention_statistics
from ltga.nn.interface import LayerWeights, Network
from ltga.train.devices import CPU, device_of, moved
from ltga.train.room import SHARE, free_memory

BLOCK = 4096  # nodes of a block
Rows = Tensor | MappedRows


@dataclass(frozen=True, eq=False)
class LayerInputs:
    """What a layer reads: a row per node, or only for the ``nodes``, ascending, that are needed."""

    rows: Rows
    nodes: Tensor | None = None

    def at(self, numbers: Tensor) -> Tensor:
        return self.rows[numbers if self.nodes is None else torch.searchsorted(self.nodes, numbers)]


class StatisticTotals:
    """:func:`~ltga.nn.attention_statistics.attention_statistics` of all edges, from those of blocks of nodes."""

    def __init__(self) -> None:
        self._totals: dict[str, Tensor] = {}
        self._edges = self._nodes = 0

    def add(self, weights: Tensor, index: Tensor, num_nodes: int) -> None:
        """Count in edges with ``weights`` into the nodes ``index`` of a block."""
        if len(index) == 0:
            return
        occupied = int(index.unique().numel())
        for name, mean in moved(attention_statistics(weights, index, num_nodes), CPU).items():
            total = (len(index) if name == "zero_fraction" else occupied) * mean
            self._totals[name] = self._totals.get(name, 0) + total
        self._edges, self._nodes = self._edges + len(index), self._nodes + occupied

    def means(self) -> dict[str, Tensor]:
        return {
            name: total / (self._edges if name == "zero_fraction" else self._nodes)
            for name, total in self._totals.items()
        }


def _unchanged(rows: Tensor) -> Tensor:
    return rows


class Layerwise:
    """Passes of an attention network over one graph in evaluation mode.

    Args:
        x, edge_attr: of the graph; they stay where they are, rows are read block by block.
        edge_index: ``[2, E]``; or the folder whose edges they are, or a sampler of the graph.
        block: nodes of a block.

    >>> x, edge_index = torch.randn(5, 3), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    >>> from ltga.nn import LTGA
    >>> model = LTGA(3, 2, hidden_channels=4, heads=2).eval()
    >>> passes = Layerwise(x, edge_index, block=2)
    >>> torch.allclose(passes.logits(model), model(x, edge_index), atol=1e-6)
    True
    >>> torch.allclose(passes.logits(model, torch.tensor([4, 0])), model(x, edge_index)[[4, 0]], atol=1e-6)
    True
    """

    def __init__(
        self,
        x: Rows,
        edge_index: Tensor | GraphFolder | NeighborSampler,
        edge_attr: Rows | None = None,
        block: int = BLOCK,
    ) -> None:
        self._x, self._edge_attr = x, edge_attr
        self._device = x.device if isinstance(x, Tensor) else CPU
        if isinstance(edge_index, Tensor):
            edge_index = NeighborSampler(Data(edge_index=edge_index, num_nodes=len(x)), [-1])
        elif isinstance(edge_index, GraphFolder):
            edge_index = NeighborSampler(edge_index, [-1])
        self._sampler = edge_index.over(fanout=[-1], batch_size=block)
        self._reached: tuple[Tensor, list[Tensor]] | None = None

    def hidden(self, model: Network) -> Tensor:
        """What the last layer reads, ``[N, width]``."""
        rows = deque(self._layers(model), maxlen=1).pop()[1].rows
        return rows if isinstance(rows, Tensor) else rows.tensor()

    @torch.no_grad()
    def logits(self, model: Network, nodes: Tensor | None = None) -> Tensor:
        """``[N, C]``; or of some nodes ``[n, C]``, for which no more of the graph is computed than they read."""
        wanted = None if nodes is None else self._reach(nodes, len(_evaluated(model)))
        conv, inputs = deque(self._layers(model, wanted), maxlen=1).pop()
        out = self._apply(conv, inputs, None if wanted is None else wanted[-1], in_memory=True)
        assert isinstance(out.rows, Tensor)
        return out.rows if nodes is None else out.at(nodes)

    def attend(self, model: Network) -> list[Attention]:
        """What every layer does on every edge; edges block by block, each with its self-loops last."""
        inside = []
        for conv, x in self._layers(model):
            blocks = [(sample, moved(conv.attend(*inputs), self._device)) for sample, inputs in self._blocks(x, conv)]
            edges = [sample.nodes[block.edge_index] for sample, block in blocks]
            parts = ([getattr(block, name) for _, block in blocks] for name in ("logits", "q", "weights"))
            inside.append(Attention(torch.cat(edges, dim=1), *map(torch.cat, parts)))
        return inside

    @torch.no_grad()
    def attention_weights(self, model: Network) -> LayerWeights:
        """Every layer's ``(edge_index, weights)``, in the order of :meth:`attend`."""
        layers = []
        for conv, x in self._layers(model):
            edges, weights = [], []
            for sample, inputs in self._blocks(x, conv):
                local, values = moved(conv(*inputs, return_attention_weights=True)[1], self._device)
                edges.append(sample.nodes[local])
                weights.append(values)
            layers.append((torch.cat(edges, dim=1), torch.cat(weights)))
        return layers

    @torch.no_grad()
    def observed(self, model: Network) -> tuple[Tensor, list[dict[str, Tensor]]]:
        """Logits ``[N, C]`` and every layer's attention statistics, in one sweep and never with all edges at once."""
        layers = _evaluated(model)
        x, statistics = LayerInputs(self._x), []
        for number, conv in enumerate(layers, start=1):
            totals, last = StatisticTotals(), number == len(layers)
            x = self._apply(conv, x, None, _unchanged if last else F.elu_, in_memory=last, totals=totals)
            statistics.append(totals.means())
        assert isinstance(x.rows, Tensor)
        return x.rows, statistics

    @torch.no_grad()
    def _layers(self, model: Network, wanted: list[Tensor] | None = None) -> Iterator[tuple[Any, LayerInputs]]:
        """Every layer and what it reads; only ``wanted``, the nodes whose output of every layer is needed."""
        x, before = LayerInputs(self._x), None
        for number, conv in enumerate(_evaluated(model)):
            if before is not None:
                x = self._apply(before, x, None if wanted is None else wanted[number - 1], F.elu_)
            yield conv, x
            before = conv

    @torch.no_grad()
    def _apply(
        self,
        conv: Any,
        x: LayerInputs,
        nodes: Tensor | None,
        after: Callable[[Tensor], Tensor] = _unchanged,
        *,
        in_memory: bool = False,
        totals: StatisticTotals | None = None,
    ) -> LayerInputs:
        """A layer's output for all nodes, or for some."""
        out: Rows | None = None
        last = 0
        for sample, inputs in self._blocks(x, conv, nodes):
            if totals is None:
                rows = after(conv(*inputs)).to(self._device)
            else:
                found, (edges, weights) = conv(*inputs, return_attention_weights=True)
                totals.add(weights, edges[1], sample.num_seeds)
                rows = after(found).to(self._device)
            if out is None:
                out = _room(len(self._x) if nodes is None else len(nodes), rows, in_memory)
            first, last = last, last + sample.num_seeds  # blocks come in the order of the nodes
            out[torch.arange(first, last)] = rows
        assert out is not None
        return LayerInputs(out, nodes)

    def _blocks(
        self, x: LayerInputs, conv: nn.Module, nodes: Tensor | None = None
    ) -> Iterator[tuple[Sample, tuple[Any, ...]]]:
        """Blocks of nodes and a layer's inputs, where it is: a bipartite graph whose first sources are its targets."""
        device = device_of(conv)
        for sample in self._sampler.over(nodes).epoch(0):
            attributes = None if self._edge_attr is None else self._edge_attr[sample.edges]
            sources, edge_index, attributes = moved((x.at(sample.nodes), sample.edge_index, attributes), device)
            yield sample, ((sources, sources[: sample.num_seeds]), edge_index, attributes)

    def _reach(self, nodes: Tensor, layers: int) -> list[Tensor]:
        """For every layer the nodes, ascending, whose output is needed for those of the last; remembered."""
        if self._reached is not None and self._reached[0].equal(nodes) and len(self._reached[1]) == layers:
            return self._reached[1]
        wanted = [nodes.unique()]
        for _ in range(layers - 1):
            needed = torch.zeros(len(self._x), dtype=torch.bool)
            for sample in self._sampler.over(wanted[0]).epoch(0):
                needed[sample.nodes] = True
            wanted.insert(0, needed.nonzero().squeeze(1))
        self._reached = nodes, wanted
        return wanted


def _room(count: int, like: Tensor, in_memory: bool) -> Rows:
    """Room for a layer's output, on disk where free memory has none."""
    free = None if in_memory else free_memory()
    size = count * like.size(1) * like.element_size()
    if free is None or size <= SHARE * free or like.dtype != torch.float32:
        return like.new_empty(count, like.size(1))
    return scratch_rows(count, like.size(1))


def check_layered(model: Network) -> nn.ModuleList:
    """The layers of ``model`` if each needs a node's own neighbours and nothing else."""
    if not model.layered:
        name = type(model).__name__
        raise InputError(f"minibatch: {name} needs the whole graph at once; leave it out, or use an attention method")
    return model.convs


def _evaluated(model: Network) -> nn.ModuleList:
    layers = check_layered(model)
    if model.training:
        raise InputError("model: is in training mode; call model.eval() first")
    return layers
