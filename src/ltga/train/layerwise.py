"""A trained network on a graph whose activations do not fit into memory: layer by layer, block by block.

Every layer is computed for all nodes, a block of them at a time with all their incoming edges, before
the next layer begins. No more than two layers' outputs and one block's inside exist at any time, and
the numbers are those of the whole graph at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Data

from ltga.data import NeighborSampler, Sample
from ltga.errors import InputError
from ltga.nn.attention_inputs import Attention
from ltga.nn.interface import LayerWeights, Network
from ltga.train.devices import device_of, moved

BLOCK = 4096  # nodes of a block


class Layerwise:
    """Passes of an attention network over one graph in evaluation mode.

    Args:
        x, edge_index, edge_attr: the graph; ``x`` stays where it is, rows are read block by block.
        block: nodes of a block.

    >>> x, edge_index = torch.randn(5, 3), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    >>> from ltga.nn import LTGA
    >>> model = LTGA(3, 2, hidden_channels=4, heads=2).eval()
    >>> torch.allclose(Layerwise(x, edge_index, block=2).logits(model), model(x, edge_index), atol=1e-6)
    True
    """

    def __init__(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None, block: int = BLOCK) -> None:
        self._x, self._edge_attr = x, edge_attr
        graph = Data(edge_index=edge_index, num_nodes=len(x))
        self._sampler = NeighborSampler(graph, [-1], batch_size=block, shuffle=False)

    def hidden(self, model: Network) -> Tensor:
        """What the last layer reads, ``[N, width]``."""
        return deque(self._layers(model), maxlen=1).pop()[1]

    def logits(self, model: Network) -> Tensor:
        """``[N, C]``."""
        return self._apply(_evaluated(model)[-1], self.hidden(model))

    def attend(self, model: Network) -> list[Attention]:
        """What every layer does on every edge; edges block by block, each with its self-loops last."""
        inside = []
        for conv, x in self._layers(model):
            blocks = [(sample, moved(conv.attend(*inputs), x.device)) for sample, inputs in self._blocks(x, conv)]
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
                local, values = moved(conv(*inputs, return_attention_weights=True)[1], x.device)
                edges.append(sample.nodes[local])
                weights.append(values)
            layers.append((torch.cat(edges, dim=1), torch.cat(weights)))
        return layers

    @torch.no_grad()
    def _layers(self, model: Network) -> Iterator[tuple[Any, Tensor]]:
        """Every layer and what it reads."""
        x, before = self._x, None
        for conv in _evaluated(model):
            if before is not None:
                x = F.elu_(self._apply(before, x))
            yield conv, x
            before = conv

    @torch.no_grad()
    def _apply(self, conv: Any, x: Tensor) -> Tensor:
        out: Tensor | None = None
        for sample, inputs in self._blocks(x, conv):
            rows = conv(*inputs).to(x.device)
            if out is None:
                out = rows.new_empty(len(x), rows.size(1))
            out[sample.nodes[: sample.num_seeds]] = rows
        assert out is not None
        return out

    def _blocks(self, x: Tensor, conv: nn.Module) -> Iterator[tuple[Sample, tuple[Any, ...]]]:
        """Blocks of nodes and a layer's inputs, where it is: a bipartite graph whose first sources are its targets."""
        device = device_of(conv)
        for sample in self._sampler.epoch(0):
            attributes = None if self._edge_attr is None else self._edge_attr[sample.edges]
            sources, edge_index, attributes = moved((x[sample.nodes], sample.edge_index, attributes), device)
            yield sample, ((sources, sources[: sample.num_seeds]), edge_index, attributes)


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
