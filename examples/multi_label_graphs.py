"""Several labels for each of many graphs, some of them unknown, and which edges of a graph the model ignores."""

import torch
from torch_geometric.data import Data

import ltga
from ltga.data import collection_from_data


def graph_of(number: int) -> Data:
    """Ten to fifteen nodes in a ring with two chords; is the sum over nodes of each of two properties above zero?"""
    generator = torch.Generator().manual_seed(number)
    nodes = 10 + number % 6
    ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    chords = torch.stack([torch.randperm(nodes, generator=generator)[:2], torch.tensor([0, 1])])
    half = torch.cat([ring, chords[:, chords[0] != chords[1]]], dim=1)
    x = torch.randn(nodes, 3, generator=generator)
    y = (x[:, :2].sum(0) > 0).float()
    y[torch.rand(2, generator=generator) < 0.2] = float("nan")  # a fifth of the labels are not known
    return Data(x=x, edge_index=torch.cat([half, half.flip(0)], dim=1).unique(dim=1), y=y)


graphs = collection_from_data([graph_of(number) for number in range(240)], "rings", "labels")
settings = {"epochs": 25, "hidden_channels": 8, "heads": 2, "num_layers": 2, "lr": 0.01, "warmup": 2}
run = ltga.fit(graphs, "frozen-q2.0", protocol=settings)  # sparse by decree; "ltga-head" learns how sparse to be
area = run.metrics["roc_auc"]
print(f"mean ROC AUC over labels {area:.2f}, unknown ones left out")

inside = ltga.explain(run, graphs)  # in a notebook, `inside` on a line of its own shows the page
print(inside.labels().round(2).to_string(index=False))  # a row per label
table = inside.graphs()  # a row per graph: labels, prediction, how much of it is ignored
print(table.sort_values("ignored_share").tail(3).round(3).to_string(index=False))

most = int(table["ignored_share"].argmax())
edges = inside.edges_of(most)
unused = edges[~edges["self_loop"] & (edges["ignored_by"] > 0)]
print(
    f"graph {most}: {len(unused)} of {len(edges) - int(table['nodes'][most])} directed edges are ignored by some head"
)
