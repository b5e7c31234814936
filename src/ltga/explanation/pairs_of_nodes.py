"""``Links``: what attention did at both ends of pairs of nodes that may have an edge, of one type or of several."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data import LinkSplit, Triples
from ltga.errors import InputError
from ltga.explanation.result import Explanation
from ltga.nn.decoders import LinkNetwork, TypedLinkNetwork
from ltga.train.devices import device_of, moved
from ltga.train.tasks.link_task import LinkTask
from ltga.train.tasks.objectives import Ranks
from ltga.train.tasks.task_options import TaskOptions
from ltga.train.tasks.task_scores import ranks_of
from ltga.train.tasks.typed_task import TypedTask


@dataclass(frozen=True, eq=False, repr=False)
class Links(Explanation):
    """An explanation of link prediction; the graph is the one of the training edges, both directions of each.

    Attributes:
        model: the trained network.
        encoded: ``[N, width]`` nodes as it encodes them.
    """

    model: Any
    encoded: np.ndarray

    def candidates(self) -> pd.DataFrame:
        """The pairs of the test part that the run was judged by, one row each.

        ``first`` and ``second`` are node numbers (``_id`` their ids), ``edge`` says whether the pair is a held-out
        edge, ``score`` is the model's logit, ``rank`` that of an edge among the ``among`` candidates it was compared
        with, ``common`` counts the neighbours that both have in the training graph, ``degree`` is that of each end.
        """
        raise NotImplementedError

    @cached_property
    def adjacency(self) -> scipy.sparse.csr_matrix:
        """The training graph as a symmetric matrix of 0 and 1, whatever the types of its edges."""
        rows, columns = self.graph.edge_index.numpy()
        shape = (self.num_nodes, self.num_nodes)
        once = scipy.sparse.csr_matrix((np.ones(rows.size), (rows, columns)), shape=shape)
        either = once + once.T
        either.setdiag(0)
        either.eliminate_zeros()
        either.data[:] = 1
        return either

    def common(self, first: int, second: int) -> np.ndarray:
        """The neighbours that two nodes have in common in the training graph."""
        near, other = (self.adjacency.indices[slice(*self.adjacency.indptr[at : at + 2])] for at in (first, second))
        return np.intersect1d(near, other)

    def pair(self, first: int | str, second: int | str) -> pd.DataFrame:
        """What two nodes attend to: the rows of :meth:`edges` that end in either, and which neighbours are common."""
        ends = self.find(first), self.find(second)
        if ends[0] == ends[1]:
            raise InputError(f"pair: both ends are node {first}; give two nodes")
        frame = self.edges()
        rows = pd.concat([frame[self.edge_index[1] == end] for end in ends])
        rows.insert(0, "common", np.isin(self.edge_index[0, rows.index], self.common(*ends)))
        heaviest = [f"mean_weight_layer{self.num_layers}"]
        order = rows["target"].map({end: place for place, end in enumerate(ends)})
        rows = rows.assign(_place=order).sort_values(["_place", *heaviest], ascending=[True, False], kind="stable")
        return rows.drop(columns="_place")

    def _described(self, pairs: np.ndarray) -> dict[str, Any]:
        """Ends ``[2, P]``, their ids, and what they have in common in the training graph."""
        first, second = pairs
        degree = np.diff(self.adjacency.indptr)
        columns: dict[str, Any] = {"first": first, "second": second}
        if self.node_ids is not None:
            ids = np.array(self.node_ids, dtype=object)
            columns |= {"first_id": ids[first], "second_id": ids[second]}
        shared = self.adjacency[first].multiply(self.adjacency[second]).sum(axis=1)
        columns["common"] = np.asarray(shared).ravel().astype(int)
        return columns | {"first_degree": degree[first], "second_degree": degree[second]}


@dataclass(frozen=True, eq=False, repr=False)
class PlainLinks(Links):
    """An explanation of link prediction without types."""

    dataset: LinkSplit
    model: LinkNetwork

    @torch.no_grad()
    def score(self, pairs: np.ndarray) -> Tensor:
        """The logits of ``pairs`` ``[2, ...]`` of nodes."""
        place = device_of(self.model)
        return self.model.score(*moved((torch.from_numpy(self.encoded), torch.from_numpy(pairs)), place)).cpu()

    def probability(self, pairs: np.ndarray) -> np.ndarray:
        """How probable the model finds an edge for each of ``pairs`` ``[2, ...]``."""
        found: np.ndarray = self.score(pairs).sigmoid().numpy()
        return found

    def candidates(self) -> pd.DataFrame:
        options = TaskOptions.of_record(self.typed.config.options)
        task = LinkTask((None, self.graph.edge_index, None), self.dataset, Ranks("mrr", True), options, 0)
        pairs = task.ranked("test", options.negatives)  # [2, P, 1 + each]
        score = self.score(pairs.numpy())  # not the probability, which is 1 for many
        ranks = ranks_of(score, torch.zeros(len(score), dtype=torch.long)).numpy()
        among = pairs.shape[-1]
        flat = pairs.reshape(2, -1).numpy()
        edge = np.zeros(pairs.shape[1:], dtype=bool)
        edge[:, 0] = True
        described = self._described(flat)
        described |= {
            "edge": edge.reshape(-1),
            "score": score.numpy().reshape(-1),
            "probability": score.sigmoid().numpy().reshape(-1),
            "rank": np.where(edge, ranks[:, None], np.nan).reshape(-1),
            "among": among,
        }
        return pd.DataFrame(described)


@dataclass(frozen=True, eq=False, repr=False)
class TypedLinks(Links):
    """An explanation of typed link prediction: a pair is a question (head, relation) and its right answer."""

    dataset: Triples
    model: TypedLinkNetwork

    @cached_property
    def _graph(self) -> Data:
        return self.dataset.graph(self.typed.config.split)

    @property
    def graph(self) -> Data:
        return self._graph

    @property
    def node_ids(self) -> tuple[str, ...]:
        return self.dataset.node_names

    @property
    def node_names(self) -> None:
        return None

    @property
    def relations(self) -> list[str]:
        """The names of all types of edges that attention sees: each relation, and its way back."""
        names = list(self.dataset.relation_names)
        return names + [f"{name} (back)" for name in names]

    def about_edges(self) -> dict[str, np.ndarray]:
        names = np.array([*self.relations, ""], dtype=object)  # an added self-loop has none
        types = np.append(self.graph.edge_type.numpy(), len(names) - 1)
        return {"relation": names[types[self.position]]}

    @torch.no_grad()
    def candidates(self) -> pd.DataFrame:
        """As of all links; ``relation`` is the question's, ``best`` the answer that the model ranks first.

        Ranks and probabilities are among all nodes that are no other right answer.
        """
        task = TypedTask(self.dataset, self.typed.config.split, Ranks("mrr", pairwise=False))
        rows = task.parts["test"]
        queries, answers = task.queries[:, rows], task.y[rows]
        logits = self.model.score(*moved((torch.from_numpy(self.encoded), queries), device_of(self.model))).cpu()
        logits = logits.masked_fill(task.others("test"), -torch.inf)
        described = self._described(torch.stack([queries[0], answers]).numpy())
        described |= {
            "edge": True,
            "relation": np.array(self.relations, dtype=object)[queries[1].numpy()],
            "score": logits.gather(1, answers.unsqueeze(1)).squeeze(1).numpy(),
            "probability": logits.softmax(1).gather(1, answers.unsqueeze(1)).squeeze(1).numpy(),
            "rank": ranks_of(logits, answers).numpy(),
            "among": torch.isfinite(logits).sum(1).numpy(),
            "best": logits.argmax(1).numpy(),
        }
        return pd.DataFrame(described)
