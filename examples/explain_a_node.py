"""Why this class? Which neighbours a node listens to, which it ignores, and whether those were noise."""

import ltga

dataset = ltga.load_dataset("digits-noise")  # the planted noise edges are known: data.planted_edge
data = dataset.data
settings = {"epochs": 50, "lr": 0.03, "warmup": 5, "hidden_channels": 8, "heads": 2}
run = ltga.fit(dataset, "ltga-layer", protocol=settings)  # one q per layer, shared by its heads
probabilities = run.predict_proba(data)

# Per layer: edge_index, logits, q and weights [E, heads]; the caller's edges first, then a self-loop per node.
layers = run.model.attend(data.x, data.edge_index)
for number, layer in enumerate(layers, start=1):
    zeros = (layer.weights == 0).float().mean().item()
    print(f"layer {number}: q = {layer.q[0, 0]:.2f}, {zeros:.0%} of the weights are exactly zero")

first, planted = layers[0], data.planted_edge
zero = first.weights[: data.num_edges] == 0  # [E, heads], without the self-loops
share = planted.unsqueeze(1).expand_as(zero)[zero].float().mean().item()
print(f"{share:.0%} of the zeros are on planted edges, which are {planted.float().mean():.0%} of all edges")

# One node: the one with most neighbours that every head ignores.
ignored = zero.all(dim=1)
node = int(data.edge_index[1, ignored].bincount(minlength=data.num_nodes).argmax())
guess = int(probabilities[node].argmax())
print(f"\nnode {node} is a {int(data.y[node])}, predicted {guess} with probability {probabilities[node, guess]:.2f}")
incoming = (first.edge_index[1] == node).nonzero().squeeze(1)
for edge in sorted(incoming.tolist(), key=lambda edge: -first.weights[edge].mean()):
    neighbour = int(first.edge_index[0, edge])
    kind = "itself" if neighbour == node else "planted" if planted[edge] else "true neighbour"
    heads = " ".join(f"{weight:.3f}" if weight else "  -  " for weight in first.weights[edge].tolist())
    print(f"  {neighbour:5d}, a {int(data.y[neighbour])}  {heads}  {kind}")
