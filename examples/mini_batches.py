"""Mini-batches for a graph whose activations do not fit into memory: by hand, and with ltga.fit."""

import torch
import torch.nn.functional as F

import ltga
from ltga.data import NeighborSampler, csbm

dataset = csbm(num_nodes=4000, degree=8, snr=1.5, num_splits=1)
data = dataset.data
train, val, test = dataset.split(0)

# By hand. The sampler draws ahead in a thread; batches from PyG's NeighborLoader look the same.
torch.manual_seed(0)
model = ltga.LTGA(data.num_features, dataset.num_classes, hidden_channels=16, heads=4, index="head")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loader = NeighborSampler(data, fanout=[5, 5], nodes=train, batch_size=256)
for epoch in range(3):
    model.train()
    for batch in loader:
        optimizer.zero_grad()
        out = model(batch.x, batch.edge_index)[: batch.batch_size]  # the seeds come first
        loss = F.cross_entropy(out, batch.y[: batch.batch_size])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss of the last batch {loss.item():.3f}, {batch.num_nodes} of {data.num_nodes} nodes in it")

# Exact predictions without ever holding the whole graph: all neighbours of 500 nodes at a time.
model.eval()
right = total = 0
with torch.no_grad():
    for batch in NeighborSampler(data, fanout=[-1, -1], nodes=test, batch_size=500, shuffle=False):
        predicted = model(batch.x, batch.edge_index)[: batch.batch_size].argmax(dim=1)
        right += int((predicted == batch.y[: batch.batch_size]).sum())
        total += batch.batch_size
accuracy = right / total
print(f"by hand: test accuracy {accuracy:.3f}")

# The same in one call: warm-up of q, early stopping, the best epoch kept, exact layer-by-layer evaluation.
run = ltga.fit(
    dataset,
    "ltga-head",
    protocol={"epochs": 6, "hidden_channels": 16, "heads": 4, "warmup": 2},
    minibatch={"batch_size": 256, "fanout": (5, 5), "block": 1000},
)
print(f"ltga.fit: test accuracy {run.metrics['accuracy']:.3f}")
