"""Networks for links: two encoded nodes are compared, by a relation where links are of several types."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ltga.nn.composed import Composed
from ltga.nn.interface import Network


class LinkNetwork(Composed):
    """An encoder of nodes, and how much two nodes look like the ends of an edge: the same in both directions.

    Args:
        encoder: gives every node ``width`` numbers.
        width: see above.
        decoder: ``"dot"``, the product of both ends, or ``"mlp"``, a perceptron on their elementwise product. Both read
            nodes of one length (layer normalisation), else products of small numbers give nothing to learn from.
        dropout: probability of dropping what the perceptron reads.

    >>> from ltga.nn import LTGA
    >>> model = LinkNetwork(LTGA(4, 8, hidden_channels=2, heads=2), 8, "dot")
    >>> nodes = model.encode(torch.randn(5, 4), torch.tensor([[0, 2], [1, 3]]))
    >>> model.score(nodes, torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
    torch.Size([3])
    """

    def __init__(self, encoder: Network, width: int, decoder: str = "dot", dropout: float = 0.0) -> None:
        super().__init__(encoder, dropout)
        self.first = nn.Linear(width, width) if decoder == "mlp" else None
        self.last = nn.Linear(width, 1) if decoder == "mlp" else None
        self.bias = nn.Parameter(torch.zeros(())) if decoder == "dot" else None

    def score(self, nodes: Tensor, pairs: Tensor) -> Tensor:
        """The logits of pairs ``[2, ...]`` of encoded nodes ``[N, width]``."""
        nodes = F.layer_norm(nodes, nodes.shape[-1:])
        product = nodes[pairs[0]] * nodes[pairs[1]]
        if self.first is None or self.last is None:
            return product.sum(-1) / nodes.shape[-1] ** 0.5 + self.bias
        out: Tensor = self.last(self.drop(F.relu(self.first(product))))
        return out.squeeze(-1)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, pairs: Tensor) -> Tensor:
        return self.score(self.encode(x, edge_index, edge_attr), pairs)


class TypedLinkNetwork(Composed):
    """Embeddings of nodes and relations, an encoder on top, and DistMult (Yang et al., 2015) to compare.

    A node without features starts as an embedding; the encoder reads those of its neighbours and of the relations
    between them, and what it makes of them is added. The score of (head, relation, tail) is the sum over
    ``head * relation * tail``; each relation has a second one for the way back, so that both ends can be asked for.

    Args:
        encoder: from ``width`` to ``width`` numbers per node, with edge attributes of ``width``.
        num_nodes, num_relations, width: sizes.
        dropout: probability of dropping a number of the query.
    """

    transductive = True

    def __init__(self, encoder: Network, num_nodes: int, num_relations: int, width: int, dropout: float = 0.0) -> None:
        super().__init__(encoder, dropout)
        self.nodes = nn.Parameter(torch.empty(num_nodes, width))
        self.edge_types = nn.Parameter(torch.empty(2 * num_relations, width))
        self.relations = nn.Parameter(torch.empty(2 * num_relations, width))
        for parameter in (self.nodes, self.edge_types, self.relations):
            nn.init.xavier_uniform_(parameter)

    def embed(self, edge_index: Tensor, edge_type: Tensor) -> Tensor:
        """Every node ``[N, width]`` after a look at the graph."""
        return self.nodes + self.encode(self.nodes, edge_index, self.edge_types[edge_type])

    def score(self, nodes: Tensor, queries: Tensor) -> Tensor:
        """The logits of all nodes ``[Q, N]`` as the answer to each (node, relation) of ``queries`` ``[2, Q]``."""
        return self.drop(nodes[queries[0]] * self.relations[queries[1]]) @ nodes.t()

    def forward(self, edge_index: Tensor, edge_type: Tensor, queries: Tensor) -> Tensor:
        return self.score(self.embed(edge_index, edge_type), queries)
