"""What a network has to beat: always the commonest class, and a linear model that sees features but no edges."""

from __future__ import annotations

from dataclasses import dataclass

from ltga.data import Dataset, GraphFolder
from ltga.data.target import rarer_class
from ltga.train.linear import class_logits
from ltga.train.metrics import classification_metrics


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
    x = dataset.feature_rows if isinstance(dataset, GraphFolder) else dataset.data.x
    rows, wanted = (mask.nonzero().squeeze(1) for mask in (train, nodes))
    linear = class_logits(x, y.numpy(), rows, wanted, dataset.num_classes)
    labels, rarer = y[nodes], rarer_class(y)
    return [
        Yardstick("commonest class", classification_metrics(constant, labels, positive=rarer)),
        Yardstick("features only", classification_metrics(linear, labels, positive=rarer)),
    ]
