"""What training and analyses may ask of any network, whatever it is built of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ltga.errors import InputError
from ltga.kernels import SparseFeatures
from ltga.nn.attention_inputs import Attention
from ltga.nn.index import EntropicIndex, FrozenIndex, GatedIndex, LearnedIndex, index_parameters
from ltga.nn.reach import Reach

LayerWeights = list[tuple[Tensor, Tensor]]
"""Per layer ``edge_index`` ``[2, E]`` and attention weights ``[E, H]``."""


class Network(nn.Module):
    """A node classifier, called as ``model(x, edge_index, edge_attr=None)``; logits ``[N, C]``.

    One of your own needs ``forward`` and ``hidden``. The rest says that it has no attention and no entropic index,
    which is what holds for most; a network that has them says so by overriding the methods.

    Attributes:
        convs: the layers, where it is a stack of them.
        dropout_key: what dropout masks depend on, for networks whose masks are to be the same as those of
            others (see :class:`~ltga.nn.LTGA`); the others draw from torch's generator and do not look at it.
        transductive: there are weights for the very nodes it is trained on, so it fits no other graph.
        layered: ``convs`` are layers that need a node's own neighbours and nothing else, with ELU between
            them, so that each can be computed a few nodes at a time.
        reads_sparse: takes :class:`~ltga.kernels.SparseFeatures` as well.
        computes_parts: has :meth:`outputs`.
        attends: has :meth:`attend`.
        normalizer: what turns scores into attention weights, where that is known.

    >>> class Linear(Network):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.linear = nn.Linear(3, 2)
    ...     def hidden(self, x, edge_index, edge_attr=None):
    ...         return x
    ...     def forward(self, x, edge_index, edge_attr=None):
    ...         return self.linear(x)
    >>> Linear().index_values(), Linear().shannon_penalty()
    ([], tensor(0.))
    """

    convs: nn.ModuleList
    dropout_key: tuple[int, ...] | None = None
    transductive: ClassVar[bool] = False
    layered: ClassVar[bool] = False
    reads_sparse: ClassVar[bool] = False
    computes_parts: ClassVar[bool] = False
    attends: ClassVar[bool] = False
    normalizer: str | None = None

    def hidden(self, x: Any, edge_index: Any, edge_attr: Tensor | None = None) -> Tensor:
        """The representation ``[N, width]`` that the last layer reads (before dropout)."""
        raise NotImplementedError

    def outputs(self, reach: Reach) -> Tensor:
        """The logits ``[n, C]`` of some nodes only."""
        raise NotImplementedError

    def attend(self, x: Tensor | SparseFeatures, edge_index: Any, edge_attr: Tensor | None = None) -> list[Attention]:
        """What every layer does on every edge, without dropout."""
        raise InputError(f"model: {type(self).__name__} cannot be looked into; take for example LTGA")

    def weights_for_ltga(self) -> dict[str, Tensor] | None:
        """The weights by the names of an :class:`~ltga.nn.LTGA` that computes the same and attends.

        ``None`` where there is none, or no need because the network attends itself.
        """
        return None

    def attention_weights(
        self, x: Tensor | SparseFeatures, edge_index: Any, edge_attr: Tensor | None = None
    ) -> LayerWeights | None:
        """Every layer's attention in evaluation mode; ``None`` for a network without attention."""
        return None

    def layer_indices(self) -> list[EntropicIndex]:
        """Every layer's entropic index; none for a network without."""
        return []

    def edge_gates(self) -> list[GatedIndex]:
        """Those among them that give every edge a q of its own."""
        return [index for index in self.layer_indices() if isinstance(index, GatedIndex)]

    def index_values(self) -> list[Tensor | None]:
        """Every layer's q, ``[1]`` or ``[H]``; ``None`` where each edge has its own.

        >>> from ltga.nn import LTGA
        >>> LTGA(4, 2, heads=2, index="head").index_values()
        [tensor([1., 1.]), tensor([1., 1.])]
        """
        values: list[Tensor | None] = []
        for index in self.layer_indices():
            if isinstance(index, LearnedIndex):
                values.append(index.q().detach())
            elif isinstance(index, FrozenIndex):
                values.append(torch.tensor([index.value]))
            else:
                values.append(None)
        return values

    def heads_at_bound(self) -> list[float]:
        """Per layer with a learned index the share of its values at an end of their interval; edge gates have none.

        >>> from ltga.nn import LTGA
        >>> LTGA(4, 2, heads=2, index="head").heads_at_bound()
        [0.0, 0.0]
        """
        return [index.at_bound() for index in self.layer_indices() if isinstance(index, LearnedIndex)]

    def shannon_penalty(self) -> Tensor:
        r"""Mean of :math:`(q-1)^2` over the learned index values, a shared one counted once.

        With an edge gate the mean runs over the q of all edges in the last training pass.
        """
        learned = [index for index in self.layer_indices() if isinstance(index, LearnedIndex | GatedIndex)]
        if not learned:
            return torch.zeros(())
        # In a full pass all layers have the same number of heads and edges, so the mean of means is the mean.
        return torch.stack([index.shannon_penalty() for index in dict.fromkeys(learned)]).mean()

    def index_parameters(self) -> Iterator[nn.Parameter]:
        """The parameters that shape the attention, which the trainer treats apart."""
        return index_parameters(self)
