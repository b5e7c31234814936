"""Find missing links of a graph, and say against which non-links they were told apart."""

import networkx as nx
import torch
from torch_geometric.data import Data

import ltga
from ltga.data import split_links
from ltga.train.tasks.references import references
from ltga.train.tasks.task_run import plan_task

# Fifteen circles of friends; nobody says who belongs to which, a node's only feature is its name.
friends = nx.random_partition_graph([10] * 15, 0.7, 0.005, seed=0)
edges = torch.tensor(list(friends.edges)).t()
links = split_links(Data(x=torch.eye(150), edge_index=edges), "friends", seed=0)  # 5 % and 10 % are held out

settings = {"epochs": 60, "hidden_channels": 16, "heads": 2, "dropout": 0.0}
for negatives in ("two-hop", "random"):  # hard, a friend of a friend who is no friend; and easy
    options = {"negatives": negatives}
    run = ltga.fit(links, "ltga-head", protocol=settings, options=options)
    heuristic = references(plan_task(links, "ltga-head", options=options))["common neighbours"]["test"]
    print(f"against {negatives} pairs: MRR {run.metrics['mrr']:.2f}, ROC AUC {run.metrics['roc_auc']:.2f}; "
          f"common neighbours {heuristic['mrr']:.2f}, {heuristic['roc_auc']:.2f}")  # fmt: skip
    area = run.metrics["roc_auc"]

pairs = torch.tensor([[0, 0], [1, 149]])
print("0 and 1, 0 and 149 are friends with probabilities", run.predict_proba(links, pairs).tolist())
