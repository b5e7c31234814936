"""Complete a small graph of typed links: who is whose grandparent, if only parents and some grandparents are known."""

import torch

import ltga
from ltga.data import Triples

# Forty families of five generations, each a chain: parent of, and grandparent of.
chains = torch.arange(200).reshape(40, 5)
parent = torch.stack([chains[:, :-1].flatten(), chains[:, 1:].flatten()])
grandparent = torch.stack([chains[:, :-2].flatten(), chains[:, 2:].flatten()])
edge_index = torch.cat([parent, grandparent], dim=1)
edge_type = torch.cat([torch.zeros(160), torch.ones(120)]).long()

# A tenth of the grandparents is held out for validation, another for the test.
number = torch.arange(280)
val, test = (edge_type == 1) & (number % 10 == 0), (edge_type == 1) & (number % 10 == 5)
people = [f"person {person}" for person in range(200)]
family = Triples("family", edge_index, edge_type, ~val & ~test, val, test, people, ["parent of", "grandparent of"])
print(family)

settings = {"epochs": 60, "hidden_channels": 8, "heads": 4, "dropout": 0.1}
for method in ("features", "ltga-head"):  # embeddings alone, and with what attention reads from relatives
    run = ltga.fit(family, method, protocol=settings)
    hits = run.metrics["hits_at_10"]
    print(f"{method:10s} filtered MRR {run.metrics['mrr']:.2f}, among the first ten of 200 {hits:.2f}")

head, tail = family.edge_index[:, test][:, 0].tolist()
first = run.predict_proba(family, torch.tensor([[head], [1]]))[0].topk(5).indices.tolist()
print(f"person {head} is the grandparent of person {tail}; asked, the model says, most probable first: {first}")
