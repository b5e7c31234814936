"""The graph attention networks GAT (Velickovic et al., 2018) and GATv2 (Brody et al., 2022)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GATv2Conv

from ltga.errors import InputError
from ltga.kernels import elu, torch_dropout
from ltga.nn.arguments import check_network
from ltga.nn.baselines.propagation import sound_edges
from ltga.nn.baselines.stand_in import attend_as, may_stand_in
from ltga.nn.interface import LayerWeights, Network
from ltga.nn.masks import drop_input


class GAT(Network):
    r"""The paper's backbone with PyG's ``GATConv``: a softmax over each neighbourhood.

    Dropout before every layer and on the attention weights; hidden layers concatenate their heads
    and are followed by ELU, the last layer averages its heads. Built as PyG layers in order with
    nothing else drawing random numbers, so a seed gives PyG's own weights.

    Args:
        in_channels: width F of the node features.
        num_classes: number of classes C.
        hidden_channels: channels of each head in the hidden layers.
        heads: number of heads in every layer.
        num_layers: number of convolutions, at least 1.
        dropout: probability of dropping a feature, and an attention weight.
        residual: add PyG's learned linear map of each layer's input to its output.
        edge_dim: width D of the edge attributes, ``None`` if there are none.

    Shapes:
        ``x`` ``[N, F]``, ``edge_index`` ``[2, E]``, ``edge_attr`` ``[E, D]`` -> logits ``[N, C]``.

    >>> import torch
    >>> model = GAT(5, 3)
    >>> model(torch.randn(4, 5), torch.tensor([[0, 1], [1, 2]])).shape
    torch.Size([4, 3])
    >>> model.hidden(torch.randn(4, 5), torch.tensor([[0, 1], [1, 2]])).shape
    torch.Size([4, 512])
    """

    conv_class: ClassVar[Any] = GATConv
    layered = True

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        *,
        hidden_channels: int = 64,
        heads: int = 8,
        num_layers: int = 2,
        dropout: float = 0.4,
        residual: bool = False,
        edge_dim: int | None = None,
    ) -> None:
        super().__init__()
        check_network(num_classes, hidden_channels, heads, num_layers, dropout)
        self.dropout = dropout
        self.edge_dim = edge_dim
        shared = {"heads": heads, "dropout": dropout, "residual": residual, "edge_dim": edge_dim}
        self.convs = nn.ModuleList()
        for _ in range(num_layers - 1):
            self.convs.append(self.conv_class(in_channels, hidden_channels, **shared))
            in_channels = hidden_channels * heads
        self.convs.append(self.conv_class(in_channels, num_classes, concat=False, **shared))

    def reset_parameters(self) -> None:
        """Draw all weights anew, in the order of construction."""
        for conv in self.convs:
            conv.reset_parameters()  # type: ignore[operator]

    def hidden(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The representation ``[N, hidden_channels * heads]`` that the last layer reads (before dropout)."""
        edge_index = sound_edges(edge_index, x.size(0))
        for layer in range(len(self.convs) - 1):
            x = elu(self._apply_layer(layer, x, edge_index, edge_attr))
        return x

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        edge_index = sound_edges(edge_index, x.size(0))
        x = self.hidden(x, edge_index, edge_attr)
        return self._apply_layer(len(self.convs) - 1, x, edge_index, edge_attr)

    def weights_for_ltga(self) -> dict[str, Tensor] | None:
        """PyG's ``GATConv`` by the names of ``LTGAConv``: one projection for both ends, without a bias."""
        renamed: dict[str, Tensor] = {}
        for name, value in self.state_dict().items():
            prefix, _, last = name.partition(".lin.")
            if last:
                for side in ("lin_l", "lin_r"):
                    renamed[f"{prefix}.{side}.weight"] = value
                    renamed[f"{prefix}.{side}.bias"] = value.new_zeros(value.size(0))
            else:
                renamed[name.replace("att_src", "att").replace("att_dst", "att_target")] = value
        return renamed

    def attention_weights(self, x: Any, edge_index: Any, edge_attr: Tensor | None = None) -> LayerWeights:
        layers = []
        for conv in self.convs:
            x, attention = conv(x, edge_index, edge_attr, return_attention_weights=True)
            x = F.elu(x)
            layers.append(attention)
        return layers

    def _apply_layer(self, layer: int, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None) -> Tensor:
        if edge_attr is not None and self.edge_dim is None:
            width = edge_attr.size(1) if edge_attr.dim() == 2 else 1
            raise InputError(f"edge_attr: the model was built without edge_dim; build it with edge_dim={width}")
        conv = self.convs[layer]
        if edge_attr is None and may_stand_in(conv, x):
            drop = torch_dropout if layer else drop_input
            return attend_as(conv, drop(x, self.dropout, self.training), edge_index)
        out: Tensor = conv(torch_dropout(x, self.dropout, self.training), edge_index, edge_attr)
        return out


class GATv2(GAT):
    """:class:`GAT` with PyG's ``GATv2Conv``, whose scores let every node rank its neighbours differently.

    >>> model = GATv2(1433, 7)  # Cora
    >>> sum(parameter.numel() for parameter in model.parameters())
    1526959
    """

    conv_class: ClassVar[Any] = GATv2Conv

    def weights_for_ltga(self) -> dict[str, Tensor]:
        """As they are: ``LTGAConv`` has the names of ``GATv2Conv``."""
        return dict(self.state_dict())
