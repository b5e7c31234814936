"""A heterogeneous graph: authors and papers, with LTGAConv for every kind of edge in PyG's HeteroConv."""

import torch
import torch.nn.functional as F
from torch_geometric.data import HeteroData
from torch_geometric.nn import HeteroConv
from torch_geometric.transforms import ToUndirected

from ltga.nn import LTGAConv

# Papers have a topic; authors write mostly on one topic, and papers mostly cite their own.
torch.manual_seed(0)
topic, interest = torch.randint(0, 3, (300,)), torch.randint(0, 3, (100,))


def mostly(first, second, count):
    """Random pairs, four of five between equals."""
    pairs = torch.stack([torch.randint(0, len(first), (count,)), torch.randint(0, len(second), (count,))])
    return pairs[:, (first[pairs[0]] == second[pairs[1]]) | (torch.rand(count) < 0.125)]


data = HeteroData()
data["paper"].x = F.one_hot(topic, 16).float() + torch.randn(300, 16)
data["paper"].y = topic
data["author"].x = torch.randn(100, 8)  # says nothing; only the links do
data["author", "writes", "paper"].edge_index = mostly(interest, topic, 2000)
data["paper", "cites", "paper"].edge_index = mostly(topic, topic, 2000)
data = ToUndirected()(data)  # adds the reverse of every kind of edge


class Net(torch.nn.Module):
    def __init__(self, metadata):
        super().__init__()
        # -1: sizes are found at the first call. Between different kinds of nodes there are no self-loops.
        self.conv1 = HeteroConv({kind: LTGAConv((-1, -1), 8, heads=2, add_self_loops=False) for kind in metadata[1]})
        self.conv2 = HeteroConv({kind: LTGAConv((-1, -1), 3, add_self_loops=False) for kind in metadata[1]})

    def forward(self, x_dict, edge_index_dict):
        x_dict = {kind: F.elu(x) for kind, x in self.conv1(x_dict, edge_index_dict).items()}
        return self.conv2(x_dict, edge_index_dict)["paper"]


model = Net(data.metadata())
with torch.no_grad():
    model(data.x_dict, data.edge_index_dict)  # initialise lazy sizes
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
train = torch.arange(300) < 150
for _ in range(60):
    optimizer.zero_grad()
    out = model(data.x_dict, data.edge_index_dict)
    loss = F.cross_entropy(out[train], topic[train])
    loss.backward()
    optimizer.step()

accuracy = (model(data.x_dict, data.edge_index_dict).argmax(dim=1) == topic)[~train].float().mean().item()
print(f"accuracy on papers not trained on: {accuracy:.3f}")
for kind, conv in model.conv1.convs.items():
    print(" ".join(kind), "q =", [round(q, 3) for q in conv.index.q().tolist()])
