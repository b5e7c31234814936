"""``NodeClasses``: what attention did where every node has one of several classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ltga.explanation.result import PARTS, Explanation

UNLABELLED = "(unlabelled)"


@dataclass(frozen=True, eq=False, repr=False)
class NodeClasses(Explanation):
    """An explanation of a node classifier.

    Attributes:
        log_probs: ``[N, C]`` predictions of the run.
    """

    log_probs: np.ndarray

    def about_nodes(self) -> dict[str, np.ndarray]:
        return {"class": self._label_names()}

    def predictions(self) -> dict[str, np.ndarray]:
        predicted = self.log_probs.argmax(axis=1)
        return {
            "predicted": np.array(self.dataset.class_names, dtype=object)[predicted],
            "probability": np.exp(self.log_probs.max(axis=1).astype(np.float64)),
            "part": self.parts(),
        }

    def class_pairs(self) -> pd.DataFrame:
        """One row per (class of the attending node, class of the neighbour) that occurs; self-loops aside.

        ``ignored`` is the share of all coefficients (edges x layers x heads) that are exactly zero,
        ``ignored_layer<k>`` the same within a layer, ``unanimous`` the share of edges that every head ignores.
        """
        names = [*self.dataset.class_names, UNLABELLED]
        y = self.dataset.data.y.cpu().numpy()
        kept = ~self.self_loop
        codes = np.where(y < 0, len(names) - 1, y)
        source, target = codes[self.edge_index[:, kept]]
        columns: dict[str, object] = {
            "target_class": pd.Categorical.from_codes(target, pd.Index(names)),
            "source_class": pd.Categorical.from_codes(source, pd.Index(names)),
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
        pairs = pairs.reset_index().astype({"target_class": object, "source_class": object})
        return pairs.sort_values("ignored", ascending=False, kind="stable", ignore_index=True)

    def parts(self) -> np.ndarray:
        """``[N]``: which part of the run's split a node is in, or an empty string."""
        return parts_of(self.dataset, self.typed.config.split, self.num_nodes)

    def _label_names(self) -> np.ndarray:
        """``[N]``: the class name of every node."""
        names = np.array([*self.dataset.class_names, UNLABELLED], dtype=object)  # label -1 is the last
        return names[self.dataset.data.y.cpu().numpy()]


def parts_of(dataset: object, split: int, count: int) -> np.ndarray:
    """``[count]``: which part of a dataset's split a node or graph is in, or an empty string."""
    parts = np.full(count, "", dtype=object)
    for name, mask in zip(PARTS, dataset.split(split)):  # type: ignore[attr-defined]
        parts[mask.cpu().numpy()] = name
    return parts
