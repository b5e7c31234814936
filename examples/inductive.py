"""Train on one graph, predict on another that the model has never seen."""

import tempfile

import torch

import ltga
from ltga.data import digits_noise

# Two graphs without a node or an edge in common: the first 1,000 digits, and the other 797.
digits = digits_noise(planted_per_edge=1.0).data
known = digits.subgraph(torch.arange(1000))
new = digits.subgraph(torch.arange(1000, 1797))

run = ltga.fit(known, "ltga-edge", protocol={"epochs": 40, "lr": 0.02, "hidden_channels": 8, "heads": 4})
print(f"accuracy on the known graph's test nodes {run.metrics['accuracy']:.3f}")

predicted = run.predict(new)  # [797] classes
accuracy = (predicted == new.y).float().mean().item()
print(f"accuracy on the new graph                {accuracy:.3f}")

# The same later, from a file; and with bounded memory, 200 nodes at a time, for a graph that is large.
with tempfile.TemporaryDirectory() as folder:
    restored = ltga.load_run(run.save(folder))
probabilities = restored.predict_proba(new, batch_size=200)  # [797, 10]
print(f"largest difference between both ways     {(probabilities - run.predict_proba(new)).abs().max():.1e}")

# A node is added to the new graph: a digit we hold, linked to its three nearest neighbours.
digit = known.x[:1]
nearest = (new.x - digit).square().sum(dim=1).topk(3, largest=False).indices
grown = new.clone()
grown.x = torch.cat([new.x, digit])
grown.edge_index = torch.cat([new.edge_index, torch.stack([nearest, torch.full((3,), 797)])], dim=1)
print(f"the added digit is a {int(known.y[0])}, predicted {int(run.predict(grown)[-1])}")
