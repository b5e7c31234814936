"""LTGA, the node-classification network: a stack of LTGAConv layers with dropout and ELU between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ltga.errors import InputError
from ltga.kernels import Part, SparseFeatures, SparseRows, compact_form, counter_dropout, elu
from ltga.kernels.operators.bernoulli import drop_stored
from ltga.nn.arguments import check_network
from ltga.nn.attention_inputs import Attention
from ltga.nn.conv import LTGAConv
from ltga.nn.index import EntropicIndex, make_index
from ltga.nn.interface import LayerWeights, Network
from ltga.nn.masks import Draws
from ltga.nn.reach import Hop, Reach

FEATURES, ATTENTION = 0, 1  # what a dropout stream acts on


class LTGA(Network):
    r"""The paper's backbone around :class:`~ltga.nn.LTGAConv`.

    Dropout before every layer and on the attention weights; hidden layers concatenate their heads
    and are followed by ELU, the last layer averages its heads.

    Args:
        in_channels: width F of the node features.
        num_classes: number of classes C.
        hidden_channels: channels of each head in the hidden layers.
        heads: number of heads in every layer.
        num_layers: number of convolutions, at least 1.
        dropout: probability of dropping a feature.
        attention_dropout: probability of dropping an attention weight; ``dropout`` if left out.
        index: who owns q: ``"global"`` (one value shared by all layers), ``"layer"``, ``"head"``,
            ``"edge"``, or a number (frozen).
        index_form, index_start: how a learned q is held (``"tanh"``, bounded by ``delta``, or ``"log"``) and where it
            starts; a gate is always bounded.
        scoring, normalizer, modifier, delta, residual, share_weights, edge_dim, backend: as in
            ``LTGAConv``.

    Attributes:
        dropout_key: ``None`` for torch's random numbers, drawn in the order of PyG's models; a tuple of
            integers (say seed and epoch) for masks that depend on it, the layer and the position only,
            whatever else draws random numbers.

    Shapes:
        ``x`` ``[N, F]`` (dense, or :class:`~ltga.kernels.SparseFeatures`), ``edge_index`` ``[2, E]``,
        ``edge_attr`` ``[E, D]`` -> logits ``[N, C]``.

    >>> model = LTGA(1433, 7, index="head")  # Cora
    >>> sum(parameter.numel() for parameter in model.parameters())
    1526975
    >>> model(torch.randn(4, 1433), torch.tensor([[0, 1], [1, 2]])).shape
    torch.Size([4, 7])
    """

    layered = reads_sparse = computes_parts = attends = True

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        *,
        hidden_channels: int = 64,
        heads: int = 8,
        num_layers: int = 2,
        dropout: float = 0.4,
        attention_dropout: float | None = None,
        index: str | float = "edge",
        scoring: str = "gatv2",
        normalizer: str = "q_softmax",
        modifier: str | None = None,
        delta: float = 1.0,
        index_form: str = "tanh",
        index_start: float = 1.0,
        residual: bool = False,
        share_weights: bool = False,
        edge_dim: int | None = None,
        backend: str = "auto",
    ) -> None:
        super().__init__()
        check_network(num_classes, hidden_channels, heads, num_layers, dropout)
        self.dropout = dropout
        self.normalizer = normalizer
        self.backend = backend
        shared: dict[str, Any] = {
            "heads": heads,
            "dropout": dropout if attention_dropout is None else attention_dropout,
            # One value for the whole network is one module for all layers.
            "index": make_index(index, 1, heads, delta, index_form, index_start) if index == "global" else index,
            "index_form": index_form,
            "index_start": index_start,
            "scoring": scoring,
            "normalizer": normalizer,
            "modifier": modifier,
            "delta": delta,
            "residual": residual,
            "share_weights": share_weights,
            "edge_dim": edge_dim,
            "backend": backend,
        }
        self.convs = nn.ModuleList()
        for _ in range(num_layers - 1):
            self.convs.append(LTGAConv(in_channels, hidden_channels, **shared))
            in_channels = hidden_channels * heads
        self.convs.append(LTGAConv(in_channels, num_classes, concat=False, **shared))

    def reset_parameters(self) -> None:
        """Draw all weights anew and put the index back to q = 1."""
        for conv in self.convs:
            conv.reset_parameters()  # type: ignore[operator]

    def hidden(self, x: Tensor | SparseFeatures, edge_index: Any, edge_attr: Tensor | None = None) -> Tensor:
        """The representation ``[N, hidden_channels * heads]`` that the last layer reads (before dropout)."""
        x = self._through(x, [Hop(edge_index, edge_attr)] * (len(self.convs) - 1))
        return x.to_dense() if isinstance(x, SparseFeatures) else x

    def forward(self, x: Tensor | SparseFeatures, edge_index: Any, edge_attr: Tensor | None = None) -> Tensor:
        hop = Hop(edge_index, edge_attr)
        last = len(self.convs) - 1
        return self._apply_layer(last, self._through(x, [hop] * last), hop)

    def outputs(self, reach: Reach) -> Tensor:
        """The logits ``[n, C]`` of ``reach.nodes``: those rows of the full pass, dropout included, and no others.

        >>> x, edge_index = torch.randn(5, 4), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
        >>> model = LTGA(4, 2).eval()
        >>> reach = Reach.of(torch.tensor([3, 1]), x, edge_index, None, num_layers=2)
        >>> torch.allclose(model.outputs(reach), model(x, edge_index)[[3, 1]], atol=1e-6)
        True
        """
        if len(reach.hops) != len(self.convs):
            raise InputError(f"reach: is for {len(reach.hops)} layers, the network has {len(self.convs)}")
        if not all(conv.add_self_loops for conv in self.convs):
            raise InputError("reach: needs layers that add self-loops")
        *hops, last = reach.hops
        return self._apply_layer(len(hops), self._through(reach.x, hops), last)

    @torch.no_grad()
    def attend(self, x: Tensor | SparseFeatures, edge_index: Any, edge_attr: Tensor | None = None) -> list[Attention]:
        """What every layer does on every edge, without dropout.

        >>> inside = LTGA(4, 2, heads=3).attend(torch.randn(3, 4), torch.tensor([[0, 1], [1, 2]]))
        >>> [layer.weights.shape for layer in inside]
        [torch.Size([5, 3]), torch.Size([5, 3])]
        """
        training = self.training
        self.eval()
        try:
            inside = []
            for layer, conv in enumerate(self.convs):
                inside.append(conv.attend(self._readable(x), edge_index, edge_attr))  # type: ignore[operator]
                if layer < len(self.convs) - 1:
                    x = elu(self._apply_layer(layer, x, Hop(edge_index, edge_attr)))
            return inside
        finally:
            self.train(training)

    def attention_weights(
        self, x: Tensor | SparseFeatures, edge_index: Any, edge_attr: Tensor | None = None
    ) -> LayerWeights:
        return [(layer.edge_index, layer.weights) for layer in self.attend(x, edge_index, edge_attr)]

    def layer_indices(self) -> list[EntropicIndex]:
        return [conv.index for conv in self.convs]  # type: ignore[misc]

    def _through(self, x: Tensor | SparseFeatures, hops: Sequence[Hop]) -> Tensor | SparseFeatures:
        """The first layers, each followed by ELU."""
        for layer, hop in enumerate(hops):
            x = elu(self._apply_layer(layer, x, hop))
        return x

    def _apply_layer(self, layer: int, x: Tensor | SparseFeatures, hop: Hop) -> Tensor:
        if self.training and self.dropout > 0:
            x = self._drop(x, layer, hop.nodes)
        draws = Draws(self._key(layer, ATTENTION), hop.edges)
        out: Tensor = self.convs[layer](self._readable(x), hop.edge_index, hop.edge_attr, size=hop.size, draws=draws)
        return out

    def _readable(self, x: Tensor | SparseFeatures) -> Tensor | SparseFeatures:
        """Features as the layers can take them: sparse products are compiled for the CPU only."""
        plain = isinstance(x, SparseFeatures) and (self.backend == "torch" or not x.values.is_cpu)
        return x.to_dense() if plain else x  # type: ignore[union-attr]

    def _key(self, layer: int, stream: int) -> tuple[int, ...] | None:
        """What a layer's dropout depends on, if it is not to be torch's."""
        return None if self.dropout_key is None else (*self.dropout_key, layer, stream)

    def _drop(self, x: Tensor | SparseFeatures, layer: int, part: Part | None) -> Tensor | SparseFeatures:
        """Feature dropout; on sparse features it acts on the stored values."""
        key = self._key(layer, FEATURES)
        if isinstance(x, SparseRows):
            whole = self._drop_values(x.whole, key)
            return x.with_values(whole[x.stored])
        if isinstance(x, SparseFeatures):
            return x.with_values(self._drop_values(x, key))
        whole_input = key is None and layer == 0 and part is None and x.is_contiguous()
        if whole_input and self.backend != "torch" and not torch.compiler.is_compiling():
            compact = compact_form(x)
            if isinstance(compact, SparseFeatures):
                return compact.with_values(self._drop_values(compact, key))
        return Draws(key, part).drop(x, self.dropout)

    def _drop_values(self, x: SparseFeatures, key: tuple[int, ...] | None) -> Tensor:
        """The stored values after dropout."""
        return drop_stored(x, self.dropout) if key is None else counter_dropout(x.values, self.dropout, key)
