"""``Graphs``: what attention did inside each of many graphs that have a class, a number or several labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch_geometric.data import Data

from ltga.data import GraphCollection
from ltga.errors import InputError, did_you_mean
from ltga.explanation.label_table import label_table
from ltga.explanation.molecule import symbols_of
from ltga.explanation.node_classes import parts_of
from ltga.explanation.result import Explanation


@dataclass(frozen=True, eq=False, repr=False)
class Graphs(Explanation):
    """An explanation of a run on whole graphs; nodes and edges of all graphs stand one after another.

    Attributes:
        predicted: ``[G]`` numbers in the units of the target, or ``[G, K]`` probabilities of classes or labels.
        joined: all graphs as one, with ``batch`` ``[N]``: which graph a node is of.
    """

    dataset: GraphCollection
    predicted: np.ndarray
    joined: Data

    @property
    def graph(self) -> Data:
        return self.joined

    @property
    def num_graphs(self) -> int:
        return len(self.dataset)

    @property
    def kind(self) -> str:
        """``"classes"``, ``"number"`` or ``"labels"``."""
        return self.dataset.target.kind

    @cached_property
    def graph_of(self) -> np.ndarray:
        """``[N]``: which graph a node is of."""
        batch: np.ndarray = self.joined.batch.numpy()
        return batch

    @cached_property
    def first(self) -> np.ndarray:
        """``[G + 1]``: where the nodes of a graph begin, and the end."""
        return np.searchsorted(self.graph_of, np.arange(self.num_graphs + 1))

    @property
    def numbers(self) -> np.ndarray:
        """``[N]``: the number of a node in its graph."""
        return np.arange(self.num_nodes) - self.first[self.graph_of]

    @cached_property
    def graph_names(self) -> np.ndarray:
        """``[G]``: the name of every graph, its number if it has none."""
        names = self.dataset.graph_names
        return np.array(range(self.num_graphs) if names is None else names, dtype=object).astype(str).astype(object)

    @cached_property
    def node_names(self) -> list[str] | None:  # type: ignore[override]
        """What people call the nodes, graph by graph; nodes of two graphs may be called alike."""
        names = self.dataset.node_names
        return None if names is None else [name for of_graph in names for name in of_graph]

    @cached_property
    def symbols(self) -> np.ndarray | None:
        """``[N]``: the element of every node, where graphs are known to be molecules."""
        return symbols_of(self.dataset.name, self.joined.x)

    def about_nodes(self) -> dict[str, np.ndarray]:
        return {} if self.symbols is None else {"atom": self.symbols}

    def predictions(self) -> dict[str, np.ndarray]:
        return {"graph": self.graph_names[self.graph_of]}

    def about_edges(self) -> dict[str, Any]:
        codes = self.graph_of[self.edge_index[1]]
        named: dict[str, Any] = {}
        if self.node_names is not None:
            names = pd.Categorical(self.node_names)
            named = {f"{end}_name": names[at] for end, at in zip(("source", "target"), self.edge_index)}
        if len(set(self.graph_names.tolist())) < self.num_graphs:  # names that repeat
            return {"graph": self.graph_names[codes], "graph_number": codes, **named}
        return {"graph": pd.Categorical.from_codes(codes, self.graph_names.tolist()), **named}

    def graphs(self) -> pd.DataFrame:
        """One row per graph: target and prediction, its part, its size, and how much of it is ignored."""
        graph_of_edge = self.graph_of[self.edge_index[1]]
        apart = ~self.self_loop
        count = np.bincount(graph_of_edge[apart], minlength=self.num_graphs)
        zeros = np.bincount(graph_of_edge[apart], self.ignored_by.sum(axis=0)[apart], self.num_graphs)
        everyone = np.bincount(graph_of_edge[apart & self.unanimous], minlength=self.num_graphs)
        share = np.divide(zeros, count * self.num_layers * self.num_heads, out=np.zeros(len(zeros)), where=count > 0)
        columns = {
            "graph": np.arange(self.num_graphs),
            "name": self.graph_names,
            **self._judged(),
            "part": self.parts(),
        }
        columns |= {"nodes": np.diff(self.first), "edges": count, "ignored": everyone, "ignored_share": share}
        return pd.DataFrame(columns)

    def labels(self) -> pd.DataFrame:
        """One row per label, on the test graphs: how often it occurs and how well it is predicted."""
        chosen = self.parts() == self.part
        return label_table(self.predicted[chosen], self.dataset.target.y.numpy()[chosen], self.dataset.target.names)

    def edges_of(self, graph: int | str) -> pd.DataFrame:
        """The rows of :meth:`edges` that are of one graph: its number, or its name as text."""
        return self.edges()[self.graph_of[self.edge_index[1]] == self.find_graph(graph)]

    def find_graph(self, graph: int | str) -> int:
        """The number of a graph, from its number or, as text, its name."""
        if isinstance(graph, str):
            named = np.flatnonzero(self.graph_names == graph)
            if named.size:
                return int(named[0])
            if not graph.isdecimal() or len(graph) > 18 or int(graph) >= self.num_graphs:
                hint = did_you_mean(graph, list(self.graph_names[:5000]), f"numbers go from 0 to {self.num_graphs - 1}")
                raise InputError(f"graph: {self.dataset.name} has no graph {graph[:40]!r}; {hint}")
            graph = int(graph)
        if isinstance(graph, bool) or not isinstance(graph, int | np.integer) or not 0 <= graph < self.num_graphs:
            raise InputError(f"graph: got {graph!r}; graphs are numbered 0 to {self.num_graphs - 1}")
        return int(graph)

    @property
    def part(self) -> str:
        """The part of the graphs that scores are about."""
        return "test" if (self.parts() == "test").any() else "val"

    def parts(self) -> np.ndarray:
        """``[G]``: which part of the run's split a graph is in, or an empty string."""
        return parts_of(self.dataset, self.typed.config.split, self.num_graphs)

    def _judged(self) -> dict[str, np.ndarray]:
        """Target and prediction of every graph, as columns."""
        y, names = self.dataset.target.y.numpy(), np.array([*self.dataset.target.names, ""], dtype=object)
        if self.kind == "number":
            return {"value": y, "predicted": self.predicted, "residual": self.predicted - y}
        if self.kind == "classes":
            said = self.predicted.argmax(axis=1)
            return {"class": names[y], "predicted": names[said], "probability": self.predicted.max(axis=1)}
        lists = {"labels": y == 1, "predicted": self.predicted > 0.5}
        return {
            name: np.array([", ".join(names[:-1][row]) for row in chosen], dtype=object)
            for name, chosen in lists.items()
        }


def joined(dataset: GraphCollection) -> Data:
    """All graphs as one graph with ``batch``, and with what a network reads."""
    sizes = torch.tensor([graph.x.shape[0] for graph in dataset])
    first = sizes.cumsum(0) - sizes
    data = Data(
        x=torch.cat([graph.x for graph in dataset]).float(),
        edge_index=torch.cat([graph.edge_index + offset for graph, offset in zip(dataset, first.tolist())], dim=1),
        batch=torch.arange(len(dataset)).repeat_interleave(sizes),
    )
    if dataset.edge_dim is not None:
        data.edge_attr = torch.cat([graph.edge_attr for graph in dataset])
    return data
