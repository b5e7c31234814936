"""The paper's protocol as a PyG user would write it: the peer that whole training runs are measured against."""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATv2Conv

from ltga.data import Dataset
from ltga.train.protocol import Protocol


class PlainGATv2(nn.Module):
    """Two GATv2Conv with dropout before them and ELU between."""

    def __init__(self, in_channels: int, num_classes: int, protocol: Protocol) -> None:
        super().__init__()
        self.dropout = protocol.dropout
        channels, heads = protocol.size
        self.first = GATv2Conv(in_channels, channels, heads, dropout=protocol.dropout)
        self.second = GATv2Conv(channels * heads, num_classes, heads, concat=False, dropout=protocol.dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.elu(self.first(F.dropout(x, self.dropout, self.training), edge_index))
        out: Tensor = self.second(F.dropout(x, self.dropout, self.training), edge_index)
        return out


def train_plainly(graph: Dataset, protocol: Protocol, epochs: int) -> list[float]:
    """Seconds of every epoch: a full-batch step, an evaluation, a copy of the weights whenever it was the best."""
    torch.manual_seed(1)
    data, (train, val, _) = graph.data, graph.split(0)
    model = PlainGATv2(data.x.size(1), graph.num_classes, protocol)
    adam = torch.optim.Adam(model.parameters(), lr=protocol.lr, weight_decay=protocol.weight_decay)
    lowest, seconds = float("inf"), []
    for _ in range(epochs):
        start = time.perf_counter()
        model.train()
        adam.zero_grad()
        F.cross_entropy(model(data.x, data.edge_index)[train], data.y[train]).backward()
        adam.step()
        model.eval()
        with torch.no_grad():
            loss = F.cross_entropy(model(data.x, data.edge_index)[val], data.y[val]).item()
        if loss < lowest:
            lowest, _best = loss, {name: value.clone() for name, value in model.state_dict().items()}
        seconds.append(time.perf_counter() - start)
    return seconds
