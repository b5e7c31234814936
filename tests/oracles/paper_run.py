"""The paper's protocol written from its description with PyG and plain torch, sharing no code with ltga."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv
from torch_geometric.utils import add_self_loops, remove_self_loops, scatter

HIDDEN, HEADS, DROPOUT = 64, 8, 0.4


class PaperConv(nn.Module):
    """The paper's own layer at q = 1: softmax attention, one weight matrix per endpoint."""

    def __init__(self, in_channels: int, out_channels: int, concat: bool) -> None:
        super().__init__()
        self.out_channels, self.concat = out_channels, concat
        self.attending = nn.Linear(in_channels, HEADS * out_channels)
        self.sending = nn.Linear(in_channels, HEADS * out_channels)
        self.att = nn.Parameter(torch.empty(1, HEADS, out_channels))
        self.bias = nn.Parameter(torch.zeros(HEADS * out_channels if concat else out_channels))
        for linear in (self.attending, self.sending):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)
        nn.init.xavier_uniform_(self.att)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        edge_index, _ = remove_self_loops(edge_index)
        (source, target), _ = add_self_loops(edge_index, num_nodes=len(x))
        z_i = self.attending(x).view(-1, HEADS, self.out_channels)
        z_j = self.sending(x).view(-1, HEADS, self.out_channels)
        logits = (F.leaky_relu(z_i[target] + z_j[source], 0.2) * self.att).sum(-1)
        top = scatter(logits.detach(), target, dim_size=len(x), reduce="max")
        numerator = (logits - top[target]).exp()
        weights = numerator / scatter(numerator, target, dim_size=len(x), reduce="sum")[target]
        weights = F.dropout(weights, DROPOUT, self.training)
        out = scatter(weights.unsqueeze(-1) * z_j[source], target, dim_size=len(x), reduce="sum")
        return (out.flatten(1) if self.concat else out.mean(1)) + self.bias


class PaperNetwork(nn.Module):
    """Two layers of either kind."""

    def __init__(self, layer: str, features: int, classes: int) -> None:
        super().__init__()
        if layer == "gatv2":
            self.first = GATv2Conv(features, HIDDEN, HEADS, dropout=DROPOUT)
            self.second = GATv2Conv(HIDDEN * HEADS, classes, HEADS, concat=False, dropout=DROPOUT)
        else:
            self.first = PaperConv(features, HIDDEN, True)
            self.second = PaperConv(HIDDEN * HEADS, classes, False)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.elu(self.first(F.dropout(x, DROPOUT, self.training), edge_index))
        return self.second(F.dropout(x, DROPOUT, self.training), edge_index)


def paper_run(
    layer: str, x: Tensor, edge_index: Tensor, y: Tensor, masks: tuple[Tensor, Tensor, Tensor], seed: int
) -> tuple[float, int, int]:
    """Test accuracy at the lowest validation loss, that epoch, and how many epochs were run."""
    train, val, test = masks
    torch.manual_seed(seed)
    model = PaperNetwork(layer, x.size(1), int(y.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
    lowest, accuracy, best = float("inf"), 0.0, 0
    for epoch in range(1, 201):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x, edge_index)[train], y[train]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            logits = model(x, edge_index)
        loss = F.cross_entropy(logits[val], y[val]).item()
        if loss < lowest:
            lowest, best = loss, epoch
            accuracy = (logits[test].argmax(1) == y[test]).double().mean().item()
        if epoch - best >= 20:
            break
    return accuracy, best, epoch
