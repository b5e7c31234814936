"""What a network has to beat: always the commonest class, and a linear model that sees features but no edges."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch

from ltga.data import Dataset, GraphFolder
from ltga.train.metrics import classification_metrics

MOST_VALUES = 20_000_000  # of features in the training part; above that only some of its nodes are learned from


@dataclass(frozen=True)
class Yardstick:
    """A simple model's metrics on one part of a split."""

    label: str
    metrics: dict[str, float]


def yardsticks(dataset: Dataset | GraphFolder, split: int, part: str = "test") -> list[Yardstick]:
    """The two yardsticks on a split of ``dataset``; seconds, and the same every time.

    >>> from ltga.data import csbm
    >>> [one.label for one in yardsticks(csbm(num_nodes=80), 0)]
    ['commonest class', 'features only']
    """
    train, val, test = dataset.split(split)
    nodes = {"train": train, "val": val, "test": test}[part]
    y = dataset.target.y
    counts = y[train].bincount(minlength=dataset.num_classes).double()
    # Shares of the classes, so that rankings are ties and the loss is the best a constant can do.
    constant = (counts / counts.sum()).log().expand(int(nodes.sum()), -1)
    linear = _linear(dataset, train, nodes)
    return [
        Yardstick("commonest class", classification_metrics(constant, y[nodes])),
        Yardstick("features only", classification_metrics(linear, y[nodes])),
    ]


def _linear(dataset: Dataset | GraphFolder, train: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
    """Log-probabilities ``[n, C]`` of logistic regression on standardised features."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x = dataset.feature_rows if isinstance(dataset, GraphFolder) else dataset.data.x
    y = dataset.target.y.numpy()
    chosen = np.flatnonzero(train.numpy())
    most = max(MOST_VALUES // dataset.num_features, dataset.num_classes)
    if chosen.size > most:
        chosen = np.sort(np.random.default_rng(0).choice(chosen, most, replace=False))
    known = np.unique(y[chosen])
    found = np.full((int(nodes.sum()), dataset.num_classes), -np.inf)
    if known.size == 1:
        found[:, known] = 0.0
    else:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=100))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a yardstick need not be exact
            model.fit(x[torch.from_numpy(chosen)].numpy(), y[chosen])
        for at in torch.arange(len(found)).split(most):
            found[np.ix_(at, known)] = model.predict_log_proba(x[nodes.nonzero().squeeze(1)[at]].numpy())
    return torch.from_numpy(found).double().log_softmax(-1)
