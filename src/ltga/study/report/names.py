"""What tables and figures call methods, datasets, settings and measures."""

from __future__ import annotations

from collections.abc import Mapping

from ltga.nn.methods import METHODS
from ltga.study.spec import STAND_INS
from ltga.study.tuned import TUNED_ROWS

SWEPT: Mapping[str, str] = {"prior": "λ", "warmup": "T_w", "kappa": "κ", "delta": "δ"}
"""Settings that are swept -> what the paper calls them."""

HEADS: Mapping[str, str] = {"one": "a head", "all": "every head"}
"""Who prunes an edge."""

COVARIATES: Mapping[str, str] = {
    "source_degree": "source degree",
    "target_degree": "target degree",
    "feature_cosine": "feature cosine",
    "embedding_cosine": "embedding cosine",
    "logit_magnitude": "logit magnitude",
    "score_gap": "score gap",
}
"""What q of an edge could depend on."""

COUNTERFACTUALS: Mapping[str, tuple[str, str]] = {
    "learned": ("learned", "the model as it was trained"),
    "restore": ("all edges, q = 1", "softmax over all edges"),
    "random": (
        "random",
        "softmax after pruning as many edges of each neighbourhood and head at random, self-loops too",
    ),
    "random-neighbours": ("random, loops as learned", "the same, but self-loops are pruned only where learned"),
    "selected": ("softmax on kept", "softmax over the edges that the model keeps"),
    "clamp": ("q ≥ 1", "no heavy tails"),
}
"""Counterfactual -> what it is called and what it means."""


def label(method: str) -> str:
    """What tables and figures call a method; a method nobody knows keeps its name."""
    if method in METHODS:
        return METHODS[method].label
    return next((row.label for row in TUNED_ROWS if row.name == method), method)


def dataset_title(name: str) -> str:
    """A dataset's name, with a mark if it is a stand-in."""
    return f"{name} (stand-in)" if name in STAND_INS else name


def with_seeds(title: str, count: int) -> str:
    """A title that says of how many seeds.

    >>> with_seeds("cora", 1), with_seeds("cora", 2)
    ('cora, 1 seed', 'cora, 2 seeds')
    """
    return f"{title}, {count} seed{'s' if count > 1 else ''}"
