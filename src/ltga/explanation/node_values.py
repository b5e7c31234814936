"""``NodeValues``: what attention did where every node has a number, or any of several labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ltga.explanation.label_table import label_table
from ltga.explanation.node_classes import parts_of
from ltga.explanation.result import Explanation


@dataclass(frozen=True, eq=False, repr=False)
class NodeValues(Explanation):
    """An explanation of a run on nodes' numbers or labels.

    Attributes:
        predicted: ``[N]`` numbers in the units of the target, or ``[N, L]`` probabilities of the labels.
    """

    predicted: np.ndarray

    @property
    def truth(self) -> np.ndarray:
        """``[N]`` or ``[N, L]``: what was to be predicted; NaN where it is not known."""
        truth: np.ndarray = self.dataset.target.y.cpu().numpy()
        return truth

    @property
    def kind(self) -> str:
        """``"number"`` or ``"labels"``."""
        return str(self.dataset.target.kind)

    def about_nodes(self) -> dict[str, np.ndarray]:
        return {"value": self.truth} if self.kind == "number" else {"labels": self._label_lists(self.truth == 1)}

    def predictions(self) -> dict[str, np.ndarray]:
        if self.kind == "number":
            columns = {"predicted": self.predicted, "residual": self.predicted - self.truth}
        else:
            columns = {"predicted": self._label_lists(self.predicted > 0.5)}
        return columns | {"part": self.parts()}

    def labels(self) -> pd.DataFrame:
        """One row per label, on the test nodes: how often it occurs and how well it is predicted."""
        chosen = self.parts() == self.part
        return label_table(self.predicted[chosen], self.truth[chosen], self.dataset.target.names)

    @property
    def part(self) -> str:
        """The part of the nodes that scores are about."""
        return "test" if (self.parts() == "test").any() else "val"

    def parts(self) -> np.ndarray:
        """``[N]``: which part of the run's split a node is in, or an empty string."""
        return parts_of(self.dataset, self.typed.config.split, self.num_nodes)

    def _label_lists(self, chosen: np.ndarray) -> np.ndarray:
        names = np.array(self.dataset.target.names, dtype=object)
        return np.array([", ".join(names[row]) for row in chosen], dtype=object)
