"""LTGAConv in an ordinary PyG training loop: where GATv2Conv would stand, and nothing else changes."""

import torch
import torch.nn.functional as F

from ltga import LTGAConv, load_dataset


class Net(torch.nn.Module):
    def __init__(self, in_channels, hidden, classes):
        super().__init__()
        self.conv1 = LTGAConv(in_channels, hidden, heads=4, dropout=0.3)
        self.conv2 = LTGAConv(4 * hidden, classes, concat=False)

    def forward(self, x, edge_index):
        x = F.dropout(x, 0.3, self.training)
        x = F.elu(self.conv1(x, edge_index))
        return self.conv2(x, edge_index)


torch.manual_seed(0)
dataset = load_dataset("digits-noise")  # handwritten digits; three of four edges are planted noise
data = dataset.data
train, val, test = dataset.split(0)

model = Net(data.num_features, 16, dataset.num_classes)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(1, 51):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(data.x, data.edge_index)[train], data.y[train])
    loss.backward()
    optimizer.step()
    if epoch % 10 == 0:
        q = [round(value, 2) for value in model.conv1.index.q().tolist()]
        print(f"epoch {epoch}: loss {loss.item():.3f}, q of the first layer's heads {q}")

model.eval()
predicted = model(data.x, data.edge_index).argmax(dim=1)
accuracy = (predicted[test] == data.y[test]).float().mean().item()
print(f"test accuracy {accuracy:.3f}")
