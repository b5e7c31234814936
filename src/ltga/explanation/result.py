"""``Explanation``: what attention did on every edge of a graph, and the tables that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from torch_geometric.data import Data

from ltga.data import Dataset
from ltga.errors import InputError
from ltga.explanation import export
from ltga.train.record import Record
from ltga.train.record_schema import RunRecord, typed

UNLABELLED = "(unlabelled)"
PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Explanation:
    r"""Logits, index and weights of every edge, layer and head of a trained model, without dropout.

    Edges come in the order of ``dataset.data.edge_index``; the self-loops that attention adds come last,
    one per node (a self-loop of the graph's own is replaced by it, as in PyG).

    Attributes:
        record: the run's record.
        dataset: the graph.
        log_probs: ``[N, C]`` predictions of the run.
        edge_index: ``[2, E]``, source and target.
        position: ``[E]``, where the edge stands in ``dataset.data.edge_index``; -1 for an added self-loop.
        logits, q, weights: ``[L, E, H]`` (layers, edges, heads). For entmax ``q`` is its alpha.
        normalizer: ``"q_softmax"``, ``"entmax"`` or ``"softmax"``.

    An edge is *ignored* by a head if its weight is exactly zero.
    """

    record: Record
    dataset: Dataset
    log_probs: np.ndarray
    edge_index: np.ndarray
    position: np.ndarray
    logits: np.ndarray
    q: np.ndarray
    weights: np.ndarray
    normalizer: str

    @cached_property
    def typed(self) -> RunRecord:
        """The record by its attributes."""
        return typed(self.record)

    @property
    def num_nodes(self) -> int:
        return len(self.log_probs)

    @property
    def num_layers(self) -> int:
        return int(self.weights.shape[0])

    @property
    def num_heads(self) -> int:
        return int(self.weights.shape[2])

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
    def planted(self) -> np.ndarray | None:
        """``[E]``: edges known to be noise, where the dataset says so (``data.planted_edge``)."""
        flag = self.dataset.data.get("planted_edge")
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

    def edges(self) -> pd.DataFrame:
        """One row per edge: its ends and classes, how many heads ignore it, its mean weight by layer."""
        names = self._label_names()
        source, target = self.edge_index
        columns = {
            "source": source,
            "target": target,
            "position": self.position,
            "self_loop": self.self_loop,
            "source_class": names[source],
            "target_class": names[target],
            "ignored": self.unanimous,
            "ignored_by": self.ignored_by.sum(axis=0),
        }
        for layer in range(self.num_layers):
            columns[f"ignored_by_layer{layer + 1}"] = self.ignored_by[layer]
            columns[f"mean_weight_layer{layer + 1}"] = self.weights[layer].mean(axis=1)
        if self.planted is not None:
            columns["planted"] = self.planted
        return pd.DataFrame(columns)

    def coefficients(self) -> pd.DataFrame:
        """One row per edge, layer and head (both counted from 1): logit, q, weight, whether ignored."""
        layers, edges, heads = self.weights.shape
        along_edges = {
            "source": self.edge_index[0],
            "target": self.edge_index[1],
            "position": self.position,
            "self_loop": self.self_loop,
        }
        columns = {name: np.tile(np.repeat(values, heads), layers) for name, values in along_edges.items()}
        columns |= {
            "layer": np.repeat(np.arange(1, layers + 1, dtype=np.int16), edges * heads),
            "head": np.tile(np.arange(1, heads + 1, dtype=np.int16), layers * edges),
            "logit": self.logits.reshape(-1),
            "q": self.q.reshape(-1),
            "weight": self.weights.reshape(-1),
            "ignored": self.ignored.reshape(-1),
        }
        return pd.DataFrame(columns)

    def nodes(self) -> pd.DataFrame:
        """One row per node: label, prediction, and how many neighbours it attends to, by layer (head means).

        ``neighbors`` counts incoming edges, the self-loop included; ``effective_neighbors`` is
        1 / sum of squared weights, ``exp_entropy`` the exponential of their Shannon entropy.
        """
        names = self._label_names()
        predicted = self.log_probs.argmax(axis=1)
        columns = {
            "node": np.arange(self.num_nodes),
            "class": names[: self.num_nodes],
            "predicted": np.array(self.dataset.class_names, dtype=object)[predicted],
            "probability": np.exp(self.log_probs.max(axis=1).astype(np.float64)),
            "part": self.parts(),
            "neighbors": np.bincount(self.edge_index[1], minlength=self.num_nodes),
        }
        if self.dataset.node_names is not None:
            columns["name"] = np.array(self.dataset.node_names, dtype=object)
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

    def class_pairs(self) -> pd.DataFrame:
        """One row per (class of the attending node, class of the neighbour) that occurs; self-loops aside.

        ``ignored`` is the share of all coefficients (edges x layers x heads) that are exactly zero,
        ``ignored_layer<k>`` the same within a layer, ``unanimous`` the share of edges that every head ignores.
        """
        names = self._label_names()
        kept = ~self.self_loop
        source, target = self.edge_index[:, kept]
        columns: dict[str, np.ndarray] = {
            "target_class": names[target],
            "source_class": names[source],
            "unanimous": self.unanimous[kept].astype(float),
        }
        for layer in range(self.num_layers):
            columns[f"ignored_layer{layer + 1}"] = self.ignored_by[layer, kept] / self.num_heads
        frame = pd.DataFrame(columns)
        groups = frame.groupby(["target_class", "source_class"], observed=True)
        pairs = groups.mean()
        layers = [f"ignored_layer{layer + 1}" for layer in range(self.num_layers)]
        pairs.insert(0, "edges", groups.size())
        pairs.insert(1, "ignored", pairs[layers].mean(axis=1))
        return pairs.reset_index().sort_values("ignored", ascending=False, kind="stable", ignore_index=True)

    def neighbourhood(self, node: int) -> pd.DataFrame:
        """The rows of :meth:`edges` that end in ``node``, the heaviest in the last layer first."""
        if isinstance(node, bool) or not isinstance(node, int | np.integer) or not 0 <= node < self.num_nodes:
            raise InputError(f"node: got {node!r}; the graph's nodes are numbered 0 to {self.num_nodes - 1}")
        frame = self.edges()[self.edge_index[1] == node]
        return frame.sort_values(f"mean_weight_layer{self.num_layers}", ascending=False, kind="stable")

    def pruned(self, share: float = 1.0) -> Data:
        """The graph without the edges that at least this share of all heads ignores; see ``export.pruned``."""
        return export.pruned(self, share)

    def to_parquet(self, path: str | Path) -> Path:
        """Write :meth:`coefficients` to a Parquet file; returns its path."""
        return export.write_parquet(self, path)

    def to_graphml(self, path: str | Path) -> Path:
        """Write nodes, edges and all coefficients to a GraphML file; returns its path."""
        return export.write_graphml(self, path)

    def parts(self) -> np.ndarray:
        """``[N]``: which part of the run's split a node is in, or an empty string."""
        parts = np.full(self.num_nodes, "", dtype=object)
        for name, mask in zip(PARTS, self.dataset.split(self.typed.config.split)):
            parts[mask.cpu().numpy()] = name
        return parts

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

    def _label_names(self) -> np.ndarray:
        """``[N]``: the class name of every node."""
        names = np.array([*self.dataset.class_names, UNLABELLED], dtype=object)  # label -1 is the last
        return names[self.dataset.data.y.cpu().numpy()]
