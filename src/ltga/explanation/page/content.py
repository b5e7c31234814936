"""What the page shows, as one JSON-able dictionary: numbers for the overview, packed arrays for the view."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from ltga.errors import InputError
from ltga.explanation.reliability import reliability_bins
from ltga.explanation.result import PARTS, UNLABELLED, Explanation
from ltga.nn.methods import find_method
from ltga.train.record import plain

BINS = 10
PICKS = 40  # nodes offered by each of the view's shortcuts
EXACT_BYTES = 32 << 20  # up to here logits and q are stored in float32, beyond in float16
MOST_BYTES = 64 << 20


def page_content(explanation: Explanation) -> dict[str, Any]:
    """Everything ``page.html`` and its scripts read."""
    record, run, dataset = explanation.record, explanation.typed, explanation.dataset
    method = find_method(run.config.method)
    loops = explanation.self_loop
    edges = int((~loops).sum())
    arrays, exact = _arrays(explanation)
    content = {
        "title": f"{method.label} on {dataset.name}",
        "method": {"label": method.label, "about": method.about},
        "seed": run.config.seed,
        "split": run.config.split,
        "id": run.id,
        "letter": "α" if explanation.normalizer == "entmax" else "q",
        "normalizer": explanation.normalizer,
        "learned": method.learns_index,
        "layers": explanation.num_layers,
        "heads": explanation.num_heads,
        "nodes": explanation.num_nodes,
        "edges": edges,
        "class_names": list(dataset.class_names),
        "unlabelled": UNLABELLED,
        "node_names": None if dataset.node_names is None else list(dataset.node_names),
        "metrics": record["metrics"],
        "metric": dataset.metric,
        "reliability": _reliability(explanation),
        "best_epoch": run.best_epoch,
        "trajectory": record["trajectory"]["q"],
        "head_table": explanation.heads().to_dict("records"),
        "zero_share": float(explanation.ignored[:, ~loops].mean()) if edges else 0.0,
        "unanimous": int((explanation.unanimous & ~loops).sum()),
        "planted": _planted(explanation),
        "pairs": _pairs(explanation),
        "picks": _picks(explanation),
        "exact": exact,
        "arrays": arrays,
    }
    return plain(content)  # type: ignore[no-any-return]


def _reliability(explanation: Explanation) -> dict[str, Any]:
    """Confidence against accuracy in equal bins of the top class's probability, on the test nodes."""
    y = explanation.dataset.data.y.cpu().numpy()
    parts = explanation.parts()
    part = "test" if (parts == "test").any() else "val"
    chosen = parts == part
    probs = np.exp(explanation.log_probs[chosen].astype(np.float64))
    confidence, correct = probs.max(axis=1), probs.argmax(axis=1) == y[chosen]
    bins = reliability_bins(confidence, correct, BINS)
    columns = ["low", "high", "count", "confidence", "accuracy"]
    rows = bins.loc[bins["count"] > 0, columns].to_dict("records")
    return {"part": part, "bins": rows}


def _planted(explanation: Explanation) -> dict[str, float] | None:
    """How much of what was ignored is known noise, where the dataset knows."""
    planted = explanation.planted
    if planted is None:
        return None
    zeros = int(explanation.ignored[:, ~explanation.self_loop].sum())
    noise = int(explanation.ignored[:, planted].sum())
    share = float(planted[~explanation.self_loop].mean())
    return {"of_edges": share, "of_ignored": noise / zeros if zeros else float("nan")}


def _pairs(explanation: Explanation) -> dict[str, Any]:
    """The class-pair table as matrices: attending class by neighbour class, all layers together and each alone."""
    frame = explanation.class_pairs()
    occurring = set(frame["target_class"]) | set(frame["source_class"])
    names = [name for name in (*explanation.dataset.class_names, UNLABELLED) if name in occurring]
    number = {name: k for k, name in enumerate(names)}
    row, column = frame["target_class"].map(number), frame["source_class"].map(number)

    def matrix(values: Any, empty: float) -> list[list[float]]:
        filled = np.full((len(names), len(names)), empty)
        filled[row, column] = values
        return filled.tolist()  # type: ignore[no-any-return]

    views = ["ignored", *(f"ignored_layer{layer + 1}" for layer in range(explanation.num_layers))]
    example = frame.merge(_examples(explanation), on=["target_class", "source_class"], how="left")["target"]
    return {
        "names": names,
        "edges": matrix(frame["edges"], 0),
        "ignored": [matrix(frame[view], float("nan")) for view in views],
        "example": matrix(example, -1),
    }


def _examples(explanation: Explanation) -> Any:
    """For each class pair a node where an edge of this kind is ignored by the most heads."""
    edges = explanation.edges()
    edges = edges[~edges["self_loop"]].sort_values("ignored_by", ascending=False, kind="stable")
    return edges.drop_duplicates(["target_class", "source_class"])[["target_class", "source_class", "target"]]


def _picks(explanation: Explanation) -> dict[str, list[int]]:
    """Nodes worth a look: where much is ignored (many zeros and a large share), and where the prediction is wrong."""
    y = explanation.dataset.data.y.cpu().numpy()
    zeros = np.bincount(explanation.edge_index[1], explanation.ignored_by.sum(axis=0), explanation.num_nodes)
    total = np.bincount(explanation.edge_index[1], minlength=explanation.num_nodes)
    busiest = np.argsort(-(zeros**2) / np.maximum(total, 1), kind="stable")[:PICKS]
    wrong = np.flatnonzero((explanation.parts() == "test") & (explanation.log_probs.argmax(axis=1) != y))
    surest = np.argsort(-explanation.log_probs[wrong].max(axis=1), kind="stable")[:PICKS]
    return {"ignored": busiest[zeros[busiest] > 0].tolist(), "wrong": wrong[surest].tolist()}


def _arrays(explanation: Explanation) -> tuple[dict[str, dict[str, str]], bool]:
    """Nodes and edges as base64 of typed arrays, edges sorted by target; and whether logits are in float32.

    Of the logits only the gap to the best in the neighbourhood matters, so that is what is stored.
    """
    nodes, target = explanation.num_nodes, explanation.edge_index[1]
    order = np.argsort(target, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=nodes))])
    q = explanation.q
    per_head = bool((q == q[:, :1]).all())
    q = q[:, 0] if per_head else q[:, order]
    size = 4 * (explanation.logits.size + q.size)
    exact = size <= EXACT_BYTES
    if not exact and size // 2 > MOST_BYTES:
        raise InputError(
            f"page: {explanation.logits.size:,} coefficients are too many for a page; "
            "write them with to_parquet (--parquet) instead"
        )
    real = np.float32 if exact else np.float16
    arrays = {
        "start": start.astype(np.uint32),
        "source": explanation.edge_index[0, order].astype(np.uint32),
        "gap": _gaps(explanation)[:, order].astype(real),
        "q": q.astype(real),
        "label": explanation.dataset.data.y.cpu().numpy().astype(np.int16),
        "predicted": explanation.log_probs.argmax(axis=1).astype(np.int16),
        "probability": np.exp(explanation.log_probs.max(axis=1)).astype(np.float32),
        "part": np.array([["", *PARTS].index(part) for part in explanation.parts()], dtype=np.uint8),
    }
    if explanation.planted is not None:
        arrays["planted"] = explanation.planted[order].astype(np.uint8)
    return {name: _packed(values) for name, values in arrays.items()}, exact


def _gaps(explanation: Explanation) -> np.ndarray:
    """``[L, E, H]``: how far each logit lies below the highest of its neighbourhood."""
    gaps = np.empty_like(explanation.logits)
    target = explanation.edge_index[1]
    for layer, logits in enumerate(explanation.logits):
        top = np.full((explanation.num_nodes, explanation.num_heads), -np.inf, dtype=logits.dtype)
        np.maximum.at(top, target, logits)
        gaps[layer] = top[target] - logits
    return np.minimum(gaps, 60_000)  # float16 ends at 65,504


def _packed(values: np.ndarray) -> dict[str, str]:
    little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    return {"type": values.dtype.name, "base64": base64.b64encode(little.tobytes()).decode()}
