"""``Explanation``: what attention did on every edge of a graph, and the tables that follow from it for any task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from torch_geometric.data import Data

from ltga.errors import InputError
from ltga.explanation import export
from ltga.train.record import Record
from ltga.train.record_schema import RunRecord, typed

PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    r"""Logits, index and weights of every edge, layer and head of a trained model, without dropout.

    Edges come in the order of the graph's ``edge_index``; the self-loops that attention adds come last, one per node (a
    self-loop of the graph's own is replaced by it, as in PyG). What belongs to a task is in the subclasses:
    :class:`~ltga.explanation.node_classes.NodeClasses`, :class:`~ltga.explanation.node_values.NodeValues`,
    :class:`~ltga.explanation.pairs_of_nodes.Links` and :class:`~ltga.explanation.graphs.Graphs`.

    Attributes:
        record: the run's record.
        dataset: the data it was trained on.
        edge_index: ``[2, E]``, source and target.
        position: ``[E]``, where the edge stands in the graph's ``edge_index``; -1 for an added self-loop.
        logits, q, weights: ``[L, E, H]`` (layers, edges, heads). For entmax ``q`` is its alpha.
        normalizer: ``"q_softmax"``, ``"entmax"`` or ``"softmax"``.

    An edge is *ignored* by a head if its weight is exactly zero. That says what this model does not use, not that the
    edge is wrong.
    """

    record: Record
    dataset: Any
    edge_index: np.ndarray
    position: np.ndarray
    logits: np.ndarray
    q: np.ndarray
    weights: np.ndarray
    normalizer: str

    def __repr__(self) -> str:
        config = self.typed.config
        edges, zeros = int((~self.self_loop).sum()), self.zero_share
        return (
            f"{type(self).__name__}({config.method!r} on {self.dataset.name!r}: {self.num_nodes:,} nodes, {edges:,} "
            f"edges, {self.num_layers} layers x {self.num_heads} heads, {100 * zeros:.1f} % of weights exactly 0)"
        )

    def _repr_html_(self) -> str:
        """The page itself, of a small sample, in a frame of the notebook."""
        from ltga.explanation.page.notebook import framed

        return framed(self)

    @cached_property
    def typed(self) -> RunRecord:
        """The record by its attributes."""
        return typed(self.record)

    @property
    def graph(self) -> Data:
        """The graph that was attended to."""
        graph: Data = self.dataset.data
        return graph

    @property
    def num_nodes(self) -> int:
        return int(self.graph.num_nodes)  # type: ignore[arg-type]

    @property
    def num_layers(self) -> int:
        return int(self.weights.shape[0])

    @property
    def num_heads(self) -> int:
        return int(self.weights.shape[2])

    @property
    def node_ids(self) -> Sequence[str] | None:
        """What people call the nodes, if it is not their numbers: no two alike."""
        ids: Sequence[str] | None = getattr(self.dataset, "node_ids", None)
        return ids

    @property
    def node_names(self) -> Sequence[str] | None:
        """A name per node, if there is one; two may be alike."""
        names: Sequence[str] | None = getattr(self.dataset, "node_names", None)
        return names

    @property
    def self_loop(self) -> np.ndarray:
        """``[E]``: edges from a node to itself."""
        loops: np.ndarray = self.edge_index[0] == self.edge_index[1]
        return loops

    @cached_property
    def ignored(self) -> np.ndarray:
        """``[L, E, H]``: weights that are exactly zero; without q above 1 a zero is an underflow and not counted."""
        zero: np.ndarray = (self.weights == 0) & (self.q > 1)
        return zero

    @cached_property
    def ignored_by(self) -> np.ndarray:
        """``[L, E]``: how many heads of each layer ignore the edge."""
        counts: np.ndarray = self.ignored.sum(axis=2)
        return counts

    @property
    def unanimous(self) -> np.ndarray:
        """``[E]``: edges that every head of every layer ignores."""
        everywhere: np.ndarray = self.ignored_by.sum(axis=0) == self.num_layers * self.num_heads
        return everywhere

    @property
    def zero_share(self) -> float:
        """The share of all weights that are exactly zero, self-loops aside."""
        apart = ~self.self_loop
        return float(self.ignored[:, apart].mean()) if apart.any() else 0.0

    @property
    def planted(self) -> np.ndarray | None:
        """``[E]``: edges known to be noise, where the dataset says so (``data.planted_edge``)."""
        flag = self.graph.get("planted_edge")
        if flag is None:
            return None
        planted: np.ndarray = flag.cpu().numpy()[self.position] & (self.position >= 0)
        return planted

    @cached_property
    def entropy(self) -> np.ndarray:
        r"""``[L, N, H]``: :math:`-\sum_j w_{ij} \ln w_{ij}`, in nats."""
        wide = self.weights.astype(np.float64)
        return self._node_sums(-wide * np.log(np.where(wide > 0, wide, 1.0)))

    @cached_property
    def effective_neighbors(self) -> np.ndarray:
        r"""``[L, N, H]``: :math:`1 / \sum_j w_{ij}^2`; NaN for a node without neighbours."""
        squares = self._node_sums(np.square(self.weights, dtype=np.float64))
        return np.divide(1.0, squares, out=np.full_like(squares, np.nan), where=squares > 0)

    def about_nodes(self) -> dict[str, np.ndarray]:
        """What is known of every node beforehand, a column ``[N]`` each: its class, value or labels."""
        return {}

    def predictions(self) -> dict[str, np.ndarray]:
        """What the model says of every node, a column ``[N]`` each."""
        return {}

    def about_edges(self) -> dict[str, np.ndarray]:
        """What is known of every edge beforehand, a column ``[E]`` each."""
        return {}

    def edges(self) -> pd.DataFrame:
        """One row per edge: its ends, what is known of them, how many heads ignore it, its mean weight by layer."""
        columns = self._ends()
        for name, values in self.about_nodes().items():
            columns |= {f"{end}_{name}": values[at] for end, at in zip(("source", "target"), self.edge_index)}
        columns |= {"ignored": self.unanimous, "ignored_by": self.ignored_by.sum(axis=0)}
        for layer in range(self.num_layers):
            columns[f"ignored_by_layer{layer + 1}"] = self.ignored_by[layer]
            columns[f"mean_weight_layer{layer + 1}"] = self.weights[layer].mean(axis=1)
        if self.planted is not None:
            columns["planted"] = self.planted
        return pd.DataFrame(columns)

    def coefficients(self) -> pd.DataFrame:
        """One row per edge, layer and head (both counted from 1): logit, q, weight, whether ignored."""
        layers, edges, heads = self.weights.shape
        rows = np.tile(np.repeat(np.arange(edges), heads), layers)
        along = pd.DataFrame(self._ends()).take(rows).reset_index(drop=True)
        columns = {
            "layer": np.repeat(np.arange(1, layers + 1, dtype=np.int16), edges * heads),
            "head": np.tile(np.arange(1, heads + 1, dtype=np.int16), layers * edges),
            "logit": self.logits.reshape(-1),
            "q": self.q.reshape(-1),
            "weight": self.weights.reshape(-1),
            "ignored": self.ignored.reshape(-1),
        }
        return pd.concat([along, pd.DataFrame(columns)], axis=1)

    def nodes(self) -> pd.DataFrame:
        """One row per node: what is known, what is predicted, how many neighbours it attends to by layer (head means).

        ``neighbors`` counts incoming edges, the self-loop included; ``effective_neighbors`` is
        1 / sum of squared weights, ``exp_entropy`` the exponential of their Shannon entropy.
        """
        columns: dict[str, Any] = {"node": self.numbers}
        if self.node_ids is not None:
            columns["id"] = np.array(self.node_ids, dtype=object)
        columns |= self.about_nodes() | self.predictions()
        columns["neighbors"] = np.bincount(self.edge_index[1], minlength=self.num_nodes)
        if self.node_names is not None:
            columns["name"] = np.array(self.node_names, dtype=object)
        for layer in range(self.num_layers):
            number = layer + 1
            columns[f"effective_neighbors_layer{number}"] = self.effective_neighbors[layer].mean(axis=1)
            columns[f"exp_entropy_layer{number}"] = np.exp(self.entropy[layer]).mean(axis=1)
            columns[f"ignored_share_layer{number}"] = self._ignored_share(layer)
        return pd.DataFrame(columns)

    def heads(self) -> pd.DataFrame:
        """One row per layer and head: mean q over edges, share of exact zeros, effective neighbours."""
        rows = [
            {
                "layer": layer + 1,
                "head": head + 1,
                "q": float(self.q[layer, :, head].mean(dtype=np.float64)),
                "zero_fraction": float(self.ignored[layer, :, head].mean()),
                "effective_neighbors": float(np.nanmean(self.effective_neighbors[layer, :, head])),
                "exp_entropy": float(np.exp(self.entropy[layer, :, head]).mean()),
            }
            for layer in range(self.num_layers)
            for head in range(self.num_heads)
        ]
        return pd.DataFrame(rows)

    def neighbourhood(self, node: int | str) -> pd.DataFrame:
        """The rows of :meth:`edges` that end in ``node``, the heaviest in the last layer first.

        Args:
            node: its number or, as text, its id.
        """
        at = self.find(node)
        frame = self.edges()[self.edge_index[1] == at]
        return frame.sort_values(f"mean_weight_layer{self.num_layers}", ascending=False, kind="stable")

    def find(self, node: int | str) -> int:
        """The number of a node, from its number or, as text, its id."""
        if isinstance(node, str):
            return self._find_id(node)
        if isinstance(node, bool) or not isinstance(node, int | np.integer) or not 0 <= node < self.num_nodes:
            known = "" if self.node_ids is None else f"; ids are text, for example {self.node_ids[0]!r}"
            raise InputError(f"node: got {node!r}; the graph's nodes are numbered 0 to {self.num_nodes - 1}{known}")
        return int(node)

    @property
    def numbers(self) -> np.ndarray:
        """``[N]``: the number by which people know a node."""
        return np.arange(self.num_nodes)

    def pruned(self, share: float = 1.0) -> Data:
        """The graph without the edges that at least this share of all heads ignores; see ``export.pruned``."""
        return export.pruned(self, share)

    def to_parquet(self, path: str | Path) -> Path:
        """Write :meth:`coefficients` to a Parquet file; returns its path."""
        return export.write_parquet(self, path)

    def to_csv(self, path: str | Path) -> Path:
        """Write :meth:`edges` to a CSV file; returns its path."""
        return export.write_csv(self, path)

    def to_graphml(self, path: str | Path) -> Path:
        """Write nodes, edges and all coefficients to a GraphML file; returns its path."""
        return export.write_graphml(self, path)

    def _find_id(self, node: str) -> int:
        from ltga.data.find_node import position_of

        return position_of(node, self.node_ids, self.num_nodes, self.dataset.name)

    def _ends(self) -> dict[str, Any]:
        """The columns that say which edge a row is about; ids as categories, which repeat at no cost."""
        source, target = self.edge_index
        columns: dict[str, Any] = {"source": self.numbers[source], "target": self.numbers[target]}
        if self.node_ids is not None:
            ids = pd.Index(self.node_ids)
            columns["source_id"] = pd.Categorical.from_codes(source, categories=ids)  # type: ignore[arg-type]
            columns["target_id"] = pd.Categorical.from_codes(target, categories=ids)  # type: ignore[arg-type]
        columns |= {"position": self.position, "self_loop": self.self_loop}
        return columns | self.about_edges()

    def _node_sums(self, values: np.ndarray) -> np.ndarray:
        """Sums over the edges that end in each node: ``[L, E, H]`` to ``[L, N, H]``."""
        sums = np.zeros((self.num_layers, self.num_nodes, self.num_heads))
        for layer in range(self.num_layers):
            for head in range(self.num_heads):
                sums[layer, :, head] = np.bincount(self.edge_index[1], values[layer, :, head], self.num_nodes)
        return sums

    def _ignored_share(self, layer: int) -> np.ndarray:
        """``[N]``: share of a node's coefficients in a layer that are exactly zero."""
        target = self.edge_index[1]
        zeros = np.bincount(target, self.ignored_by[layer], self.num_nodes)
        total = np.bincount(target, minlength=self.num_nodes) * self.num_heads
        return np.divide(zeros, total, out=np.zeros(self.num_nodes), where=total > 0)
