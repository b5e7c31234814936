"""What a task adds to the page, in a form that is the same for all tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ltga.explanation.page.sample import Sample
from ltga.explanation.reliability import reliability_bins
from ltga.explanation.result import PARTS, Explanation

BINS = 10
PICKS = 40  # nodes offered by each of the view's shortcuts
MOST_POINTS = 1500  # of a scatter plot
Places = Callable[[Any], np.ndarray]
_NAMES = {
    "accuracy": "accuracy", "roc_auc": "ROC AUC", "balanced_accuracy": "balanced accuracy", "macro_f1": "macro-F1",
    "micro_f1": "micro-F1", "average_precision": "average precision", "mae": "mean absolute error",
    "rmse": "root mean squared error", "r2": "R²", "log_mae": "mean absolute error of the logarithm",
    "log_rmse": "root mean squared error of the logarithm", "log_r2": "R² of the logarithm",
    "mrr": "mean reciprocal rank", "hits_at_1": "Hits@1", "hits_at_3": "Hits@3", "hits_at_10": "Hits@10",
    "nll": "negative log-likelihood", "ece": "calibration error",
}  # fmt: skip
_PLAIN = ("mae", "rmse", "log_mae", "log_rmse", "r2", "log_r2", "nll", "ece", "brier")  # not shares


@dataclass(frozen=True)
class About:
    """A task's part of the page.

    Attributes:
        kind: what is known of a node: ``"classes"``, ``"number"``, ``"labels"``, ``"atoms"`` or ``"nothing"``.
        sizes: what the header says of the data.
        words: ``known`` (heading of what is known of a node), ``same`` and ``other`` (the two shapes of the legend).
        names: of the classes or labels, for the arrays to refer to.
        scores: tiles: a name, a value, a note.
        of_nodes: arrays ``[N, ...]`` to be packed.
        wanted: nodes that a sample should have, by reason.
        node_bytes: bytes of ``of_nodes`` per node beyond the usual few.
        sections: what the task's own sections read, given where nodes stand in the page.
        sample: the nodes of the page, where the task chooses them itself, and ``sample_words`` how.
    """

    kind: str
    sizes: str
    words: dict[str, str]
    names: Sequence[str]
    scores: list[tuple[str, str, str]]
    of_nodes: dict[str, np.ndarray]
    wanted: Sequence[tuple[str, np.ndarray]]
    sections: Callable[[Places], dict[str, Any]]
    node_bytes: int = 0
    sample: Sample | None = None
    sample_words: str | None = None


def score_tile(explanation: Explanation, part: str, metric: str, also: Sequence[str] = ()) -> tuple[str, str, str]:
    """The tile of a part's metric, with others in its note."""
    found = explanation.record["metrics"].get(part, {})
    name = f"{'validation' if part == 'val' else part} {_NAMES.get(metric, metric)}"
    notes = (
        f"{_NAMES.get(other, other)} {shown(other, found.get(other))}"
        for other in also
        if other in found and other != metric
    )
    return name[0].upper() + name[1:], shown(metric, found.get(metric)), ", ".join(notes)


def shown(metric: str, value: float | None) -> str:
    """A score as a person reads it.

    >>> shown("accuracy", 0.8512), shown("mae", 1234.5), shown("r2", 0.5), shown("accuracy", None)
    ('85.1 %', '1,234', '0.500', '–')
    """
    if value is None or value != value:
        return "–"
    if metric not in _PLAIN:
        return f"{100 * value:.1f} %"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3f}"


def ignoring_most(explanation: Explanation) -> np.ndarray:
    """Nodes where much is ignored: many zeros and a large share."""
    zeros = np.bincount(explanation.edge_index[1], explanation.ignored_by.sum(axis=0), explanation.num_nodes)
    total = np.bincount(explanation.edge_index[1], minlength=explanation.num_nodes)
    busiest = np.argsort(-(zeros**2) / np.maximum(total, 1), kind="stable")[:PICKS]
    chosen: np.ndarray = busiest[zeros[busiest] > 0]
    return chosen


def part_codes(parts: np.ndarray) -> np.ndarray:
    """``[N]``: 0 for no part of the split, 1 to 3 for train, val and test."""
    return np.array([["", *PARTS].index(part) for part in parts], dtype=np.uint8)


def reliability_section(confidence: np.ndarray, correct: np.ndarray, part: str, unit: str) -> dict[str, Any]:
    """Confidence against accuracy in equal bins of the top class's probability."""
    bins = reliability_bins(confidence, correct, BINS)
    columns = ["low", "high", "count", "confidence", "accuracy"]
    rows = bins.loc[bins["count"] > 0, columns].to_dict("records")
    return {"part": part, "unit": unit, "bins": rows}


def scatter_section(
    truth: np.ndarray, predicted: np.ndarray, chosen: np.ndarray, places: Places, name: str, log: bool, unit: str
) -> dict[str, Any]:
    """Truth against prediction of ``chosen``; of very many only some, drawn by a fixed seed, the worst among them."""
    known = chosen[~np.isnan(truth[chosen])]
    drawn = known
    if len(known) > MOST_POINTS:
        worst = known[np.argsort(-np.abs(predicted[known] - truth[known]), kind="stable")[:PICKS]]
        rest = np.random.default_rng(0).permutation(np.setdiff1d(known, worst))[: MOST_POINTS - len(worst)]
        drawn = np.sort(np.concatenate([worst, rest]))
    residual = (predicted[known] - truth[known]).astype(np.float64)
    low, middle, high = (float(value) for value in np.quantile(residual, [0.1, 0.5, 0.9])) if len(known) else (0, 0, 0)
    return {
        "name": name,
        "log": log,
        "unit": unit,
        "all": len(known),
        "truth": truth[drawn].astype(float).tolist(),
        "predicted": predicted[drawn].astype(float).tolist(),
        "place": places(drawn).tolist(),
        "quantiles": [low, middle, high],
    }
