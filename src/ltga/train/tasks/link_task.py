"""Links of a graph: a held-out edge is to be told from pairs of nodes without one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from ltga.data.links import NEGATIVES, LinkSplit, Part
from ltga.errors import InputError
from ltga.nn.decoders import LinkNetwork
from ltga.nn.interface import Network
from ltga.train.assembly import inputs_of, make_model, shape_of
from ltga.train.devices import CPU, device_of, moved, pinned
from ltga.train.minibatch import MiniBatch
from ltga.train.observe import attention_numbers
from ltga.train.predict import as_trained
from ltga.train.protocol import Protocol
from ltga.train.tasks.objectives import Ranks, metric_for
from ltga.train.tasks.prepared import Observed, Prepared
from ltga.train.tasks.task_options import TaskOptions
from ltga.train.tasks.task_scores import link_scores

AT_A_TIME = 5  # parts of the training edges that an epoch asks for in turn


def shape(links: LinkSplit) -> dict[str, Any]:
    return shape_of(links.data, 1)


def only_names(links: LinkSplit) -> bool:
    """Whether no two nodes share a feature: carried along in a residual connection, they would be learned by heart.

    >>> from ltga.data import csbm, split_links
    >>> only_names(split_links(csbm(num_nodes=60).data))
    False
    """
    return bool(((links.data.x != 0).sum(0) <= 1).all())


def build(method: str, protocol: Protocol, shape: Mapping[str, Any], options: TaskOptions) -> Network:
    width, _ = protocol.size
    encoder = make_model(method, protocol, {**shape, "num_classes": width})
    return LinkNetwork(encoder, width, options.decoder, protocol.dropout)


@dataclass(frozen=True, eq=False)
class LinkStep:
    """Some training edges beside pairs without one, and the graph of the others.

    Attributes:
        edge_index: what is passed along: the training graph without the edges that are asked for.
        train: the numbers of these ``[P]``.
        pairs: ``[2, P, 3]``; the first of each row is the edge.
    """

    x: Any
    edge_index: Tensor
    pairs: Tensor
    train: Tensor
    y: Tensor
    target: Ranks

    def train_logits(self, model: Network) -> Tensor:
        out: Tensor = model(self.x, self.edge_index, None, self.pairs)
        return out


@dataclass(frozen=True, eq=False)
class LinkTask:
    """A graph without its held-out edges, and those.

    Training sees the training graph alone. An epoch asks for a fifth of its edges at a time, with messages along the
    others only: a network that is asked for edges it can see learns to see, and nothing about edges it cannot. Against
    every edge (u, v) stand one pair (u, w) with any node w, and one whose w is two steps away, neither of them a
    training edge. All of it is drawn anew every epoch, by seed and number.
    """

    inputs: tuple[Any, Tensor, Tensor | None]
    links: LinkSplit
    target: Ranks
    options: TaskOptions
    seed: int
    device: torch.device = CPU

    @cached_property
    def train(self) -> Tensor:
        return torch.arange(self.links.train.shape[1], device=self.device)

    @cached_property
    def val(self) -> Tensor:
        return torch.arange(self.links.val.shape[1], device=self.device)

    @cached_property
    def y(self) -> Tensor:
        """The right one of every row is its first."""
        return torch.zeros(max(len(self.train), len(self.val)), dtype=torch.long, device=self.device)

    def steps(self, epoch: int) -> Iterator[LinkStep]:
        generator = torch.Generator().manual_seed((self.seed << 20) + epoch)
        edges = self.links.train
        for chosen in torch.randperm(edges.shape[1], generator=generator).chunk(AT_A_TIME):
            others = torch.ones(edges.shape[1], dtype=torch.bool)
            others[chosen] = False
            half = edges[:, others]
            graph = torch.cat([half, half.flip(0)], dim=1)
            pairs = self._walks.beside(edges[:, chosen], generator)
            graph, pairs, chosen = moved(pinned((graph, pairs, chosen), self.device), self.device)
            yield LinkStep(self.inputs[0], graph, pairs, chosen, self.y, self.target)

    def train_logits(self, model: Network) -> Tensor:
        return self.scores(model, self.links.train.unsqueeze(-1))

    def val_logits(self, model: Network) -> Tensor:
        return self.scores(model, self.ranked("val", self.options.negatives))

    def scores(self, model: Network, pairs: Tensor) -> Tensor:
        out: Tensor = model(*self.inputs, moved(pairs, self.device))
        return out

    def ranked(self, part: Part, kind: Any) -> Tensor:
        """Pairs ``[2, P, 1 + each]``: every edge of a part, and what stands against it."""
        if (part, kind) not in self._drawn:
            against = self.links.negatives(part, kind, self.options.each)
            pairs = torch.cat([self.links.positives(part).unsqueeze(-1), against], dim=-1)
            self._drawn[part, kind] = moved(pairs, self.device)
        return self._drawn[part, kind]

    @cached_property
    def _drawn(self) -> dict[tuple[str, str], Tensor]:
        return {}

    @cached_property
    def _walks(self) -> Walks:
        return Walks(self.links.data.edge_index, self.links.data.x.shape[0])


class Walks:
    """Draws pairs of nodes without a training edge.

    >>> ring = torch.stack([torch.arange(6), (torch.arange(6) + 1) % 6])
    >>> both = torch.cat([ring, ring.flip(0)], dim=1)
    >>> pairs = Walks(both, 6).beside(ring, torch.Generator().manual_seed(0))
    >>> pairs.shape, sorted(set(((pairs[1, :, 2] - pairs[0, :, 2]) % 6).tolist()) - {2, 4})
    (torch.Size([2, 6, 3]), [])
    """

    def __init__(self, edge_index: Tensor, nodes: int) -> None:
        self._nodes = nodes
        codes, _ = (edge_index[0] * nodes + edge_index[1]).sort()
        self._codes = codes
        self._to = codes % nodes
        self._degree = torch.bincount(codes // nodes, minlength=nodes)
        self._start = self._degree.cumsum(0) - self._degree

    def beside(self, edges: Tensor, generator: torch.Generator, tries: int = 8) -> Tensor:
        """Pairs ``[2, P, 3]``: edges ``[2, P]``, and for each a random pair and one two steps apart at one end."""
        flip = torch.rand(edges.shape[1], generator=generator) < 0.5
        near = torch.where(flip, edges[1], edges[0])
        anywhere = self._free(near, lambda u: torch.randint(self._nodes, u.shape, generator=generator), tries)
        for at in (anywhere < 0).nonzero().flatten().tolist():  # nearly everybody is a neighbour: look for the others
            others = self._strangers(int(near[at]))
            if len(others):
                anywhere[at] = others[torch.randint(len(others), (), generator=generator)]
        walked = self._free(near, lambda u: self._step(self._step(u, generator), generator), tries)
        # Where a node's neighbours know nobody else, any node stands in.
        walked = torch.where(walked < 0, anywhere, walked)
        far = torch.stack([torch.where(flip, edges[0], edges[1]), anywhere, walked], dim=-1)
        far = torch.where(far < 0, near.unsqueeze(-1), far)  # a node with an edge to all others: itself
        return torch.stack([near.unsqueeze(-1).expand_as(far), far])

    def _strangers(self, node: int) -> Tensor:
        free = torch.ones(self._nodes, dtype=torch.bool)
        free[self._to[self._start[node] : self._start[node] + self._degree[node]]] = False
        free[node] = False
        return free.nonzero().squeeze(1)

    def _step(self, at: Tensor, generator: torch.Generator) -> Tensor:
        share = torch.rand(at.shape, generator=generator)
        return self._to[self._start[at] + (share * self._degree[at]).long().clamp(max=self._degree[at] - 1)]

    def _free(self, near: Tensor, draw: Any, tries: int) -> Tensor:
        """A partner for each node that it has no edge to and is not itself; -1 where none was drawn."""
        found = torch.full_like(near, -1)
        for _ in range(tries):
            missing = (found < 0).nonzero().squeeze(1)
            if len(missing) == 0:
                break
            asked = near[missing]
            partner = draw(asked)
            code = asked * self._nodes + partner
            at = torch.searchsorted(self._codes, code).clamp(max=len(self._codes) - 1)
            good = (self._codes[at] != code) & (partner != asked)
            found[missing[good]] = partner[good]
        return found


def prepare(
    links: LinkSplit,
    split: int,
    model: Network,
    protocol: Protocol,
    options: TaskOptions,
    seed: int,
    minibatch: MiniBatch | None,
) -> Prepared:
    assert isinstance(model, LinkNetwork)
    metric = metric_for("ranks", "mrr", protocol, links.task)
    device = device_of(model)
    inputs = moved(inputs_of(links.data, model.encoder, protocol), device)
    task = LinkTask(inputs, links, Ranks(metric, True), options, seed, device)

    def observe(trained: Network) -> Observed:
        return _observe(trained, task)

    return Prepared(task, observe, {"kind": "link", "names": ["edge"]})


@torch.no_grad()
def _observe(model: Network, task: LinkTask) -> Observed:
    model.eval()
    options, links = task.options, task.links
    assert isinstance(model, LinkNetwork)
    nodes = model.encode(*task.inputs)

    def measured(part: Part, kind: Any) -> dict[str, float]:
        return link_scores(model.score(nodes, task.ranked(part, kind)).cpu())

    metrics = {part: measured(part, options.negatives) for part in ("val", "test")}  # type: ignore[arg-type]
    against = {kind: measured("test", kind) for kind in NEGATIVES if kind != options.negatives}
    numbers: dict[str, Any] = {
        "metrics": metrics,
        "test_against": against,
        "hard_enough": links.hard_enough("test", options.negatives, options.each),  # type: ignore[arg-type]
    }
    layers = model.attention_weights(*task.inputs)
    if layers is not None:
        numbers["attention"] = attention_numbers(layers, links.data.x.shape[0], model)
    return numbers, {"nodes": nodes.cpu().numpy()}


@torch.no_grad()
def probabilities(model: Network, shape: Mapping[str, int | None], data: Any, pairs: Any) -> Tensor:
    """How probable an edge is for each of ``pairs`` ``[2, P]`` of nodes of a graph whose edges are known so far.

    As in training, messages pass both ways along every edge, once, and never from a node to itself.
    """
    graph = data.data if hasattr(data, "data") and not isinstance(data, Data) else data
    if not isinstance(graph, Data):
        raise InputError(f"data: expected a PyG Data or a LinkSplit, got {type(data).__name__}")
    # A network for links is made without the attributes of edges: of those that are asked for nobody knows any.
    graph = as_trained(Data(x=graph.get("x"), edge_index=graph.get("edge_index")), shape)
    known = to_undirected(remove_self_loops(graph.edge_index)[0], num_nodes=graph.x.shape[0])
    if not isinstance(pairs, Tensor) or pairs.dim() != 2 or pairs.shape[0] != 2 or pairs.is_floating_point():
        raise InputError("pairs: expected whole numbers of shape [2, pairs], the nodes at both ends")
    if pairs.numel() and not 0 <= int(pairs.min()) <= int(pairs.max()) < graph.x.shape[0]:
        raise InputError(f"pairs: nodes are numbered 0 to {graph.x.shape[0] - 1}, got one outside")
    model.eval()
    out: Tensor = model(*moved((graph.x, known, None, pairs), device_of(model)))
    return out.sigmoid().cpu()
