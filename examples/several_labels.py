"""Give each node any of several labels, some of which nobody knows."""

import torch

import ltga
from ltga.data import NodeDataset, digits_noise, make_target, neighbour_classes

# Which digits does an image have among its neighbours? 1,797 images; a third of the answers is taken away.
whole = neighbour_classes(digits_noise(planted_per_edge=0.2))
labels = whole.data.y.clone()
labels[torch.rand(labels.shape, generator=torch.Generator().manual_seed(0)) < 1 / 3] = float("nan")
dataset = NodeDataset("neighbouring-digits", whole.data, make_target(labels, "labels", names=whole.target.names))
print(dataset)

settings = {"epochs": 20, "hidden_channels": 8, "heads": 4, "lr": 0.02}
run = ltga.fit(dataset, "ltga-head", protocol=settings)
precision = run.metrics["average_precision"]
print(f"micro-F1 {run.metrics['micro_f1']:.2f}, average precision {precision:.2f}, on known labels of the test nodes")

# The answers that were taken away were never seen; they can be compared now.
hidden = labels.isnan()
agreement = (run.predict(dataset)[hidden] == whole.data.y[hidden]).float().mean().item()
print(f"of {int(hidden.sum()):,} hidden labels {100 * agreement:.0f} % are predicted right")
