"""The `Triples` value: a graph of typed edges (head, relation, tail), some of them held out, and its reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data.facts import Facts, Task
from ltga.data.split_masks import HasSplits, check_masks, fingerprint_of, stacked
from ltga.data.text_files import read_text
from ltga.errors import DataError


class Triples(HasSplits):
    """Typed links: train, validation and test triples over the same nodes and relations.

    Args:
        name: what the graph is called in records and tables.
        edge_index: int64 `[2, T]`, heads and tails of all triples.
        edge_type: int64 `[T]`, their relations.
        train, val, test: boolean masks `[T]` (or `[S, T]`) of the triples.
        node_names, relation_names: a name each; their numbers are the positions.
        facts: the catalogue entry, for a known dataset.
        provenance: where it came from and how it was made.

    >>> part = torch.tensor([True, False, False])
    >>> edges = torch.tensor([[0, 1, 0], [1, 2, 2]])
    >>> rest = (part.roll(1), part.roll(2))
    >>> family = Triples("family", edges, torch.tensor([0, 0, 1]), part, *rest, "abc", ["parent", "grandparent"])
    >>> family
    Triples('family', 3 nodes, 2 relations, 1/1/1 triples)
    >>> family.true_tails(torch.tensor([0]), torch.tensor([0])).tolist()
    [[False, True, False]]
    """

    reading: Mapping[str, Any] | None = None  # how to read it again, see `ltga.data.readings`
    notes: tuple[str, ...] = ()  # what was done to a table on the way, a line each
    task: Task = "typed link prediction"
    metric = "mrr"

    def __init__(
        self,
        name: str,
        edge_index: Tensor,
        edge_type: Tensor,
        train: Tensor,
        val: Tensor,
        test: Tensor,
        node_names: Sequence[str],
        relation_names: Sequence[str],
        *,
        facts: Facts | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.edge_index = edge_index
        self.edge_type = edge_type
        self.node_names = tuple(node_names)
        self.relation_names = tuple(relation_names)
        self.facts = facts
        self.provenance = dict(provenance or {})
        self._masks = stacked(train, val, test)
        self._check()

    @property
    def num_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.node_names)

    @property
    def num_relations(self) -> int:
        """How many types of edges there are."""
        return len(self.relation_names)

    @property
    def fingerprint(self) -> str:
        """A sha256 of the triples and splits."""
        return fingerprint_of((self.edge_index, self.edge_type, *self._masks))

    def graph(self, split: int = 0, inverse: bool = True) -> Data:
        """What a model may see of a split: its training triples as `edge_index` and `edge_type`.

        With `inverse`, each is there a second time from tail to head, of type `relation + num_relations`.
        """
        train = self.split(split)[0]
        edge_index, edge_type = self.edge_index[:, train], self.edge_type[train]
        if inverse:
            edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
            edge_type = torch.cat([edge_type, edge_type + self.num_relations])
        return Data(edge_index=edge_index, edge_type=edge_type, num_nodes=self.num_nodes)

    def true_tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        """Which nodes `[B, N]` are a tail of (head, relation) in any part: those a filtered rank leaves out."""
        return self._true_ends(heads, relations, from_head=True)

    def true_heads(self, tails: Tensor, relations: Tensor) -> Tensor:
        """Which nodes `[B, N]` are a head of (relation, tail) in any part."""
        return self._true_ends(tails, relations, from_head=False)

    def _true_ends(self, given: Tensor, relations: Tensor, from_head: bool) -> Tensor:
        near, far = self.edge_index if from_head else self.edge_index.flip(0)
        codes = near * self.num_relations + self.edge_type  # [T]
        asked, row = torch.unique(given * self.num_relations + relations, return_inverse=True)
        at = torch.searchsorted(asked, codes).clamp(max=asked.numel() - 1)
        among = asked[at] == codes
        found = torch.zeros(asked.numel(), self.num_nodes, dtype=torch.bool)
        found[at[among], far[among]] = True
        return found[row]

    def _check(self) -> None:
        if self.edge_index.shape != (2, self.edge_type.shape[0]) or self.edge_index.dtype != torch.int64:
            raise DataError(
                f"{self.name}: expected int64 edge_index [2, {self.edge_type.shape[0]}], "
                f"got {self.edge_index.dtype} {list(self.edge_index.shape)}"
            )
        for what, numbers, count in (
            ("node", self.edge_index, self.num_nodes),
            ("relation", self.edge_type, self.num_relations),
        ):
            if numbers.numel() == 0 or int(numbers.min()) < 0 or int(numbers.max()) >= count:
                raise DataError(f"{self.name}: {what}s must be numbered 0 to {count - 1}")
        check_masks(self._masks, torch.ones(self.edge_type.shape[0], dtype=torch.bool), self.name, item="triple")
        codes = (self.edge_index[0] * self.num_relations + self.edge_type) * self.num_nodes + self.edge_index[1]
        if int(codes.unique().numel()) != codes.numel():
            raise DataError(f"{self.name}: a triple is there twice, perhaps in two parts; keep one of them")

    def __repr__(self) -> str:
        sizes = "/".join(str(int(mask.sum())) for mask in self.split(0))
        return f"Triples({self.name!r}, {self.num_nodes} nodes, {self.num_relations} relations, {sizes} triples)"


def read_triples(
    paths: Sequence[Path], name: str, facts: Facts | None = None, provenance: Mapping[str, Any] | None = None
) -> Triples:
    """The triples in three files of lines `head<TAB>relation<TAB>tail`: train, validation, test.

    Nodes and relations are numbered in alphabetical order. What occurs outside the training file only is refused:
    nothing could be learned of it.
    """
    parts = [_lines(path) for path in paths]
    rows = [row for part in parts for row in part]
    nodes = sorted({end for head, _, tail in rows for end in (head, tail)})
    relations = sorted({relation for _, relation, _ in rows})
    seen = {word for row in parts[0] for word in row}
    for path, part in zip(paths[1:], parts[1:]):
        unseen = next(((at, word) for at, row in enumerate(part) for word in row if word not in seen), None)
        if unseen is not None:
            raise DataError(f"{path}: line {unseen[0] + 1}: {unseen[1][:60]!r} is not in {paths[0].name}; leave it out")
    number = {word: at for at, word in enumerate(nodes)}
    kind = {word: at for at, word in enumerate(relations)}
    triples = torch.tensor([(number[head], kind[relation], number[tail]) for head, relation, tail in rows])
    part_of = torch.repeat_interleave(torch.arange(3), torch.tensor([len(part) for part in parts]))
    train, val, test = (part_of == part for part in range(3))
    edge_index, edge_type = triples[:, [0, 2]].t().contiguous(), triples[:, 1].contiguous()
    try:
        return Triples(
            name, edge_index, edge_type, train, val, test, nodes, relations, facts=facts, provenance=provenance
        )
    except DataError as error:
        raise DataError(f"{paths[0].parent}: {error}") from None


def _lines(path: Path) -> list[tuple[str, str, str]]:
    rows = []
    for at, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        words = [word.strip() for word in line.split("\t")]
        if len(words) != 3 or not all(words):
            raise DataError(f"{path}: line {at}: expected head, relation and tail with tabs between, got {line[:60]!r}")
        rows.append((words[0], words[1], words[2]))
    if not rows:
        raise DataError(f"{path}: there are no triples in it")
    return rows
