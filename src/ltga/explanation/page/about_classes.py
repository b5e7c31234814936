"""The page of a node classifier."""

from __future__ import annotations

from typing import Any

import numpy as np

from ltga.explanation.node_classes import UNLABELLED, NodeClasses
from ltga.explanation.page.about import (
    PICKS,
    About,
    Places,
    ignoring_most,
    part_codes,
    reliability_section,
    score_tile,
)


def about_classes(explanation: NodeClasses) -> About:
    y, dataset, parts = explanation.dataset.data.y.cpu().numpy(), explanation.dataset, explanation.parts()
    part = "test" if (parts == "test").any() else "val"
    predicted = explanation.log_probs.argmax(axis=1)
    metric = explanation.typed.metric or dataset.metric
    also = [name for name in ("accuracy", "macro_f1") if name != metric]
    wrong = np.flatnonzero((parts == "test") & (predicted != y))
    wrong = wrong[np.argsort(-explanation.log_probs[wrong].max(axis=1), kind="stable")[:PICKS]]
    ignoring, frame = ignoring_most(explanation), explanation.class_pairs()
    examples = _examples(explanation)
    measured = explanation.record["metrics"].get(part, {})
    scores = [score_tile(explanation, part, metric, also)]
    if measured.get("ece") is not None:
        nll = measured.get("nll")
        brier = measured.get("brier", float("nan"))
        note = f"NLL {'∞' if nll is None else f'{nll:.3f}'}, Brier {brier:.3f} (summed over classes: 0 to 2)"
        scores.append(("Calibration error", f"{measured['ece']:.3f}", note))

    def sections(places: Places) -> dict[str, Any]:
        chosen = parts == part
        probs = np.exp(explanation.log_probs[chosen].astype(np.float64))
        correct = probs.argmax(axis=1) == y[chosen]
        return {
            "reliability": reliability_section(probs.max(axis=1), correct, part, "nodes"),
            "pairs": _pairs(explanation, frame, examples, places),
            "picks": {name: _there(places(nodes)) for name, nodes in (("ignored", ignoring), ("wrong", wrong))},
        }

    return About(
        kind="classes",
        sizes=f"{explanation.num_nodes:,} nodes, {int((~explanation.self_loop).sum()):,} edges, "
        f"{len(dataset.class_names)} classes",
        words={"known": "Class", "same": "same class as the node", "other": "another class", "unknown": UNLABELLED},
        names=dataset.class_names,
        scores=scores,
        of_nodes={
            "label": y.astype(np.int16),
            "predicted": predicted.astype(np.int16),
            "probability": np.exp(explanation.log_probs.max(axis=1)).astype(np.float32),
            "part": part_codes(parts),
        },
        wanted=(
            ("that ignore most", ignoring),
            ("of the test part that are wrong and surest", wrong),
            ("examples of class pairs", examples["target"].to_numpy()),
        ),
        sections=sections,
    )


def _there(places: np.ndarray) -> list[int]:
    return [int(place) for place in places if place >= 0]


def _pairs(explanation: NodeClasses, frame: Any, examples: Any, places: Places) -> dict[str, Any]:
    """The class-pair table as matrices: attending class by neighbour class, all layers together and each alone."""
    occurring = set(frame["target_class"]) | set(frame["source_class"])
    names = [name for name in (*explanation.dataset.class_names, UNLABELLED) if name in occurring]
    number = {name: k for k, name in enumerate(names)}
    row, column = frame["target_class"].map(number), frame["source_class"].map(number)

    def matrix(values: Any, empty: float) -> list[list[float]]:
        filled = np.full((len(names), len(names)), empty)
        filled[row, column] = values
        return filled.tolist()  # type: ignore[no-any-return]

    views = ["ignored", *(f"ignored_layer{layer + 1}" for layer in range(explanation.num_layers))]
    example = frame.merge(examples, on=["target_class", "source_class"], how="left")["target"]
    return {
        "names": names,
        "edges": matrix(frame["edges"], 0),
        "ignored": [matrix(frame[view], float("nan")) for view in views],
        "example": matrix(places(example), -1),
    }


def _examples(explanation: NodeClasses) -> Any:
    """For each class pair a node where an edge of this kind is ignored by the most heads."""
    edges = explanation.edges()
    edges = edges[~edges["self_loop"]].sort_values("ignored_by", ascending=False, kind="stable")
    return edges.drop_duplicates(["target_class", "source_class"])[["target_class", "source_class", "target"]]
